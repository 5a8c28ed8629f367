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
    condition     = toset([for g in google_project_iam_member.metrics : g.role]) == toset(["roles/monitoring.metricWriter"])
    error_message = "the one right on the project is to write metrics"
  }
  assert {
    condition     = !contains(keys(google_project_iam_member.metrics), "scheduler")
    error_message = "the scheduler writes no metrics"
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
