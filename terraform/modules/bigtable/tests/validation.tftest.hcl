mock_provider "google" {
  override_during = plan
}

variables {
  project        = "test-project"
  schema         = jsondecode(file("../../schema.json"))
  writer_cluster = "attestry-europe-west1-b"
  clusters = {
    attestry-europe-west1-b = { zone = "europe-west1-b" }
  }
}

run "rule_on_vaas" {
  command         = plan
  expect_failures = [var.schema]
  variables {
    schema = {
      version = 1
      store   = { name = "store", families = [{ name = "Store" }] }
      tables  = [{ name = "attestations", families = [{ name = "QuorumState", max_versions = 1 }] }]
    }
  }
}

run "age_on_offsets" {
  command         = plan
  expect_failures = [var.schema]
  variables {
    schema = {
      version = 1
      store   = { name = "store", families = [{ name = "Store" }] }
      tables  = [{ name = "index", families = [{ name = "Digests", max_age = "24h0m0s" }] }]
    }
  }
}

run "table_without_families" {
  command         = plan
  expect_failures = [var.schema]
  variables {
    schema = {
      version = 1
      store   = { name = "store", families = [] }
      tables  = []
    }
  }
}

run "short_name" {
  command         = plan
  expect_failures = [var.name]
  variables {
    name = "short"
  }
}

run "unknown_network" {
  command         = plan
  expect_failures = [var.network]
  variables {
    network = "Mainnet"
  }
}

run "generation_zero" {
  command         = plan
  expect_failures = [var.generations]
  variables {
    generations = [0]
  }
}

run "no_cluster" {
  command         = plan
  expect_failures = [var.clusters]
  variables {
    clusters = {}
  }
}

run "cluster_id_without_its_zone" {
  command         = plan
  expect_failures = [var.clusters]
  variables {
    clusters       = { attestry-one = { zone = "europe-west1-b" } }
    writer_cluster = "attestry-one"
  }
}

run "two_clusters_in_a_zone" {
  command         = plan
  expect_failures = [var.clusters]
  variables {
    clusters = {
      attestry-europe-west1-b = { zone = "europe-west1-b" }
      replica-europe-west1-b  = { zone = "europe-west1-b" }
    }
  }
}

run "one_key_of_two" {
  command         = plan
  expect_failures = [var.clusters]
  variables {
    clusters = {
      attestry-europe-west1-b = { zone = "europe-west1-b", kms_key_name = "projects/p/locations/europe-west1/keyRings/r/cryptoKeys/k" }
      attestry-europe-west4-a = { zone = "europe-west4-a" }
    }
  }
}

run "too_many_nodes" {
  command         = plan
  expect_failures = [var.clusters]
  variables {
    clusters = { attestry-europe-west1-b = { zone = "europe-west1-b", min_nodes = 1, max_nodes = 11 } }
  }
}

run "cpu_target_too_high" {
  command         = plan
  expect_failures = [var.clusters]
  variables {
    clusters = { attestry-europe-west1-b = { zone = "europe-west1-b", cpu_target = 90 } }
  }
}

run "writer_is_no_cluster" {
  command         = plan
  expect_failures = [var.writer_cluster]
  variables {
    writer_cluster = "attestry-europe-west4-a"
  }
}

run "duration_that_would_drift" {
  command         = plan
  expect_failures = [var.backup]
  variables {
    backup = { frequency = "24h" }
  }
}

run "half_a_backup" {
  command         = plan
  expect_failures = [var.backup]
  variables {
    backup = { retention_period = "0" }
  }
}

run "stream_of_an_hour" {
  command         = plan
  expect_failures = [var.change_stream_retention]
  variables {
    change_stream_retention = { journal = "1h0m0s" }
  }
}

run "stream_of_no_table" {
  command         = plan
  expect_failures = [var.change_stream_retention]
  variables {
    change_stream_retention = { journals = "24h0m0s" }
  }
}

run "schema_job_without_role" {
  command         = plan
  expect_failures = [var.schema_jobs]
  variables {
    schema_jobs = { members = { schema = "serviceAccount:schema@p.iam.gserviceaccount.com" } }
  }
}
