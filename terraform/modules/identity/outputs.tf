output "emails" {
  description = "E-mail addresses of the service accounts by purpose: query, ingest, schema, fsck, scheduler."
  value       = { for name, a in google_service_account.this : name => a.email }
}

output "members" {
  description = "The same accounts as members of IAM policies."
  value       = { for name, a in google_service_account.this : name => a.member }
}

output "schema_role" {
  description = "Role that lets an account create and describe tables."
  value       = google_project_iam_custom_role.schema.id
}
