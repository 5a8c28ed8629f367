variable "project" {
  description = "Project of the network."
  type        = string
}

variable "name" {
  description = "Name of the network and prefix of what is in it."
  type        = string
  default     = "attestry"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,40}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 42 lower-case letters, digits and hyphens, and begin with a letter."
  }
}

variable "region" {
  description = "Region of the services."
  type        = string
}

variable "subnet_range" {
  description = "Range of the services' subnet. Cloud Run holds two addresses an instance, for an hour or two after it is gone."
  type        = string
  default     = "10.20.0.0/24"

  validation {
    condition     = can(cidrhost(var.subnet_range, 0)) && try(tonumber(split("/", var.subnet_range)[1]) <= 26, false)
    error_message = "subnet_range must be an IPv4 range of at least /26."
  }
}

variable "services_range" {
  description = "First address of the /24 that Google's managed services (Redis) get."
  type        = string
  default     = "10.21.0.0"

  validation {
    condition     = can(cidrhost("${var.services_range}/24", 0))
    error_message = "services_range must be an IPv4 address, as 10.21.0.0."
  }
}

variable "nat" {
  description = "Whether services reach the internet. Google's APIs and Redis are reached without."
  type        = bool
  default     = false
}
