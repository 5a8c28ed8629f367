locals {
  # One account a purpose. telemetry: runs the program, which writes metrics and traces.
  accounts = {
    query     = { display = "attestry serve", telemetry = true }
    ingest    = { display = "attestry ingest", telemetry = true }
    schema    = { display = "attestry schema", telemetry = true }
    fsck      = { display = "attestry fsck", telemetry = true }
    scheduler = { display = "starts attestry's jobs", telemetry = false }
  }
  telemetry = ["roles/logging.logWriter", "roles/monitoring.metricWriter", "roles/cloudtrace.agent"]
}

resource "google_service_account" "this" {
  for_each = local.accounts

  project      = var.project
  account_id   = "${var.prefix}-${each.key}"
  display_name = each.value.display
}

resource "google_project_iam_member" "telemetry" {
  for_each = merge([
    for name, a in local.accounts : { for role in local.telemetry : "${name}/${role}" => { account = name, role = role } } if a.telemetry
  ]...)

  project = var.project
  role    = each.value.role
  member  = google_service_account.this[each.value.account].member
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
