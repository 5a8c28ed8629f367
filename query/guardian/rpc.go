package guardian

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/query/publicrpc/publicrpcconnect"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

// rpcServer is publicrpc.v1.PublicRPCService.
type rpcServer struct{ *server }

var _ publicrpcconnect.PublicRPCServiceHandler = (*rpcServer)(nil)

// compressFrom is the size of messages that are worth compressing: VAAs are smaller,
// and mostly signatures.
const compressFrom = 4096

// registerRPC adds the service and its reflection. Methods that it does not have, as
// GetSignedBatchVAA of old clients, are not implemented: a path that is not found would
// be a VAA that is not found for clients of gRPC-Web.
func registerRPC(mux *http.ServeMux, s *server) {
	handle := func(path string, h http.Handler) {
		mux.Handle(path, web.Endpoint{Handler: withText(h), Methods: http.MethodPost})
	}
	path, service := publicrpcconnect.NewPublicRPCServiceHandler(&rpcServer{s}, connect.WithCompressMinBytes(compressFrom))
	methods := publicrpc.File_publicrpc_v1_publicrpc_proto.Services().ByName("PublicRPCService").Methods()
	for i := range methods.Len() {
		handle(path+string(methods.Get(i).Name()), service)
	}
	unknown := connect.NewErrorWriter()
	handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, path)
		err := connect.NewError(connect.CodeUnimplemented, fmt.Errorf("unknown method %s for service %s", name, publicrpcconnect.PublicRPCServiceName))
		_ = unknown.Write(w, r, err) // the client is gone then
	}))
	reflector := grpcreflect.NewStaticReflector(publicrpcconnect.PublicRPCServiceName)
	handle(grpcreflect.NewHandlerV1(reflector))
	handle(grpcreflect.NewHandlerV1Alpha(reflector))
}

// rpcError returns an error as gRPC has it, with the text that the guardian's server
// has.
func rpcError(ctx context.Context, err error) error {
	e, ok := errors.AsType[*gatewayError](err)
	if !ok {
		web.NoteErrorContext(ctx, err)
		e = inTheirWords(query.AsError(err))
	}
	return connect.NewError(connect.Code(e.code), errors.New(e.message))
}

// messageID reads an id as the guardian's server does: any number of a chain that
// fits.
func messageID(m *publicrpc.MessageID, strictEmitter bool) (vaa.MessageID, error) {
	var id vaa.MessageID
	switch {
	case m == nil:
		return id, invalid("no message ID specified")
	case m.GetEmitterChain() < 0 || m.GetEmitterChain() > math.MaxUint16:
		return id, invalid("emitter chain id must be no greater than 16 bits")
	}
	id.EmitterChain, id.Sequence = vaa.ChainID(m.GetEmitterChain()), m.GetSequence()
	var err error
	id.EmitterAddress, err = parseEmitter(id.EmitterChain, m.GetEmitterAddress(), strictEmitter)
	return id, err
}

func (s *rpcServer) GetSignedVAA(ctx context.Context, r *connect.Request[publicrpc.GetSignedVAARequest]) (*connect.Response[publicrpc.GetSignedVAAResponse], error) {
	id, err := messageID(r.Msg.GetMessageId(), s.Strict)
	if err != nil {
		return nil, rpcError(ctx, err)
	}
	raw, err := s.signedVAA(ctx, id)
	if err != nil {
		return nil, rpcError(ctx, err)
	}
	return connect.NewResponse(&publicrpc.GetSignedVAAResponse{VaaBytes: raw}), nil
}

func (s *rpcServer) GetCurrentGuardianSet(ctx context.Context, _ *connect.Request[publicrpc.GetCurrentGuardianSetRequest]) (*connect.Response[publicrpc.GetCurrentGuardianSetResponse], error) {
	index, addresses, err := s.guardianSet()
	if err != nil {
		return nil, rpcError(ctx, err)
	}
	return connect.NewResponse(&publicrpc.GetCurrentGuardianSetResponse{GuardianSet: &publicrpc.GuardianSet{Index: index, Addresses: addresses}}), nil
}

func (s *rpcServer) GovernorIsVAAEnqueued(ctx context.Context, r *connect.Request[publicrpc.GovernorIsVAAEnqueuedRequest]) (*connect.Response[publicrpc.GovernorIsVAAEnqueuedResponse], error) {
	if _, err := messageID(r.Msg.GetMessageId(), false); err != nil {
		return nil, rpcError(ctx, err)
	}
	return connect.NewResponse(&publicrpc.GovernorIsVAAEnqueuedResponse{}), nil
}

// The lists of what only a guardian knows.

func (s *rpcServer) GetLastHeartbeats(context.Context, *connect.Request[publicrpc.GetLastHeartbeatsRequest]) (*connect.Response[publicrpc.GetLastHeartbeatsResponse], error) {
	return connect.NewResponse(&publicrpc.GetLastHeartbeatsResponse{}), nil
}

func (s *rpcServer) GovernorGetAvailableNotionalByChain(context.Context, *connect.Request[publicrpc.GovernorGetAvailableNotionalByChainRequest]) (*connect.Response[publicrpc.GovernorGetAvailableNotionalByChainResponse], error) {
	return connect.NewResponse(&publicrpc.GovernorGetAvailableNotionalByChainResponse{}), nil
}

func (s *rpcServer) GovernorGetEnqueuedVAAs(context.Context, *connect.Request[publicrpc.GovernorGetEnqueuedVAAsRequest]) (*connect.Response[publicrpc.GovernorGetEnqueuedVAAsResponse], error) {
	return connect.NewResponse(&publicrpc.GovernorGetEnqueuedVAAsResponse{}), nil
}

func (s *rpcServer) GovernorGetTokenList(context.Context, *connect.Request[publicrpc.GovernorGetTokenListRequest]) (*connect.Response[publicrpc.GovernorGetTokenListResponse], error) {
	return connect.NewResponse(&publicrpc.GovernorGetTokenListResponse{}), nil
}

func (s *rpcServer) GetSignedManagerTransaction(ctx context.Context, _ *connect.Request[publicrpc.GetSignedManagerTransactionRequest]) (*connect.Response[publicrpc.GetSignedManagerTransactionResponse], error) {
	return nil, rpcError(ctx, errNoManager())
}

func (s *rpcServer) GetSignedManagerTransactionByHash(ctx context.Context, _ *connect.Request[publicrpc.GetSignedManagerTransactionByHashRequest]) (*connect.Response[publicrpc.GetSignedManagerTransactionResponse], error) {
	return nil, rpcError(ctx, errNoManager())
}
