output "state_bucket" {
  description = "Bucket for -backend-config."
  value       = google_storage_bucket.state.name
}

output "images" {
  description = "Where images are pushed, without name and tag."
  value       = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.images.repository_id}"
}

output "bigtable_keys" {
  description = "Keys for kms_key_name of clusters, by region."
  value       = { for region, k in google_kms_crypto_key.data : region => k.id }
}

output "ci" {
  description = "What a workflow needs: the identity provider, and the accounts that plan and apply; null without a repository."
  value = var.repository == null ? null : {
    provider = google_iam_workload_identity_pool_provider.github[0].name
    plan     = google_service_account.ci["plan"].email
    apply    = google_service_account.ci["apply"].email
  }
}
