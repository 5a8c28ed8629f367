locals {
  services = toset([
    "artifactregistry.googleapis.com",
    "bigtable.googleapis.com",
    "bigtableadmin.googleapis.com",
    "billingbudgets.googleapis.com",
    "certificatemanager.googleapis.com",
    "cloudkms.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtrace.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "redis.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "servicenetworking.googleapis.com",
    "storage.googleapis.com",
    "sts.googleapis.com",
  ])
}

# Other stacks may use them: none is turned off on destroy.
resource "google_project_service" "this" {
  for_each = local.services

  project            = var.project
  service            = each.key
  disable_on_destroy = false
}

data "google_project" "this" {
  project_id = var.project

  depends_on = [google_project_service.this]
}

resource "google_kms_key_ring" "state" {
  project  = var.project
  name     = "terraform"
  location = var.region

  depends_on = [google_project_service.this]

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key" "state" {
  name            = "state"
  key_ring        = google_kms_key_ring.state.id
  rotation_period = "7776000s"

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key_iam_member" "state" {
  crypto_key_id = google_kms_crypto_key.state.id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:service-${data.google_project.this.number}@gs-project-accounts.iam.gserviceaccount.com"
}

# The state holds the password of the Redis: readers of this bucket are readers of it.
resource "google_storage_bucket" "state" {
  project                     = var.project
  name                        = "${var.project}-terraform"
  location                    = var.region
  force_destroy               = false
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  versioning {
    enabled = true
  }

  soft_delete_policy {
    retention_duration_seconds = 2592000
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      num_newer_versions         = 20
      days_since_noncurrent_time = 90
    }
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.state.id
  }

  depends_on = [google_kms_crypto_key_iam_member.state]

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_artifact_registry_repository" "images" {
  project       = var.project
  location      = var.region
  repository_id = "attestry"
  description   = "Images of Attestry"
  format        = "DOCKER"

  docker_config {
    immutable_tags = true
  }

  vulnerability_scanning_config {
    enablement_config = "INHERITED"
  }

  cleanup_policy_dry_run = false
  cleanup_policies {
    id     = "keep-twenty"
    action = "KEEP"
    most_recent_versions {
      keep_count = 20
    }
  }
  cleanup_policies {
    id     = "delete-untagged"
    action = "DELETE"
    condition {
      tag_state  = "UNTAGGED"
      older_than = "2592000s"
    }
  }

  depends_on = [google_project_service.this]
}
