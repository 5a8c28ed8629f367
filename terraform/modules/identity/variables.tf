variable "project" {
  description = "Project of the accounts."
  type        = string
}

variable "prefix" {
  description = "Prefix of the accounts' ids."
  type        = string
  default     = "attestry"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.prefix))
    error_message = "prefix must be 3 to 20 lower-case letters, digits and hyphens, and begin with a letter."
  }
}
