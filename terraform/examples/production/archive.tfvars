# Three clusters under keys of one's own, a public host name, an ingester with its
# standby. The keys are made by terraform/bootstrap. Two clusters are in the region of the
# services: when the writer's zone is lost, the other takes over from there.
project = "my-project"
region  = "europe-west1"
network = "mainnet"
image   = "europe-west1-docker.pkg.dev/my-project/attestry/attestry@sha256:0000000000000000000000000000000000000000000000000000000000000000"
labels  = { service = "attestry", environment = "production" }

clusters = {
  attestry-europe-west1-b = {
    zone         = "europe-west1-b"
    kms_key_name = "projects/my-project/locations/europe-west1/keyRings/attestry-data/cryptoKeys/bigtable"
  }
  attestry-europe-west1-c = {
    zone         = "europe-west1-c"
    kms_key_name = "projects/my-project/locations/europe-west1/keyRings/attestry-data/cryptoKeys/bigtable"
  }
  attestry-us-east1-c = {
    zone         = "us-east1-c"
    kms_key_name = "projects/my-project/locations/us-east1/keyRings/attestry-data/cryptoKeys/bigtable"
  }
}
writer_cluster = "attestry-europe-west1-b"

backup                  = { retention_period = "720h0m0s" }
change_stream_retention = { journal = "168h0m0s" }

redis = { memory_gb = 5 }
query = { min_instances = 2, max_instances = 20 }

# Files are the program's sources today. What is in the bucket is read again when
# the process ends; what is known already changes nothing.
ingester = {
  args   = ["ingest", "--class", "live", "/vaas/live.ndjson"]
  bucket = "my-project-vaas"
}

edge   = { domain = "archive.example.com" }
emails = ["oncall@example.com"]
slo    = { availability = 0.999, latency = 0.95, latency_ms = 300 }
budget = { billing_account = "012345-678901-ABCDEF", amount = 5000 }
