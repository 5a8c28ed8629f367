package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/internal/run"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

const (
	callTimeout = 30 * time.Second // one question to the archive
	openTimeout = 15 * time.Second // the first contact with the store
)

// with opens the archive that the configuration names, calls f and closes it.
func (a *app) with(cmd *cobra.Command, f func(ctx context.Context, c *config, archive *run.Archive) error) (err error) {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	conn, err := run.Connect(cmd.Context(), c.Config)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := conn.Close(); err == nil {
			err = closeErr
		}
	}()
	opened, err := open(cmd.Context(), conn)
	if err != nil {
		return err
	}
	return f(cmd.Context(), c, opened)
}

func open(ctx context.Context, conn *run.Connection) (*run.Archive, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	a, err := conn.Open(ctx)
	if ctx.Err() == context.DeadlineExceeded {
		return nil, fmt.Errorf("the store at %s does not answer within %s; check that it runs and that this is its address: %w", conn.Bigtable, openTimeout, err)
	}
	return a, err
}

func (a *app) getCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "get ID|ROWKEY|TX|DIGEST",
		Short: "Look a message up by whatever names it",
		Long: `Looks a message up by its id in any spelling (2/…/7, ethereum:0x…:7, a base58
or bech32 emitter, a padded row key), by a transaction, or by a digest (the
signing digest or the single hash). A transaction may name several messages: with
-o json, hex and base64 there is one line for each.

Exit code 3 says that nothing is known under the name, 4 that it is none.`,
		Example: `  attestry get ethereum/0x3ee18b2214aff97000d974cf647e7c347e8fa585/7
  attestry get 0x0515a7375f101e79a1d5e0f5159cce98fe8fe861bd2ab548e22f43375b04defb -o json
  attestry get 2/0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585/7 -o raw > message.vaa`,
		Args: arguments(1, 1, "give one message id, row key, transaction or digest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, _ *config, archive *run.Archive) error {
				ctx, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				found, err := archive.Query().Resolve(ctx, args[0])
				if err != nil {
					return err
				}
				return writeFound(cmd.OutOrStdout(), out.of(cmd), args[0], found)
			})
		},
	}
	out.register(cmd, formatRaw, formatHex, formatBase64)
	return cmd
}

func writeFound(w io.Writer, format, name string, found []query.Attestation) error {
	if format == formatRaw && len(found) > 1 {
		ids := make([]string, len(found))
		for i := range found {
			ids[i] = found[i].ID
		}
		return misused("%s names %d messages, and raw bytes of several cannot be told apart: get one of %s", name, len(found), strings.Join(ids, ", "))
	}
	for i := range found {
		if err := writeAttestation(w, format, &found[i], i > 0); err != nil {
			return err
		}
	}
	return nil
}

func writeAttestation(w io.Writer, format string, found *query.Attestation, further bool) error {
	switch format {
	case formatJSON:
		return writeJSON(w, found)
	case formatTable:
		if further {
			fmt.Fprintln(w)
		}
		return describe(w, found)
	}
	if found.SignedVAA == nil {
		return fmt.Errorf("message %s was observed on its chain, but no signed VAA of it is known yet: %w", found.ID, archive.ErrNotFound)
	}
	var err error
	switch format {
	case formatRaw:
		_, err = w.Write(found.SignedVAA)
	case formatHex:
		_, err = fmt.Fprintln(w, hex.EncodeToString(found.SignedVAA))
	default:
		_, err = fmt.Fprintln(w, base64.StdEncoding.EncodeToString(found.SignedVAA))
	}
	return err
}

// describe writes a message as a table of names and values. What is absent is
// left out.
func describe(w io.Writer, m *query.Attestation) error {
	t := table{w: w}
	t.row("message", m.ID)
	t.row("row key", m.RowKey)
	t.row("emitter", strings.TrimSpace(text(m.EmitterChainName)+" "+text(m.EmitterNative)))
	t.row("state", text(m.State))
	t.time("time", m.Timestamp)
	t.row("digest", text(m.Digest))
	t.row("digest (single)", text(m.DigestSingle))
	t.row("guardian set", text(m.GuardianSetIndex))
	t.time("set expired", m.GuardianSetExpiresAt)
	t.row("nonce", text(m.Nonce))
	t.row("consistency", text(m.ConsistencyLevel))
	t.row("transaction", text(m.InitiatingTxID))
	t.payload(m.PayloadKind, m.Decoded, m.DecodeError, m.Payload)
	t.time("recorded", m.RecordedAt)
	for _, v := range m.Versions {
		standing := "kept"
		if v.Canonical {
			standing = "canonical"
		}
		t.row("version", fmt.Sprintf("set %d, %s signatures, digest %s, %s", v.GuardianSetIndex, text(v.Signatures), v.Digest, standing))
	}
	for _, l := range m.Links {
		t.row("link", fmt.Sprintf("%s (%s, by %s)", l.TxID, l.Trust, l.Source))
	}
	for _, d := range m.Conflicts {
		t.row("conflict", d.String())
	}
	for _, d := range m.Vanished {
		t.row("vanished", d.String())
	}
	for _, match := range m.Matches {
		t.row("matches", match.Standing+" "+match.Digest.String())
	}
	return t.err
}

// table writes rows of a name and a value.
type table struct {
	w   io.Writer
	err error
}

func (t *table) row(name, value string) {
	if value != "" && t.err == nil {
		_, t.err = fmt.Fprintf(t.w, "%-24s %s\n", name, cell(value))
	}
}

func (t *table) time(name string, at *time.Time) {
	if at != nil {
		t.row(name, at.UTC().Format(time.RFC3339))
	}
}

// payload writes the kind and the decoded fields of a payload, or its first bytes.
func (t *table) payload(kind *string, decoded any, decodeError *string, raw []byte) {
	t.row("payload", strings.TrimSpace(fmt.Sprintf("%s %s", text(kind), size(raw))))
	t.row("payload note", text(decodeError))
	if decoded == nil {
		t.row("  bytes", clipped(hex.EncodeToString(raw)))
		return
	}
	encoded, err := json.Marshal(decoded)
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var fields map[string]any
	if err == nil {
		err = decoder.Decode(&fields)
	}
	if err != nil {
		t.err = fmt.Errorf("show the payload: %w", err)
		return
	}
	t.fields("", fields)
}

func (t *table) fields(prefix string, fields map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[name].(type) {
		case nil:
		case map[string]any:
			t.fields(prefix+name+".", v)
		case []any:
			for i, element := range v {
				t.row(fmt.Sprintf("  %s%s[%d]", prefix, name, i), fmt.Sprint(element))
			}
		default:
			t.row("  "+prefix+name, clipped(fmt.Sprint(v)))
		}
	}
}

func size(raw []byte) string {
	if raw == nil {
		return ""
	}
	return fmt.Sprintf("(%d bytes)", len(raw))
}

// clipped bounds a value of a table; -o json has the whole.
func clipped(s string) string {
	const limit = 128
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

func (a *app) scanCmd() *cobra.Command {
	var (
		out                         format
		chain, emitter, first, last string
		order                       string
		limit                       int
		families, columns           []string
	)
	cmd := &cobra.Command{
		Use:   "scan [PREFIX]",
		Short: "List messages in the order of their row keys",
		Long: `Lists the messages whose row keys begin with PREFIX: "2:" is a chain,
"2:<address>:" an emitter, and digits after it begin a sequence of 20. Or select
by --chain, --emitter, --first and --last. --family and --column, which may be
repeated, say which cells travel from the store.`,
		Example: `  attestry scan --limit 10
  attestry scan ethereum:0x3ee18b2214aff97000d974cf647e7c347e8fa585:
  attestry scan --chain solana --order desc --column SignedVAA -o json`,
		Args: arguments(0, 1, "at most one prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := selection(args, chain, emitter, first, last, order)
			if err != nil {
				return err
			}
			if limit < 0 {
				return misused("limit %d is negative: write how many messages to list, 0 for all", limit)
			}
			asked, err := query.ParseColumns(families, columns)
			if err != nil {
				return &argumentError{err}
			}
			return a.with(cmd, func(ctx context.Context, _ *config, archive *run.Archive) error {
				return scan(ctx, archive.Query(), r, asked, limit, lister(cmd.OutOrStdout(), out.of(cmd)))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&chain, "chain", "", "emitter chain, by id or name")
	flags.StringVar(&emitter, "emitter", "", "emitter address, in any spelling; needs --chain")
	flags.StringVar(&first, "first", "", "first sequence, inclusive; needs --emitter")
	flags.StringVar(&last, "last", "", "last sequence, inclusive; needs --emitter")
	flags.StringVar(&order, "order", "asc", "order of row keys: asc or desc")
	flags.IntVar(&limit, "limit", 0, "most messages to list; 0 lists all")
	flags.StringArrayVar(&families, "family", nil, "column family that travels; may be repeated")
	flags.StringArrayVar(&columns, "column", nil, "column that travels; may be repeated")
	out.register(cmd)
	return cmd
}

// selection reads the range of a scan. What is wrong with a flag is wrong use; a
// prefix is input like a message id.
func selection(args []string, chain, emitter, first, last, order string) (r archive.Range, err error) {
	if len(args) > 0 {
		if chain+emitter+first+last != "" {
			return r, misused("a prefix does not go with --chain, --emitter, --first and --last: leave one or the other out")
		}
		if r, err = query.ParsePrefix(args[0]); err != nil {
			return r, err
		}
	}
	if chain != "" {
		id, err := vaa.ParseChainID(chain)
		if err != nil {
			return r, misused("--chain: %w", err)
		}
		r.Chain = &id
	}
	if emitter != "" {
		if r.Chain == nil {
			return r, misused("--emitter needs its chain: add --chain")
		}
		address, err := vaa.ParseAddress(*r.Chain, emitter)
		if err != nil {
			return r, misused("--emitter: %w", err)
		}
		r.Emitter = &address
	}
	for _, bound := range []struct {
		name, text string
		to         **uint64
	}{{"--first", first, &r.FirstSequence}, {"--last", last, &r.LastSequence}} {
		if bound.text == "" {
			continue
		}
		sequence, err := vaa.ParseSequence(bound.text)
		if err != nil {
			return r, misused("%s: %w", bound.name, err)
		}
		*bound.to = &sequence
	}
	switch order {
	case "asc":
	case "desc":
		r.Descending = true
	default:
		return r, misused("--order %q is unknown: use asc or desc", order)
	}
	if err := r.Check(); err != nil {
		return r, &argumentError{err}
	}
	return r, nil
}

// scan shows the messages of a range page by page.
func scan(ctx context.Context, service *query.Service, r archive.Range, columns archive.Columns, limit int, show func(*query.Attestation) error) error {
	const pageSize = 200
	page := query.Paging{}
	for shown := 0; ; {
		page.Limit = pageSize
		if limit > 0 {
			page.Limit = min(pageSize, limit-shown)
		}
		got, err := scanPage(ctx, service, r, columns, page)
		if err != nil {
			return err
		}
		for i := range got.Items {
			if err := show(&got.Items[i]); err != nil {
				return err
			}
		}
		shown += len(got.Items)
		if !got.Pagination.HasMore || limit > 0 && shown >= limit {
			return nil
		}
		page.Cursor = *got.Pagination.Next
	}
}

func scanPage(ctx context.Context, service *query.Service, r archive.Range, columns archive.Columns, p query.Paging) (*query.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return service.Scan(ctx, r, columns, p)
}

// lister returns what shows a message as a line.
func lister(w io.Writer, format string) func(*query.Attestation) error {
	if format == formatJSON {
		return func(m *query.Attestation) error { return writeJSON(w, m) }
	}
	const line = "%-20s  %-8s  %3s  %-36s  %s\n"
	head := false
	return func(m *query.Attestation) error {
		if !head {
			head = true
			fmt.Fprintf(w, line, "TIME", "STATE", "SET", "PAYLOAD", "MESSAGE")
		}
		at := ""
		if m.Timestamp != nil {
			at = m.Timestamp.UTC().Format(time.RFC3339)
		}
		_, err := fmt.Fprintf(w, line, cell(at), cell(text(m.State)), cell(text(m.GuardianSetIndex)), cell(text(m.PayloadKind)), m.ID)
		return err
	}
}
