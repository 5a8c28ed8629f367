package query

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// The kinds of things that a text may name.
const (
	KindID        = "id" // a message id in any spelling, or a row key
	KindTx        = "tx"
	KindDigest    = "digest"    // the signing digest or the single hash
	KindEmitter   = "emitter"   // an address that published messages
	KindRecipient = "recipient" // an address that transfers pay
	KindVAA       = "vaa"       // the bytes of a signed VAA
)

// Search is the answer to a search.
type Search struct {
	Query string `json:"query"`
	// Kinds are what the text was looked up as, with what was found.
	Kinds []Kind `json:"kinds"`
	// Items are what was found, each message once: by the order of kinds, then of the
	// listing of each.
	Items []Attestation `json:"items"`
	// VAA is what a text that is a whole VAA says; null for others.
	VAA        *ParsedVAA `json:"vaa"`
	Pagination Pagination `json:"pagination"` // Next is null: each kind that has more goes on at its path
}

// Kind is one reading of a text.
type Kind struct {
	Kind  string `json:"kind"`
	Found int    `json:"found"` // messages on this page
	// HasMore: the listing at Path has more of them.
	HasMore bool    `json:"hasMore"`
	Path    *string `json:"path"` // where they are listed; null where nothing was found
}

// DefaultSearch bounds what a search answers of each kind, unless told.
const DefaultSearch = 20

// Search finds messages by anything that names them: a message id in any spelling, a
// row key, the hex or base64 of a whole VAA, a transaction, a digest, the address of
// an emitter, with its chain before it or alone, or of a recipient. A text that may be
// several of them is looked up as each. A URL, as of an explorer's page, stands for what
// it has in its path. limit bounds what is answered of each kind, 1
// to MaxRecent, 0 for DefaultSearch. Nothing found is no error. Errors: an *Error
// about q for a text that can be nothing, or about limit.
func (s *Service) Search(ctx context.Context, text string, limit int) (*Search, error) {
	limit, err := Paging{Limit: limit}.limit(DefaultSearch, MaxRecent)
	if err != nil {
		return nil, err
	}
	out := &Search{Query: text, Kinds: []Kind{}, Items: []Attestation{}, Pagination: Pagination{Limit: limit}}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, Invalid("q", "q is empty: write a message id, a row key, a transaction, a digest, an address, or a VAA in base64 or hex")
	}
	if err := s.search(ctx, out, inURL(text), limit); err != nil {
		return nil, err
	}
	for _, k := range out.Kinds {
		out.Pagination.HasMore = out.Pagination.HasMore || k.HasMore
	}
	return out, nil
}

// inURL returns what a URL names: the message id in its path, else the longest of the
// path's parts. A fragment that begins with a slash is a path, as pages have it that
// are one program. Other texts are returned as they are.
func inURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return text
	}
	path := u.Path
	if strings.HasPrefix(u.Fragment, "/") {
		page, _, _ := strings.Cut(u.Fragment, "?")
		path += page
	}
	longest := ""
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		if id := strings.Join(parts[i:min(i+3, len(parts))], "/"); strings.Count(id, "/") == 2 {
			if _, err := vaa.ParseMessageID(id); err == nil {
				return id
			}
		}
		if len(part) > len(longest) {
			longest = part
		}
	}
	return cmp.Or(longest, text)
}

func (s *Service) search(ctx context.Context, out *Search, text string, limit int) error {
	if raw, ok := vaaIn(text); ok {
		return s.searchVAA(ctx, out, raw)
	}
	id, idErr := vaa.ParseMessageID(text)
	if idErr == nil {
		return s.searchID(ctx, out, KindID, id)
	}
	if r, err := ParsePrefix(text); err == nil && r.Emitter != nil && r.FirstSequence == nil {
		return s.searchEmitters(ctx, out, map[vaa.ChainID]vaa.Address{*r.Chain: *r.Emitter})
	}
	if looksLikeID(text) {
		return Invalid("q", "%w", idErr)
	}
	txID, txErr := archive.ParseTxID(text)
	if txErr == nil {
		page, err := s.ByTx(ctx, txID, nil, Paging{Limit: limit})
		if err != nil {
			return err
		}
		out.add(KindTx, "/v1/tx/"+txID, page)
	}
	if digest, err := vaa.ParseDigest(text); err == nil {
		page, err := s.ByDigest(ctx, digest, Paging{Limit: limit})
		if err != nil {
			return err
		}
		out.add(KindDigest, "/v1/digests/"+digest.String(), page)
	}
	addresses := readings(text)
	if len(addresses) > 0 {
		if err := s.searchEmitters(ctx, out, addresses); err != nil {
			return err
		}
		if err := s.searchRecipients(ctx, out, addresses, limit); err != nil {
			return err
		}
	}
	if len(out.Kinds) == 0 {
		return Invalid("q", "%q is no message id, row key, transaction, digest, address or VAA: %w", clip(text), txErr)
	}
	return nil
}

// add puts what a listing found into the answer.
func (out *Search) add(kind, path string, page *Page) {
	k := Kind{Kind: kind, Found: len(page.Items), HasMore: page.Pagination.HasMore}
	if k.Found > 0 || k.HasMore {
		k.Path = &path
	}
	out.Kinds = append(out.Kinds, k)
	for i := range page.Items {
		if !slices.ContainsFunc(out.Items, func(a Attestation) bool { return a.id == page.Items[i].id }) {
			out.Items = append(out.Items, page.Items[i])
		}
	}
}

func (s *Service) searchID(ctx context.Context, out *Search, kind string, id vaa.MessageID) error {
	page := &Page{}
	a, err := s.Get(ctx, id, archive.Columns{})
	switch {
	case err == nil:
		page.Items = append(page.Items, *a)
	case !errors.Is(err, archive.ErrNotFound):
		return err
	}
	out.add(kind, "/v1/attestations/"+id.String(), page)
	return nil
}

// searchVAA looks a VAA's message up and says whether the VAA itself holds, which the
// archive may know of another one of the message.
func (s *Service) searchVAA(ctx context.Context, out *Search, raw []byte) error {
	parsed, err := s.Verify(raw)
	if err != nil {
		return renamed(err, "q")
	}
	out.VAA = parsed
	return s.searchID(ctx, out, KindVAA, parsed.id)
}

// searchEmitters adds the newest message of each emitter, by one read of one row each.
func (s *Service) searchEmitters(ctx context.Context, out *Search, emitters map[vaa.ChainID]vaa.Address) error {
	chains := make([]vaa.ChainID, 0, len(emitters))
	for chain := range emitters {
		chains = append(chains, chain)
	}
	slices.SortFunc(chains, func(a, b vaa.ChainID) int { return cmp.Compare(rowkey.Chain(a), rowkey.Chain(b)) })
	pages := make([]*Page, len(chains))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, chain := range chains {
		g.Go(func() error {
			emitter := emitters[chain]
			r := archive.Range{Chain: &chain, Emitter: &emitter, Descending: true, Limit: 1}
			pages[i] = &Page{}
			for record, err := range s.reader.Scan(ctx, r, archive.Columns{}) {
				if err != nil {
					return err
				}
				pages[i].Items = append(pages[i].Items, s.attestation(&record, archive.Columns{}))
				pages[i].Pagination.HasMore = record.ID.Sequence > 0 // at least it may
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	found := false
	for i, chain := range chains {
		if len(pages[i].Items) > 0 {
			found = true
			out.add(KindEmitter, "/v1/attestations?chain="+strings.TrimSuffix(rowkey.Chain(chain), ":")+"&emitter="+emitters[chain].String()+"&order=desc", pages[i])
		}
	}
	if !found {
		out.add(KindEmitter, "", &Page{})
	}
	return nil
}

func (s *Service) searchRecipients(ctx context.Context, out *Search, addresses map[vaa.ChainID]vaa.Address, limit int) error {
	var seen []vaa.Address
	for _, to := range addresses {
		if !slices.Contains(seen, to) {
			seen = append(seen, to)
		}
	}
	slices.SortFunc(seen, func(a, b vaa.Address) int { return slices.Compare(a[:], b[:]) })
	for _, to := range seen {
		page, err := s.ByRecipient(ctx, to, nil, false, Paging{Limit: limit})
		if err != nil {
			return err
		}
		out.add(KindRecipient, "/v1/recipients/"+to.String(), page)
	}
	return nil
}

// readings returns the address that a text is on each chain of which it is one.
func readings(text string) map[vaa.ChainID]vaa.Address {
	out := map[vaa.ChainID]vaa.Address{}
	if digits := len(strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")); digits < 32 {
		return out // shorter hex is a Move address of no one in particular
	}
	for _, chain := range vaa.Chains() {
		if a, err := vaa.ParseAddress(chain, text); err == nil {
			out[chain] = a
		}
	}
	return out
}

// ParseRecipient reads the address of a recipient: on a chain as vaa.ParseAddress does,
// else in 64 or 40 hex digits or in the native form of any chain, where these agree.
func ParseRecipient(chain *vaa.ChainID, text string) (vaa.Address, error) {
	if chain != nil {
		a, err := vaa.ParseAddress(*chain, text)
		if err != nil {
			return a, Invalid("address", "%w", err)
		}
		return a, nil
	}
	a, err := vaa.ParseAddress(0, text)
	if err == nil {
		return a, nil
	}
	var one *vaa.Address
	for _, a := range readings(strings.TrimSpace(text)) {
		if one != nil && *one != a {
			return a, Invalid("address", "address %q is another one on each of several chains: add chain=", clip(text))
		}
		one = &a
	}
	if one == nil {
		return a, Invalid("address", "%w, or the native form of a chain", err)
	}
	return *one, nil
}

// Resolve finds what a text names: a message id in any spelling, a row key, a
// transaction, a digest (the signing digest or the single hash). 64 hex digits
// may be a transaction or a digest, and both are looked up; a transaction may
// have published any number of messages. They come in the order of their row
// keys. Errors: archive.ErrNotFound when nothing is known under the text; an
// *Error for a text that names nothing, or more than MaxLimit messages.
func (s *Service) Resolve(ctx context.Context, text string) ([]Attestation, error) {
	id, idErr := vaa.ParseMessageID(text)
	if idErr == nil {
		a, err := s.Get(ctx, id, archive.Columns{})
		if err != nil {
			return nil, err
		}
		return []Attestation{*a}, nil
	}
	if looksLikeID(text) {
		return nil, Invalid("id", "%w", idErr)
	}
	txID, err := archive.ParseTxID(text)
	if err != nil {
		return nil, Invalid("id", "%q is no message id, row key, transaction or digest: %w", clip(text), err)
	}
	lookups := []archive.Lookup{{By: archive.ByTx, Key: txID, Limit: MaxLimit + 1}}
	if digest, err := vaa.ParseDigest(text); err == nil {
		lookups = append(lookups, archive.Lookup{By: archive.ByDigest, Key: digest.String(), Limit: MaxLimit + 1})
	}
	refs, err := s.merged(ctx, lookups)
	if err != nil {
		return nil, err
	}
	if len(refs) > MaxLimit {
		return nil, Invalid("id", "%s names more than %d messages: page through them at /v1/tx/%s", clip(txID), MaxLimit, txID)
	}
	items, _, err := s.attestations(ctx, refs, found{matches: true})
	if err == nil && len(items) == 0 {
		err = notFound("%s is neither a transaction nor a digest that the archive of %s knows", clip(txID), s.network)
	}
	return items, err
}

// merged returns the messages that any of the lookups names, in the order of their
// row keys, each once.
func (s *Service) merged(ctx context.Context, lookups []archive.Lookup) ([]archive.Ref, error) {
	var all []archive.Ref
	for _, l := range lookups {
		refs, err := s.refs(ctx, l)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if at := slices.IndexFunc(all, func(r archive.Ref) bool { return r.ID == ref.ID }); at >= 0 && len(lookups) > 1 {
				all[at].Digests = slices.Concat(all[at].Digests, ref.Digests)
			} else {
				all = append(all, ref)
			}
		}
	}
	slices.SortFunc(all, func(a, b archive.Ref) int { return cmp.Compare(rowkey.Of(a.ID), rowkey.Of(b.ID)) })
	return all, nil
}

// looksLikeID tells a message id that was written wrongly from other text: a
// colon is in nothing else, and slashes are in transaction ids in base64 only,
// where neither a chain nor a number, which may be negative, stands before the first of two.
func looksLikeID(text string) bool {
	if strings.Contains(text, ":") {
		return true
	}
	parts := strings.Split(text, "/")
	if len(parts) < 2 {
		return false
	}
	if _, err := vaa.ParseChainID(parts[0]); err == nil {
		return true
	}
	return len(parts) == 3 && parts[0] != "" && strings.Trim(parts[0], "-0123456789") == ""
}
