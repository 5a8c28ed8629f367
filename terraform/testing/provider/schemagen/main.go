// Command schemagen writes schema.json from the npm package @cdktf/provider-google,
// whose generated sources carry the provider's schema: name, type, block or
// attribute, and required, optional or computed of every field.
//
//	schemagen PACKAGE_DIR TYPES_FILE > schema.json
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/attestry/attestry/terraform/testing/provider/field"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: schemagen PACKAGE_DIR TYPES_FILE > schema.json")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "schemagen: %v\n", err)
		os.Exit(1)
	}
}

func generate(dir, types string) error {
	f, err := os.Open(types)
	if err != nil {
		return err
	}
	defer f.Close()
	out := field.Schema{
		Provider: "hashicorp/google", Version: "6.50.0",
		Resources: map[string]map[string]field.Field{}, DataSources: map[string]map[string]field.Field{},
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, data := strings.CutPrefix(strings.TrimSpace(lines.Text()), "data.")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		fields, err := read(dir, name, data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if data {
			out.DataSources[name] = fields
		} else {
			out.Resources[name] = fields
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

var sourceMap = regexp.MustCompile(`sourceMappingURL=data:application/json;base64,(\S+)`)

// read returns the fields of one type. Its TypeScript is in the inlined source map.
func read(dir, name string, data bool) (map[string]field.Field, error) {
	folder := strings.ReplaceAll(strings.TrimPrefix(name, "google_"), "_", "-")
	if data {
		folder = "data-google-" + folder
	}
	js, err := os.ReadFile(filepath.Join(dir, "lib", folder, "index.js"))
	if err != nil {
		return nil, err
	}
	match := sourceMap.FindSubmatch(js)
	if match == nil {
		return nil, fmt.Errorf("no source map in lib/%s", folder)
	}
	text, err := base64.StdEncoding.DecodeString(string(match[1]))
	if err != nil {
		return nil, err
	}
	var mapped struct{ SourcesContent []string }
	if err := json.Unmarshal(text, &mapped); err != nil {
		return nil, err
	}
	return parse(strings.Join(mapped.SourcesContent, "\n"), name)
}
