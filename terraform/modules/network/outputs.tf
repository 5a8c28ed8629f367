output "network" {
  description = "Id of the network."
  value       = google_compute_network.this.id
}

output "subnetwork" {
  description = "Id of the services' subnet."
  value       = google_compute_subnetwork.run.id
}

output "services_network" {
  description = "Id of the network once managed services can be put into it."
  value       = google_service_networking_connection.this.network
}
