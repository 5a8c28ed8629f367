// Package query is the read service of the archive: it answers lookups and range
// scans over an archive.Reader, and defines the JSON of an attestation, of a page
// and of an error, the same in HTTP answers, in `attestry get -o json` and in
// tests.
//
// query/native and query/guardian speak HTTP over it, query/web is the server
// that they run in.
package query

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

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
	parts   Parts
	// guardians holds the Guardian of each key that was described, of which there are
	// as many as in all sets.
	guardians *sync.Map
	// applied is an offset below which every batch of the journal is applied.
	applied *atomic.Uint64
}

// Parts are what a service knows beyond messages. What is nil is answered as not
// known.
type Parts struct {
	Upgrades archive.GuardianSetStore // the guardian sets that were learnt
	Rejects  archive.RejectStore
	Journal  archive.Journal
	Feed     Feed
	Rollups  Rollups
}

// New returns a service over a reader of a network's store. sets returns the
// guardian sets known at the time of the call; it must be safe for concurrent
// use.
func New(reader archive.Reader, network vaa.Network, sets func() vaa.GuardianSets) *Service {
	return &Service{reader: reader, network: network, sets: sets, guardians: &sync.Map{}, applied: &atomic.Uint64{}}
}

// With returns the service with further parts.
func (s *Service) With(parts Parts) *Service {
	with := *s
	with.parts = parts
	return &with
}

// Network returns the network that the service answers for.
func (s *Service) Network() vaa.Network { return s.network }

// Get returns what is known of a message, by one read of one row. Errors:
// archive.ErrNotFound.
func (s *Service) Get(ctx context.Context, id vaa.MessageID, columns archive.Columns) (*Attestation, error) {
	r, err := s.get(ctx, id, toRead(columns))
	if err != nil {
		return nil, err
	}
	a := s.attestation(r, columns)
	return &a, nil
}

// SignedVAA returns the bytes of a message's canonical VAA as they were received,
// by one read of one row. Errors: archive.ErrNotFound, also for a message that
// was observed and has no signed VAA yet.
func (s *Service) SignedVAA(ctx context.Context, id vaa.MessageID) ([]byte, error) {
	r, err := s.get(ctx, id, archive.Columns{Qualifiers: []string{schema.ColSignedVAA, schema.ColDigest}, Latest: true})
	if err != nil {
		return nil, err
	}
	signed := r.Signed()
	if signed == nil {
		return nil, unsigned(id)
	}
	return signed.Bytes, nil
}

// VAA returns the bytes of the verified VAA of a message that a guardian set signed for
// a digest, canonical or not, by one read of one row. Errors: archive.ErrNotFound.
func (s *Service) VAA(ctx context.Context, id vaa.MessageID, set uint32, digest vaa.Digest) ([]byte, error) {
	r, err := s.get(ctx, id, archive.Columns{Qualifiers: []string{schema.ColSignedVAA, schema.PrefixOther, schema.ColDigest}})
	if err != nil {
		return nil, err
	}
	for i := range r.Versions {
		if v := &r.Versions[i]; v.GuardianSetIndex == set && v.Digest == digest {
			return v.Bytes, nil
		}
	}
	return nil, notFound("no VAA of message %s with digest %s by guardian set %d is in the archive of %s", id, digest, set, s.network)
}

func (s *Service) get(ctx context.Context, id vaa.MessageID, columns archive.Columns) (*archive.Record, error) {
	r, err := s.reader.Get(ctx, id, columns)
	if errors.Is(err, archive.ErrNotFound) {
		return nil, notFound("message %s is not in the archive of %s", id, s.network)
	}
	return &r, err
}

func unsigned(id vaa.MessageID) *Error {
	return notFound("message %s was observed on its chain, but no signed VAA of it is known yet", id)
}

// minHalved is from how many items on it pays to work on both halves at once.
const minHalved = 64

// Halves calls f with the bounds of a list of n items, or, for a longer list, with
// those of its halves, at once. A panic of either comes out of Halves.
func Halves(n int, f func(from, to int)) {
	if n < minHalved {
		f(0, n)
		return
	}
	second := make(chan any, 1)
	go func() {
		defer func() { second <- recover() }()
		f(n/2, n)
	}()
	defer func() {
		if panicked := <-second; panicked != nil {
			panic(panicked)
		}
	}()
	f(0, n/2)
}
