resource "google_cloud_run_v2_job" "this" {
  for_each = local.jobs

  project             = var.project
  location            = var.region
  name                = "${var.name}-${each.key}"
  labels              = var.labels
  deletion_protection = true

  template {
    task_count = 1

    template {
      service_account       = var.accounts[each.key]
      timeout               = each.value.timeout
      max_retries           = each.value.retries
      execution_environment = "EXECUTION_ENVIRONMENT_GEN2"

      vpc_access {
        egress = "PRIVATE_RANGES_ONLY"
        network_interfaces {
          network    = var.vpc.network
          subnetwork = var.vpc.subnetwork
        }
      }

      containers {
        image = var.image
        args  = each.value.args

        resources {
          limits = { cpu = "1", memory = "1Gi" }
        }

        dynamic "env" {
          for_each = each.value.env
          content {
            name  = env.key
            value = env.value
          }
        }
        env {
          name = "ATTESTRY_REDIS_PASSWORD"
          value_source {
            secret_key_ref {
              secret  = var.redis.password.secret
              version = var.redis.password.version
            }
          }
        }

        volume_mounts {
          name       = "redis-ca"
          mount_path = local.ca_dir
        }
      }

      volumes {
        name = "redis-ca"
        secret {
          secret = var.redis.ca.secret
          items {
            path    = "ca.pem"
            version = var.redis.ca.version
          }
        }
      }
    }
  }
}

resource "google_cloud_run_v2_job_iam_member" "fsck_scheduler" {
  count = var.fsck_schedule == null ? 0 : 1

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_job.this["fsck"].name
  role     = "roles/run.invoker"
  member   = "serviceAccount:${var.accounts["scheduler"]}"
}

resource "google_cloud_scheduler_job" "fsck" {
  count = var.fsck_schedule == null ? 0 : 1

  project     = var.project
  region      = var.region
  name        = "${var.name}-fsck"
  description = "Checks the archive"
  schedule    = var.fsck_schedule
  time_zone   = "Etc/UTC"

  retry_config {
    retry_count = 1
  }

  http_target {
    http_method = "POST"
    uri         = "https://run.googleapis.com/v2/${google_cloud_run_v2_job.this["fsck"].id}:run"
    oauth_token {
      service_account_email = var.accounts["scheduler"]
    }
  }
}
