variable "project" {
  description = "Project of the archive, prepared by terraform/bootstrap."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project must be a project id: 6 to 30 lower-case letters, digits and hyphens."
  }
}

variable "region" {
  description = "Region of services and Redis. The writer's cluster should be in it."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region's name, as europe-west1."
  }
}

variable "name" {
  description = "Name of the archive and prefix of all its parts. Two archives in one project need two."
  type        = string
  default     = "attestry"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,18}[a-z0-9]$", var.name))
    error_message = "name must be 6 to 20 lower-case letters, digits and hyphens, and begin with a letter."
  }
}

variable "labels" {
  description = "Labels of everything that can bear them."
  type        = map(string)
  default     = {}
}

variable "network" {
  description = "Wormhole network: mainnet, testnet or devnet. One archive holds one."
  type        = string
  default     = "mainnet"
}

variable "image" {
  description = "The program's image, by digest."
  type        = string
}

variable "clusters" {
  description = "Bigtable clusters by id, which ends with the zone: see the module bigtable."
  type = map(object({
    zone           = string
    kms_key_name   = optional(string)
    min_nodes      = optional(number, 1)
    max_nodes      = optional(number, 3)
    cpu_target     = optional(number, 60)
    storage_target = optional(number, 2560)
  }))
}

variable "writer_cluster" {
  description = "Id of the cluster that takes transactional writes. One in another region than the services works, slowly, and is warned of."
  type        = string

  validation {
    condition     = contains(keys(var.clusters), var.writer_cluster)
    error_message = "writer_cluster must be the id of one of the clusters."
  }
}

variable "move_profiles" {
  description = "Whether app profiles may go to another cluster although they are in use: true for the one apply in which writer_cluster changes."
  type        = bool
  default     = false
}

variable "generations" {
  description = "Generations of tables that exist."
  type        = set(number)
  default     = [1]
}

variable "unprotected_tables" {
  description = "Ids of tables whose deletion protection is lifted, before a family or an old generation goes."
  type        = set(string)
  default     = []
}

variable "backup" {
  description = "Automated backup of every table, as Go durations; \"0\" for both turns it off."
  type = object({
    frequency        = optional(string, "24h0m0s")
    retention_period = optional(string, "168h0m0s")
  })
  default = {}
}

variable "change_stream_retention" {
  description = "Retention of change streams by table, as { journal = \"24h0m0s\" }."
  type        = map(string)
  default     = {}
}

variable "redis" {
  description = "Size of the Redis. highly_available is settled for ever."
  type = object({
    memory_gb        = optional(number, 1)
    highly_available = optional(bool, true)
    secret_version   = optional(number, 1)
  })
  default = {}
}

variable "subnets" {
  description = "Ranges of the network."
  type = object({
    services_subnet = optional(string, "10.20.0.0/24")
    managed         = optional(string, "10.21.0.0")
    nat             = optional(bool, false)
  })
  default = {}
}

variable "query" {
  description = "Size of the query service."
  type = object({
    min_instances = optional(number, 2)
    max_instances = optional(number, 10)
    concurrency   = optional(number, 80)
    cpu           = optional(string, "1")
    memory        = optional(string, "1Gi")
  })
  default = {}
}

variable "ingester" {
  description = "Arguments and size of the ingester; null for none."
  type = object({
    args      = list(string)
    instances = optional(number, 2)
    cpu       = optional(string, "1")
    memory    = optional(string, "1Gi")
    bucket    = optional(string)
  })
  default = null
}

variable "fsck_schedule" {
  description = "When the archive is checked, as a cron line in UTC; null for never on its own."
  type        = string
  default     = "0 3 * * 0"
}

variable "log_level" {
  description = "Least level of logs."
  type        = string
  default     = "info"
}

variable "edge" {
  description = "Host name and limits of the public load balancer; null keeps the archive inside."
  type = object({
    domain              = string
    requests_per_minute = optional(number, 600)
  })
  default = null
}

variable "emails" {
  description = "E-mail addresses that alerts are sent to."
  type        = set(string)
}

variable "slo" {
  description = "Goals of the query service over 28 days."
  type = object({
    availability = optional(number, 0.999)
    latency      = optional(number, 0.95)
    latency_ms   = optional(number, 500)
  })
  default = {}
}

variable "budget" {
  description = "Monthly budget that warns; null for none."
  type = object({
    billing_account = string
    amount          = number
  })
  default = null
}
