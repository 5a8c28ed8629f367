package ingest

import (
	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// Item is one thing that a source delivered, verified and ready to be
// classified. It is either a signed VAA (VAA and Raw are set) or an observed
// publication (Body and RawBody are set). Its owner does not change it after it
// was handed over.
type Item struct {
	ID     vaa.MessageID
	Digest vaa.Digest

	VAA *vaa.VAA // verified against the set that it names
	Raw []byte   // the VAA's bytes as received
	// Expired: the set had expired more than a day before the VAA arrived.
	Expired bool

	Body    *vaa.Body // of a publication
	RawBody []byte
	Trust   archive.Trust // of a publication
	Final   bool          // the publication's source says that its block is final

	Link   *archive.Link // the transaction that the source names, or nil
	Source string
}

// Signed reports whether the item is a signed VAA.
func (it *Item) Signed() bool { return it.VAA != nil }

func (it *Item) body() *vaa.Body {
	if it.Signed() {
		return &it.VAA.Body
	}
	return it.Body
}

func (it *Item) bytes() []byte {
	if it.Signed() {
		return it.Raw
	}
	return it.RawBody
}

// Result says what became of an item.
type Result struct {
	Outcome archive.Outcome
	Reason  string // a stable name when Outcome is invalid or error
	Detail  string // one sentence for a person, when there is a Reason
}

// Reasons for which classification refuses an item. Those of decoding and
// verification come from the packages that do them.
const (
	reasonNotFinal          = "not_final"
	reasonContradictsSigned = "contradicts_signed"
	reasonTooManyVersions   = "too_many_versions"
	reasonTooLarge          = "too_large"
	reasonStore             = "store"
	reasonFutureSet         = "future_guardian_set"
)
