#!/usr/bin/env bash
# Installs the clients of internal/clienttest from npm, into ATTESTRY_CLIENTS or a
# directory that goes with the run, and tests with them. About 1.7 GB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${ATTESTRY_CLIENTS:-}" ]; then
  ATTESTRY_CLIENTS=$(mktemp -d)
  trap 'rm -rf "$ATTESTRY_CLIENTS"' EXIT
fi
for package in internal/clienttest/testdata/*/package.json; do
  name=$(basename "$(dirname "$package")")
  mkdir -p "$ATTESTRY_CLIENTS/$name"
  cp "$package" "$ATTESTRY_CLIENTS/$name/"
  npm install --prefix "$ATTESTRY_CLIENTS/$name" --no-audit --no-fund --loglevel=error
done
export ATTESTRY_CLIENTS
ATTESTRY_REQUIRE=clients,redis go test -count=1 -v ./internal/clienttest
