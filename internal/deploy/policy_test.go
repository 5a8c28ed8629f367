package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// stateful are the types whose loss is the loss of data, of an address that others
// know, or of a key.
func stateful() []string {
	return []string{
		"google_bigtable_instance", "google_bigtable_table", "google_redis_instance", "google_kms_key_ring",
		"google_kms_crypto_key", "google_storage_bucket", "google_compute_global_address.this",
	}
}

var (
	keyTypes      = regexp.MustCompile(`^google_(service_account_key|storage_hmac_key|apikeys_key|iam_workload_identity_pool_provider_key)$`)
	authoritative = regexp.MustCompile(`^google_.*_iam_(policy|binding)$`)
	runbookLink   = regexp.MustCompile(`\$\{var\.runbook\}#([a-z-]+)"`)
	alertName     = regexp.MustCompile(`(?m)^\s+([a-z][a-z-]+) = \{\s*\n\s+title `)
)

// checkFiles returns what in the configuration below dir breaks a rule. Lifecycle
// blocks are not in a plan, so files are read.
func checkFiles(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	parser := hclparse.NewParser()
	for _, name := range files(t, dir, ".tf") {
		f, diags := parser.ParseHCLFile(name)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range f.Body.(*hclsyntax.Body).Blocks {
			for _, what := range checkBlock(rel, b) {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", rel, b.Range().Start.Line, strings.Join(b.Labels, "."), what))
			}
		}
	}
	return append(found, checkRunbook(t, dir)...)
}

func checkBlock(file string, b *hclsyntax.Block) []string {
	var found []string
	switch b.Type {
	case "provider":
		if strings.HasPrefix(file, "modules/") {
			found = append(found, "a module has no provider of its own")
		}
	case "variable", "output":
		if b.Body.Attributes["description"] == nil {
			found = append(found, "has no description")
		}
		if b.Type == "variable" && b.Body.Attributes["type"] == nil {
			found = append(found, "has no type")
		}
	case "resource":
		found = checkResource(b)
	}
	return found
}

func checkResource(b *hclsyntax.Block) []string {
	var found []string
	kind := b.Labels[0]
	attribute := func(name string) string {
		a := b.Body.Attributes[name]
		if a == nil {
			return ""
		}
		v, diags := a.Expr.Value(&hcl.EvalContext{})
		if diags.HasErrors() {
			return "(computed)"
		}
		return fmt.Sprintf("%#v", v)
	}
	for _, s := range stateful() {
		if (s == kind || s == kind+"."+b.Labels[1]) && !prevents(b) {
			found = append(found, "holds state and lacks lifecycle { prevent_destroy = true }")
		}
	}
	switch {
	case keyTypes.MatchString(kind):
		found = append(found, "keys of accounts leak; use federation or the platform's identity")
	case authoritative.MatchString(kind):
		found = append(found, "is authoritative and strips the grants of others; use _iam_member")
	case kind == "google_bigtable_gc_policy":
		if attribute("deletion_policy") != `cty.StringVal("ABANDON")` {
			found = append(found, "must be abandoned on destroy")
		}
		for _, block := range b.Body.Blocks {
			if block.Type == "max_age" || block.Type == "max_version" {
				found = append(found, "a changed rule in a block is deleted and made anew; use gc_rules")
			}
		}
	case kind == "google_bigtable_table_iam_member" && b.Body.Attributes["instance"] != nil:
		found = append(found, "instance is not known from version 7 on; use instance_name")
	case kind == "google_project_service" && attribute("disable_on_destroy") != "cty.False":
		found = append(found, "would be turned off under others on destroy")
	case kind == "google_iam_workload_identity_pool_provider" && b.Body.Attributes["attribute_condition"] == nil:
		found = append(found, "lets every repository of the issuer in")
	}
	if b.Body.Attributes["force_destroy"] != nil && attribute("force_destroy") != "cty.False" {
		found = append(found, "would take its content along")
	}
	return found
}

func prevents(b *hclsyntax.Block) bool {
	for _, block := range b.Body.Blocks {
		if a := block.Body.Attributes["prevent_destroy"]; block.Type == "lifecycle" && a != nil {
			v, diags := a.Expr.Value(nil)
			return !diags.HasErrors() && v.True()
		}
	}
	return false
}

// checkRunbook: every alert has a heading of the runbook.
func checkRunbook(t *testing.T, dir string) []string {
	t.Helper()
	module := filepath.Join(dir, "modules", "monitoring")
	runbook, err := os.ReadFile(filepath.Join(module, "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"slo-availability", "slo-latency"}
	for _, name := range []string{filepath.Join(module, "main.tf"), filepath.Join(module, "slo.tf")} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, re := range []*regexp.Regexp{runbookLink, alertName} {
			for _, m := range re.FindAllSubmatch(src, -1) {
				names = append(names, string(m[1]))
			}
		}
	}
	if len(names) < 10 {
		t.Fatalf("only alerts %q were found: the search is wrong", names)
	}
	var found []string
	for _, name := range names {
		if !strings.Contains(string(runbook), "\n## "+name+"\n") {
			found = append(found, "modules/monitoring/runbook.md: alert "+name+" has no heading")
		}
	}
	return found
}
