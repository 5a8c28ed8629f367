package testenv

import (
	"net"
	"testing"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
)

// BTTest starts the client library's own test server in this process for the
// duration of the test and returns its address. It keeps its data in memory.
func BTTest(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const maxMessage = 256 << 20 // as Google's emulator binary has it
	server, err := bttest.NewServerWithListener(l, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // the server waits for its listener's end but leaves the closing to its owner
		server.Close()
	})
	return l.Addr().String()
}
