locals {
  ci = var.repository == null ? {} : {
    # Pull requests plan with -lock=false: they read, and write nothing at all.
    plan = {
      subject = "principalSet://iam.googleapis.com/${google_iam_workload_identity_pool.ci[0].name}/attribute.repository/${var.repository}"
      roles   = ["roles/viewer", "roles/iam.securityReviewer"]
      state   = "roles/storage.objectViewer"
    }
    # The protected branch applies.
    apply = {
      subject = "principalSet://iam.googleapis.com/${google_iam_workload_identity_pool.ci[0].name}/attribute.ref/${var.repository}:refs/heads/${var.branch}"
      roles = [
        "roles/bigtable.admin",
        "roles/certificatemanager.owner",
        "roles/cloudscheduler.admin",
        "roles/compute.admin",
        "roles/iam.roleAdmin",
        "roles/iam.serviceAccountAdmin",
        "roles/iam.serviceAccountUser",
        "roles/monitoring.admin",
        "roles/redis.admin",
        "roles/resourcemanager.projectIamAdmin",
        "roles/run.admin",
        "roles/secretmanager.admin",
        "roles/servicenetworking.networksAdmin",
        "roles/storage.admin",
      ]
      state = "roles/storage.objectUser"
    }
  }
}

# The provider reads the password of the Redis with the instance, and a plan without this
# right fails. The state holds it anyway.
resource "google_project_iam_custom_role" "plan" {
  count = var.repository == null ? 0 : 1

  project     = var.project
  role_id     = "attestry_plan"
  title       = "Attestry CI: terraform plan"
  description = "Read what a viewer may not and a plan must"
  permissions = ["redis.instances.getAuthString"]

  depends_on = [google_project_service.this]
}

resource "google_project_iam_member" "plan" {
  count = var.repository == null ? 0 : 1

  project = var.project
  role    = google_project_iam_custom_role.plan[0].id
  member  = google_service_account.ci["plan"].member
}

resource "google_iam_workload_identity_pool" "ci" {
  count = var.repository == null ? 0 : 1

  project                   = var.project
  workload_identity_pool_id = "attestry-ci-${var.pool_suffix}"
  display_name              = "Attestry CI"

  depends_on = [google_project_service.this]
}

# The condition keeps every other repository of the issuer out.
resource "google_iam_workload_identity_pool_provider" "github" {
  count = var.repository == null ? 0 : 1

  project                            = var.project
  workload_identity_pool_id          = google_iam_workload_identity_pool.ci[0].workload_identity_pool_id
  workload_identity_pool_provider_id = "github"
  attribute_condition                = "assertion.repository == '${var.repository}'"
  attribute_mapping = {
    "google.subject"       = "assertion.sub"
    "attribute.repository" = "assertion.repository"
    "attribute.ref"        = "assertion.repository + ':' + assertion.ref"
  }

  oidc {
    issuer_uri = "https://token.actions.githubusercontent.com"
  }
}

resource "google_service_account" "ci" {
  for_each = toset(keys(local.ci))

  project      = var.project
  account_id   = "attestry-ci-${each.key}"
  display_name = "Attestry CI: terraform ${each.key}"
}

resource "google_service_account_iam_member" "ci" {
  for_each = local.ci

  service_account_id = google_service_account.ci[each.key].name
  role               = "roles/iam.workloadIdentityUser"
  member             = each.value.subject
}

resource "google_project_iam_member" "ci" {
  for_each = merge([
    for name, c in local.ci : { for role in c.roles : "${name}/${role}" => { account = name, role = role } }
  ]...)

  project = var.project
  role    = each.value.role
  member  = google_service_account.ci[each.value.account].member
}

resource "google_storage_bucket_iam_member" "ci" {
  for_each = local.ci

  bucket = google_storage_bucket.state.name
  role   = each.value.state
  member = google_service_account.ci[each.key].member
}

resource "google_artifact_registry_repository_iam_member" "ci" {
  count = var.repository == null ? 0 : 1

  project    = var.project
  location   = var.region
  repository = google_artifact_registry_repository.images.name
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.ci["apply"].member
}
