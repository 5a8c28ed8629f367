resource "google_kms_key_ring" "data" {
  for_each = var.cmek_regions

  project  = var.project
  name     = "attestry-data"
  location = each.key

  depends_on = [google_project_service.this]

  lifecycle {
    prevent_destroy = true
  }
}

# Without its key an archive cannot be read by anybody.
resource "google_kms_crypto_key" "data" {
  for_each = var.cmek_regions

  name                       = "bigtable"
  key_ring                   = google_kms_key_ring.data[each.key].id
  rotation_period            = "7776000s"
  destroy_scheduled_duration = "2592000s"

  lifecycle {
    prevent_destroy = true
  }
}

# The service agent must exist: README.md says how it is made.
resource "google_kms_crypto_key_iam_member" "data" {
  for_each = var.cmek_regions

  crypto_key_id = google_kms_crypto_key.data[each.key].id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-bigtable.iam.gserviceaccount.com"
}
