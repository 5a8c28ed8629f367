variable "project" {
  description = "Project of the instance."
  type        = string
}

variable "name" {
  description = "Name of the instance and prefix of its secrets."
  type        = string
  default     = "attestry"
}

variable "region" {
  description = "Region of the instance: that of the services."
  type        = string
}

variable "network" {
  description = "Id of the network, once private services access is set up in it."
  type        = string
}

variable "labels" {
  description = "Labels of instance and secrets."
  type        = map(string)
  default     = {}
}

variable "memory_gb" {
  description = "Memory. The stream is a window of 24 hours on the journal; when memory is full, publishing stops and nothing is lost."
  type        = number
  default     = 1

  validation {
    condition     = var.memory_gb >= 1 && var.memory_gb <= 300 && floor(var.memory_gb) == var.memory_gb
    error_message = "memory_gb must be a whole number from 1 to 300."
  }
}

variable "highly_available" {
  description = "Whether a replica in another zone stands by. Settled for ever: another tier is another instance."
  type        = bool
  default     = true
}

variable "redis_version" {
  description = "Version of Redis; it can be raised and never lowered."
  type        = string
  default     = "REDIS_7_2"

  validation {
    condition     = contains(["REDIS_7_0", "REDIS_7_2"], var.redis_version)
    error_message = "redis_version must be REDIS_7_0 or REDIS_7_2."
  }
}

variable "secret_version" {
  description = "Raise it by one when the password or the certificate authority of the instance has changed: both are written to the secrets anew."
  type        = number
  default     = 1
}

variable "accessors" {
  description = "Members, by a name of their own, that read password and certificate authority."
  type        = map(string)
  default     = {}
}
