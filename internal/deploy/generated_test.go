package deploy

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestGenerated: the files that follow from the code are those of the code.
func TestGenerated(t *testing.T) {
	for name, content := range map[string]func() ([]byte, error){
		"../../docs/cost.md":           CostPage,
		"../../terraform/reference.md": referencePage,
		"../../terraform/schema.json":  SchemaFile,
	} {
		want, err := content()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (go generate ./internal/deploy mends it):\n%s", name, cmp.Diff(string(want), string(got)))
		}
	}
}
