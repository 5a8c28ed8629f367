package guardian_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/grpcreflect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/query/publicrpc/publicrpcconnect"
	"github.com/attestry/attestry/vaa"
)

// TestChainNames holds the enumeration against the table of chains: every chain has its
// name, and every name is a chain's.
func TestChainNames(t *testing.T) {
	t.Parallel()
	names := map[int32]string{}
	for _, id := range vaa.Chains() {
		names[int32(id)] = "CHAIN_ID_" + strings.ReplaceAll(strings.ToUpper(id.String()), "-", "_")
	}
	names[0] = "CHAIN_ID_UNSPECIFIED"
	if diff := cmp.Diff(names, publicrpc.ChainID_name); diff != "" {
		t.Errorf("(-table +enumeration):\n%s", diff)
	}
}

// TestMethods calls every method, and one that old clients have, by grpc-go.
func TestMethods(t *testing.T) {
	t.Parallel()
	conn := dial(t, listen(t, querytest.New(vaa.Mainnet), true))
	address := strings.Repeat("0", 63) + "4"
	id := &publicrpc.MessageID{EmitterChain: publicrpc.ChainID_CHAIN_ID_ETHEREUM, EmitterAddress: address, Sequence: 7}
	for _, c := range []struct {
		method        string
		request       proto.Message
		response      proto.Message
		code          codes.Code
		message, json string
	}{
		{"GetLastHeartbeats", &publicrpc.GetLastHeartbeatsRequest{}, &publicrpc.GetLastHeartbeatsResponse{}, 0, "", "{}"},
		{"GetSignedVAA", &publicrpc.GetSignedVAARequest{MessageId: id}, &publicrpc.GetSignedVAAResponse{}, 5, "requested VAA not found in store", "{}"},
		{"GovernorGetAvailableNotionalByChain", &publicrpc.GovernorGetAvailableNotionalByChainRequest{}, &publicrpc.GovernorGetAvailableNotionalByChainResponse{}, 0, "", "{}"},
		{"GovernorGetEnqueuedVAAs", &publicrpc.GovernorGetEnqueuedVAAsRequest{}, &publicrpc.GovernorGetEnqueuedVAAsResponse{}, 0, "", "{}"},
		{"GovernorIsVAAEnqueued", &publicrpc.GovernorIsVAAEnqueuedRequest{MessageId: id}, &publicrpc.GovernorIsVAAEnqueuedResponse{}, 0, "", "{}"},
		{"GovernorIsVAAEnqueued", &publicrpc.GovernorIsVAAEnqueuedRequest{MessageId: &publicrpc.MessageID{EmitterChain: 2, EmitterAddress: "0x" + address[24:]}}, &publicrpc.GovernorIsVAAEnqueuedResponse{}, 0, "", "{}"},
		{"GovernorIsVAAEnqueued", &publicrpc.GovernorIsVAAEnqueuedRequest{}, &publicrpc.GovernorIsVAAEnqueuedResponse{}, 3, "no message ID specified", "{}"},
		{"GovernorGetTokenList", &publicrpc.GovernorGetTokenListRequest{}, &publicrpc.GovernorGetTokenListResponse{}, 0, "", "{}"},
		{"GetSignedManagerTransaction", &publicrpc.GetSignedManagerTransactionRequest{MessageId: id}, &publicrpc.GetSignedManagerTransactionResponse{}, 14, "manager service not enabled", "{}"},
		{"GetSignedManagerTransactionByHash", &publicrpc.GetSignedManagerTransactionByHashRequest{VaaHash: address}, &publicrpc.GetSignedManagerTransactionResponse{}, 14, "manager service not enabled", "{}"},
		{"GetSignedBatchVAA", &publicrpc.GetSignedVAARequest{}, &publicrpc.GetSignedVAAResponse{}, 12, "unknown method GetSignedBatchVAA for service publicrpc.v1.PublicRPCService", "{}"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := conn.Invoke(ctx, "/publicrpc.v1.PublicRPCService/"+c.method, c.request, c.response)
		cancel()
		got := status.Convert(err)
		text, jsonErr := protojson.Marshal(c.response)
		if jsonErr != nil || got.Code() != c.code || got.Message() != c.message || string(text) != c.json {
			t.Errorf("%s: %v %q %s", c.method, got.Code(), got.Message(), text)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var set publicrpc.GetCurrentGuardianSetResponse
	if err := conn.Invoke(ctx, publicrpcconnect.PublicRPCServiceGetCurrentGuardianSetProcedure, &publicrpc.GetCurrentGuardianSetRequest{}, &set); err != nil {
		t.Fatal(err)
	}
	known, err := vaa.KnownGuardianSets(vaa.Mainnet)
	if err != nil {
		t.Fatal(err)
	}
	if got := set.GetGuardianSet(); got.GetIndex() != known.Newest().Index || len(got.GetAddresses()) != 19 || got.GetAddresses()[0] != "0x5893B5A76c3f739645648885bDCcC06cd70a3Cd3" {
		t.Errorf("guardian set: %v", got)
	}
}

// TestUnknownMethodByWeb holds that a client of gRPC-Web can tell a method that is not
// there from a VAA that is not there.
func TestUnknownMethodByWeb(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, querytest.New(vaa.Mainnet))
	for contentType, body := range map[string]string{
		"application/grpc-web+proto": "\x00\x00\x00\x00\x00", "application/grpc-web-text": "AAAAAAA=",
	} {
		r := httptest.NewRequest(http.MethodPost, "/publicrpc.v1.PublicRPCService/GetSignedBatchVAA", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answer := w.Body.Bytes()
		if strings.HasSuffix(contentType, "text") {
			answer, _ = base64.StdEncoding.DecodeString(w.Body.String())
		}
		// Trailers stand in the header or in a last frame; clients read both.
		text := "grpc-status: " + w.Header().Get("Grpc-Status")
		for _, frame := range framesOf(t, bytes.NewReader(answer)) {
			text += strings.ToLower(string(frame.body))
		}
		if w.Code != http.StatusOK || !strings.Contains(text, "grpc-status: 12") || w.Header().Get("Content-Type") != contentType {
			t.Errorf("%s: %d %v %q", contentType, w.Code, w.Header(), text)
		}
	}
	w := do(h, http.MethodGet, "/publicrpc.v1.PublicRPCService/GetSignedVAA")
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d %v", w.Code, w.Header())
	}
}

// TestReflection asks as grpcurl does.
func TestReflection(t *testing.T) {
	t.Parallel()
	addr := listen(t, querytest.New(vaa.Mainnet), false)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream := grpcreflect.NewClient(overHTTP(t, true), "http://"+addr).NewStream(ctx)
	defer stream.Close() //nolint:errcheck // it ends with the connection
	names, err := stream.ListServices()
	if diff := cmp.Diff([]protoreflect.FullName{"publicrpc.v1.PublicRPCService"}, names); err != nil || diff != "" {
		t.Errorf("services: %v\n%s", err, diff)
	}
	files, err := stream.FileContainingSymbol("publicrpc.v1.PublicRPCService")
	if err != nil || len(files) == 0 {
		t.Errorf("files: %d, %v", len(files), err)
	}
}
