locals {
  # One account a purpose. metrics: runs the program, whose Bigtable client writes its own.
  # Logs are read from standard error by the platform, which needs no right of the account.
  accounts = {
    query     = { display = "attestry serve", metrics = true }
    ingest    = { display = "attestry ingest", metrics = true }
    schema    = { display = "attestry schema", metrics = true }
    fsck      = { display = "attestry fsck", metrics = true }
    scheduler = { display = "starts attestry's jobs", metrics = false }
  }
}

resource "google_service_account" "this" {
  for_each = local.accounts

  project      = var.project
  account_id   = "${var.prefix}-${each.key}"
  display_name = each.value.display
}

resource "google_project_iam_member" "metrics" {
  for_each = toset([for name, a in local.accounts : name if a.metrics])

  project = var.project
  role    = "roles/monitoring.metricWriter"
  member  = google_service_account.this[each.key].member
}

# What attestry schema needs: to create and to describe tables. It cannot change or
# drop one, and no other account can create any.
resource "google_project_iam_custom_role" "schema" {
  project     = var.project
  role_id     = "${replace(var.prefix, "-", "_")}_schema"
  title       = "Attestry schema"
  description = "Create and describe Bigtable tables"
  permissions = ["bigtable.tables.create", "bigtable.tables.get", "bigtable.tables.list"]
}
