# One cluster, nothing public: the least that is an archive.
project = "my-project"
region  = "europe-west1"
network = "testnet"
image   = "europe-west1-docker.pkg.dev/my-project/attestry/attestry@sha256:0000000000000000000000000000000000000000000000000000000000000000"

clusters = {
  attestry-europe-west1-b = { zone = "europe-west1-b", max_nodes = 2 }
}
writer_cluster = "attestry-europe-west1-b"

redis = { highly_available = false }
query = { min_instances = 1, max_instances = 2 }

emails = ["oncall@example.com"]
