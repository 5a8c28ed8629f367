output "url" {
  description = "URL of the Redis without its password, for --redis-url."
  value       = "rediss://${google_redis_instance.this.host}:${google_redis_instance.this.port}/0"
}

output "instance" {
  description = "Name of the instance."
  value       = google_redis_instance.this.name
}

output "password" {
  description = "Secret and version that hold the password."
  value = {
    secret  = google_secret_manager_secret.this["password"].secret_id
    version = google_secret_manager_secret_version.this["password"].version
  }
  # Nobody is to start with a secret that may not be read yet.
  depends_on = [google_secret_manager_secret_iam_member.this]
}

output "ca" {
  description = "Secret and version that hold the certificates of the authorities that sign the server's certificate."
  value = {
    secret  = google_secret_manager_secret.this["ca"].secret_id
    version = google_secret_manager_secret_version.this["ca"].version
  }
  depends_on = [google_secret_manager_secret_iam_member.this]
}
