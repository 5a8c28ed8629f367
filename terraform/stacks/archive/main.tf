# No validation, so that the cluster of another region can take over when the region of
# the writer's is lost.
check "writer_in_region" {
  assert {
    condition     = startswith(try(var.clusters[var.writer_cluster].zone, ""), "${var.region}-")
    error_message = "writer_cluster is not in the region of the services: every append waits for it."
  }
}

module "identity" {
  source = "../../modules/identity"

  project = var.project
  prefix  = var.name
}

module "network" {
  source = "../../modules/network"

  project        = var.project
  name           = var.name
  region         = var.region
  subnet_range   = var.subnets.services_subnet
  services_range = var.subnets.managed
  nat            = var.subnets.nat
}

module "bigtable" {
  source = "../../modules/bigtable"

  project                 = var.project
  name                    = var.name
  labels                  = var.labels
  network                 = var.network
  schema                  = jsondecode(file("${path.module}/../../schema.json"))
  generations             = var.generations
  clusters                = var.clusters
  writer_cluster          = var.writer_cluster
  move_profiles           = var.move_profiles
  backup                  = var.backup
  change_stream_retention = var.change_stream_retention
  unprotected_tables      = var.unprotected_tables

  writers = { for a in ["query", "ingest"] : a => module.identity.members[a] }
  readers = { fsck = module.identity.members["fsck"] }
  schema_jobs = {
    role    = module.identity.schema_role
    members = { schema = module.identity.members["schema"] }
  }
}

module "redis" {
  source = "../../modules/redis"

  project          = var.project
  name             = var.name
  region           = var.region
  labels           = var.labels
  network          = module.network.services_network
  memory_gb        = var.redis.memory_gb
  highly_available = var.redis.highly_available
  secret_version   = var.redis.secret_version
  accessors        = { for a in ["query", "ingest", "schema", "fsck"] : a => module.identity.members[a] }
}

module "services" {
  source = "../../modules/services"

  project = var.project
  region  = var.region
  name    = var.name
  labels  = var.labels
  image   = var.image
  network = var.network

  vpc = {
    network    = module.network.network
    subnetwork = module.network.subnetwork
  }
  bigtable = {
    instance = module.bigtable.instance
    profiles = module.bigtable.profiles
  }
  redis = {
    url      = module.redis.url
    password = module.redis.password
    ca       = module.redis.ca
  }
  accounts = module.identity.emails

  query = merge(var.query, {
    ingress = var.edge == null ? "internal" : "load-balancer"
    public  = var.edge != null
  })
  ingester      = var.ingester
  fsck_schedule = var.fsck_schedule
  log_level     = var.log_level

  # Tables and their grants come first: a service that starts before them is not
  # ready and fails its first revision.
  depends_on = [module.bigtable]
}

module "edge" {
  source = "../../modules/edge"
  count  = var.edge == null ? 0 : 1

  project             = var.project
  name                = var.name
  region              = var.region
  service             = module.services.query.name
  domain              = var.edge.domain
  requests_per_minute = var.edge.requests_per_minute
}

module "monitoring" {
  source = "../../modules/monitoring"

  project    = var.project
  name       = var.name
  instance   = module.bigtable.instance
  replicated = length(var.clusters) > 1
  redis      = module.redis.instance
  query = {
    name          = module.services.query.name
    max_instances = var.query.max_instances
  }
  ingester = var.ingester == null ? null : {
    name      = module.services.ingester
    instances = var.ingester.instances
  }
  jobs   = values(module.services.jobs)
  domain = try(var.edge.domain, null)
  emails = var.emails
  slo    = var.slo
  budget = var.budget
}
