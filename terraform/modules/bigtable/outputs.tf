output "instance" {
  description = "Id of the instance, for --instance."
  value       = google_bigtable_instance.this.name
}

output "tables" {
  description = "Ids of the tables."
  value       = sort(keys(google_bigtable_table.this))
}

output "profiles" {
  description = "App profiles by purpose, for --app-profile: ingest for whatever writes, publishes or serves; api for look-ups; batch for checks."
  value       = { for name, p in google_bigtable_app_profile.this : name => p.app_profile_id }
}

output "writer_cluster" {
  description = "Id of the cluster that takes transactional writes."
  value       = var.writer_cluster
}

output "clusters" {
  description = "Zones of the clusters by id."
  value       = { for id, c in var.clusters : id => c.zone }
}
