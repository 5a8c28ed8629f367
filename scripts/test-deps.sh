#!/usr/bin/env bash
# test-deps.sh installs what the tests can use and says on stderr what it could
# not. It never fails: tests that miss a server skip, unless ATTESTRY_REQUIRE
# names it.
set -u

have() { command -v "$1" >/dev/null 2>&1; }
say() { printf 'test-deps: %s\n' "$*" >&2; }

install_redis() {
  local log
  have redis-server && return 0
  if [ "$(id -u)" != 0 ] || ! have apt-get; then
    say "redis-server is missing, and only root with apt-get can install it here: its tests are skipped"
    return 0
  fi
  say "installing redis-server"
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  # The package would start a server of its own, which the tests do not want.
  if ! { apt-get update -q && RUNLEVEL=1 apt-get install -y -q --no-install-recommends redis-server; } >"$log" 2>&1 ||
    ! have redis-server; then
    tail -n 5 "$log" >&2
    say "redis-server could not be installed: its tests are skipped"
  fi
  rm -f "$log"
}

# The emulator is part of a large package of another vendor's repository, which
# is not for a test to install.
look_for_cbtemulator() {
  local root
  [ -n "${CBTEMULATOR:-}" ] || have cbtemulator && return 0
  root=$(gcloud info --format='value(installation.sdk_root)' 2>/dev/null) || root=
  [ -n "$root" ] && [ -x "$root/platform/bigtable-emulator/cbtemulator" ] && return 0
  say "cbtemulator is missing (gcloud CLI, component bigtable; or set CBTEMULATOR): its tests are skipped"
}

# A browser is large, and only .ci/run installs it.
look_for_chromium() {
  have chromium || have chromium-browser || have google-chrome && return 0
  say "chromium is missing (Debian: apt-get install chromium): its tests are skipped"
}

install_redis
look_for_cbtemulator
look_for_chromium
exit 0
