package query

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// ParsedVAA is what the bytes of a VAA say, whether or not the archive has it.
type ParsedVAA struct {
	ID               string      `json:"id"`
	EmitterChain     vaa.ChainID `json:"emitterChain"`
	EmitterChainName *string     `json:"emitterChainName"`
	EmitterAddress   vaa.Address `json:"emitterAddress"`
	EmitterNative    *string     `json:"emitterNative"`
	Sequence         uint64      `json:"sequence,string"`
	Version          uint8       `json:"version"`
	GuardianSetIndex uint32      `json:"guardianSetIndex"`
	Guardians        []Guardian  `json:"guardians"` // who is said to have signed, in the order of the signatures
	Digest           vaa.Digest  `json:"digest"`
	DigestSingle     vaa.Digest  `json:"digestSingle"`
	Timestamp        time.Time   `json:"timestamp"`
	Nonce            uint32      `json:"nonce"`
	ConsistencyLevel uint8       `json:"consistencyLevel"`
	Payload          []byte      `json:"payload"`
	PayloadKind      string      `json:"payloadKind"`
	Decoded          any         `json:"decoded"`
	DecodeError      *string     `json:"decodeError"`
	// Verification is null where it was not asked for.
	Verification *Verification `json:"verification"`

	id vaa.MessageID
}

// Verification tells whether a VAA carries a quorum of valid signatures of the set that
// it names.
type Verification struct {
	Valid bool `json:"valid"`
	// Reason is the stable name of what is wrong, as of rejects, and Message says it in
	// words; null for a valid VAA.
	Reason     *string `json:"reason"`
	Message    *string `json:"message"`
	Signatures int     `json:"signatures"`
	Quorum     *int    `json:"quorum"` // of the set; null where it is not known or has no one size
	// GuardianSetExpiresAt is when the chains stopped, or stop, to accept the set.
	GuardianSetExpiresAt *time.Time `json:"guardianSetExpiresAt"`
}

// DecodeVAA reads the bytes of a VAA. Errors: an *Error about the parameter vaa for
// bytes that are none, or that have more behind their end than was signed.
func (s *Service) DecodeVAA(raw []byte) (*ParsedVAA, error) {
	v, err := vaa.Parse(raw)
	if err != nil {
		return nil, Invalid("vaa", "%w", err)
	}
	if n := s.trailing(v); n > 0 {
		return nil, Invalid("vaa", "vaa of %d bytes has %d behind its end: its guardians signed the first %d", len(raw), n, len(raw)-n)
	}
	digest, single := v.Digest(), v.SingleDigest()
	p := &ParsedVAA{
		ID: v.MessageID().String(), EmitterChain: v.EmitterChain, EmitterChainName: chainName(v.EmitterChain),
		EmitterAddress: v.EmitterAddress, EmitterNative: native(v.EmitterChain, v.EmitterAddress), Sequence: v.Sequence,
		Version: v.Version, GuardianSetIndex: v.GuardianSetIndex, Guardians: s.signers(v), Digest: digest, DigestSingle: single,
		Timestamp: v.Time(), Nonce: v.Nonce, ConsistencyLevel: v.ConsistencyLevel, Payload: v.Payload, id: v.MessageID(),
	}
	kind, decoded, err := payload.Decode(s.network, &v.Body)
	p.PayloadKind, p.Decoded, p.DecodeError = kind, decoded, undecoded(kind, decoded, err)
	return p, nil
}

// Verify is DecodeVAA with the verdict on the signatures. A VAA that does not verify is
// no error.
func (s *Service) Verify(raw []byte) (*ParsedVAA, error) {
	p, err := s.DecodeVAA(raw)
	if err != nil {
		return nil, err
	}
	v, err := vaa.Parse(raw)
	if err != nil {
		return nil, Invalid("vaa", "%w", err)
	}
	sets := s.sets()
	p.Verification = &Verification{Valid: true, Signatures: len(v.Signatures), GuardianSetExpiresAt: s.expiry(v.GuardianSetIndex)}
	if set, ok := sets.Set(v.GuardianSetIndex); ok && s.network != vaa.Devnet {
		quorum := set.Quorum()
		p.Verification.Quorum = &quorum
	}
	if err := sets.Verify(v); err != nil {
		message := err.Error()
		p.Verification.Valid, p.Verification.Message = false, &message
		if bad, ok := errors.AsType[*vaa.VerifyError](err); ok {
			reason := bad.Reason.String()
			p.Verification.Reason = &reason
		}
	}
	return p, nil
}

// trailing returns how many bytes stand behind what the first guardian signed, as a
// line break that was copied along; 0 if it signed all, or there is no telling.
func (s *Service) trailing(v *vaa.VAA) int {
	const most = 8
	set, ok := s.sets().Set(v.GuardianSetIndex)
	if !ok || len(v.Signatures) == 0 || int(v.Signatures[0].GuardianIndex) >= len(set.Keys) {
		return 0
	}
	key, body := set.Keys[v.Signatures[0].GuardianIndex], v.Body
	for n := range min(most, len(v.Payload)) + 1 {
		body.Payload = v.Payload[:len(v.Payload)-n]
		if vaa.VerifySignature(body.Digest(), key, v.Signatures[0]) == 0 {
			return n
		}
	}
	return 0
}

// ParseVAAText reads the bytes of a VAA that someone wrote in base64 (of either
// alphabet, with or without padding) or hex (with or without 0x), surrounding space
// allowed. Errors: an *Error about the parameter vaa.
func ParseVAAText(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if raw, ok := bytesIn(text); ok && len(raw) > 0 {
		return raw, nil
	}
	if text == "" {
		return nil, Invalid("vaa", "vaa is empty: write the bytes of a signed VAA in base64 or hex")
	}
	return nil, Invalid("vaa", "vaa %q is neither base64 nor hex", clip(text))
}

// bytesIn decodes hex or base64.
func bytesIn(text string) ([]byte, bool) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	if raw, err := hex.DecodeString(digits); err == nil {
		return raw, true
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	return raw, err == nil
}

// vaaIn returns the bytes of the VAA that a text is; false if it is none. Nothing else
// that names a message is as long.
func vaaIn(text string) ([]byte, bool) {
	const least = 123 // header, one signature and body without payload
	if len(text) < least {
		return nil, false
	}
	raw, ok := bytesIn(text)
	if !ok || len(raw) < least {
		return nil, false
	}
	v, err := vaa.Parse(raw)
	return raw, err == nil && len(v.Signatures) > 0
}

// renamed returns an *Error about another parameter.
func renamed(err error, parameter string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	with := *e
	with.Parameter = &parameter
	return &with
}

func chainName(chain vaa.ChainID) *string {
	if !chain.Known() {
		return nil
	}
	name := chain.String()
	return &name
}

func native(chain vaa.ChainID, address vaa.Address) *string {
	text, ok := vaa.NativeAddress(chain, address)
	if !ok {
		return nil
	}
	return &text
}
