mock_provider "google" {
  override_during = plan
}

variables {
  project = "test-project"
  region  = "europe-west1"
  image   = "europe-west1-docker.pkg.dev/p/attestry/attestry@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  vpc     = { network = "n", subnetwork = "s" }
  bigtable = {
    instance = "attestry"
    profiles = { ingest = "ingest", api = "api", batch = "batch" }
  }
  redis = {
    url      = "rediss://10.21.0.3:6378/0"
    password = { secret = "attestry-redis-password", version = "1" }
    ca       = { secret = "attestry-redis-ca", version = "1" }
  }
  accounts = { query = "q@p", ingest = "i@p", schema = "s@p", fsck = "f@p", scheduler = "c@p" }
}

run "defaults_are_closed" {
  command = plan

  assert {
    condition     = google_cloud_run_v2_service.query.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" && length(google_cloud_run_v2_service_iam_member.public) == 0
    error_message = "the service must be private unless asked"
  }
  assert {
    condition     = google_cloud_run_v2_service.query.deletion_protection && alltrue([for j in google_cloud_run_v2_job.this : j.deletion_protection])
    error_message = "services and jobs must be protected"
  }
  assert {
    condition     = google_cloud_run_v2_service.query.scaling[0].min_instance_count == 2 && google_cloud_run_v2_service.query.template[0].scaling[0].max_instance_count == 10
    error_message = "both bounds of scaling must be said"
  }
  assert {
    condition     = length(google_cloud_run_v2_worker_pool.ingester) == 0
    error_message = "there is no ingester unless asked"
  }
}

run "commands" {
  command = plan

  assert {
    condition     = google_cloud_run_v2_service.query.template[0].containers[0].args == tolist(["serve"])
    error_message = "the service must run attestry serve"
  }
  assert {
    condition     = { for n, j in google_cloud_run_v2_job.this : n => join(" ", j.template[0].template[0].containers[0].args) } == { schema = "schema create", fsck = "fsck --output json" }
    error_message = "there must be jobs for schema and fsck"
  }
  assert {
    condition     = [for e in google_cloud_run_v2_job.this["fsck"].template[0].template[0].containers[0].env : e.value if e.name == "ATTESTRY_APP_PROFILE"] == ["batch"]
    error_message = "the check must give way to the rest"
  }
  assert {
    condition     = [for e in google_cloud_run_v2_service.query.template[0].containers[0].env : e.value if e.name == "ATTESTRY_APP_PROFILE"] == ["ingest"]
    error_message = "the service publishes and sweeps, so it needs the transactional profile"
  }
}

run "no_secret_in_the_environment" {
  command = plan

  assert {
    condition     = alltrue([for e in google_cloud_run_v2_service.query.template[0].containers[0].env : length(e.value_source) == 1 if strcontains(e.name, "PASSWORD")])
    error_message = "passwords must come from Secret Manager"
  }
}

run "ingester_and_standby" {
  command = plan
  variables {
    ingester = { args = ["ingest", "--class", "live", "/vaas/today.ndjson"], bucket = "vaas" }
  }

  assert {
    condition     = google_cloud_run_v2_worker_pool.ingester[0].scaling[0].manual_instance_count == 2
    error_message = "an ingester has a standby"
  }
  assert {
    condition     = !google_cloud_run_v2_worker_pool.ingester[0].deletion_protection
    error_message = "an ingester must be stopped by taking it out"
  }
  assert {
    condition     = [for v in google_cloud_run_v2_worker_pool.ingester[0].template[0].volumes : v.gcs[0].read_only if v.name == "vaas"] == [true]
    error_message = "the bucket must be mounted read-only"
  }
}

run "public_behind_the_load_balancer" {
  command = plan
  variables {
    query = { ingress = "load-balancer", public = true }
  }

  assert {
    condition     = google_cloud_run_v2_service.query.ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    error_message = "a public service is reached through the load balancer alone"
  }
}

run "no_schedule" {
  command = plan
  variables {
    fsck_schedule = null
  }

  assert {
    condition     = length(google_cloud_scheduler_job.fsck) == 0
    error_message = "without a schedule nothing starts the check"
  }
}

run "image_by_tag" {
  command         = plan
  expect_failures = [var.image]
  variables {
    image = "europe-west1-docker.pkg.dev/p/attestry/attestry:latest"
  }
}

run "unknown_network" {
  command         = plan
  expect_failures = [var.network]
  variables {
    network = "main"
  }
}

run "redis_without_tls" {
  command         = plan
  expect_failures = [var.redis]
  variables {
    redis = {
      url      = "redis://10.21.0.3:6379/0"
      password = { secret = "p", version = "1" }
      ca       = { secret = "c", version = "1" }
    }
  }
}

run "profile_missing" {
  command         = plan
  expect_failures = [var.bigtable]
  variables {
    bigtable = { instance = "attestry", profiles = { ingest = "ingest", api = "api" } }
  }
}

run "account_missing" {
  command         = plan
  expect_failures = [var.accounts]
  variables {
    accounts = { query = "q@p", ingest = "i@p", schema = "s@p", fsck = "f@p" }
  }
}

run "public_to_all" {
  command         = plan
  expect_failures = [var.query]
  variables {
    query = { ingress = "all", public = true }
  }
}

run "no_instances" {
  command         = plan
  expect_failures = [var.query]
  variables {
    query = { min_instances = 0 }
  }
}

run "ingester_without_files" {
  command         = plan
  expect_failures = [var.ingester]
  variables {
    ingester = { args = ["ingest"] }
  }
}

run "ten_ingesters" {
  command         = plan
  expect_failures = [var.ingester]
  variables {
    ingester = { args = ["ingest", "f"], instances = 10 }
  }
}

run "loud_logs" {
  command         = plan
  expect_failures = [var.log_level]
  variables {
    log_level = "trace"
  }
}
