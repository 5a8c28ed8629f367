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
  project        = "test-project"
  region         = "europe-west1"
  image          = "europe-west1-docker.pkg.dev/p/attestry/attestry@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  writer_cluster = "attestry-europe-west1-b"
  clusters = {
    attestry-europe-west1-b = { zone = "europe-west1-b" }
  }
  emails = ["oncall@example.com"]
}

run "inside_by_default" {
  command = plan

  assert {
    condition     = output.edge == null && output.ingester == null
    error_message = "an archive is private, and has no ingester, unless asked"
  }
  assert {
    condition     = join(" ", output.bigtable.tables) == "mainnet.g1.attestations mainnet.g1.index mainnet.g1.journal mainnet.g1.state mainnet.store"
    error_message = "the tables are those of the first generation"
  }
}

run "edge" {
  command = plan
  variables {
    edge = { domain = "archive.example.com" }
  }

  assert {
    condition     = output.edge.domain == "archive.example.com"
    error_message = "DNS must be told what it needs"
  }
}

run "writer_far_from_services" {
  command         = plan
  expect_failures = [check.writer_in_region]
  variables {
    region = "us-east1"
  }
}

run "writer_that_is_no_cluster" {
  command         = plan
  expect_failures = [var.writer_cluster]
  variables {
    writer_cluster = "attestry-europe-west1-c"
  }
}

run "project_number" {
  command         = plan
  expect_failures = [var.project]
  variables {
    project = "123456789012"
  }
}

run "zone_for_region" {
  command         = plan
  expect_failures = [var.region]
  variables {
    region = "europe-west1-b"
  }
}

run "long_name" {
  command         = plan
  expect_failures = [var.name]
  variables {
    name = "attestations-of-wormhole"
  }
}
