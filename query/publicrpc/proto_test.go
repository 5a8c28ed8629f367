package publicrpc_test

import (
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
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
	"github.com/attestry/attestry/query/publicrpc/publicrpcconnect"
)

// generated are the descriptors in the generated code, by their .proto files.
func generated() map[string]protoreflect.FileDescriptor {
	return map[string]protoreflect.FileDescriptor{
		"publicrpc/v1/publicrpc.proto": publicrpc.File_publicrpc_v1_publicrpc_proto,
		"gossip/v1/gossip.proto":       gossipv1.File_gossip_v1_gossip_proto,
	}
}

// TestAllGenerated holds that no .proto file is without its code.
func TestAllGenerated(t *testing.T) {
	t.Parallel()
	var files []string
	err := fs.WalkDir(os.DirFS("proto"), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(generated())), files); diff != "" {
		t.Errorf("(-generated +files):\n%s", diff)
	}
}

// TestGenerated holds the generated code against the .proto files that it is of:
// scripts/generate-proto.sh makes it anew.
func TestGenerated(t *testing.T) {
	t.Parallel()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"proto"}})}
	for name, generated := range generated() {
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

// TestConnect holds the generated server against the service: its methods, and what
// they take and answer.
func TestConnect(t *testing.T) {
	t.Parallel()
	service := publicrpc.File_publicrpc_v1_publicrpc_proto.Services().Get(0)
	if got := string(service.FullName()); got != publicrpcconnect.PublicRPCServiceName {
		t.Errorf("the service is %s, the server %s", got, publicrpcconnect.PublicRPCServiceName)
	}
	want := map[string][2]string{}
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		want[string(m.Name())] = [2]string{string(m.Input().Name()), string(m.Output().Name())}
	}
	// message is the name of the message in a connect.Request or connect.Response.
	message := func(t reflect.Type) string {
		field, _ := t.Elem().FieldByName("Msg")
		return field.Type.Elem().Name()
	}
	got := map[string][2]string{}
	server := reflect.TypeFor[publicrpcconnect.PublicRPCServiceHandler]()
	for i := range server.NumMethod() {
		m := server.Method(i)
		got[m.Name] = [2]string{message(m.Type.In(1)), message(m.Type.Out(0))}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-service +server):\n%s", diff)
	}
}
