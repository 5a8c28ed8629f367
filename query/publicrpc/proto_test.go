package publicrpc_test

import (
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/query/publicrpc/gossipv1"
)

// TestGenerated holds the generated code against the .proto files that it is of:
// scripts/generate-proto.sh makes it anew.
func TestGenerated(t *testing.T) {
	t.Parallel()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"proto"}})}
	for name, generated := range map[string]protoreflect.FileDescriptor{
		"publicrpc/v1/publicrpc.proto": publicrpc.File_publicrpc_v1_publicrpc_proto,
		"gossip/v1/gossip.proto":       gossipv1.File_gossip_v1_gossip_proto,
	} {
		files, err := compiler.Compile(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		// Both as messages of plain fields and options.
		plain := func(d protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
			text, err := proto.Marshal(protodesc.ToFileDescriptorProto(d))
			if err != nil {
				t.Fatal(err)
			}
			out := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(text, out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		if diff := cmp.Diff(plain(files[0]), plain(generated), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-proto +generated):\n%s", name, diff)
		}
	}
}
