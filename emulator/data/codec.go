package data

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped
	"google.golang.org/grpc/mem"
)

// encoded is a message that is encoded already.
type encoded []byte

type codec struct{ encoding.CodecV2 }

// Codec returns the codec that the gRPC server must be made with: protobuf, which
// also sends the responses that this package has encoded.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

// Marshal copies an encoded message, so that its memory can be used again.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.Copy(m, mem.DefaultBufferPool())}, nil
	}
	return c.CodecV2.Marshal(v)
}
