locals {
  # Tables by id: those of every generation, and the one that names the open one.
  tables = merge(
    { "${var.network}.${var.schema.store.name}" = merge(var.schema.store, { generation = null }) },
    [
      for g in var.generations : {
        for t in var.schema.tables : "${var.network}.g${g}.${t.name}" => merge(t, { generation = g })
      }
    ]...
  )

  # Families that have a rule, by table id and name. A family without one keeps
  # everything, which is what a table made by terraform starts with.
  collected = merge([
    for id, t in local.tables : {
      for f in t.families : "${id}/${f.name}" => {
        table  = id
        family = f.name
        rules = concat(
          f.max_versions == null ? [] : [jsonencode({ max_version = f.max_versions })],
          f.max_age == null ? [] : [jsonencode({ max_age = f.max_age })],
        )
      }
      if f.max_versions != null || f.max_age != null
    }
  ]...)

  # Who uses which profile: docs/design.md, "Tables".
  profiles = {
    ingest = {
      description   = "Whatever classifies, appends, applies, publishes or serves the feed"
      cluster       = var.writer_cluster
      transactional = true
      priority      = "PRIORITY_HIGH"
    }
    api = {
      description   = "Look-ups only, by the nearest cluster"
      cluster       = null
      transactional = false
      priority      = "PRIORITY_HIGH"
    }
    batch = {
      description   = "Checks and exports, which give way to the rest"
      cluster       = var.writer_cluster
      transactional = false
      priority      = "PRIORITY_LOW"
    }
  }
}

resource "google_bigtable_instance" "this" {
  project             = var.project
  name                = var.name
  display_name        = var.name
  labels              = var.labels
  deletion_protection = true
  force_destroy       = false

  dynamic "cluster" {
    for_each = var.clusters
    content {
      cluster_id   = cluster.key
      zone         = cluster.value.zone
      storage_type = "SSD"
      kms_key_name = cluster.value.kms_key_name

      autoscaling_config {
        min_nodes      = cluster.value.min_nodes
        max_nodes      = cluster.value.max_nodes
        cpu_target     = cluster.value.cpu_target
        storage_target = cluster.value.storage_target
      }
    }
  }

  timeouts {
    create = "60m"
    update = "120m"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_bigtable_table" "this" {
  for_each = local.tables

  project                 = var.project
  instance_name           = google_bigtable_instance.this.name
  name                    = each.key
  deletion_protection     = contains(var.unprotected_tables, each.key) ? "UNPROTECTED" : "PROTECTED"
  change_stream_retention = lookup(var.change_stream_retention, each.value.name, "0")

  dynamic "column_family" {
    for_each = toset(each.value.families[*].name)
    content {
      family = column_family.value
    }
  }

  automated_backup_policy {
    frequency        = var.backup.frequency
    retention_period = var.backup.retention_period
  }

  timeouts {
    create = "45m"
    update = "20m"
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [split_keys]
  }
}

# Rules are JSON: as blocks, a change would delete the policy and make it anew. On
# destroy a policy is abandoned, since that of a replicated table cannot be unset.
resource "google_bigtable_gc_policy" "this" {
  for_each = local.collected

  project         = var.project
  instance_name   = google_bigtable_instance.this.name
  table           = google_bigtable_table.this[each.value.table].name
  column_family   = each.value.family
  deletion_policy = "ABANDON"
  gc_rules = jsonencode(merge(
    { rules = [for r in each.value.rules : jsondecode(r)] },
    length(each.value.rules) > 1 ? { mode = "union" } : {},
  ))
}

resource "google_bigtable_app_profile" "this" {
  for_each = local.profiles

  project        = var.project
  instance       = google_bigtable_instance.this.name
  app_profile_id = each.key
  description    = each.value.description

  multi_cluster_routing_use_any = each.value.cluster == null ? true : null
  row_affinity                  = each.value.cluster == null && length(var.clusters) > 1 ? true : null

  dynamic "single_cluster_routing" {
    for_each = each.value.cluster[*]
    content {
      cluster_id                 = single_cluster_routing.value
      allow_transactional_writes = each.value.transactional
    }
  }

  standard_isolation {
    priority = each.value.priority
  }

  # Another cluster is refused for a transactional profile, unless this says that it is
  # meant.
  ignore_warnings = var.move_profiles

  lifecycle {
    precondition {
      condition     = [for p in local.profiles : p.cluster if p.transactional] == [var.writer_cluster]
      error_message = "exactly one app profile must allow transactional writes, on the writer's cluster: two writers in two clusters would both win."
    }
  }
}

locals {
  table_grants = merge([
    for id in keys(local.tables) : merge(
      { for name, member in var.writers : "${id}/writer/${name}" => { table = id, role = "roles/bigtable.user", member = member } },
      # attestry schema create writes the row that opens the store, and attestry schema
      # move fills a generation.
      { for name, member in var.schema_jobs.members : "${id}/schema/${name}" => { table = id, role = "roles/bigtable.user", member = member } },
    )
  ]...)
}

resource "google_bigtable_table_iam_member" "this" {
  for_each = local.table_grants

  project       = var.project
  instance_name = google_bigtable_instance.this.name
  table         = google_bigtable_table.this[each.value.table].name
  role          = each.value.role
  member        = each.value.member
}

# Whoever opens a connection pings the instance, and a client whose ping is refused has
# no connection: no grant on tables alone is enough. The role that holds the right
# reads rows too, which are public attestations.
resource "google_bigtable_instance_iam_member" "reader" {
  for_each = merge(
    { for name, member in var.writers : "writer/${name}" => member },
    { for name, member in var.readers : "reader/${name}" => member },
    { for name, member in var.schema_jobs.members : "schema/${name}" => member },
  )

  project  = var.project
  instance = google_bigtable_instance.this.name
  role     = "roles/bigtable.reader"
  member   = each.value
}

resource "google_bigtable_instance_iam_member" "schema" {
  for_each = var.schema_jobs.members

  project  = var.project
  instance = google_bigtable_instance.this.name
  role     = var.schema_jobs.role
  member   = each.value
}
