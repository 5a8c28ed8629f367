mock_provider "google" {
  override_during = plan

  mock_resource "google_iam_workload_identity_pool" {
    defaults = {
      name = "projects/1/locations/global/workloadIdentityPools/attestry-ci-1"
    }
  }
}

variables {
  project = "test-project"
  region  = "europe-west1"
}

run "state_is_kept" {
  command = plan

  assert {
    condition     = google_storage_bucket.state.versioning[0].enabled && google_storage_bucket.state.public_access_prevention == "enforced" && !google_storage_bucket.state.force_destroy
    error_message = "the state must be versioned, private, and not go with its bucket"
  }
  assert {
    condition     = alltrue([for s in google_project_service.this : !s.disable_on_destroy])
    error_message = "no API may be turned off under another stack"
  }
  assert {
    condition     = output.ci == null && length(google_service_account.ci) == 0
    error_message = "without a repository nobody may act from outside"
  }
}

run "workflows" {
  command = plan
  variables {
    repository = "attestry/attestry"
  }

  assert {
    condition     = google_iam_workload_identity_pool_provider.github[0].attribute_condition == "assertion.repository == 'attestry/attestry'"
    error_message = "other repositories must be kept out"
  }
  assert {
    condition     = endswith(google_service_account_iam_member.ci["apply"].member, "/attribute.ref/attestry/attestry:refs/heads/main")
    error_message = "only the protected branch may apply"
  }
  assert {
    condition     = toset([for k, g in google_project_iam_member.ci : g.role if startswith(k, "plan/")]) == toset(["roles/viewer", "roles/iam.securityReviewer"])
    error_message = "a plan must change nothing"
  }
  assert {
    condition     = google_project_iam_custom_role.plan[0].permissions == toset(["redis.instances.getAuthString"])
    error_message = "a plan reads one thing that a viewer may not"
  }
  assert {
    condition     = google_storage_bucket_iam_member.ci["plan"].role == "roles/storage.objectViewer"
    error_message = "a plan must not write the state"
  }
}

run "keys" {
  command = plan
  variables {
    cmek_regions = ["europe-west1", "us-east1"]
  }

  assert {
    condition     = toset(keys(output.bigtable_keys)) == toset(["europe-west1", "us-east1"])
    error_message = "every region needs a key of its own"
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

run "repository_url" {
  command         = plan
  expect_failures = [var.repository]
  variables {
    repository = "https://github.com/attestry/attestry"
  }
}

run "wildcard_branch" {
  command         = plan
  expect_failures = [var.branch]
  variables {
    branch = "release/*"
  }
}

run "long_suffix" {
  command         = plan
  expect_failures = [var.pool_suffix]
  variables {
    pool_suffix = "a-long-suffix"
  }
}
