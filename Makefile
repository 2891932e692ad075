# The names that people and CI use. `make test` is the whole judgement.
SHELL := /bin/bash -eo pipefail
.PHONY: run test lint fmt bench setup bless

run: setup        ## build, show every command on examples/quickstart, then serve it (QUICKSTART_ONCE=1: once)
	cargo build --quiet --package gatepost
	scripts/quickstart target/debug/gatepost

test: lint        ## format, lints, all tests; ends with the number of tests
	scripts/servers >/dev/null
	scripts/servers-pebble >/dev/null
	scripts/servers-helm >/dev/null
	scripts/servers-cert-manager >/dev/null
	scripts/peer external-dns >/dev/null
	scripts/run-tests

lint: setup       ## format and lints alone
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

fmt: setup        ## formats all code
	cargo fmt --all

bench:            ## every benchmark, optimized; BENCH_ONLY=word: those of benches/scale with the word in their name
	@scripts/setup bench
	cargo bench --workspace --bench $(if $(BENCH_ONLY),scale,'*')

bless: setup      ## rewrites the expected outputs of tests/cases and generated files; read the diff
	GATEPOST_BLESS=1 cargo test --quiet --package gatepost --test cases --test generated

setup:            ## installs what is missing on this machine
	@scripts/setup
