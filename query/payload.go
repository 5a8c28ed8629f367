package query

import (
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// decode fills in what the body's payload is and says. It never fails the answer.
func (a *Attestation) decode(network vaa.Network, body *vaa.Body) {
	kind, decoded, err := payload.Decode(network, body)
	a.PayloadKind, a.Decoded = &kind, decoded
	var reason string
	switch {
	case err != nil:
		reason = err.Error()
	case decoded == nil:
		reason = "payloads of kind " + kind + " are not decoded"
	default:
		return
	}
	a.DecodeError = &reason
}
