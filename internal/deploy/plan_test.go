package deploy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gcp "cloud.google.com/go/bigtable"
	tfjson "github.com/hashicorp/terraform-json"
)

// plannedTables returns the tables of a plan with their families and rules.
func plannedTables(t *testing.T, plan *tfjson.Plan) tables {
	t.Helper()
	all := tables{}
	for _, r := range planned(plan) {
		if r.Type == "google_bigtable_table" {
			id := text(r, "name")
			all[id] = map[string]string{}
			for _, name := range families(r) {
				all[id][name] = never
			}
		}
	}
	for _, r := range planned(plan) {
		if r.Type != "google_bigtable_gc_policy" {
			continue
		}
		table, family := text(r, "table"), text(r, "column_family")
		if all[table][family] != never {
			t.Errorf("rule of %s/%s, which is no planned family or has two rules", table, family)
			continue
		}
		all[table][family] = parseRules(t, text(r, "gc_rules"))
	}
	return all
}

func families(r *tfjson.StateResource) []string {
	var names []string
	blocks, _ := r.AttributeValues["column_family"].([]any)
	for _, b := range blocks {
		names = append(names, b.(map[string]any)["family"].(string))
	}
	return names
}

// parseRules reads the JSON of gc_rules as the provider documents it: rules with
// max_version or max_age, and a mode where there are several.
func parseRules(t *testing.T, src string) string {
	t.Helper()
	var rules struct {
		Mode  string
		Rules []struct {
			MaxVersion *int    `json:"max_version"`
			MaxAge     *string `json:"max_age"`
		}
	}
	if err := json.Unmarshal([]byte(src), &rules); err != nil {
		t.Fatalf("gc_rules %q: %v", src, err)
	}
	if (len(rules.Rules) > 1) != (rules.Mode == "union") {
		t.Errorf("gc_rules %s: want a union of several rules, or one without a mode", src)
	}
	var versions *int
	var age *string
	for _, r := range rules.Rules {
		if r.MaxVersion != nil {
			versions = r.MaxVersion
		}
		if r.MaxAge != nil {
			age = r.MaxAge
		}
	}
	return policyOf(t, versions, age)
}

func policyOf(t *testing.T, versions *int, age *string) string {
	t.Helper()
	var policies []gcp.GCPolicy
	if versions != nil {
		policies = append(policies, gcp.MaxVersionsPolicy(*versions))
	}
	if age != nil {
		d, err := time.ParseDuration(*age)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, gcp.MaxAgePolicy(d))
	}
	switch len(policies) {
	case 0:
		return never
	case 1:
		return policies[0].String()
	}
	return gcp.UnionPolicy(policies...).String()
}

var byDigest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// checkPlan returns what in a plan no archive may have.
func checkPlan(plan *tfjson.Plan) []string {
	var found []string
	report := func(r *tfjson.StateResource, format string, args ...any) {
		found = append(found, r.Address+": "+fmt.Sprintf(format, args...))
	}
	want := map[string][]string{}
	definitions := TableDefinitions()
	for _, t := range append(definitions.Tables, definitions.Store) {
		for _, f := range t.Families {
			want[t.Name] = append(want[t.Name], f.Name)
		}
	}
	transactional := 0
	for _, r := range planned(plan) {
		switch r.Type {
		case "google_bigtable_instance":
			if r.AttributeValues["deletion_protection"] != true || r.AttributeValues["force_destroy"] != false {
				report(r, "is not protected, or its backups go with it")
			}
		case "google_bigtable_table":
			if text(r, "deletion_protection") != "PROTECTED" {
				report(r, "is not protected")
			}
			id := text(r, "name")
			have := families(r)
			for _, name := range want[id[strings.LastIndex(id, ".")+1:]] {
				if !slices.Contains(have, name) {
					report(r, "family %s of the schema has vanished: applied, its data would be deleted", name)
				}
			}
		case "google_bigtable_app_profile":
			for _, b := range r.AttributeValues["single_cluster_routing"].([]any) {
				if b.(map[string]any)["allow_transactional_writes"] == true {
					transactional++
				}
			}
		case "google_bigtable_table_iam_member", "google_project_iam_member", "google_storage_bucket_iam_member":
			if member := text(r, "member"); member == "allUsers" || member == "allAuthenticatedUsers" {
				report(r, "is granted to everybody")
			}
			if role := text(r, "role"); role == "roles/owner" || role == "roles/editor" {
				report(r, "grants %s", role)
			}
		case "google_cloud_run_v2_service", "google_cloud_run_v2_job", "google_cloud_run_v2_worker_pool":
			// An ingester is stopped by taking its worker pool out.
			if r.Type != "google_cloud_run_v2_worker_pool" && r.AttributeValues["deletion_protection"] != true {
				report(r, "is not protected")
			}
			for _, c := range containers(r) {
				if image, _ := c["image"].(string); !byDigest.MatchString(image) {
					report(r, "image %q is not named by its digest", image)
				}
			}
		}
	}
	if transactional != 1 {
		found = append(found, fmt.Sprintf("%d app profiles allow transactional writes, want one", transactional))
	}
	for _, c := range plan.ResourceChanges {
		if c.Change.Actions.Delete() || c.Change.Actions.Replace() {
			found = append(found, c.Address+": is deleted")
		}
	}
	return found
}

// containers returns the containers of a service, a job or a worker pool.
func containers(r *tfjson.StateResource) []map[string]any {
	template := first(r.AttributeValues["template"])
	if r.Type == "google_cloud_run_v2_job" {
		template = first(template["template"])
	}
	var all []map[string]any
	list, _ := template["containers"].([]any)
	for _, c := range list {
		all = append(all, c.(map[string]any))
	}
	return all
}

func first(list any) map[string]any {
	l, _ := list.([]any)
	if len(l) == 0 {
		return nil
	}
	return l[0].(map[string]any)
}
