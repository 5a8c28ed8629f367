variable "project" {
  description = "Project of the services."
  type        = string
}

variable "region" {
  description = "Region of the services: that of the writer's cluster, or near it."
  type        = string
}

variable "name" {
  description = "Prefix of the services' names."
  type        = string
  default     = "attestry"
}

variable "labels" {
  description = "Labels of the services."
  type        = map(string)
  default     = {}
}

variable "image" {
  description = "The one image, by digest. Terraform decides it, and no pipeline beside it."
  type        = string

  validation {
    condition     = can(regex("@sha256:[0-9a-f]{64}$", var.image))
    error_message = "image must be named by its digest, as europe-west1-docker.pkg.dev/p/attestry/attestry@sha256:…: a tag can come to mean another image."
  }
}

variable "network" {
  description = "Wormhole network of the store."
  type        = string
  default     = "mainnet"

  validation {
    condition     = contains(["mainnet", "testnet", "devnet"], var.network)
    error_message = "network must be mainnet, testnet or devnet."
  }
}

variable "vpc" {
  description = "Ids of the network and the subnet whose addresses the services get."
  type = object({
    network    = string
    subnetwork = string
  })
}

variable "bigtable" {
  description = "Instance, and app profiles by purpose: ingest for whatever writes, batch for checks."
  type = object({
    instance = string
    profiles = map(string)
  })

  validation {
    condition     = alltrue([for p in ["ingest", "batch"] : contains(keys(var.bigtable.profiles), p)])
    error_message = "bigtable.profiles must name an ingest and a batch profile."
  }
}

variable "redis" {
  description = "URL of the Redis without its password, and the secrets that hold password and certificate authority."
  type = object({
    url      = string
    password = object({ secret = string, version = string })
    ca       = object({ secret = string, version = string })
  })

  validation {
    condition     = startswith(var.redis.url, "rediss://") && !strcontains(var.redis.url, "@")
    error_message = "redis.url must begin with rediss:// and hold no password."
  }
}

variable "accounts" {
  description = "E-mail addresses of the service accounts by purpose: query, ingest, schema, fsck, scheduler."
  type        = map(string)

  validation {
    condition     = alltrue([for a in ["query", "ingest", "schema", "fsck", "scheduler"] : contains(keys(var.accounts), a)])
    error_message = "accounts must have query, ingest, schema, fsck and scheduler."
  }
}

variable "query" {
  description = "Size of the query service. ingress is \"load-balancer\", \"internal\" or \"all\"; public lets anyone call it without Google credentials."
  type = object({
    min_instances = optional(number, 2)
    max_instances = optional(number, 10)
    concurrency   = optional(number, 80)
    cpu           = optional(string, "1")
    memory        = optional(string, "1Gi")
    timeout       = optional(string, "3600s")
    ingress       = optional(string, "internal")
    public        = optional(bool, false)
  })
  default = {}

  validation {
    condition     = var.query.min_instances >= 1 && var.query.max_instances >= var.query.min_instances && var.query.max_instances <= 100
    error_message = "min_instances must be at least 1 (the service publishes too), and max_instances between it and 100."
  }

  validation {
    condition     = var.query.concurrency >= 1 && var.query.concurrency <= 1000
    error_message = "concurrency must be 1 to 1000."
  }

  validation {
    condition     = contains(["load-balancer", "internal", "all"], var.query.ingress)
    error_message = "ingress must be load-balancer, internal or all."
  }

  validation {
    condition     = !var.query.public || var.query.ingress != "all"
    error_message = "a public service must be behind the load balancer, whose rate limits it needs: set ingress to load-balancer."
  }

  validation {
    condition     = can(regex("^[0-9]+s$", var.query.timeout)) && try(tonumber(trimsuffix(var.query.timeout, "s")) <= 3600, false)
    error_message = "timeout must be seconds, at most 3600s: it bounds streams."
  }
}

variable "ingester" {
  description = "Arguments and size of the ingester; null for none. Of two instances each is the standby of the other. bucket is mounted read-only at /vaas."
  type = object({
    args      = list(string)
    instances = optional(number, 2)
    cpu       = optional(string, "1")
    memory    = optional(string, "1Gi")
    bucket    = optional(string)
  })
  default = null

  validation {
    condition     = var.ingester == null ? true : try(var.ingester.args[0] == "ingest" && length(var.ingester.args) > 1, false)
    error_message = "ingester.args must begin with ingest and name a file."
  }

  validation {
    condition     = var.ingester == null ? true : var.ingester.instances >= 1 && var.ingester.instances <= 4
    error_message = "ingester.instances must be 1 to 4: one more than one is the standby."
  }
}

variable "fsck_schedule" {
  description = "When the archive is checked, as a cron line in UTC; null for never on its own. A check reads the whole archive."
  type        = string
  default     = "0 3 * * 0"
}

variable "log_level" {
  description = "Least level of logs: debug, info, warn or error."
  type        = string
  default     = "info"

  validation {
    condition     = contains(["debug", "info", "warn", "error"], var.log_level)
    error_message = "log_level must be debug, info, warn or error."
  }
}
