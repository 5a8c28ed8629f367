mock_provider "google" {
  override_during = plan

  mock_resource "google_redis_instance" {
    defaults = {
      host            = "10.21.0.3"
      port            = 6378
      auth_string     = "word"
      server_ca_certs = [{ cert = "PEM", create_time = "", expire_time = "", serial_number = "", sha1_fingerprint = "" }]
    }
  }
}

variables {
  project = "test-project"
  region  = "europe-west1"
  network = "projects/test-project/global/networks/attestry"
}

run "defaults_are_safe" {
  command = plan

  assert {
    condition     = google_redis_instance.this.auth_enabled && google_redis_instance.this.transit_encryption_mode == "SERVER_AUTHENTICATION"
    error_message = "password and TLS must be on"
  }
  assert {
    condition     = google_redis_instance.this.redis_configs["maxmemory-policy"] == "noeviction"
    error_message = "the stream must not be evicted"
  }
  assert {
    condition     = google_redis_instance.this.tier == "STANDARD_HA" && google_redis_instance.this.connect_mode == "PRIVATE_SERVICE_ACCESS"
    error_message = "the instance must have a replica and no public address"
  }
  assert {
    condition     = output.url == "rediss://10.21.0.3:6378/0"
    error_message = "the URL must ask for TLS and hold no password"
  }
  assert {
    condition     = length(google_secret_manager_secret_iam_member.this) == 0
    error_message = "nobody reads the secrets unless named"
  }
}

run "accessors_read_both_secrets" {
  command = plan
  variables {
    accessors = { query = "serviceAccount:query@p.iam.gserviceaccount.com" }
  }

  assert {
    condition     = toset(keys(google_secret_manager_secret_iam_member.this)) == toset(["password/query", "ca/query"])
    error_message = "a client needs the password and the certificate authority"
  }
}

run "one_node" {
  command = plan
  variables {
    highly_available = false
  }

  assert {
    condition     = google_redis_instance.this.tier == "BASIC" && google_redis_instance.this.persistence_config[0].persistence_mode == "DISABLED"
    error_message = "a single node keeps nothing"
  }
}

run "half_a_gigabyte" {
  command         = plan
  expect_failures = [var.memory_gb]
  variables {
    memory_gb = 0.5
  }
}

run "old_version" {
  command         = plan
  expect_failures = [var.redis_version]
  variables {
    redis_version = "REDIS_6_X"
  }
}
