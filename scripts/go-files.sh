#!/usr/bin/env bash
# go-files.sh lists the module's Go files that people write.
set -euo pipefail
find . -name '*.go' -not -path '*/.*' -not -path '*/testdata/*' -not -path './data/*' -print0 |
  xargs -0 -r grep -L '^// Code generated .* DO NOT EDIT\.$'
