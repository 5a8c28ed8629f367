mock_provider "google" {
  override_during = plan
}

variables {
  project = "test-project"
  region  = "europe-west1"
  service = "attestry-query"
  domain  = "archive.example.com"
}

run "defaults_are_safe" {
  command = plan

  assert {
    condition     = google_compute_ssl_policy.this.min_tls_version == "TLS_1_2" && google_compute_global_forwarding_rule.this.port_range == "443"
    error_message = "only TLS 1.2 and newer may be spoken"
  }
  assert {
    condition     = google_compute_backend_service.query.protocol == "HTTP2" && google_compute_backend_service.query.load_balancing_scheme == "EXTERNAL_MANAGED"
    error_message = "gRPC needs HTTP/2 to the service"
  }
  assert {
    condition     = [for r in google_compute_security_policy.this.rule : r.rate_limit_options[0].rate_limit_threshold[0].count if r.action == "rate_based_ban"] == [600]
    error_message = "requests must be limited"
  }
  assert {
    condition     = alltrue([for r in google_compute_security_policy.this.rule : r.preview if startswith(r.action, "deny")])
    error_message = "a new rule must be watched before it refuses"
  }
}

run "domain_with_scheme" {
  command         = plan
  expect_failures = [var.domain]
  variables {
    domain = "https://archive.example.com"
  }
}

run "no_requests" {
  command         = plan
  expect_failures = [var.requests_per_minute]
  variables {
    requests_per_minute = 1
  }
}

run "short_ban" {
  command         = plan
  expect_failures = [var.ban_seconds]
  variables {
    ban_seconds = 1
  }
}

run "sample_rate_in_percent" {
  command         = plan
  expect_failures = [var.log_sample_rate]
  variables {
    log_sample_rate = 10
  }
}
