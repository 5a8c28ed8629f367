output "address" {
  description = "IPv4 address for an A record of the domain."
  value       = google_compute_global_address.this.address
}

output "dns_authorization" {
  description = "CNAME record that proves the domain to the certificate's issuer: name, type, data."
  value       = google_certificate_manager_dns_authorization.this.dns_resource_record
}

output "domain" {
  description = "Host name that answers."
  value       = var.domain
}
