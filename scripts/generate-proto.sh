#!/usr/bin/env bash
# Generates the Go code of query/publicrpc from its .proto files. Needs protoc 3.21 or
# newer; the plugins are built at fixed versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$bin go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1
module=github.com/attestry/attestry
PATH=$bin:$PATH protoc -I query/publicrpc/proto \
  --go_out=. --go_opt=module=$module --connect-go_out=. --connect-go_opt=module=$module \
  publicrpc/v1/publicrpc.proto gossip/v1/gossip.proto
