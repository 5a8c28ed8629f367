package native_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/attestry/attestry/vaa"
)

var (
	exampleBlock = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?")
	exampleURL   = regexp.MustCompile(`'http://127\.0\.0\.1:7070([^']+)'`)
)

// TestAPIDocument runs the examples of docs/api.md. What stands behind one is a part
// of the answer to its last line.
func TestAPIDocument(t *testing.T) {
	t.Parallel()
	h := load(t, vaa.Mainnet)
	document, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	blocks := exampleBlock.FindAllStringSubmatch(string(document), -1)
	if len(blocks) < 5 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		var last any
		for line := range strings.Lines(block[1]) {
			target := exampleURL.FindStringSubmatch(line)
			if target == nil {
				t.Fatalf("no example: %s", line)
			}
			must(t, json.Unmarshal(h.get(t, target[1], http.StatusOK), &last))
		}
		if block[2] == "" {
			continue
		}
		var want any
		must(t, json.Unmarshal([]byte(block[2]), &want))
		if missing := lacks(last, want, "answer"); missing != "" {
			t.Errorf("%s: %s", block[1], missing)
		}
	}
}

// lacks says what of want is not in got; "" if all is.
func lacks(got, want any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for key, value := range want {
			member, ok := object[key]
			if !ok {
				return at + " has no " + key
			}
			if missing := lacks(member, value, at+"."+key); missing != "" {
				return missing
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) < len(want) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for i := range want {
			if missing := lacks(list[i], want[i], fmt.Sprintf("%s[%d]", at, i)); missing != "" {
				return missing
			}
		}
	default:
		if got != want {
			return fmt.Sprintf("%s is %v, not %v", at, got, want)
		}
	}
	return ""
}

// TestAPIDocumentPaths holds that the document names every path.
func TestAPIDocumentPaths(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	specification, err := os.ReadFile("openapi.yaml")
	must(t, err)
	for _, path := range regexp.MustCompile(`(?m)^  (/\S+):$`).FindAllStringSubmatch(string(specification), -1) {
		if !strings.Contains(string(document), path[1]) && !strings.Contains(path[1], "/{sequence}/repaired") {
			t.Errorf("docs/api.md does not tell of %s", path[1])
		}
	}
}
