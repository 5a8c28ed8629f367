package guardian

import (
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/attestry/attestry/query/web"
)

// Register adds the interface to a mux:
//
//	/v1/signed_vaa/{chain}/{emitter}/{sequence}
//	/v1/signed_batch_vaa/…                         not implemented, as with guardians
//	/v1/guardianset/current
//	/v1/heartbeats
//	/v1/governor/…                                 available_notional_by_chain, enqueued_vaas,
//	                                               is_vaa_enqueued/{chain}/{emitter}/{sequence}, token_list
//	/v1/manager/signed_vaa/…
//	/publicrpc.v1.PublicRPCService/…               gRPC, gRPC-Web, and Connect; and its reflection
//
// The chain is a number or a name as CHAIN_ID_ETHEREUM.
func Register(mux *http.ServeMux, c Config) {
	s := &server{c}
	handle := func(path string, h func(w http.ResponseWriter, r *http.Request) (any, error)) {
		mux.Handle("/v1/"+path, web.Endpoint{Handler: answer(h), Methods: "GET, HEAD", WriteError: writeError})
	}
	handle("signed_vaa/{chain}/{emitter}/{sequence}", s.getSignedVAA)
	handle("guardianset/current", s.getGuardianSet)
	for _, path := range []string{"heartbeats", "governor/available_notional_by_chain", "governor/enqueued_vaas", "governor/token_list"} {
		handle(path, func(http.ResponseWriter, *http.Request) (any, error) { return map[string]any{"entries": []any{}}, nil })
	}
	handle("governor/is_vaa_enqueued/{chain}/{emitter}/{sequence}", s.getEnqueued)
	noManager := func(http.ResponseWriter, *http.Request) (any, error) { return nil, errNoManager() }
	handle("manager/signed_vaa/{hash}", noManager)
	handle("manager/signed_vaa/{chain}/{emitter}/{sequence}", noManager)
	handle("signed_batch_vaa/", func(http.ResponseWriter, *http.Request) (any, error) {
		return nil, &gatewayError{codes.Unimplemented, "not yet implemented"}
	})
	for _, path := range []string{"signed_vaa/", "guardianset/", "heartbeats/", "governor/", "manager/"} {
		mux.Handle("/v1/"+path, web.Endpoint{Handler: http.HandlerFunc(notFound), WriteError: writeError})
	}
	registerRPC(mux, s)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, r, &gatewayError{codes.NotFound, "Not Found"})
}

// answer writes what h returns.
func answer(h func(w http.ResponseWriter, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := h(w, r)
		if err == nil {
			err = web.WriteJSON(w, r, body)
		}
		if err != nil {
			writeError(w, r, err)
		}
	}
}

type signedVAAResponse struct {
	VAABytes []byte `json:"vaaBytes"`
}

func (s *server) getSignedVAA(_ http.ResponseWriter, r *http.Request) (any, error) {
	id, err := s.parseMessageID(r, s.Strict)
	if err != nil {
		return nil, err
	}
	raw, err := s.signedVAA(r.Context(), id)
	return signedVAAResponse{raw}, err
}

type guardianSetResponse struct {
	GuardianSet struct {
		Index     uint32   `json:"index"`
		Addresses []string `json:"addresses"`
	} `json:"guardianSet"`
}

func (s *server) getGuardianSet(http.ResponseWriter, *http.Request) (any, error) {
	var out guardianSetResponse
	var err error
	out.GuardianSet.Index, out.GuardianSet.Addresses, err = s.guardianSet()
	return out, err
}

type enqueuedResponse struct {
	IsEnqueued bool `json:"isEnqueued"`
}

func (s *server) getEnqueued(_ http.ResponseWriter, r *http.Request) (any, error) {
	_, err := s.parseMessageID(r, false) // a guardian's governor takes 0x and short forms
	return enqueuedResponse{}, err
}
