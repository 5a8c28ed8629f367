#!/usr/bin/env bash
# foreign.sh RULES runs the integration tests of Google's Bigtable client for Go, in
# the version of go.mod, against the server at $BIGTABLE_EMULATOR_HOST. RULES are:
#
#   emulator    as they run on the client's own test server, which one edit of the
#               copy replaces with ours; all must pass
#   production  as they run on Cloud Bigtable, unedited
#
# The module is copied from the module cache to a temporary directory; nothing of it
# is kept. Left out is TestIntegration_ExportBuiltInMetrics, which needs Cloud
# Monitoring and ends the test process without it.
set -euo pipefail

rules=${1:?emulator or production}
addr=${BIGTABLE_EMULATOR_HOST:?host:port of the server}
module=$(go list -m -f '{{.Dir}}' cloud.google.com/go/bigtable)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$module/." "$work"
chmod -R u+w "$work"
cd "$work"

status=0
case $rules in
emulator)
	# The tests dial the address themselves, with the message size that they need.
	unset BIGTABLE_EMULATOR_HOST
	sed -i \
		-e "s|bttest.NewServer(\"localhost:0\", serverOptions...)|\&bttest.Server{Addr: \"$addr\"}, error(nil); _ = serverOptions|" \
		-e '/e\.server\.Close()/d' export_test.go
	grep -q "$addr" export_test.go || { echo "export_test.go is not as expected; adapt foreign.sh" >&2; exit 1; }
	go test -count=1 -v -timeout 20m -run TestIntegration . >log 2>&1 || status=$?
	;;
production)
	# Only those of integration_test.go: the others bring a server of their own.
	names=$(sed -n 's/^func \(TestIntegration_[A-Za-z_0-9]*\)(.*/\1/p' integration_test.go | paste -sd '|')
	go test -count=1 -v -timeout 20m -run "^($names)\$" -skip ExportBuiltInMetrics . \
		-it.use-prod -it.project=foreign -it.instance="i$(date +%s)" -it.cluster=c1 >log 2>&1 || status=$?
	;;
*)
	echo "foreign.sh: emulator or production, not $rules" >&2
	exit 2
	;;
esac
grep -E '^(--- FAIL|    [a-z_]+_test.go|panic)' log || true
for result in PASS FAIL SKIP; do
	printf '%s %d\n' "$result" "$(grep -c "^--- $result" log || true)"
done
exit "$status"
