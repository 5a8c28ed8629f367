mock_provider "google" {
  override_during = plan
}

variables {
  project  = "test-project"
  instance = "attestry"
  redis    = "attestry"
  query    = { name = "attestry-query", max_instances = 10 }
  emails   = ["oncall@example.com"]
}

run "minimal" {
  command = plan

  assert {
    condition     = alltrue([for p in google_monitoring_alert_policy.threshold : length(p.notification_channels) == 1])
    error_message = "every alert must reach somebody"
  }
  assert {
    condition     = length(google_monitoring_uptime_check_config.this) == 0 && length(google_billing_budget.this) == 0
    error_message = "without an edge there is nothing to ask, and without a budget none"
  }
  assert {
    condition     = join(" ", output.alerts) == join(" ", ["bigtable-cpu", "bigtable-hot-node", "bigtable-storage", "errors-logged", "query-absent", "query-at-limit", "redis-evictions", "redis-memory"])
    error_message = "alerts of what is not there must not be"
  }
  assert {
    condition     = length(google_monitoring_alert_policy.burn) == 4 && alltrue([for p in google_monitoring_alert_policy.burn : p.combiner == "AND" && length(p.conditions) == 2])
    error_message = "each goal has a fast and a slow burn over two windows"
  }
}

run "everything" {
  command = plan
  variables {
    replicated = true
    ingester   = { name = "attestry-ingester", instances = 2 }
    jobs       = ["attestry-fsck", "attestry-schema"]
    domain     = "archive.example.com"
    budget     = { billing_account = "012345-678901-ABCDEF", amount = 2000 }
  }

  assert {
    condition     = length(setsubtract(["bigtable-replication", "ingester-standby", "ingester-errors", "ingester-absent", "job-failed"], output.alerts)) == 0
    error_message = "what is there must be watched"
  }
  assert {
    condition     = google_monitoring_alert_policy.threshold["ingester-standby"].conditions[0].condition_threshold[0].comparison == "COMPARISON_LT"
    error_message = "a missing standby is too few"
  }
  assert {
    condition     = !endswith(split("?", google_monitoring_uptime_check_config.this[0].http_check[0].path)[0], "z")
    error_message = "Cloud Run keeps paths that end with z for itself"
  }
  assert {
    condition     = google_monitoring_uptime_check_config.this[0].http_check[0].validate_ssl
    error_message = "the check must see an expired certificate"
  }
}

run "nobody_to_alert" {
  command         = plan
  expect_failures = [var.emails]
  variables {
    emails = []
  }
}

run "goal_in_percent" {
  command         = plan
  expect_failures = [var.slo]
  variables {
    slo = { availability = 99.9 }
  }
}

run "latency_in_seconds" {
  command         = plan
  expect_failures = [var.slo]
  variables {
    slo = { latency_ms = 0.5 }
  }
}

run "budget_of_nothing" {
  command         = plan
  expect_failures = [var.budget]
  variables {
    budget = { billing_account = "a", amount = 0 }
  }
}
