#!/usr/bin/env bash
# generate.sh writes schema.json anew: it fetches the npm package that carries the
# provider's schema, checks it, and reads the types of types.txt from it. Needed
# only when a type is added.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

package=@cdktf/provider-google@16.12.1
sha512=2aa340ff9462153d3baf43d267aff4edc276cc449481b8f525c8558f6d620450595546c3fb9efcc40fe4f1eabfaf471bc8480b9a0f5e616795b256986a1e0309
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

npm pack --silent --pack-destination "$dir" "$package" >/dev/null
echo "$sha512  $(echo "$dir"/*.tgz)" | sha512sum --check --quiet
tar -xzf "$dir"/*.tgz -C "$dir"
go run ./schemagen "$dir/package" types.txt >"$dir/schema.json"
mv "$dir/schema.json" schema.json
