mock_provider "google" {
  override_during = plan
}

variables {
  project = "test-project"
}

run "least_rights" {
  command = plan

  assert {
    condition     = toset(keys(google_service_account.this)) == toset(["query", "ingest", "schema", "fsck", "scheduler"])
    error_message = "every purpose has an account of its own"
  }
  assert {
    condition     = toset([for g in google_project_iam_member.telemetry : g.role]) == toset(["roles/logging.logWriter", "roles/monitoring.metricWriter", "roles/cloudtrace.agent"])
    error_message = "rights on the project are those of telemetry alone"
  }
  assert {
    condition     = length([for k, g in google_project_iam_member.telemetry : k if startswith(k, "scheduler/")]) == 0
    error_message = "the scheduler writes no telemetry"
  }
  assert {
    condition     = length(setintersection(google_project_iam_custom_role.schema.permissions, ["bigtable.tables.delete", "bigtable.tables.update"])) == 0
    error_message = "schema jobs must not be able to drop a table"
  }
}

run "bad_prefix" {
  command         = plan
  expect_failures = [var.prefix]
  variables {
    prefix = "Attestry"
  }
}
