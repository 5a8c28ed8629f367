package wormholescan

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

// observationDoc is one guardian's signature of a message.
type observationDoc struct {
	Sequence     json.Number `json:"sequence"`
	ID           string      `json:"id"` // chain/emitter/sequence/guardian/digest
	EmitterChain vaa.ChainID `json:"emitterChain"`
	EmitterAddr  vaa.Address `json:"emitterAddr"`
	Hash         []byte      `json:"hash"`
	TxHash       []byte      `json:"txHash"` // its text, as gossip carries it for chains without bytes; null when not known
	GuardianAddr string      `json:"guardianAddr"`
	Signature    []byte      `json:"signature"`
	UpdatedAt    *time.Time  `json:"updatedAt"`
	IndexedAt    *time.Time  `json:"indexedAt"`
}

// observationColumns are those of columns, and signatures beyond the VAAs'.
func observationColumns() archive.Columns {
	c := columns()
	c.Qualifiers = append(c.Qualifiers, schema.PrefixSignature)
	return c
}

// observationsOf returns the signatures that are kept of a message, of each version in
// the order of its guardians, then those beyond the versions.
func observationsOf(a *query.Attestation) []observationDoc {
	docs := []observationDoc{}
	seen := map[string]bool{}
	add := func(guardian query.Guardian, digest vaa.Digest, signature []byte, at *time.Time) {
		if guardian.Address == nil {
			return // nobody can say who that is
		}
		id := a.ID + "/" + *guardian.Address + "/" + digest.String()
		if seen[id] {
			return
		}
		seen[id] = true
		docs = append(docs, observationDoc{
			Sequence: number(a.Sequence), ID: id, EmitterChain: a.EmitterChain, EmitterAddr: a.EmitterAddress,
			Hash: digest[:], TxHash: txBytes(a, digest), GuardianAddr: *guardian.Address, Signature: signature, UpdatedAt: at, IndexedAt: at,
		})
	}
	for _, version := range a.Versions {
		v, err := vaa.Parse(version.VAA)
		if err != nil || len(version.Guardians) != len(v.Signatures) {
			continue
		}
		for i := range v.Signatures {
			add(version.Guardians[i], version.Digest, v.Signatures[i].RSV[:], version.RecordedAt)
		}
	}
	for _, e := range a.Evidence {
		add(e.Guardian, e.Digest, e.Signature, a.RecordedAt)
	}
	return docs
}

// txBytes returns the transaction of the digest that stands, as bytes where it is
// written in hex.
func txBytes(a *query.Attestation, digest vaa.Digest) []byte {
	if a.InitiatingTxID == nil || a.Digest == nil || *a.Digest != digest {
		return nil
	}
	if b, err := hex.DecodeString(*a.InitiatingTxID); err == nil {
		return b
	}
	return []byte(*a.InitiatingTxID)
}

// observations answers a bare list, newest message first.
func (a api) observations(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	p, err := readPaging(q, maxPageSize)
	if err != nil {
		return nil, err
	}
	if r.PathValue("sequence") != "" {
		id, err := pathID(r)
		if err != nil {
			return nil, err
		}
		found, err := a.service.Get(r.Context(), id, archive.Columns{})
		if err != nil {
			return nil, err
		}
		docs := observationsOf(found)
		return docs[min(p.offset, len(docs)):min(p.offset+p.size, len(docs))], nil
	}
	in, err := pathRange(r)
	if err != nil {
		return nil, err
	}
	next := func(ctx context.Context, p query.Paging) (*query.Page, error) {
		if in.Emitter != nil {
			in.Descending = true
			return a.service.Scan(ctx, in, observationColumns(), p)
		}
		return a.service.ByTime(ctx, in.Chain, observationColumns(), false, p)
	}
	if txHash := q.Get("txHash"); txHash != "" && in.Chain == nil {
		txID, err := parseTxHash(txHash)
		if err != nil {
			return nil, err
		}
		next = func(ctx context.Context, p query.Paging) (*query.Page, error) {
			return a.service.ByTx(ctx, txID, nil, p)
		}
	}
	return window(r.Context(), p, next)
}

// window returns some of the observations of a list of messages, which it walks from
// its beginning: how many a message has, it alone can tell. Messages that have none are
// walked past, but no more than query.MaxOffset messages in all.
func window(ctx context.Context, p paging, next func(context.Context, query.Paging) (*query.Page, error)) ([]observationDoc, error) {
	const most = 19 // guardians of a set so far
	docs := []observationDoc{}
	read := 0
	for skip, cursor := p.offset, ""; ; {
		limit := min((skip+p.size-len(docs)+most-1)/most, query.MaxLimit)
		page, err := next(ctx, query.Paging{Limit: limit, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		read += limit
		for i := range page.Items {
			of := observationsOf(&page.Items[i])
			passed := min(skip, len(of))
			skip -= passed
			docs = append(docs, of[passed:]...)
			if len(docs) >= p.size {
				return docs[:p.size], nil
			}
		}
		if page.Pagination.Next == nil || read >= query.MaxOffset {
			return docs, nil
		}
		cursor = *page.Pagination.Next
	}
}

// observation answers one guardian's observation of one digest.
func (a api) observation(_ http.ResponseWriter, r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	signer := strings.TrimPrefix(strings.ToLower(r.PathValue("signer")), "0x")
	if b, err := hex.DecodeString(signer); err != nil || len(b) != len(vaa.GuardianKey{}) {
		return nil, invalid("MALFORMED GUARDIAN ADDR")
	}
	digest, err := vaa.ParseDigest(r.PathValue("hash"))
	if err != nil {
		return nil, invalid("MALFORMED HASH")
	}
	found, err := a.service.Get(r.Context(), id, archive.Columns{})
	if err != nil {
		return nil, err
	}
	for _, doc := range observationsOf(found) {
		if strings.EqualFold(strings.TrimPrefix(doc.GuardianAddr, "0x"), signer) && vaa.Digest(doc.Hash) == digest {
			return doc, nil
		}
	}
	return nil, errNotFound
}
