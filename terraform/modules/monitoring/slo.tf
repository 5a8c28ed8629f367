locals {
  requests  = "metric.type=\"run.googleapis.com/request_count\" resource.type=\"cloud_run_revision\" resource.labels.service_name=\"${var.query.name}\""
  latencies = "metric.type=\"run.googleapis.com/request_latencies\" resource.type=\"cloud_run_revision\" resource.labels.service_name=\"${var.query.name}\""

  # Rates at which the budget of 28 days burns, each over a long and a short window:
  # the long one says that it matters, the short one that it still goes on.
  burns = {
    fast = { rate = 14.4, long = "3600s", short = "300s", severity = "CRITICAL" }
    slow = { rate = 6, long = "21600s", short = "1800s", severity = "WARNING" }
  }
  slos = {
    availability = google_monitoring_slo.availability.name
    latency      = google_monitoring_slo.latency.name
  }
}

resource "google_monitoring_custom_service" "query" {
  project      = var.project
  service_id   = var.query.name
  display_name = "${var.name}: query service"
}

resource "google_monitoring_slo" "availability" {
  project             = var.project
  service             = google_monitoring_custom_service.query.service_id
  slo_id              = "availability"
  display_name        = "Requests without a server error"
  goal                = var.slo.availability
  rolling_period_days = 28

  request_based_sli {
    good_total_ratio {
      bad_service_filter   = "${local.requests} metric.labels.response_code_class=\"5xx\""
      total_service_filter = local.requests
    }
  }
}

resource "google_monitoring_slo" "latency" {
  project             = var.project
  service             = google_monitoring_custom_service.query.service_id
  slo_id              = "latency"
  display_name        = "Requests answered within ${var.slo.latency_ms} ms"
  goal                = var.slo.latency
  rolling_period_days = 28

  request_based_sli {
    distribution_cut {
      distribution_filter = local.latencies
      range {
        min = 0
        max = var.slo.latency_ms
      }
    }
  }
}

resource "google_monitoring_alert_policy" "burn" {
  for_each = merge([
    for slo, id in local.slos : { for speed, b in local.burns : "${slo}-${speed}" => merge(b, { slo = slo, id = id, speed = speed }) }
  ]...)

  project               = var.project
  display_name          = "${var.name}: the ${each.value.slo} budget burns ${each.value.speed == "fast" ? "within two days" : "within five days"}"
  combiner              = "AND"
  severity              = each.value.severity
  notification_channels = local.channels

  dynamic "conditions" {
    for_each = [each.value.long, each.value.short]
    content {
      display_name = "over ${conditions.value}"
      condition_threshold {
        filter          = "select_slo_burn_rate(\"${each.value.id}\", \"${conditions.value}\")"
        comparison      = "COMPARISON_GT"
        threshold_value = each.value.rate
        duration        = "0s"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "At this rate the ${each.value.slo} budget of 28 days is gone early. What to do: ${var.runbook}#slo-${each.value.slo}"
  }
}
