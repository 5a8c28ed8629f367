package query

import (
	"slices"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// Attestation is what is known of a message, in its one JSON form.
//
// The shape is the same for every answer. What is absent is null, and so is what
// was not asked for by a choice of columns; a list that was asked for and has
// nothing in it is []. Addresses, digests and row keys are lower-case hex and
// decimal text, other bytes are base64 with padding as in the guardians' API,
// 64-bit numbers are strings, times are RFC 3339 in UTC. An Attestation shares
// bytes with what it was made of; it is not to be written to.
type Attestation struct {
	// What a row key says is always there.
	ID               string      `json:"id"` // chain/address/sequence
	RowKey           string      `json:"rowKey"`
	Network          string      `json:"network"`
	EmitterChain     vaa.ChainID `json:"emitterChain"`
	EmitterChainName *string     `json:"emitterChainName"` // null for a chain that this build does not know
	EmitterAddress   vaa.Address `json:"emitterAddress"`
	EmitterNative    *string     `json:"emitterNative"` // null where the address cannot be reversed
	Sequence         uint64      `json:"sequence,string"`

	// State is where the message stands now; see the states. Without a signed VAA it
	// is null unless a column that only a signed VAA writes was asked for.
	State *string `json:"state"`
	// Lifecycle is how the message came there, first things first. Null unless both
	// families were asked for whole.
	Lifecycle []Step `json:"lifecycle"`
	// Digest is the signing digest that stands for the message. It always travels.
	Digest *vaa.Digest `json:"digest"`
	// DigestSingle is the single hash of the same body. It, PayloadKind and Decoded
	// are derived from the body: the column SignedVAA, else Timestamp, Nonce,
	// ConsistencyLevel and Payload together.
	DigestSingle *vaa.Digest `json:"digestSingle"`

	// The columns of MessagePublication.
	Version          *uint8     `json:"version"`
	GuardianSetIndex *uint32    `json:"guardianSetIndex"`
	Timestamp        *time.Time `json:"timestamp"`
	Nonce            *uint32    `json:"nonce"`
	ConsistencyLevel *uint8     `json:"consistencyLevel"`
	InitiatingTxID   *string    `json:"initiatingTxId"`
	Payload          []byte     `json:"payload"` // "" for an empty payload
	RecordedAt       *time.Time `json:"recordedAt"`

	// PayloadKind names what the payload is, as vaa/payload has it; Decoded holds its
	// fields, and where it is null or incomplete although the body is there,
	// DecodeError says why.
	PayloadKind *string `json:"payloadKind"`
	Decoded     any     `json:"decoded"`
	DecodeError *string `json:"decodeError"`

	// GuardianSetExpiresAt is that of the canonical VAA's set; see Version.
	GuardianSetExpiresAt *time.Time `json:"guardianSetExpiresAt"`
	SignedVAA            []byte     `json:"signedVaa"` // the canonical VAA as received

	Versions  []Version    `json:"versions"`
	Links     []Link       `json:"links"`
	Conflicts []vaa.Digest `json:"conflicts"` // digests seen beside the one that stands
	Vanished  []vaa.Digest `json:"vanished"`  // observed digests that their source gave up
	Evidence  []Evidence   `json:"evidence"`

	// Repair tells whether the current guardian set would accept the message. Null
	// without a signed VAA, unless the family QuorumState was asked for whole, and on
	// the development network, whose sets do not succeed each other.
	Repair *Repair `json:"repair"`

	// Matches are the digests for which a lookup by transaction or digest found the
	// message; null in other answers.
	Matches []Match `json:"matches"`

	id vaa.MessageID
}

// Version is one verified VAA of a message.
type Version struct {
	Digest           vaa.Digest `json:"digest"`
	GuardianSetIndex uint32     `json:"guardianSetIndex"`
	// GuardianSetExpiresAt is when the set stopped being valid on the chains; an
	// expired set's VAA is as authentic as before, but contracts refuse it. Null
	// while the set is not superseded, or when it is not known here.
	GuardianSetExpiresAt *time.Time `json:"guardianSetExpiresAt"`
	Canonical            bool       `json:"canonical"`
	WasCanonical         bool       `json:"wasCanonical"` // it is or once was
	RecordedAt           *time.Time `json:"recordedAt"`
	// Signatures counts the signatures, Guardians are those who made them. Null if
	// the stored bytes do not parse, which fsck reports.
	Signatures *int       `json:"signatures"`
	Guardians  []Guardian `json:"guardians"`
	VAA        []byte     `json:"vaa"`
}

// Link is a transaction that is known for one of the message's digests.
type Link struct {
	Digest vaa.Digest    `json:"digest"`
	TxID   string        `json:"txId"`
	Trust  archive.Trust `json:"trust"`
	Source string        `json:"source"`
}

// Evidence is a valid signature beyond those of the versions.
type Evidence struct {
	GuardianSetIndex uint32     `json:"guardianSetIndex"`
	Digest           vaa.Digest `json:"digest"`
	Guardian         Guardian   `json:"guardian"`
	Signature        []byte     `json:"signature"` // r, s, v: 65 bytes
}

// Match is a digest for which the fact that was looked up is known.
type Match struct {
	Digest vaa.Digest `json:"digest"`
	// Standing is "canonical" for the digest that stands for the message,
	// "conflict" for one that lost to it, "vanished" for an observed one that its
	// source gave up.
	Standing string `json:"standing"`
}

// The standings of a digest.
const (
	StandingCanonical = "canonical"
	StandingConflict  = "conflict"
	StandingVanished  = "vanished"
)

// MessageID returns the message's id.
func (a *Attestation) MessageID() vaa.MessageID { return a.id }

// attestation returns the asked columns of a record that was read with
// toRead(asked).
func (s *Service) attestation(r *archive.Record, asked archive.Columns) Attestation {
	digest := r.Digest()
	conflicts, vanished := r.Conflicts(), r.Vanished()
	part := r.Select(asked)
	p := &part.Publication
	a := Attestation{
		ID: r.ID.String(), RowKey: rowkey.Of(r.ID), Network: s.network.String(),
		EmitterChain: r.ID.EmitterChain, EmitterAddress: r.ID.EmitterAddress, Sequence: r.ID.Sequence,
		Digest:  digest,
		Version: p.Version, GuardianSetIndex: p.GuardianSetIndex, Timestamp: utc(p.Timestamp), Nonce: p.Nonce,
		ConsistencyLevel: p.ConsistencyLevel, InitiatingTxID: p.InitiatingTxID, Payload: p.Payload, RecordedAt: utc(p.RecordedAt),
		id: r.ID,
	}
	a.EmitterChainName, a.EmitterNative = chainName(r.ID.EmitterChain), native(r.ID.EmitterChain, r.ID.EmitterAddress)
	if p.GuardianSetIndex != nil {
		a.GuardianSetExpiresAt = s.expiry(*p.GuardianSetIndex)
	}
	if signed := part.Signed(); signed != nil {
		a.SignedVAA, a.GuardianSetExpiresAt = signed.Bytes, s.expiry(signed.GuardianSetIndex)
	}
	parsed := parseVersions(&part)
	if body := bodyOf(&part, parsed); body != nil {
		single := body.SingleDigest()
		a.DigestSingle = &single
		kind, decoded, err := payload.Decode(s.network, body)
		a.PayloadKind, a.Decoded, a.DecodeError = &kind, decoded, undecoded(kind, decoded, err)
	}
	s.fillLists(&a, &part, parsed, asked)
	a.State = state(&part, asked, len(conflicts) > 0, standingVanished(r))
	if wantsAll(asked) {
		a.Lifecycle = lifecycle(r)
	}
	if wantsFamily(asked, schema.QuorumState) {
		a.Repair = s.repair(&part, parsed)
	}
	a.Conflicts = ifAsked(asked, schema.QuorumState, schema.PrefixConflict, conflicts)
	a.Vanished = ifAsked(asked, schema.MessagePublication, schema.PrefixVanished, vanished)
	return a
}

func (s *Service) fillLists(a *Attestation, r *archive.Record, parsed []*vaa.VAA, asked archive.Columns) {
	versions := make([]Version, len(r.Versions))
	for i := range r.Versions {
		versions[i] = s.version(&r.Versions[i], parsed[i])
	}
	links := make([]Link, len(r.Links))
	for i, l := range r.Links {
		links[i] = Link{Digest: l.Digest, TxID: l.TxID, Trust: l.Trust, Source: l.Source}
	}
	evidence := make([]Evidence, len(r.Evidence))
	for i := range r.Evidence {
		e := &r.Evidence[i]
		set, _ := s.sets().Set(e.GuardianSetIndex)
		evidence[i] = Evidence{e.GuardianSetIndex, e.Digest, s.guardian(set, e.Signature.GuardianIndex), e.Signature.RSV[:]}
	}
	if asked.Wants(schema.QuorumState, schema.ColSignedVAA) || asked.Wants(schema.QuorumState, schema.PrefixOther) {
		a.Versions = versions
	}
	a.Links = ifAsked(asked, schema.MessagePublication, schema.PrefixTxID, links)
	a.Evidence = ifAsked(asked, schema.QuorumState, schema.PrefixSignature, evidence)
}

// ifAsked returns a list that is not nil if its column was asked for, else nil.
func ifAsked[T any](asked archive.Columns, family, qualifier string, list []T) []T {
	if !asked.Wants(family, qualifier) {
		return nil
	}
	return append([]T{}, list...)
}

func (s *Service) version(v *archive.Version, parsed *vaa.VAA) Version {
	out := Version{
		Digest: v.Digest, GuardianSetIndex: v.GuardianSetIndex, GuardianSetExpiresAt: s.expiry(v.GuardianSetIndex),
		Canonical: v.Canonical, WasCanonical: v.WasCanonical, RecordedAt: utc(v.RecordedAt), VAA: v.Bytes,
	}
	if parsed != nil {
		n := len(parsed.Signatures)
		out.Signatures, out.Guardians = &n, s.signers(parsed)
	}
	return out
}

// expiry returns when a guardian set stopped being valid on the chains, nil if it
// did not or is not known.
func (s *Service) expiry(index uint32) *time.Time {
	set, ok := s.sets().Set(index)
	if !ok || set.ExpiresAt.IsZero() {
		return nil
	}
	return utc(&set.ExpiresAt)
}

// bodyOf returns the message's body from the canonical VAA, which is the first of the
// parsed versions, or from the columns of the publication, nil when neither is there.
func bodyOf(r *archive.Record, parsed []*vaa.VAA) *vaa.Body {
	if r.Signed() != nil && parsed[0] != nil {
		return &parsed[0].Body
	}
	p := &r.Publication
	if p.Timestamp == nil || p.Nonce == nil || p.ConsistencyLevel == nil || p.Payload == nil {
		return nil
	}
	return &vaa.Body{
		Timestamp: uint32(p.Timestamp.Unix()), Nonce: *p.Nonce, ConsistencyLevel: *p.ConsistencyLevel, Payload: p.Payload,
		EmitterChain: r.ID.EmitterChain, EmitterAddress: r.ID.EmitterAddress, Sequence: r.ID.Sequence,
	}
}

// undecoded says why a payload was not decoded, or not wholly; nil if it was.
func undecoded(kind string, decoded any, err error) *string {
	var reason string
	switch {
	case err != nil:
		reason = err.Error()
	case decoded == nil:
		reason = "payloads of kind " + kind + " are not decoded"
	default:
		return nil
	}
	return &reason
}

// matches says what became of digests of a record that was read whole.
func matches(r *archive.Record, digests []vaa.Digest) []Match {
	seen := make(map[vaa.Digest]bool, len(digests))
	list := []Match{}
	vanished := r.Vanished()
	for _, d := range digests {
		if seen[d] {
			continue
		}
		seen[d] = true
		m := Match{Digest: d, Standing: StandingConflict}
		switch stands := r.Digest(); {
		case stands != nil && *stands == d:
			m.Standing = StandingCanonical
		case slices.Contains(vanished, d):
			m.Standing = StandingVanished
		}
		list = append(list, m)
	}
	return list
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
