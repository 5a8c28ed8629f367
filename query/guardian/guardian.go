// Package guardian imitates the read API that Wormhole's guardians serve: their
// service publicrpc.v1 by gRPC and gRPC-Web, and the same over HTTP as grpc-gateway
// v2.16 has it, so that clients of theirs work by changing an address: paths, JSON
// conventions, error codes and texts.
//
// Unless it is strict it is more lenient: it also answers for chains that guardians
// have given up or do not know, for PythNet, and for emitters in any spelling of
// their chain, and it answers HEAD. What only a guardian knows is honestly empty:
// heartbeats and the governor's lists; no transaction of a delegated manager is kept.
package guardian

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/vaa"
)

// Config is what the interface is made of.
type Config struct {
	Service *query.Service
	// Sets returns the guardian sets known at the time of the call.
	Sets func() vaa.GuardianSets
	// Strict refuses what guardians refuse: obsolete and unknown chains, PythNet, and
	// emitters in another form than 64 hex digits where they take no other.
	Strict bool
}

// server answers in the words of the interface. Its errors are *gatewayError or the
// service's.
type server struct{ Config }

// gatewayError is an error in the words of the interface.
type gatewayError struct {
	code    codes.Code
	message string
}

func (e *gatewayError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &gatewayError{codes.InvalidArgument, fmt.Sprintf(format, args...)}
}

func (s *server) signedVAA(ctx context.Context, id vaa.MessageID) ([]byte, error) {
	if s.Strict && id.EmitterChain == pythNet {
		return nil, invalid("not supported for PythNet")
	}
	return s.Service.SignedVAA(ctx, id)
}

// pythNet is the one chain whose VAAs guardians do not keep.
const pythNet vaa.ChainID = 26

// guardianSet returns index and addresses of the newest set.
func (s *server) guardianSet() (index uint32, addresses []string, err error) {
	sets := s.Sets()
	if len(sets.All()) == 0 {
		return 0, nil, &gatewayError{codes.Unavailable, "guardian set not fetched from chain yet"}
	}
	newest := sets.Newest()
	for _, key := range newest.Keys {
		addresses = append(addresses, key.String())
	}
	return newest.Index, addresses, nil
}

// errNoManager says that the archive has none of the transactions that delegated
// managers sign.
func errNoManager() error { return &gatewayError{codes.Unavailable, "manager service not enabled"} }

// parseMessageID reads the parts of a path as grpc-gateway and the guardian's server
// do, in their order and with their texts.
func (s *server) parseMessageID(r *http.Request, strictEmitter bool) (vaa.MessageID, error) {
	var id vaa.MessageID
	var err error
	if id.EmitterChain, err = s.parseChain(r.PathValue("chain")); err != nil {
		return id, mismatch("emitter_chain", err)
	}
	if id.Sequence, err = strconv.ParseUint(r.PathValue("sequence"), 10, 64); err != nil {
		return id, mismatch("sequence", err)
	}
	id.EmitterAddress, err = parseEmitter(id.EmitterChain, r.PathValue("emitter"), strictEmitter)
	return id, err
}

func mismatch(field string, err error) error {
	return invalid("type mismatch, parameter: message_id.%s, error: parsing field %q: %v", field, field, err)
}

// parseChain reads a value of the enumeration publicrpc.v1.ChainID, by its name or
// its number; unless it is strict also other numbers and names.
func (s *server) parseChain(text string) (vaa.ChainID, error) {
	value, named := publicrpc.ChainID_value[text]
	n, err := int(value), error(nil)
	if !named {
		n, err = strconv.Atoi(text)
	}
	if err == nil && n >= 0 && n <= math.MaxUint16 {
		id := vaa.ChainID(n)
		if !s.Strict || id.Known() && !id.Obsolete() {
			return id, nil
		}
	}
	if err != nil && !s.Strict {
		if id, err := vaa.ParseChainID(text); err == nil {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%q is not a valid value", text)
}

// parseEmitter reads 64 hex digits; unless it is strict any spelling of the chain.
func parseEmitter(chain vaa.ChainID, text string, strict bool) (vaa.Address, error) {
	if !strict {
		if a, err := vaa.ParseAddress(chain, text); err == nil {
			return a, nil
		}
	}
	address, err := hex.DecodeString(text)
	if err != nil {
		return vaa.Address{}, invalid("failed to decode address: %v", err)
	}
	if len(address) != len(vaa.Address{}) {
		return vaa.Address{}, invalid("address must be 32 bytes")
	}
	return vaa.Address(address), nil
}
