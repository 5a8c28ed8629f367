locals {
  charts = [
    { title = "Requests a second by class", filter = "metric.type=\"run.googleapis.com/request_count\" ${local.query}", aligner = "ALIGN_RATE", reducer = "REDUCE_SUM", group = ["metric.labels.response_code_class"] },
    { title = "Request latency, 95th percentile (ms)", filter = "metric.type=\"run.googleapis.com/request_latencies\" ${local.query}", aligner = "ALIGN_PERCENTILE_95", reducer = "REDUCE_MAX", group = [] },
    { title = "Instances", filter = "metric.type=\"run.googleapis.com/container/instance_count\" ${local.query}", aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", group = ["metric.labels.state"] },
    { title = "Bigtable CPU by cluster", filter = "metric.type=\"bigtable.googleapis.com/cluster/cpu_load\" ${local.bigtable}", aligner = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = ["resource.labels.cluster"] },
    { title = "Bigtable hottest node", filter = "metric.type=\"bigtable.googleapis.com/cluster/cpu_load_hottest_node\" ${local.bigtable}", aligner = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = ["resource.labels.cluster"] },
    { title = "Bigtable storage used", filter = "metric.type=\"bigtable.googleapis.com/cluster/storage_utilization\" ${local.bigtable}", aligner = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = ["resource.labels.cluster"] },
    { title = "Redis memory used", filter = "metric.type=\"redis.googleapis.com/stats/memory/usage_ratio\" ${local.redis}", aligner = "ALIGN_MEAN", reducer = "REDUCE_MAX", group = [] },
    { title = "Log entries by severity", filter = "metric.type=\"logging.googleapis.com/log_entry_count\" ${local.query}", aligner = "ALIGN_RATE", reducer = "REDUCE_SUM", group = ["metric.labels.severity"] },
  ]
}

resource "google_monitoring_dashboard" "this" {
  project = var.project
  dashboard_json = jsonencode({
    displayName = var.name
    mosaicLayout = {
      columns = 12
      tiles = [
        for i, c in local.charts : {
          xPos   = 6 * (i % 2)
          yPos   = 4 * floor(i / 2)
          width  = 6
          height = 4
          widget = {
            title = c.title
            xyChart = {
              dataSets = [{
                plotType = "LINE"
                timeSeriesQuery = {
                  timeSeriesFilter = {
                    filter = c.filter
                    aggregation = {
                      alignmentPeriod    = "60s"
                      perSeriesAligner   = c.aligner
                      crossSeriesReducer = c.reducer
                      groupByFields      = c.group
                    }
                  }
                }
              }]
            }
          }
        }
      ]
    }
  })
}
