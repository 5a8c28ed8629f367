mock_provider "google" {
  override_during = plan
}

variables {
  project        = "test-project"
  schema         = jsondecode(file("../../schema.json"))
  writer_cluster = "attestry-europe-west1-b"
  clusters = {
    attestry-europe-west1-b = { zone = "europe-west1-b" }
  }
}

run "defaults_are_safe" {
  command = plan

  assert {
    condition     = google_bigtable_instance.this.deletion_protection && !google_bigtable_instance.this.force_destroy
    error_message = "the instance must be protected, and its backups kept"
  }
  assert {
    condition     = alltrue([for t in google_bigtable_table.this : t.deletion_protection == "PROTECTED"])
    error_message = "every table must be protected"
  }
  assert {
    condition     = alltrue([for t in google_bigtable_table.this : t.change_stream_retention == "0"])
    error_message = "change streams must be off, and said to be"
  }
  assert {
    condition     = alltrue([for t in google_bigtable_table.this : one(t.automated_backup_policy).frequency == "24h0m0s" && one(t.automated_backup_policy).retention_period == "168h0m0s"])
    error_message = "every table must be backed up daily for a week"
  }
  assert {
    condition     = alltrue([for p in google_bigtable_gc_policy.this : p.deletion_policy == "ABANDON"])
    error_message = "policies must be abandoned on destroy"
  }
  assert {
    condition     = length(google_bigtable_table.this) == length(var.schema.tables) + 1
    error_message = "one generation is the tables of the schema and the store table"
  }
}

run "families_that_hold_vaas_have_no_rule" {
  command = plan

  assert {
    condition = length(setintersection(keys(google_bigtable_gc_policy.this), [
      "mainnet.g1.attestations/QuorumState", "mainnet.g1.journal/Event", "mainnet.g1.journal/Bytes",
    ])) == 0
    error_message = "signed VAAs and events must never be collected"
  }
  assert {
    condition     = jsondecode(google_bigtable_gc_policy.this["mainnet.g1.state/Reject"].gc_rules) == { mode = "union", rules = [{ max_version = 1 }, { max_age = "720h0m0s" }] }
    error_message = "rejects must be collected beyond one version or 30 days"
  }
  assert {
    condition     = google_bigtable_gc_policy.this["mainnet.store/Store"].gc_rules == "{\"rules\":[{\"max_version\":1}]}"
    error_message = "one rule must be written without a mode"
  }
}

run "profiles" {
  command = plan

  assert {
    condition     = [for p in google_bigtable_app_profile.this : p.app_profile_id if length(p.single_cluster_routing) == 1 && try(p.single_cluster_routing[0].allow_transactional_writes, false)] == ["ingest"]
    error_message = "ingest must be the one transactional profile"
  }
  assert {
    condition     = google_bigtable_app_profile.this["api"].multi_cluster_routing_use_any && length(google_bigtable_app_profile.this["api"].single_cluster_routing) == 0
    error_message = "api must be routed to any cluster"
  }
  assert {
    condition     = alltrue([for p in google_bigtable_app_profile.this : !p.ignore_warnings])
    error_message = "a profile that is in use must not be moved unless asked"
  }
  assert {
    condition     = google_bigtable_app_profile.this["batch"].standard_isolation[0].priority == "PRIORITY_LOW"
    error_message = "batch must give way"
  }
}

run "profiles_move_when_asked" {
  command = plan
  variables {
    move_profiles = true
  }

  assert {
    condition     = alltrue([for p in google_bigtable_app_profile.this : p.ignore_warnings])
    error_message = "the move of the writer's cluster must not be refused"
  }
}

run "generations_live_side_by_side" {
  command = plan
  variables {
    network     = "testnet"
    generations = [1, 2]
  }

  assert {
    condition     = length(google_bigtable_table.this) == 2 * length(var.schema.tables) + 1
    error_message = "two generations share one store table"
  }
  assert {
    condition     = contains(keys(google_bigtable_table.this), "testnet.g2.journal") && contains(keys(google_bigtable_table.this), "testnet.store")
    error_message = "a table's id is network, generation, name"
  }
}

run "three_clusters" {
  command = plan
  variables {
    clusters = {
      attestry-europe-west1-b = { zone = "europe-west1-b", kms_key_name = "projects/p/locations/europe-west1/keyRings/r/cryptoKeys/k" }
      attestry-europe-west4-a = { zone = "europe-west4-a", kms_key_name = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k" }
      attestry-us-east1-c     = { zone = "us-east1-c", kms_key_name = "projects/p/locations/us-east1/keyRings/r/cryptoKeys/k" }
    }
  }

  assert {
    condition     = toset(google_bigtable_instance.this.cluster[*].cluster_id) == toset(keys(var.clusters))
    error_message = "every cluster must be there"
  }
  assert {
    condition     = google_bigtable_app_profile.this["api"].row_affinity
    error_message = "with replicas, look-ups of a row must go to one cluster"
  }
}

run "least_rights" {
  command = plan
  variables {
    writers     = { ingest = "serviceAccount:ingest@p.iam.gserviceaccount.com" }
    readers     = { fsck = "serviceAccount:fsck@p.iam.gserviceaccount.com" }
    schema_jobs = { role = "projects/p/roles/attestrySchema", members = { schema = "serviceAccount:schema@p.iam.gserviceaccount.com" } }
  }

  assert {
    condition     = alltrue([for g in google_bigtable_table_iam_member.this : g.role == "roles/bigtable.user"])
    error_message = "no table grant may be more than user"
  }
  assert {
    condition     = [for k in keys(google_bigtable_table_iam_member.this) : k if strcontains(k, "fsck")] == []
    error_message = "who only reads must write to no table"
  }
  assert {
    condition = (
      toset([for g in google_bigtable_instance_iam_member.reader : g.role]) == toset(["roles/bigtable.reader"])
      && keys(google_bigtable_instance_iam_member.reader) == ["reader/fsck", "schema/schema", "writer/ingest"]
    )
    error_message = "everyone who connects must be allowed to ping the instance, and no more than read"
  }
  assert {
    condition     = toset([for k, g in google_bigtable_table_iam_member.this : g.table if endswith(k, "/schema/schema")]) == toset(keys(google_bigtable_table.this))
    error_message = "schema jobs must write rows of every table: a move fills them"
  }
  assert {
    condition     = [for g in google_bigtable_instance_iam_member.schema : g.role] == ["projects/p/roles/attestrySchema"]
    error_message = "the right to make tables is that of schema jobs alone"
  }
}

run "a_table_can_be_unprotected_by_name" {
  command = plan
  variables {
    unprotected_tables = ["mainnet.g1.index"]
  }

  assert {
    condition     = [for id, t in google_bigtable_table.this : id if t.deletion_protection == "UNPROTECTED"] == ["mainnet.g1.index"]
    error_message = "only the named table may lose its protection"
  }
}
