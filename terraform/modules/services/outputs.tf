output "query" {
  description = "Name and URL of the query service. The URL answers as far as the ingress allows."
  value = {
    name = google_cloud_run_v2_service.query.name
    url  = google_cloud_run_v2_service.query.uri
  }
}

output "ingester" {
  description = "Name of the ingester's worker pool, null without one."
  value       = one(google_cloud_run_v2_worker_pool.ingester[*].name)
}

output "jobs" {
  description = "Names of the jobs by purpose, for gcloud run jobs execute."
  value       = { for name, j in google_cloud_run_v2_job.this : name => j.name }
}
