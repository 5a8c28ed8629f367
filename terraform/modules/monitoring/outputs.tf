output "alerts" {
  description = "Names of the alerts, which are headings of the runbook."
  value       = sort(concat(keys(local.thresholds), keys(local.absences)))
}

output "dashboard" {
  description = "Id of the dashboard."
  value       = google_monitoring_dashboard.this.id
}
