#!/usr/bin/env bash
# verify.sh makes everything generated anew and fails if a file differs from
# what was there before. It compares with the working tree as it was and not
# with the last commit, so that it can run before one.
set -euo pipefail

state() {
  find . -type f -not -path './.git/*' -not -path './bin/*' -not -path './data/*' -print0 | sort -z | xargs -0 sha256sum
}

before=$(state)
go generate ./...
after=$(state)
if [ "$before" != "$after" ]; then
  echo 'verify: these generated files were out of date (make generate mends them):' >&2
  diff <(echo "$before") <(echo "$after") | awk '/^[<>]/ { print "  " $3 }' | sort -u >&2
  exit 1
fi
