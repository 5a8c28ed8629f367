package deploy

import (
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
)

// checkShape: what the cost page counts is what the example plans.
func checkShape(t *testing.T, example string, plan *tfjson.Plan) {
	t.Helper()
	got := shape{name: example, redis: redisBasicGiBHour}
	for _, r := range planned(plan) {
		switch r.Type {
		case "google_bigtable_instance":
			clusters := r.AttributeValues["cluster"].([]any)
			got.clusters = float64(len(clusters))
			for _, c := range clusters {
				if key, _ := c.(map[string]any)["kms_key_name"].(string); key != "" {
					got.keys++
				}
			}
		case "google_redis_instance":
			got.redisGiB = number(t, r.AttributeValues["memory_size_gb"])
			if text(r, "tier") == "STANDARD_HA" {
				got.redis = redisHAGiBHour
			}
		case "google_cloud_run_v2_service":
			got.instances += number(t, first(r.AttributeValues["scaling"])["min_instance_count"])
		case "google_cloud_run_v2_worker_pool":
			got.instances += number(t, first(r.AttributeValues["scaling"])["manual_instance_count"])
		case "google_compute_global_forwarding_rule":
			got.edge = true
		}
	}
	for _, want := range shapes() {
		if want.name == example && want != got {
			t.Errorf("the cost page counts %+v, the example plans %+v", want, got)
		}
	}
}

// number returns a number of a plan's values.
func number(t *testing.T, v any) float64 {
	t.Helper()
	n, ok := v.(float64)
	if !ok {
		t.Fatalf("%v (%T) is no number", v, v)
	}
	return n
}

// TestCostOfNothing: an archive without messages costs what is there without them.
func TestCostOfNothing(t *testing.T) {
	for _, s := range shapes() {
		for _, it := range s.cost(0) {
			growing := it.what == "Bigtable storage" || it.what == "Backups" || it.what == "Replication"
			if growing && it.usd != 0 {
				t.Errorf("%s: %s costs %v without a message", s.name, it.what, it.usd)
			}
		}
		if got, want := s.cost(0)[0].usd, s.clusters*hoursMonth*0.65; got != want {
			t.Errorf("%s: nodes cost %v, want one a cluster: %v", s.name, got, want)
		}
	}
}
