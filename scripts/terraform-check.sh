#!/usr/bin/env bash
# terraform-check.sh checks terraform/ against the stand-in provider: no registry,
# no credentials, no cloud. It needs terraform and Go; the first run downloads the
# modules of the stand-in from the Go proxy and builds it, later ones only if its
# source has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v terraform >/dev/null; then
  echo 'terraform-check: terraform is missing: install version 1.11 or newer' >&2
  exit 1
fi
export CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null
terraform fmt -check -recursive -diff terraform
(cd terraform/testing/provider && go vet ./... && go test ./...)
ATTESTRY_REQUIRE="${ATTESTRY_REQUIRE:+$ATTESTRY_REQUIRE,}terraform" go test -count=1 -timeout 10m "$@" ./internal/deploy
