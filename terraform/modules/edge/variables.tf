variable "project" {
  description = "Project of the load balancer."
  type        = string
}

variable "name" {
  description = "Prefix of the load balancer's parts."
  type        = string
  default     = "attestry"
}

variable "region" {
  description = "Region of the query service."
  type        = string
}

variable "service" {
  description = "Name of the query service, whose ingress is the load balancer."
  type        = string
}

variable "domain" {
  description = "Host name that clients use. Its DNS gets the two records of the outputs."
  type        = string

  validation {
    condition     = can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$", var.domain))
    error_message = "domain must be a host name in lower case, as archive.example.com."
  }
}

variable "requests_per_minute" {
  description = "Requests of one address in a minute beyond which it is answered 429."
  type        = number
  default     = 600

  validation {
    condition     = var.requests_per_minute >= 10 && var.requests_per_minute <= 10000
    error_message = "requests_per_minute must be 10 to 10000."
  }
}

variable "ban_seconds" {
  description = "How long an address that asks five times as much is shut out."
  type        = number
  default     = 600

  validation {
    condition     = var.ban_seconds >= 60 && var.ban_seconds <= 86400
    error_message = "ban_seconds must be 60 to 86400."
  }
}

variable "log_sample_rate" {
  description = "Part of the requests that the load balancer logs."
  type        = number
  default     = 0.1

  validation {
    condition     = var.log_sample_rate >= 0 && var.log_sample_rate <= 1
    error_message = "log_sample_rate must be 0 to 1."
  }
}
