resource "google_compute_global_address" "this" {
  project = var.project
  name    = "${var.name}-edge"

  # DNS points at it.
  lifecycle {
    prevent_destroy = true
  }
}

# An endpoint group in use cannot be replaced: the new one is made first, under a
# name that follows from what it points at.
resource "google_compute_region_network_endpoint_group" "query" {
  project               = var.project
  region                = var.region
  name                  = "${var.name}-query-${substr(sha256("${var.region}/${var.service}"), 0, 8)}"
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = var.service
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_backend_service" "query" {
  project               = var.project
  name                  = "${var.name}-query"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTP2"
  security_policy       = google_compute_security_policy.this.id

  backend {
    group = google_compute_region_network_endpoint_group.query.id
  }

  log_config {
    enable      = true
    sample_rate = var.log_sample_rate
  }
}

resource "google_compute_security_policy" "this" {
  project     = var.project
  name        = "${var.name}-edge"
  description = "Rate limits of the query service"

  rule {
    action      = "deny(403)"
    priority    = 1000
    description = "Scanners and protocol attacks, watched before they are refused"
    preview     = true
    match {
      expr {
        expression = "evaluatePreconfiguredWaf('scannerdetection-v33-stable') || evaluatePreconfiguredWaf('protocolattack-v33-stable')"
      }
    }
  }

  rule {
    action      = "rate_based_ban"
    priority    = 2000
    description = "So many requests an address"
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
    rate_limit_options {
      conform_action   = "allow"
      exceed_action    = "deny(429)"
      enforce_on_key   = "IP"
      ban_duration_sec = var.ban_seconds
      rate_limit_threshold {
        count        = var.requests_per_minute
        interval_sec = 60
      }
      ban_threshold {
        count        = 5 * var.requests_per_minute
        interval_sec = 60
      }
    }
  }

  rule {
    action      = "allow"
    priority    = 2147483647
    description = "The rest"
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
  }

  adaptive_protection_config {
    layer_7_ddos_defense_config {
      enable = true
    }
  }
}

resource "google_certificate_manager_dns_authorization" "this" {
  project = var.project
  name    = "${var.name}-edge-${substr(sha256(var.domain), 0, 8)}"
  domain  = var.domain
}

resource "google_certificate_manager_certificate" "this" {
  project = var.project
  name    = "${var.name}-edge-${substr(sha256(var.domain), 0, 8)}"

  managed {
    domains            = [var.domain]
    dns_authorizations = [google_certificate_manager_dns_authorization.this.id]
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_certificate_manager_certificate_map" "this" {
  project = var.project
  name    = "${var.name}-edge"
}

resource "google_certificate_manager_certificate_map_entry" "this" {
  project      = var.project
  name         = "${var.name}-edge-${substr(sha256(var.domain), 0, 8)}"
  map          = google_certificate_manager_certificate_map.this.name
  hostname     = var.domain
  certificates = [google_certificate_manager_certificate.this.id]
}

resource "google_compute_ssl_policy" "this" {
  project         = var.project
  name            = "${var.name}-edge"
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"
}

resource "google_compute_url_map" "this" {
  project         = var.project
  name            = "${var.name}-edge"
  default_service = google_compute_backend_service.query.id
}

resource "google_compute_target_https_proxy" "this" {
  project         = var.project
  name            = "${var.name}-edge"
  url_map         = google_compute_url_map.this.id
  ssl_policy      = google_compute_ssl_policy.this.id
  certificate_map = "//certificatemanager.googleapis.com/${google_certificate_manager_certificate_map.this.id}"
}

resource "google_compute_global_forwarding_rule" "this" {
  project               = var.project
  name                  = "${var.name}-edge"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.this.id
  port_range            = "443"
  target                = google_compute_target_https_proxy.this.id
}
