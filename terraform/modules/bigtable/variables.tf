variable "project" {
  description = "Project of the instance."
  type        = string
}

variable "name" {
  description = "Id of the instance, 6 to 33 characters."
  type        = string
  default     = "attestry"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,31}[a-z0-9]$", var.name))
    error_message = "name must be 6 to 33 lower-case letters, digits and hyphens, and begin with a letter."
  }
}

variable "labels" {
  description = "Labels of the instance."
  type        = map(string)
  default     = {}
}

variable "network" {
  description = "Wormhole network of the store: the first part of every table's id."
  type        = string
  default     = "mainnet"

  validation {
    condition     = contains(["mainnet", "testnet", "devnet"], var.network)
    error_message = "network must be mainnet, testnet or devnet."
  }
}

variable "schema" {
  description = "Content of terraform/schema.json, which is generated from the package bigtable/schema."
  type = object({
    version = number
    store = object({
      name = string
      families = list(object({
        name         = string
        max_versions = optional(number)
        max_age      = optional(string)
      }))
    })
    tables = list(object({
      name = string
      families = list(object({
        name         = string
        max_versions = optional(number)
        max_age      = optional(string)
      }))
    }))
  })

  validation {
    condition = alltrue([
      for t in var.schema.tables : alltrue([
        for f in t.families : f.max_versions == null && f.max_age == null
        if contains(["attestations/QuorumState", "journal/Event", "journal/Bytes"], "${t.name}/${f.name}")
      ])
    ])
    error_message = "attestations/QuorumState, journal/Event and journal/Bytes hold signed VAAs and events: their versions are data, and no rule may collect them."
  }

  validation {
    condition = alltrue([
      for t in var.schema.tables : alltrue([
        for f in t.families : f.max_age == null if "${t.name}/${f.name}" != "state/Reject"
      ])
    ])
    error_message = "cell timestamps are journal offsets and no times: only state/Reject, whose timestamps are times, may have a max_age."
  }

  validation {
    condition     = alltrue([for t in concat([var.schema.store], var.schema.tables) : length(t.families) > 0])
    error_message = "every table has at least one family."
  }
}

variable "generations" {
  description = "Generations of tables that exist. A restore or a move adds one; README.md says how an old one goes."
  type        = set(number)
  default     = [1]

  validation {
    condition     = length(var.generations) > 0 && alltrue([for g in var.generations : g >= 1 && floor(g) == g])
    error_message = "generations must be whole numbers from 1 on, at least one."
  }
}

variable "clusters" {
  description = "Clusters by id. Zone, key and id are settled for ever: another zone is another cluster, so the id must hold the zone."
  type = map(object({
    zone           = string
    kms_key_name   = optional(string)
    min_nodes      = optional(number, 1)
    max_nodes      = optional(number, 3)
    cpu_target     = optional(number, 60)
    storage_target = optional(number, 2560)
  }))

  validation {
    condition     = length(var.clusters) >= 1 && length(var.clusters) <= 3
    error_message = "clusters must be one to three."
  }

  validation {
    condition     = alltrue([for id, c in var.clusters : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", id)) && endswith(id, c.zone)])
    error_message = "a cluster's id must be 6 to 30 lower-case letters, digits and hyphens, and end with its zone: an id that is kept while its zone changes would replace the whole instance."
  }

  validation {
    condition     = length(distinct([for c in var.clusters : c.zone])) == length(var.clusters)
    error_message = "clusters must be in different zones."
  }

  validation {
    condition     = length(distinct([for c in var.clusters : c.kms_key_name != null])) == 1
    error_message = "either every cluster has a kms_key_name or none has."
  }

  validation {
    condition     = alltrue([for c in var.clusters : c.min_nodes >= 1 && c.max_nodes >= c.min_nodes && c.max_nodes <= 10 * c.min_nodes])
    error_message = "min_nodes must be at least 1, and max_nodes between min_nodes and ten times min_nodes."
  }

  validation {
    condition     = alltrue([for c in var.clusters : c.cpu_target >= 10 && c.cpu_target <= 80 && c.storage_target >= 2560 && c.storage_target <= 5120])
    error_message = "cpu_target must be 10 to 80 percent, storage_target 2560 to 5120 GiB a node."
  }
}

variable "writer_cluster" {
  description = "Id of the one cluster that takes transactional writes. Another one is a new generation and epoch: see the runbook in the monitoring module."
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

variable "backup" {
  description = "Automated backup of every table, as Go durations; \"0\" for both turns it off."
  type = object({
    frequency        = optional(string, "24h0m0s")
    retention_period = optional(string, "168h0m0s")
  })
  default = {}

  validation {
    condition     = alltrue([for d in [var.backup.frequency, var.backup.retention_period] : d == "0" || can(regex("^[0-9]+h[0-9]+m[0-9]+s$", d))])
    error_message = "durations must be written as the service returns them, as 168h0m0s, else every plan shows a change."
  }

  validation {
    condition     = (var.backup.frequency == "0") == (var.backup.retention_period == "0")
    error_message = "frequency and retention_period must both be \"0\" or neither."
  }
}

variable "change_stream_retention" {
  description = "Retention of a table's change stream by the table's name in the schema, as a Go duration from 24h0m0s to 168h0m0s. A table that is not named has none."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for d in values(var.change_stream_retention) : can(regex("^(2[4-9]|[3-9][0-9]|1[0-5][0-9]|16[0-8])h0m0s$", d))])
    error_message = "change_stream_retention must be whole hours from 24h0m0s to 168h0m0s."
  }

  validation {
    condition     = alltrue([for t in keys(var.change_stream_retention) : contains(var.schema.tables[*].name, t)])
    error_message = "change_stream_retention names a table that is not in the schema."
  }
}

variable "unprotected_tables" {
  description = "Ids of tables, as mainnet.g1.index, whose deletion protection is lifted. Needed, in an apply of its own, before a family or an old generation can go."
  type        = set(string)
  default     = []
}

variable "writers" {
  description = "Members, by a name of their own, that read and write rows of every table: what runs attestry serve and attestry ingest."
  type        = map(string)
  default     = {}
}

variable "readers" {
  description = "Members, by a name of their own, that read rows of every table: what runs attestry fsck."
  type        = map(string)
  default     = {}
}

variable "schema_jobs" {
  description = "Members, by a name of their own, that run attestry schema, and the role that lets them create and describe tables. They write rows of every table too, since a move fills them."
  type = object({
    role    = optional(string)
    members = optional(map(string), {})
  })
  default = {}

  validation {
    condition     = length(var.schema_jobs.members) == 0 || var.schema_jobs.role != null
    error_message = "schema_jobs.role must be given with members."
  }
}
