output "bigtable" {
  description = "Instance, clusters, tables and app profiles."
  value = {
    instance       = module.bigtable.instance
    clusters       = module.bigtable.clusters
    writer_cluster = module.bigtable.writer_cluster
    tables         = module.bigtable.tables
    profiles       = module.bigtable.profiles
  }
}

output "redis" {
  description = "URL of the Redis, and the secret that holds its password."
  value = {
    url             = module.redis.url
    password_secret = module.redis.password.secret
  }
}

output "query" {
  description = "Name and URL of the query service."
  value       = module.services.query
}

output "ingester" {
  description = "Name of the ingester, null without one."
  value       = module.services.ingester
}

output "jobs" {
  description = "Names of the jobs by purpose."
  value       = module.services.jobs
}

output "edge" {
  description = "What DNS needs: the address of the domain, and the record that proves it; null without an edge."
  value = one([
    for e in module.edge : {
      domain            = e.domain
      address           = e.address
      dns_authorization = e.dns_authorization
    }
  ])
}

output "accounts" {
  description = "E-mail addresses of the service accounts by purpose."
  value       = module.identity.emails
}

output "alerts" {
  description = "Names of the alerts, which are headings of the runbook."
  value       = module.monitoring.alerts
}
