locals {
  bigtable = "resource.type = \"bigtable_cluster\" AND resource.labels.instance = \"${var.instance}\""
  redis    = "resource.type = \"redis_instance\" AND resource.labels.instance_id = monitoring.regex.full_match(\".*/${var.redis}\")"
  query    = "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = \"${var.query.name}\""
  ingester = "resource.type = \"cloud_run_worker_pool\" AND resource.labels.worker_pool_name = \"${try(var.ingester.name, "")}\""

  # Alerts on a value, by the heading of the runbook. above and below are exclusive.
  thresholds = merge(
    {
      bigtable-cpu = {
        title    = "Bigtable works at its limit"
        severity = "WARNING"
        filter   = "metric.type = \"bigtable.googleapis.com/cluster/cpu_load\" AND ${local.bigtable}"
        above    = 0.7, below = null, duration = "900s"
        aligner  = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = ["resource.labels.cluster"]
      }
      bigtable-hot-node = {
        title    = "One Bigtable node is hot"
        severity = "WARNING"
        filter   = "metric.type = \"bigtable.googleapis.com/cluster/cpu_load_hottest_node\" AND ${local.bigtable}"
        above    = 0.9, below = null, duration = "900s"
        aligner  = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = ["resource.labels.cluster"]
      }
      bigtable-storage = {
        title    = "Bigtable's nodes fill"
        severity = "WARNING"
        filter   = "metric.type = \"bigtable.googleapis.com/cluster/storage_utilization\" AND ${local.bigtable}"
        above    = 0.6, below = null, duration = "3600s"
        aligner  = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = ["resource.labels.cluster"]
      }
      redis-memory = {
        title    = "The stream fills Redis"
        severity = "ERROR"
        filter   = "metric.type = \"redis.googleapis.com/stats/memory/usage_ratio\" AND ${local.redis}"
        above    = 0.7, below = null, duration = "600s"
        aligner  = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = []
      }
      redis-evictions = {
        title    = "Redis drops what it should keep"
        severity = "CRITICAL"
        filter   = "metric.type = \"redis.googleapis.com/stats/evicted_keys\" AND ${local.redis}"
        above    = 0, below = null, duration = "0s"
        aligner  = "ALIGN_DELTA", reducer = "REDUCE_SUM", group = []
      }
      query-at-limit = {
        title    = "The query service has all the instances that it may have"
        severity = "WARNING"
        filter   = "metric.type = \"run.googleapis.com/container/instance_count\" AND ${local.query}"
        above    = var.query.max_instances - 0.5, below = null, duration = "600s"
        aligner  = "ALIGN_MAX", reducer = "REDUCE_SUM", group = []
      }
      errors-logged = {
        title    = "The program logs errors"
        severity = "WARNING"
        filter   = "metric.type = \"logging.googleapis.com/log_entry_count\" AND metric.labels.severity = one_of(\"ERROR\", \"CRITICAL\") AND ${local.query}"
        above    = 10, below = null, duration = "0s"
        aligner  = "ALIGN_DELTA", reducer = "REDUCE_SUM", group = []
      }
    },
    var.replicated ? {
      bigtable-replication = {
        title    = "A cluster lags behind"
        severity = "ERROR"
        filter   = "metric.type = \"bigtable.googleapis.com/replication/max_delay\" AND resource.type = \"bigtable_table\" AND resource.labels.instance = \"${var.instance}\""
        above    = 600, below = null, duration = "600s"
        aligner  = "ALIGN_MAX", reducer = "REDUCE_MAX", group = []
      }
    } : {},
    var.ingester == null ? {} : {
      ingester-standby = {
        title    = "The ingester has no standby"
        severity = "WARNING"
        filter   = "metric.type = \"run.googleapis.com/container/instance_count\" AND ${local.ingester}"
        above    = null, below = var.ingester.instances - 0.5, duration = "900s"
        aligner  = "ALIGN_MAX", reducer = "REDUCE_SUM", group = []
      }
      ingester-errors = {
        title    = "The ingester logs errors"
        severity = "WARNING"
        filter   = "metric.type = \"logging.googleapis.com/log_entry_count\" AND metric.labels.severity = one_of(\"ERROR\", \"CRITICAL\") AND ${local.ingester}"
        above    = 10, below = null, duration = "0s"
        aligner  = "ALIGN_DELTA", reducer = "REDUCE_SUM", group = []
      }
    },
    length(var.jobs) == 0 ? {} : {
      job-failed = {
        title    = "A job failed: the archive may not agree with itself"
        severity = "CRITICAL"
        filter   = "metric.type = \"run.googleapis.com/job/completed_execution_count\" AND metric.labels.result = \"failed\" AND resource.type = \"cloud_run_job\" AND resource.labels.job_name = one_of(${join(", ", formatlist("\"%s\"", var.jobs))})"
        above    = 0, below = null, duration = "0s"
        aligner  = "ALIGN_DELTA", reducer = "REDUCE_SUM", group = ["resource.labels.job_name"]
      }
    },
  )

  # Alerts on silence.
  absences = merge(
    {
      query-absent = {
        title  = "No instance of the query service runs"
        filter = "metric.type = \"run.googleapis.com/container/instance_count\" AND ${local.query}"
      }
    },
    var.ingester == null ? {} : {
      ingester-absent = {
        title  = "No instance of the ingester runs"
        filter = "metric.type = \"run.googleapis.com/container/instance_count\" AND ${local.ingester}"
      }
    },
  )

  channels = [for c in google_monitoring_notification_channel.email : c.id]
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.emails

  project      = var.project
  display_name = "${var.name}: ${each.value}"
  type         = "email"
  labels       = { email_address = each.value }
  force_delete = false

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_monitoring_alert_policy" "threshold" {
  for_each = local.thresholds

  project               = var.project
  display_name          = "${var.name}: ${each.value.title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels

  conditions {
    display_name = each.value.title
    condition_threshold {
      filter          = each.value.filter
      comparison      = each.value.above != null ? "COMPARISON_GT" : "COMPARISON_LT"
      threshold_value = each.value.above != null ? each.value.above : each.value.below
      duration        = each.value.duration
      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = each.value.aligner
        cross_series_reducer = each.value.reducer
        group_by_fields      = each.value.group
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "${each.value.title}. What to do: ${var.runbook}#${each.key}"
  }
}

resource "google_monitoring_alert_policy" "absence" {
  for_each = local.absences

  project               = var.project
  display_name          = "${var.name}: ${each.value.title}"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = local.channels

  conditions {
    display_name = each.value.title
    condition_absent {
      filter   = each.value.filter
      duration = "600s"
      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = "ALIGN_MAX"
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "${each.value.title}. What to do: ${var.runbook}#${each.key}"
  }
}

# An alert refers to the check, so that a changed one is made before the old one goes.
resource "google_monitoring_uptime_check_config" "this" {
  count = var.domain == null ? 0 : 1

  project      = var.project
  display_name = "${var.name}: ${var.domain}"
  timeout      = "10s"
  period       = "60s"

  # A question that Bigtable answers. Not /readyz: the platform keeps some paths that end
  # with z for itself.
  http_check {
    path         = "/v1/attestations?limit=1"
    port         = 443
    use_ssl      = true
    validate_ssl = true
  }

  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project
      host       = var.domain
    }
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_monitoring_alert_policy" "uptime" {
  count = var.domain == null ? 0 : 1

  project               = var.project
  display_name          = "${var.name}: not reached from outside"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = local.channels

  conditions {
    display_name = "fewer than two places reach it"
    condition_threshold {
      filter          = "metric.type = \"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type = \"uptime_url\" AND metric.labels.check_id = \"${google_monitoring_uptime_check_config.this[0].uptime_check_id}\""
      comparison      = "COMPARISON_LT"
      threshold_value = 2
      duration        = "180s"
      aggregations {
        alignment_period     = "120s"
        per_series_aligner   = "ALIGN_NEXT_OLDER"
        cross_series_reducer = "REDUCE_COUNT_TRUE"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "The archive is not reached from outside. What to do: ${var.runbook}#uptime"
  }
}

# A filter by the project's id comes back with its number, and every plan would show it.
data "google_project" "this" {
  count = var.budget == null ? 0 : 1

  project_id = var.project
}

resource "google_billing_budget" "this" {
  count = var.budget == null ? 0 : 1

  billing_account = var.budget.billing_account
  display_name    = var.name

  budget_filter {
    projects = ["projects/${data.google_project.this[0].number}"]
  }
  amount {
    specified_amount {
      units = tostring(var.budget.amount)
    }
  }
  threshold_rules {
    threshold_percent = 0.8
  }
  threshold_rules {
    threshold_percent = 1
    spend_basis       = "FORECASTED_SPEND"
  }
}
