package guardian_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/guardian"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/query/publicrpc/publicrpcconnect"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

// listen serves the interface on a port of its own, and returns its address.
func listen(t *testing.T, a *querytest.Archive, strict bool) string {
	t.Helper()
	known, err := vaa.KnownGuardianSets(a.Store.Info().Network)
	if err != nil {
		t.Fatal(err)
	}
	sets := func() vaa.GuardianSets { return known }
	mux := http.NewServeMux()
	guardian.Register(mux, guardian.Config{Service: query.New(a.Store, a.Store.Info().Network, sets), Sets: sets, Strict: strict})
	s, err := web.NewServer(web.Config{Routes: mux, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// ask asks for a VAA.
type ask func(ctx context.Context, r *publicrpc.GetSignedVAARequest) (*publicrpc.GetSignedVAAResponse, error)

// dial connects a client of grpc-go.
func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// overHTTP returns a client of HTTP/1.1 or HTTP/2, without TLS.
func overHTTP(t *testing.T, two bool) *http.Client {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!two)
	protocols.SetUnencryptedHTTP2(two)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// clients are those of grpc-go, and of connect by the protocols and versions of HTTP
// that there are.
func clients(t *testing.T, addr string) map[string]ask {
	t.Helper()
	conn := dial(t, addr)
	all := map[string]ask{
		"grpc-go": func(ctx context.Context, r *publicrpc.GetSignedVAARequest) (*publicrpc.GetSignedVAAResponse, error) {
			var out publicrpc.GetSignedVAAResponse
			return &out, conn.Invoke(ctx, publicrpcconnect.PublicRPCServiceGetSignedVAAProcedure, r, &out)
		},
	}
	for name, option := range map[string]connect.ClientOption{"gRPC-Web": connect.WithGRPCWeb(), "Connect": connect.WithProtoJSON()} {
		for proto, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			client := publicrpcconnect.NewPublicRPCServiceClient(overHTTP(t, two), "http://"+addr, option)
			all[name+" "+proto] = func(ctx context.Context, r *publicrpc.GetSignedVAARequest) (*publicrpc.GetSignedVAAResponse, error) {
				out, err := client.GetSignedVAA(ctx, connect.NewRequest(r))
				if err != nil {
					return nil, err
				}
				return out.Msg, nil
			}
		}
	}
	return all
}

func messageID(id vaa.MessageID) *publicrpc.GetSignedVAARequest {
	return &publicrpc.GetSignedVAARequest{MessageId: &publicrpc.MessageID{
		EmitterChain: publicrpc.ChainID(id.EmitterChain), EmitterAddress: id.EmitterAddress.String(), Sequence: id.Sequence,
	}}
}

// TestRPCCollected gets the bytes of every message by both protocols.
func TestRPCCollected(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		a, err := querytest.Load(network, collectedDir)
		if err != nil {
			t.Fatal(err)
		}
		all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-"+network.String()+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		collected := map[vaa.MessageID][]string{}
		for _, c := range all {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			collected[v.MessageID()] = append(collected[v.MessageID()], string(c.VAA))
		}
		for name, get := range clients(t, listen(t, a, false)) {
			for id, vaas := range collected {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				got, err := get(ctx, messageID(id))
				cancel()
				if err != nil {
					t.Errorf("%s, %s: %v", name, id, err)
					continue
				}
				found := false
				for _, v := range vaas {
					found = found || v == string(got.GetVaaBytes())
				}
				if !found {
					t.Errorf("%s, %s: not as collected", name, id)
				}
			}
		}
	}
}

// codeOf returns code and text of an error of either client.
func codeOf(err error) (uint32, string) {
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return uint32(e.Code()), e.Message()
	}
	s := status.Convert(err)
	return uint32(s.Code()), s.Message()
}

// TestRPCErrors compares with the texts of the guardian's server.
func TestRPCErrors(t *testing.T) {
	t.Parallel()
	address := strings.Repeat("0", 63) + "4"
	id := func(chain publicrpc.ChainID, address string) *publicrpc.GetSignedVAARequest {
		return &publicrpc.GetSignedVAARequest{MessageId: &publicrpc.MessageID{EmitterChain: chain, EmitterAddress: address, Sequence: 7}}
	}
	for name, get := range clients(t, listen(t, querytest.New(vaa.Mainnet), true)) {
		for _, c := range []struct {
			request *publicrpc.GetSignedVAARequest
			code    uint32
			message string
		}{
			{&publicrpc.GetSignedVAARequest{}, 3, "no message ID specified"},
			{id(65536, address), 3, "emitter chain id must be no greater than 16 bits"},
			{id(-1, address), 3, "emitter chain id must be no greater than 16 bits"},
			{id(26, address), 3, "not supported for PythNet"},
			{id(2, "0x"+address), 3, "failed to decode address: encoding/hex: invalid byte: U+0078 'x'"},
			{id(2, address[24:]), 3, "address must be 32 bytes"},
			{id(3, address), 5, "requested VAA not found in store"},
			{id(60051, address), 5, "requested VAA not found in store"},
			{id(2, address), 5, "requested VAA not found in store"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err := get(ctx, c.request)
			cancel()
			if code, message := codeOf(err); err == nil || code != c.code || message != c.message {
				t.Errorf("%s, %v: %d %q, want %d %q", name, c.request, code, message, c.code, c.message)
			}
		}
	}
}

// TestBareWebRequest sends what the old SDK sends, byte by byte, and reads the frames of
// the answer.
func TestBareWebRequest(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	v := vaa.VAA{Version: 1, Body: vaa.Body{EmitterChain: 2, Sequence: 1<<64 - 1}}
	raw := v.Append(nil)
	if err := a.AddVAA(raw, nil); err != nil {
		t.Fatal(err)
	}
	h, _ := serve(t, a)
	post := func(m proto.Message) *httptest.ResponseRecorder {
		return postFrame(t, h, "GetSignedVAA", m, http.Header{"Content-Type": {"application/grpc-web+proto"}, "X-Grpc-Web": {"1"}})
	}
	w := post(messageID(v.MessageID()))
	frames := framesOf(t, w.Body)
	var got publicrpc.GetSignedVAAResponse
	if len(frames) != 2 || frames[0].flags != 0 || frames[1].flags != 0x80 || proto.Unmarshal(frames[0].body, &got) != nil || !bytes.Equal(got.GetVaaBytes(), raw) {
		t.Errorf("%d %v: %v", w.Code, w.Header(), frames)
	}
	if !strings.Contains(strings.ToLower(string(frames[len(frames)-1].body)), "grpc-status: 0") {
		t.Errorf("trailers %q", frames[len(frames)-1].body)
	}
	w = post(&publicrpc.GetSignedVAARequest{})
	if w.Code != http.StatusOK || w.Header().Get("Grpc-Status") != "3" || w.Header().Get("Grpc-Message") != "no message ID specified" || w.Body.Len() != 0 {
		t.Errorf("refused: %d %v", w.Code, w.Header())
	}
	// A VAA is not compressed for who would take it so.
	w = postFrame(t, h, "GetSignedVAA", messageID(v.MessageID()), http.Header{
		"Content-Type": {"application/grpc-web+proto"}, "Grpc-Accept-Encoding": {"gzip"}, "Accept-Encoding": {"gzip"},
	})
	if frames := framesOf(t, w.Body); len(frames) != 2 || frames[0].flags != 0 || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("compressed: %v %v", w.Header(), frames)
	}
}

// TestWebText asks in base64 as grpc-web's text mode does, in one piece and in padded
// pieces.
func TestWebText(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	v := vaa.VAA{Version: 1, Body: vaa.Body{EmitterChain: 2, Sequence: 7}}
	raw := v.Append(nil)
	if err := a.AddVAA(raw, nil); err != nil {
		t.Fatal(err)
	}
	h, _ := serve(t, a)
	post := func(contentType, body string) *httptest.ResponseRecorder {
		// The length is not told, so that the limit is met while reading.
		r := httptest.NewRequest(http.MethodPost, "/publicrpc.v1.PublicRPCService/GetSignedVAA", io.MultiReader(strings.NewReader(body)))
		r.Header = http.Header{"Content-Type": {contentType}, "X-Grpc-Web": {"1"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	body, err := proto.Marshal(messageID(v.MessageID()))
	if err != nil {
		t.Fatal(err)
	}
	request := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	encode := base64.StdEncoding.EncodeToString
	for _, text := range []string{encode(request), encode(request[:5]) + encode(request[5:]), encode(request[:1]) + encode(request[1:6]) + encode(request[6:])} {
		for contentType, want := range map[string]string{
			"application/grpc-web-text":                          "application/grpc-web-text",
			"application/grpc-web-text+proto":                    "application/grpc-web-text+proto",
			"Application/gRPC-Web-Text+proto; charset=\"utf-8\"": "application/grpc-web-text+proto",
		} {
			w := post(contentType, text)
			answer, err := base64.StdEncoding.DecodeString(w.Body.String())
			if err != nil || w.Header().Get("Content-Type") != want {
				t.Fatalf("%s: %d %v: %v", contentType, w.Code, w.Header(), err)
			}
			var got publicrpc.GetSignedVAAResponse
			frames := framesOf(t, bytes.NewReader(answer))
			if len(frames) != 2 || frames[1].flags != 0x80 || proto.Unmarshal(frames[0].body, &got) != nil || !bytes.Equal(got.GetVaaBytes(), raw) {
				t.Errorf("%v: %v", w.Header(), frames)
			}
		}
	}
	for text, want := range map[string]string{
		"AAAA!AAA": "3 the request is not base64 at character 4", "AAAAA": "3 the request is not base64: 5 characters are no multiple of 4",
		encode(make([]byte, 5)): "3 no message ID specified", strings.Repeat("A", 2<<20): "8 read the request: http: request body too large",
	} {
		w := post("application/grpc-web-text", text)
		if got := w.Header().Get("Grpc-Status") + " " + w.Header().Get("Grpc-Message"); !strings.HasPrefix(got, want) {
			t.Errorf("%.10q: %d %v, want %s", text, w.Code, w.Header(), want)
		}
	}
	for _, contentType := range []string{"application/grpc-web-textual", "application/grpc-web-text+cbor"} {
		if w := post(contentType, encode(request)); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d %v", contentType, w.Code, w.Header())
		}
	}
}

// postFrame calls a method with the frame of a message and no other header than those
// given.
func postFrame(t *testing.T, h http.Handler, method string, m proto.Message, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	r := httptest.NewRequest(http.MethodPost, "/publicrpc.v1.PublicRPCService/"+method, bytes.NewReader(frame))
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

type frame struct {
	flags byte
	body  []byte
}

func framesOf(t *testing.T, r io.Reader) (frames []frame) {
	t.Helper()
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return frames
		} else if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(r, body); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame{head[0], body})
	}
}
