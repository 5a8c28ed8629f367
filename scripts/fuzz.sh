#!/usr/bin/env bash
# fuzz.sh TIME PACKAGES… runs every fuzz target of the packages for TIME each.
set -euo pipefail
time=$1
shift

# Listed first and on its own: a package that does not compile ends the script
# here, and is not taken for one without targets.
targets=$(go test -list '^Fuzz' "$@" | awk '
  /^Fuzz/ { names[n++] = $1 }
  /^ok/   { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }
  !/^(Fuzz|ok|\?)/ { print > "/dev/stderr" }')

while read -r package target; do
  [ -n "$package" ] || continue
  printf 'fuzz %s %s for %s\n' "$package" "$target" "$time"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
done <<<"$targets"
