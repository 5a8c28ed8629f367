variable "project" {
  description = "Project to prepare. It exists and has a billing account."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project must be a project id: 6 to 30 lower-case letters, digits and hyphens."
  }
}

variable "region" {
  description = "Region of state and images."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region's name, as europe-west1."
  }
}

variable "repository" {
  description = "GitHub repository, owner/name, whose workflows plan and apply; null for none."
  type        = string
  default     = null

  validation {
    condition     = var.repository == null ? true : can(regex("^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$", var.repository))
    error_message = "repository must be owner/name."
  }
}

variable "branch" {
  description = "Protected branch from which alone workflows apply."
  type        = string
  default     = "main"

  validation {
    condition     = can(regex("^[A-Za-z0-9._/-]+$", var.branch))
    error_message = "branch must be a branch's name, without wildcards."
  }
}

variable "pool_suffix" {
  description = "End of the id of the identity pool. The id of a deleted pool is taken for 30 days: change the suffix to make another."
  type        = string
  default     = "1"

  validation {
    condition     = can(regex("^[a-z0-9]{1,8}$", var.pool_suffix))
    error_message = "pool_suffix must be 1 to 8 lower-case letters and digits."
  }
}

variable "cmek_regions" {
  description = "Regions that get a key for Bigtable. Whether an archive has keys of its own is settled with its first apply."
  type        = set(string)
  default     = []
}
