# Needs make and Go; the go.mod toolchain line fetches the right Go.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export CGO_ENABLED ?= 0

# What `make run` starts after the build.
RUN ?= bin/attestry serve --sample testdata/vaas/vaas-mainnet.ndjson

# The variable that the build sets to the version.
VERSION_VAR := github.com/attestry/attestry/internal/cli.version
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Packages and flags of the test targets, fuzz time a target.
PKG      ?= ./...
TESTFLAGS ?=
FUZZTIME ?= 10s

TOOL := go tool -modfile=tools/go.mod

.PHONY: help
help: ## Show this help
	@awk -F':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/attestry
	go build -trimpath -buildvcs=false -ldflags '-s -w -X $(VERSION_VAR)=$(VERSION)' -o bin/attestry ./cmd/attestry

.PHONY: run
run: build ## Build, start the archive with sample data, print links and example lookups
	$(RUN)

.PHONY: test
test: ## Install what the tests can use, then run them
	@scripts/test-deps.sh
	go test $(TESTFLAGS) $(PKG)

.PHONY: test/race
test/race: ## Run the tests with the race detector; heavy ones in their short form
	CGO_ENABLED=1 go test -race -short $(TESTFLAGS) $(PKG)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s)
	@scripts/fuzz.sh $(FUZZTIME) $(PKG)

.PHONY: bench
bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(PKG)

.PHONY: bench/query
bench/query: ## Measure lookups and scans by HTTP beside the bare Bigtable client
	go test -run '^$$' -bench . -benchtime 1x ./internal/bench

.PHONY: bench/emulator
bench/emulator: ## Measure the Bigtable server beside Google's emulator and a canned one; BENCH="-rows 1000000"
	go run ./emulator/bench $(BENCH)

.PHONY: soak
soak: ## Rewrite one row ten million times; disk and memory stay bounded
	ATTESTRY_SOAK_REWRITES=10000000 go test -count=1 -timeout 60m -v -run 'TestRewrites' ./emulator

.PHONY: test/foreign
test/foreign: ## Run the tests of Google's client for Go against the Bigtable server
	emulator/testdata/foreign.sh

.PHONY: test/clients
test/clients: ## Run the clients that people have, from npm, against the query service
	scripts/test-clients.sh

.PHONY: terraform/check
terraform/check: ## Check terraform/ without registry and cloud: format, validate, tests, plans, policy, planted faults
	@scripts/terraform-check.sh

.PHONY: lint
lint: ## Check format (gofumpt), go vet, staticcheck
	@bad=$$($(TOOL) gofumpt -l $$(scripts/go-files.sh)); \
	if [ -n "$$bad" ]; then printf 'not formatted (make fmt mends it):\n%s\n' "$$bad" >&2; exit 1; fi
	go vet ./...
	$(TOOL) staticcheck ./...

.PHONY: lint/wide
lint/wide: ## Run golangci-lint with the reasons of .golangci.yml (slow to build)
	go tool -modfile=tools/lint/go.mod golangci-lint run ./...

.PHONY: lint/vuln
lint/vuln: ## Report known vulnerabilities that the code reaches
	$(TOOL) govulncheck ./...

.PHONY: fmt
fmt: ## Format the source
	$(TOOL) gofumpt -w $$(scripts/go-files.sh)

.PHONY: generate
generate: ## Make anew everything that is generated
	go generate ./...

.PHONY: generate/proto
generate/proto: ## Make the Go code of query/publicrpc anew from its .proto files; needs protoc
	@scripts/generate-proto.sh

.PHONY: verify
verify: ## Generate and fail if anything differs from what was there
	@scripts/verify.sh
