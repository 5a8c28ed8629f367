package query

import (
	"context"
	"errors"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// Service answers questions about the messages of one network. Its methods may be
// called concurrently. Errors that whoever asked can do something about are
// *Error; AsError brings any other into that form.
type Service struct {
	reader  archive.Reader
	network vaa.Network
	sets    func() vaa.GuardianSets
}

// New returns a service over a reader of a network's store. sets returns the
// guardian sets known at the time of the call; it must be safe for concurrent
// use.
func New(reader archive.Reader, network vaa.Network, sets func() vaa.GuardianSets) *Service {
	return &Service{reader: reader, network: network, sets: sets}
}

// Get returns what is known of a message, by one read of one row. Errors:
// archive.ErrNotFound.
func (s *Service) Get(ctx context.Context, id vaa.MessageID, columns archive.Columns) (*Attestation, error) {
	r, err := s.reader.Get(ctx, id, toRead(columns))
	if errors.Is(err, archive.ErrNotFound) {
		return nil, notFound("message %s is not in the archive of %s", id, s.network)
	}
	if err != nil {
		return nil, err
	}
	a := s.attestation(&r, columns)
	return &a, nil
}

// SignedVAA returns the bytes of a message's canonical VAA as they were received,
// by one read of one row. Errors: archive.ErrNotFound, also for a message that
// was observed and has no signed VAA yet.
func (s *Service) SignedVAA(ctx context.Context, id vaa.MessageID) ([]byte, error) {
	r, err := s.reader.Get(ctx, id, toRead(archive.Columns{
		Families: []string{schema.QuorumState}, Qualifiers: []string{schema.ColSignedVAA}, Latest: true,
	}))
	if errors.Is(err, archive.ErrNotFound) {
		return nil, notFound("message %s is not in the archive of %s", id, s.network)
	}
	if err != nil {
		return nil, err
	}
	signed := r.Signed()
	if signed == nil {
		return nil, notFound("message %s was observed on its chain, but no signed VAA of it is known yet", id)
	}
	return signed.Bytes, nil
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
	lookups := []archive.Lookup{{By: archive.ByTx, Key: txID}}
	if digest, err := vaa.ParseDigest(text); err == nil {
		lookups = append(lookups, archive.Lookup{By: archive.ByDigest, Key: digest.String()})
	}
	refs, more, err := s.refs(ctx, lookups, nil, MaxLimit)
	if err != nil {
		return nil, err
	}
	if more {
		return nil, Invalid("id", "%s names more than %d messages: page through them at /v1/tx/%s", clip(txID), MaxLimit, txID)
	}
	found, err := s.attestations(ctx, refs)
	if err == nil && len(found) == 0 {
		err = notFound("%s is neither a transaction nor a digest that the archive of %s knows", clip(txID), s.network)
	}
	return found, err
}

// looksLikeID tells a message id that was written wrongly from other text: a
// colon is in nothing else, and slashes are in transaction ids in base64 only,
// where neither a chain nor a number stands before the first of two.
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
	return len(parts) == 3 && parts[0] != "" && strings.Trim(parts[0], "0123456789") == ""
}
