package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/ingest/source/file"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// decoded is a VAA taken apart. Fields are named and written as those of an
// attestation are.
type decoded struct {
	ID               string          `json:"id"`
	RowKey           string          `json:"rowKey"`
	Network          string          `json:"network"`
	EmitterChain     vaa.ChainID     `json:"emitterChain"`
	EmitterChainName *string         `json:"emitterChainName"`
	EmitterAddress   vaa.Address     `json:"emitterAddress"`
	EmitterNative    *string         `json:"emitterNative"`
	Sequence         uint64          `json:"sequence,string"`
	Version          uint8           `json:"version"`
	GuardianSetIndex uint32          `json:"guardianSetIndex"`
	Signatures       []decodedSigner `json:"signatures"`
	Timestamp        time.Time       `json:"timestamp"`
	Nonce            uint32          `json:"nonce"`
	ConsistencyLevel uint8           `json:"consistencyLevel"`
	Digest           vaa.Digest      `json:"digest"`
	DigestSingle     vaa.Digest      `json:"digestSingle"`
	Payload          []byte          `json:"payload"`
	PayloadKind      string          `json:"payloadKind"`
	Decoded          any             `json:"decoded"`
	DecodeError      *string         `json:"decodeError"`
}

// decodedSigner is one signature, not verified.
type decodedSigner struct {
	Guardian  uint8            `json:"guardian"`  // index in the set
	Key       *vaa.GuardianKey `json:"key"`       // of that guardian; nil if the set is not known
	Signature []byte           `json:"signature"` // r, s, v: 65 bytes
}

func (a *app) decodeCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "decode [VAA|FILE]",
		Short: "Take a VAA apart, without any store or network",
		Long: `Shows header, signers, body, both digests and the payload of a VAA that is given
as hexadecimal, base64, a file, or on standard input (- or nothing). Whatever
attestry ingest reads can be decoded; of several VAAs each is shown. Signatures
are not checked: see attestry verify.`,
		Example: `  attestry decode 0100000000010…
  attestry decode message.vaa
  curl -s https://…/v1/signed_vaa/2/…/7 | jq -r .vaaBytes | attestry decode -o json`,
		Args: arguments(0, 1, "give one VAA or file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachVAA(cmd, args, func(sets vaa.GuardianSets, v *vaa.VAA) error {
				d := decodeVAA(sets, v)
				if out.of(cmd) == formatJSON {
					return writeJSON(cmd.OutOrStdout(), d)
				}
				return d.describe(cmd.OutOrStdout(), sets)
			})
		},
	}
	out.register(cmd)
	return cmd
}

func decodeVAA(sets vaa.GuardianSets, v *vaa.VAA) decoded {
	id := v.MessageID()
	d := decoded{
		ID: id.String(), RowKey: rowkey.Of(id), Network: sets.Network().String(),
		EmitterChain: id.EmitterChain, EmitterAddress: id.EmitterAddress, Sequence: id.Sequence,
		Version: v.Version, GuardianSetIndex: v.GuardianSetIndex, Signatures: []decodedSigner{},
		Timestamp: v.Time(), Nonce: v.Nonce, ConsistencyLevel: v.ConsistencyLevel,
		Digest: v.Digest(), DigestSingle: v.SingleDigest(), Payload: v.Payload,
	}
	if id.EmitterChain.Known() {
		name := id.EmitterChain.String()
		d.EmitterChainName = &name
	}
	if native, ok := vaa.NativeAddress(id.EmitterChain, id.EmitterAddress); ok {
		d.EmitterNative = &native
	}
	set, known := sets.Set(v.GuardianSetIndex)
	for i := range v.Signatures {
		s := &v.Signatures[i]
		signer := decodedSigner{Guardian: s.GuardianIndex, Signature: s.RSV[:]}
		if known && int(s.GuardianIndex) < len(set.Keys) {
			signer.Key = &set.Keys[s.GuardianIndex]
		}
		d.Signatures = append(d.Signatures, signer)
	}
	var err error
	if d.PayloadKind, d.Decoded, err = payload.Decode(sets.Network(), &v.Body); err != nil {
		reason := err.Error()
		d.DecodeError = &reason
	}
	return d
}

func (d *decoded) describe(w io.Writer, sets vaa.GuardianSets) error {
	t := table{w: w}
	t.row("message", d.ID)
	t.row("row key", d.RowKey)
	t.row("emitter", strings.TrimSpace(text(d.EmitterChainName)+" "+text(d.EmitterNative)))
	t.row("version", fmt.Sprint(d.Version))
	t.row("guardian set", fmt.Sprint(d.GuardianSetIndex))
	of := "of a set that is not known"
	if set, ok := sets.Set(d.GuardianSetIndex); ok {
		of = fmt.Sprintf("of %d guardians, quorum %d", len(set.Keys), set.Quorum())
	}
	t.row("signatures", fmt.Sprintf("%d %s (not checked here)", len(d.Signatures), of))
	for _, s := range d.Signatures {
		t.row("  signer", strings.TrimSpace(fmt.Sprintf("%d %s", s.Guardian, text(s.Key))))
	}
	t.time("time", &d.Timestamp)
	t.row("nonce", fmt.Sprint(d.Nonce))
	t.row("consistency", fmt.Sprint(d.ConsistencyLevel))
	t.row("digest", d.Digest.String())
	t.row("digest (single)", d.DigestSingle.String())
	t.payload(&d.PayloadKind, d.Decoded, d.DecodeError, d.Payload)
	return t.err
}

// verdict says whether a VAA verifies.
type verdict struct {
	ID               string     `json:"id"`
	Digest           vaa.Digest `json:"digest"`
	Network          string     `json:"network"`
	GuardianSetIndex uint32     `json:"guardianSetIndex"`
	Signatures       int        `json:"signatures"`
	Valid            bool       `json:"valid"`
	Reason           *string    `json:"reason"` // a stable name; nil if valid
	Detail           *string    `json:"detail"`
	// GuardianSetExpiresAt: a contract refuses the VAA from then on, valid as it is.
	GuardianSetExpiresAt *time.Time `json:"guardianSetExpiresAt"`
}

func (a *app) verifyCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "verify [VAA|FILE]",
		Short: "Check a VAA's signatures, without any store or network",
		Long: `Checks that a VAA carries a quorum of valid signatures of the guardian set that it
names, among the sets that this program knows of the network (attestry guardians
shows them). The VAA is given as for attestry decode. Exit code 4 says that it does
not verify, with the reason.`,
		Example: `  attestry verify message.vaa
  attestry verify --network testnet 01000000000100…`,
		Args: arguments(0, 1, "give one VAA or file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachVAA(cmd, args, func(sets vaa.GuardianSets, v *vaa.VAA) error {
				verified := sets.Verify(v)
				r := verdictOf(sets, v, verified)
				var err error
				if out.of(cmd) == formatJSON {
					err = writeJSON(cmd.OutOrStdout(), r)
				} else {
					err = r.describe(cmd.OutOrStdout())
				}
				if err == nil && verified != nil {
					err = refused(fmt.Errorf("%s does not verify: %s: %w", r.ID, *r.Reason, verified))
				}
				return err
			})
		},
	}
	out.register(cmd)
	return cmd
}

func verdictOf(sets vaa.GuardianSets, v *vaa.VAA, err error) verdict {
	r := verdict{
		ID: v.MessageID().String(), Digest: v.Digest(), Network: sets.Network().String(),
		GuardianSetIndex: v.GuardianSetIndex, Signatures: len(v.Signatures), Valid: err == nil,
	}
	if set, ok := sets.Set(v.GuardianSetIndex); ok && !set.ExpiresAt.IsZero() {
		at := set.ExpiresAt.UTC()
		r.GuardianSetExpiresAt = &at
	}
	if err != nil {
		reason, detail := "invalid", err.Error()
		if e, ok := errors.AsType[*vaa.VerifyError](err); ok {
			reason = e.Reason.String()
		}
		r.Reason, r.Detail = &reason, &detail
	}
	return r
}

func (r *verdict) describe(w io.Writer) error {
	t := table{w: w}
	t.row("message", r.ID)
	t.row("digest", r.Digest.String())
	t.row("guardian set", fmt.Sprintf("%d of %s", r.GuardianSetIndex, r.Network))
	t.time("set expired", r.GuardianSetExpiresAt)
	t.row("signatures", fmt.Sprint(r.Signatures))
	result := "valid"
	if !r.Valid {
		result = "NOT VALID: " + text(r.Reason)
	}
	t.row("result", result)
	return t.err
}

// eachVAA calls f with each VAA that the argument or standard input holds. One
// that cannot be read, or that f refuses, does not keep the rest from being shown.
func (a *app) eachVAA(cmd *cobra.Command, args []string, f func(vaa.GuardianSets, *vaa.VAA) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	sets, err := vaa.KnownGuardianSets(c.Network)
	if err != nil {
		return err
	}
	source, err := a.vaaSource(args)
	if err != nil {
		return err
	}
	all, bad := 0, 0
	var first error
	err = source.Deliver(cmd.Context(), 0, func(d ingest.Delivery) error {
		all++
		err := eachDelivery(d, sets, f)
		if _, ok := errors.AsType[*codeError](err); !ok {
			return err
		}
		if bad++; first == nil {
			first = err
			if d.Where != "" {
				first = refused(fmt.Errorf("%s: %w", d.Where, err))
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case all == 0:
		return misused("no VAA is given: write it as hexadecimal or base64, name a file, or pipe it to standard input")
	case bad > 1:
		return refused(fmt.Errorf("%d of %d VAAs are refused; the first, %w", bad, all, first))
	}
	return first
}

func eachDelivery(d ingest.Delivery, sets vaa.GuardianSets, f func(vaa.GuardianSets, *vaa.VAA) error) error {
	if d.Fault != nil {
		return refused(fmt.Errorf("%s: %s", d.Fault.Reason, d.Fault.Detail))
	}
	v, err := vaa.Parse(d.Raw)
	if err != nil {
		return refused(err)
	}
	return f(sets, v)
}

// vaaSource returns where the VAAs of an argument come from: a file if there is
// one of that name, else the text itself; standard input for - or nothing.
func (a *app) vaaSource(args []string) (ingest.Source, error) {
	if len(args) == 0 || args[0] == "-" {
		if isTerminal(a.stdin) && len(args) == 0 {
			return nil, misused("no VAA is given: write it as hexadecimal or base64, name a file, or pipe it to standard input")
		}
		return file.New("stdin", a.stdin), nil
	}
	if _, err := os.Stat(args[0]); err == nil {
		return file.Open(args[0], a.stdin)
	}
	return textSource{file.New("argument", strings.NewReader(args[0])), args[0]}, nil
}

// textSource is an argument that is no file's name.
type textSource struct {
	*file.Source
	text string
}

// Deliver says of text that cannot be read that it is no file either, and leaves
// out in which line of it that is.
func (s textSource) Deliver(ctx context.Context, from uint64, deliver func(ingest.Delivery) error) error {
	return s.Source.Deliver(ctx, from, func(d ingest.Delivery) error {
		d.Where = ""
		if d.Fault != nil {
			d.Fault = &ingest.Fault{Reason: d.Fault.Reason, Detail: fmt.Sprintf("%q is no file, and as text %s", clipped(s.text), d.Fault.Detail)}
		}
		return deliver(d)
	})
}
