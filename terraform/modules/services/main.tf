locals {
  # Where the certificate authority of the Redis is mounted. Go reads this directory
  # beside the bundle of the image.
  ca_dir = "/etc/attestry/redis"

  env = {
    ATTESTRY_INSTANCE   = var.bigtable.instance
    ATTESTRY_LOG_FORMAT = "json"
    ATTESTRY_LOG_LEVEL  = var.log_level
    ATTESTRY_NETWORK    = var.network
    ATTESTRY_PROJECT    = var.project
    ATTESTRY_REDIS_URL  = var.redis.url
    SSL_CERT_DIR        = local.ca_dir
  }

  # The service publishes and sweeps beside answering, so it writes.
  writer_env = merge(local.env, { ATTESTRY_APP_PROFILE = var.bigtable.profiles["ingest"] })

  # What runs to its end, by name, which is its account's purpose too.
  jobs = {
    schema = {
      args    = ["schema", "create"]
      env     = local.writer_env
      timeout = "600s"
      retries = 1
    }
    fsck = {
      args    = ["fsck", "--output", "json"]
      env     = merge(local.env, { ATTESTRY_APP_PROFILE = var.bigtable.profiles["batch"] })
      timeout = "86400s"
      retries = 0
    }
  }
}

resource "google_cloud_run_v2_service" "query" {
  project             = var.project
  location            = var.region
  name                = "${var.name}-query"
  labels              = var.labels
  deletion_protection = true
  ingress = {
    load-balancer = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    internal      = "INGRESS_TRAFFIC_INTERNAL_ONLY"
    all           = "INGRESS_TRAFFIC_ALL"
  }[var.query.ingress]

  scaling {
    min_instance_count = var.query.min_instances
  }

  template {
    service_account                  = var.accounts["query"]
    timeout                          = var.query.timeout
    max_instance_request_concurrency = var.query.concurrency
    execution_environment            = "EXECUTION_ENVIRONMENT_GEN2"

    scaling {
      max_instance_count = var.query.max_instances
    }

    vpc_access {
      egress = "PRIVATE_RANGES_ONLY"
      network_interfaces {
        network    = var.vpc.network
        subnetwork = var.vpc.subnetwork
      }
    }

    containers {
      image = var.image
      args  = ["serve"]

      # Cleartext HTTP/2: HTTP and gRPC on the one port.
      ports {
        name           = "h2c"
        container_port = 8080
      }

      resources {
        limits            = { cpu = var.query.cpu, memory = var.query.memory }
        cpu_idle          = false
        startup_cpu_boost = true
      }

      startup_probe {
        period_seconds    = 2
        timeout_seconds   = 2
        failure_threshold = 30
        http_get {
          path = "/readyz"
        }
      }

      # Only of the process: one that waits for Bigtable is not mended by a restart.
      liveness_probe {
        period_seconds    = 10
        timeout_seconds   = 5
        failure_threshold = 3
        http_get {
          path = "/livez"
        }
      }

      dynamic "env" {
        for_each = local.writer_env
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

  traffic {
    type    = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
    percent = 100
  }
}

resource "google_cloud_run_v2_service_iam_member" "public" {
  count = var.query.public ? 1 : 0

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_service.query.name
  role     = "roles/run.invoker"
  member   = "allUsers"
}

# Every instance reads the same sources and each can do without the others: the
# journal decides, so that what a second one brings is a duplicate. No lock keeps it
# idle yet. It holds nothing, so that it may go, which is how it is stopped.
resource "google_cloud_run_v2_worker_pool" "ingester" {
  count = var.ingester == null ? 0 : 1

  project             = var.project
  location            = var.region
  name                = "${var.name}-ingester"
  labels              = var.labels
  deletion_protection = false

  scaling {
    manual_instance_count = var.ingester.instances
  }

  template {
    service_account = var.accounts["ingest"]

    vpc_access {
      egress = "PRIVATE_RANGES_ONLY"
      network_interfaces {
        network    = var.vpc.network
        subnetwork = var.vpc.subnetwork
      }
    }

    containers {
      image = var.image
      args  = var.ingester.args

      resources {
        limits = { cpu = var.ingester.cpu, memory = var.ingester.memory }
      }

      dynamic "env" {
        for_each = local.writer_env
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
      dynamic "volume_mounts" {
        for_each = var.ingester.bucket[*]
        content {
          name       = "vaas"
          mount_path = "/vaas"
        }
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
    dynamic "volumes" {
      for_each = var.ingester.bucket[*]
      content {
        name = "vaas"
        gcs {
          bucket    = volumes.value
          read_only = true
        }
      }
    }
  }

  # A bucket that may not be read yet cannot be mounted.
  depends_on = [google_storage_bucket_iam_member.vaas]
}

resource "google_storage_bucket_iam_member" "vaas" {
  count = try(var.ingester.bucket, null) == null ? 0 : 1

  bucket = var.ingester.bucket
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:${var.accounts["ingest"]}"
}
