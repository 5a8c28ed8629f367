package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fault is an edit of one file and the check that must notice it.
type fault struct {
	name     string
	file     string // below terraform/
	old, new string // the first old becomes new; an empty old appends new
	check    func(*testing.T, workspace) (findings string, failed bool)
	want     string // part of what the check says
}

// plantFaults plants each fault in a copy of the workspace.
func plantFaults(t *testing.T, w workspace) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := w.clone(t)
			name := filepath.Join(c.dir, f.file)
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			edited := string(src) + f.new
			if f.old != "" {
				edited = strings.Replace(string(src), f.old, f.new, 1)
			}
			if edited == string(src) {
				t.Fatalf("%s has no %q to plant the fault in", f.file, f.old)
			}
			if err := os.WriteFile(name, []byte(edited), 0o600); err != nil {
				t.Fatal(err)
			}
			findings, failed := f.check(t, c)
			// Terraform wraps its lines.
			if !failed || !strings.Contains(strings.Join(strings.Fields(findings), " "), f.want) {
				t.Errorf("not noticed (failed: %v), want %q in:\n%s", failed, f.want, findings)
			}
		})
	}
}

// terraform is the check that runs terraform in a root.
func terraform(root string, args ...string) func(*testing.T, workspace) (string, bool) {
	return func(t *testing.T, w workspace) (string, bool) {
		t.Helper()
		out, err := w.tf.Run(t.Context(), filepath.Join(w.dir, root), append(args, "-no-color")...)
		return strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(out), err != nil
	}
}

func validate(root string) func(*testing.T, workspace) (string, bool) {
	return terraform(root, "validate")
}

func tested(module string) func(*testing.T, workspace) (string, bool) {
	return terraform("modules/"+module, "test")
}

func policy(t *testing.T, w workspace) (string, bool) {
	t.Helper()
	found := checkFiles(t, w.dir)
	return strings.Join(found, "\n"), len(found) > 0
}

func planPolicy(t *testing.T, w workspace) (string, bool) {
	t.Helper()
	found := checkPlan(w.plan(t, "minimal"))
	return strings.Join(found, "\n"), len(found) > 0
}

// sameTables is the comparison with what the program makes.
func sameTables(t *testing.T, w workspace) (string, bool) {
	t.Helper()
	got := plannedTables(t, w.plan(t, "minimal"))
	for table, families := range created(t, "testnet") {
		for family, rule := range families {
			if got[table][family] != rule {
				return table + "/" + family + " differs", true
			}
		}
	}
	return "", false
}

func faults() []fault {
	const (
		bigtable   = "modules/bigtable/main.tf"
		redis      = "modules/redis/main.tf"
		services   = "modules/services/main.tf"
		edge       = "modules/edge/main.tf"
		monitoring = "modules/monitoring/main.tf"
		archive    = stack + "/main.tf"
	)
	return []fault{
		// Names, types and blocks: terraform validate, by the stand-in's schema.
		{"misspelt attribute", bigtable, "deletion_protection = true", "deletion_protect = true", validate("modules/bigtable"), `An argument named "deletion_protect" is not expected here`},
		{"wrong type", bigtable, "deletion_protection = true", `deletion_protection = "always"`, validate("modules/bigtable"), "a bool is required"},
		{"misspelt block", bigtable, "automated_backup_policy {", "automatic_backup_policy {", validate("modules/bigtable"), `Blocks of type "automatic_backup_policy" are not expected here`},
		{"missing block", redis, "      start_time {\n        hours   = 4\n        minutes = 0\n        seconds = 0\n        nanos   = 0\n      }\n", "", validate("modules/redis"), "Insufficient start_time blocks"},
		{"repeated block", bigtable, "  standard_isolation {", "  standard_isolation {\n    priority = \"PRIORITY_LOW\"\n  }\n  standard_isolation {", validate("modules/bigtable"), "No more than 1 \"standard_isolation\" blocks are allowed"},
		{"missing attribute", bigtable, "  role          = each.value.role\n", "", validate("modules/bigtable"), `The argument "role" is required`},
		{"unknown type", bigtable, `"google_bigtable_table" "this"`, `"google_bigtable_tables" "this"`, validate("modules/bigtable"), `does not support resource type "google_bigtable_tables"`},
		{"unknown value", edge, `"SERVERLESS"`, `"SERVERLES"`, validate("modules/edge"), `expected network_endpoint_type to be one of`},
		{"unknown reference", redis, "google_redis_instance.this.auth_string", "google_redis_instance.this.auth_token", validate("modules/redis"), `no argument, nested block, or exported attribute named "auth_token"`},
		{"computed attribute set", redis, "auth_enabled            = true", "auth_enabled            = true\n  host                    = \"10.0.0.1\"", validate("modules/redis"), `Value for unconfigurable attribute`},
		{"unknown output of a module", archive, "module.redis.url", "module.redis.uri", validate(stack), `This object does not have an attribute named "uri"`},
		{"misspelt input of a module", archive, "writer_cluster          =", "writers_cluster         =", validate(stack), `An argument named "writers_cluster" is not expected here`},

		// What a module promises: its own tests and conditions.
		{"two transactional profiles", bigtable, "transactional = false\n      priority      = \"PRIORITY_LOW\"", "transactional = true\n      priority      = \"PRIORITY_LOW\"", tested("bigtable"), "exactly one app profile must allow transactional writes"},
		{"max_age on VAAs", "schema.json", "\"name\": \"QuorumState\",\n          \"max_versions\": null,\n          \"max_age\": null", "\"name\": \"QuorumState\",\n          \"max_versions\": null,\n          \"max_age\": \"720h0m0s\"", tested("bigtable"), "hold signed VAAs and events"},
		{"unprotected table", bigtable, `"UNPROTECTED" : "PROTECTED"`, `"UNPROTECTED" : "UNPROTECTED"`, tested("bigtable"), "every table must be protected"},
		{"validation that lets all through", "modules/bigtable/variables.tf", "endswith(id, c.zone)", "true", tested("bigtable"), "Missing expected failure"},
		{"change streams on by default", bigtable, `lookup(var.change_stream_retention, each.value.name, "0")`, `lookup(var.change_stream_retention, each.value.name, "168h0m0s")`, tested("bigtable"), "change streams must be off"},
		{"redis without TLS", redis, `"SERVER_AUTHENTICATION"`, `"DISABLED"`, tested("redis"), "password and TLS must be on"},
		{"stream that is evicted", redis, `"noeviction"`, `"allkeys-lru"`, tested("redis"), "the stream must not be evicted"},
		{"public by default", services, "count = var.query.public ? 1 : 0", "count = 1", tested("services"), "the service must be private unless asked"},
		{"checks on the writer's profile", services, `var.bigtable.profiles["batch"]`, `var.bigtable.profiles["ingest"]`, tested("services"), "the check must give way"},
		{"silent alert", monitoring, "notification_channels = local.channels", "notification_channels = []", tested("monitoring"), "every alert must reach somebody"},
		{"right to drop tables", "modules/identity/main.tf", `"bigtable.tables.list"]`, `"bigtable.tables.list", "bigtable.tables.delete"]`, tested("identity"), "must not be able to drop a table"},

		// What no file may hold: policy over HCL.
		{"key resource", "modules/identity/main.tf", "", "\nresource \"google_service_account_key\" \"ci\" {\n  service_account_id = google_service_account.this[\"query\"].name\n}\n", policy, "keys of accounts leak"},
		{"authoritative grant", bigtable, `"google_bigtable_table_iam_member" "this"`, `"google_bigtable_table_iam_binding" "this"`, policy, "strips the grants of others"},
		{"table that can be destroyed", bigtable, "    prevent_destroy = true\n    ignore_changes", "    ignore_changes", policy, "google_bigtable_table.this: holds state"},
		{"rule as a block", bigtable, "deletion_policy = \"ABANDON\"", "deletion_policy = \"ABANDON\"\n  max_version {\n    number = 1\n  }", policy, "use gc_rules"},
		{"policy not abandoned", bigtable, "deletion_policy = \"ABANDON\"", "", policy, "must be abandoned on destroy"},
		{"backups that go along", bigtable, "force_destroy       = false", "force_destroy       = true", policy, "would take its content along"},
		{"argument that goes with version 7", bigtable, "instance_name = google_bigtable_instance.this.name\n  table         = google_bigtable_table.this[each.value.table].name\n  role", "instance      = google_bigtable_instance.this.name\n  table         = google_bigtable_table.this[each.value.table].name\n  role", policy, "use instance_name"},
		{"federation without a condition", "bootstrap/ci.tf", "  attribute_condition                = \"assertion.repository == '${var.repository}'\"\n", "", policy, "lets every repository of the issuer in"},
		{"API turned off on destroy", "bootstrap/main.tf", "disable_on_destroy = false", "disable_on_destroy = true", policy, "turned off under others"},
		{"provider in a module", "modules/redis/versions.tf", "", "\nprovider \"google\" {}\n", policy, "no provider of its own"},
		{"alert without a runbook", "modules/monitoring/runbook.md", "## redis-memory", "## redis", policy, "alert redis-memory has no heading"},

		// What no plan may hold, and what it must: policy over its JSON.
		{"dropped family", "schema.json", "        {\n          \"name\": \"Batch\",\n          \"max_versions\": 1,\n          \"max_age\": null\n        },\n", "", planPolicy, "family Batch of the schema has vanished"},
		{"family that the module forgets", bigtable, "toset(each.value.families[*].name)", "toset([each.value.families[0].name])", planPolicy, "has vanished"},
		{"image by tag", "modules/services/jobs.tf", "image = var.image", "image = split(\"@\", var.image)[0]", planPolicy, "is not named by its digest"},
		{"rule dropped", bigtable, "if f.max_versions != null || f.max_age != null", "if f.max_age != null", sameTables, "differs"},
		{"rule changed", "schema.json", "\"max_age\": \"720h0m0s\"", "\"max_age\": \"72h0m0s\"", sameTables, "testnet.g1.state/Reject differs"},
	}
}
