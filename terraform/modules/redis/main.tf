# Memorystore for Redis, because the program signs in with a password. AUTH and TLS
# are not for choice: neither can be turned on later without clients that break.
resource "google_redis_instance" "this" {
  project                 = var.project
  name                    = var.name
  region                  = var.region
  labels                  = var.labels
  tier                    = var.highly_available ? "STANDARD_HA" : "BASIC"
  memory_size_gb          = var.memory_gb
  redis_version           = var.redis_version
  authorized_network      = var.network
  connect_mode            = "PRIVATE_SERVICE_ACCESS"
  auth_enabled            = true
  transit_encryption_mode = "SERVER_AUTHENTICATION"

  redis_configs = {
    # A stream that is evicted is a hole; a full one is refilled from the journal.
    maxmemory-policy = "noeviction"
  }

  persistence_config {
    persistence_mode    = var.highly_available ? "RDB" : "DISABLED"
    rdb_snapshot_period = var.highly_available ? "TWELVE_HOURS" : null
  }

  maintenance_policy {
    weekly_maintenance_window {
      day = "TUESDAY"
      start_time {
        hours   = 4
        minutes = 0
        seconds = 0
        nanos   = 0
      }
    }
  }

  timeouts {
    create = "30m"
    update = "60m"
    delete = "30m"
  }

  lifecycle {
    prevent_destroy = true
  }
}

locals {
  # The values are sensitive, so the keys are written out.
  secrets = toset(["password", "ca"])
  secret_data = {
    password = google_redis_instance.this.auth_string
    ca       = join("\n", google_redis_instance.this.server_ca_certs[*].cert)
  }
}

resource "google_secret_manager_secret" "this" {
  for_each = local.secrets

  project   = var.project
  secret_id = "${var.name}-redis-${each.key}"
  labels    = var.labels

  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }
}

# Write-only, so that the state holds no second copy of the password.
resource "google_secret_manager_secret_version" "this" {
  for_each = local.secrets

  secret                 = google_secret_manager_secret.this[each.key].id
  secret_data_wo         = local.secret_data[each.key]
  secret_data_wo_version = var.secret_version

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_secret_manager_secret_iam_member" "this" {
  for_each = merge([
    for s in local.secrets : { for name, member in var.accessors : "${s}/${name}" => { secret = s, member = member } }
  ]...)

  project   = var.project
  secret_id = google_secret_manager_secret.this[each.value.secret].secret_id
  role      = "roles/secretmanager.secretAccessor"
  member    = each.value.member
}
