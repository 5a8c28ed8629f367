variable "project" {
  description = "Project that is watched."
  type        = string
}

variable "name" {
  description = "Prefix of what is shown."
  type        = string
  default     = "attestry"
}

variable "instance" {
  description = "Bigtable instance."
  type        = string
}

variable "replicated" {
  description = "Whether the instance has more than one cluster."
  type        = bool
  default     = false
}

variable "redis" {
  description = "Name of the Redis instance."
  type        = string
}

variable "query" {
  description = "Name of the query service and the most instances that it may have."
  type = object({
    name          = string
    max_instances = number
  })
}

variable "ingester" {
  description = "Name and instances of the ingester, null without one."
  type = object({
    name      = string
    instances = number
  })
  default = null
}

variable "jobs" {
  description = "Names of the jobs whose failure is an alert."
  type        = list(string)
  default     = []
}

variable "domain" {
  description = "Host name that is asked from outside each minute; null without an edge."
  type        = string
  default     = null
}

variable "emails" {
  description = "E-mail addresses that alerts are sent to."
  type        = set(string)

  validation {
    condition     = length(var.emails) > 0 && alltrue([for e in var.emails : can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", e))])
    error_message = "emails must be at least one e-mail address: an alert that nobody gets is none."
  }
}

variable "runbook" {
  description = "URL of the runbook; each alert links to the heading that bears its name."
  type        = string
  default     = "https://github.com/attestry/attestry/blob/main/terraform/modules/monitoring/runbook.md"
}

variable "slo" {
  description = "Goals over 28 days: part of requests without a server error, and part answered within latency_ms."
  type = object({
    availability = optional(number, 0.999)
    latency      = optional(number, 0.95)
    latency_ms   = optional(number, 500)
  })
  default = {}

  validation {
    condition     = alltrue([for g in [var.slo.availability, var.slo.latency] : g >= 0.5 && g <= 0.9999])
    error_message = "goals must be 0.5 to 0.9999."
  }

  validation {
    condition     = var.slo.latency_ms >= 1 && var.slo.latency_ms <= 60000
    error_message = "latency_ms must be 1 to 60000."
  }
}

variable "budget" {
  description = "Monthly budget in whole units of the billing account's currency, and that account; null without one. It warns and stops nothing."
  type = object({
    billing_account = string
    amount          = number
  })
  default = null

  validation {
    condition     = var.budget == null ? true : var.budget.amount >= 1 && floor(var.budget.amount) == var.budget.amount
    error_message = "budget.amount must be a whole number from 1 on."
  }
}
