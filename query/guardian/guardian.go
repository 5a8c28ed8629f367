// Package guardian imitates the read API that Wormhole's guardians serve over
// HTTP (publicrpc.v1 behind grpc-gateway v2.16), so that clients of theirs work
// by changing an address: its paths, JSON conventions, error codes and texts.
//
// It is more lenient in three things: it also answers for chains that guardians
// have given up and no longer have in their enumeration, it answers for PythNet,
// and it answers HEAD.
package guardian

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

// Register adds the paths of the interface to a mux:
//
//	/v1/signed_vaa/{chain}/{emitter}/{sequence}
//
// The chain is a number or a name as CHAIN_ID_ETHEREUM, the emitter 64 hex digits
// without 0x.
func Register(mux *http.ServeMux, s *query.Service) {
	mux.HandleFunc("/v1/signed_vaa/{chain}/{emitter}/{sequence}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), web.RequestTimeout)
		defer cancel()
		if err := signedVAA(w, r.WithContext(ctx), s); err != nil {
			writeError(w, r, err)
		}
	})
	mux.HandleFunc("/v1/signed_vaa/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, r, &gatewayError{codes.NotFound, "Not Found"})
	})
}

type signedVAAResponse struct {
	VAABytes []byte `json:"vaaBytes"`
}

func signedVAA(w http.ResponseWriter, r *http.Request, s *query.Service) error {
	if !web.IsGet(r) {
		return &gatewayError{codes.Unimplemented, "Method Not Allowed"}
	}
	id, err := parseMessageID(r.PathValue("chain"), r.PathValue("emitter"), r.PathValue("sequence"))
	if err != nil {
		return err
	}
	raw, err := s.SignedVAA(r.Context(), id)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, signedVAAResponse{raw})
}

// parseMessageID reads the parts of the path as grpc-gateway and the guardian's
// server do, in their order and with their texts.
func parseMessageID(chain, emitter, sequence string) (vaa.MessageID, error) {
	var id vaa.MessageID
	var err error
	if id.EmitterChain, err = parseChain(chain); err != nil {
		return id, mismatch("emitter_chain", err)
	}
	if id.Sequence, err = strconv.ParseUint(sequence, 10, 64); err != nil {
		return id, mismatch("sequence", err)
	}
	address, err := hex.DecodeString(emitter)
	if err != nil {
		return id, &gatewayError{codes.InvalidArgument, fmt.Sprintf("failed to decode address: %v", err)}
	}
	if len(address) != len(id.EmitterAddress) {
		return id, &gatewayError{codes.InvalidArgument, "address must be 32 bytes"}
	}
	id.EmitterAddress = vaa.Address(address)
	return id, nil
}

func mismatch(field string, err error) error {
	return &gatewayError{
		codes.InvalidArgument,
		fmt.Sprintf("type mismatch, parameter: message_id.%s, error: parsing field %q: %v", field, field, err),
	}
}

// parseChain reads a value of the enumeration publicrpc.v1.ChainID, by its name or
// its number, with the chains that were taken out of it.
func parseChain(s string) (vaa.ChainID, error) {
	const prefix = "CHAIN_ID_"
	if strings.HasPrefix(s, prefix) && strings.ToUpper(s) == s {
		if id, err := vaa.ParseChainID(s); err == nil {
			return id, nil
		}
	}
	n, err := strconv.Atoi(s)
	if id := vaa.ChainID(n); err == nil && int(id) == n && id.Known() {
		return id, nil
	}
	return 0, fmt.Errorf("%q is not a valid value", s)
}

// gatewayError is an error in the words of the interface.
type gatewayError struct {
	code    codes.Code
	message string
}

func (e *gatewayError) Error() string { return e.message }
