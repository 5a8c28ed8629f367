resource "google_compute_network" "this" {
  project                 = var.project
  name                    = var.name
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"
}

resource "google_compute_subnetwork" "run" {
  project                  = var.project
  name                     = "${var.name}-run"
  network                  = google_compute_network.this.id
  region                   = var.region
  ip_cidr_range            = var.subnet_range
  private_ip_google_access = true
}

# Nothing in this network is meant to be reached from outside of it.
resource "google_compute_firewall" "deny_ingress" {
  project       = var.project
  name          = "${var.name}-deny-ingress"
  network       = google_compute_network.this.id
  direction     = "INGRESS"
  priority      = 65000
  source_ranges = ["0.0.0.0/0"]

  deny {
    protocol = "all"
  }
}

resource "google_compute_global_address" "services" {
  project       = var.project
  name          = "${var.name}-services"
  network       = google_compute_network.this.id
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  address       = var.services_range
  prefix_length = 24
}

# The connection cannot be deleted while a managed service lingers, so it is
# abandoned.
resource "google_service_networking_connection" "this" {
  network                 = google_compute_network.this.id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.services.name]
  deletion_policy         = "ABANDON"
}

resource "google_compute_router" "this" {
  count = var.nat ? 1 : 0

  project = var.project
  name    = var.name
  network = google_compute_network.this.id
  region  = var.region
}

resource "google_compute_router_nat" "this" {
  count = var.nat ? 1 : 0

  project                            = var.project
  name                               = var.name
  router                             = google_compute_router.this[0].name
  region                             = var.region
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.run.id
    source_ip_ranges_to_nat = ["PRIMARY_IP_RANGE"]
  }

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
