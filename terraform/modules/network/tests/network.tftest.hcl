mock_provider "google" {
  override_during = plan
}

variables {
  project = "test-project"
  region  = "europe-west1"
}

run "defaults_are_closed" {
  command = plan

  assert {
    condition     = !google_compute_network.this.auto_create_subnetworks && google_compute_subnetwork.run.private_ip_google_access
    error_message = "the network has one subnet, which reaches Google privately"
  }
  assert {
    condition     = length(google_compute_router_nat.this) == 0
    error_message = "services must not reach the internet unless asked"
  }
  assert {
    condition     = google_service_networking_connection.this.deletion_policy == "ABANDON"
    error_message = "the connection must be abandoned on destroy"
  }
}

run "nat" {
  command = plan
  variables {
    nat = true
  }

  assert {
    condition     = google_compute_router_nat.this[0].source_subnetwork_ip_ranges_to_nat == "LIST_OF_SUBNETWORKS"
    error_message = "only the services' subnet may go out"
  }
}

run "small_subnet" {
  command         = plan
  expect_failures = [var.subnet_range]
  variables {
    subnet_range = "10.0.0.0/28"
  }
}

run "bad_services_range" {
  command         = plan
  expect_failures = [var.services_range]
  variables {
    services_range = "10.21.0.0/24"
  }
}

run "bad_name" {
  command         = plan
  expect_failures = [var.name]
  variables {
    name = "Attestry"
  }
}
