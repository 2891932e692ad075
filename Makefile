# The names that people and CI use. `make test` is the whole judgement.
SHELL := /bin/bash -eo pipefail
# What the program is built from. Another build of it, such as that of the tests, serves `run` as well.
SOURCES := $(filter-out crates/testkit/%,$(wildcard crates/*/src crates/*/Cargo.toml)) Cargo.toml Cargo.lock docs/diagnostics
.PHONY: run test test-quick lint fmt bench chaos fuzz docs setup servers bless

run: setup        ## build, show every command on examples/quickstart, then serve it (QUICKSTART_ONCE=1: once)
	@if [ -x target/debug/gatepost ] && [ -z "$$(find $(SOURCES) -newer target/debug/gatepost -print -quit)" ]; then \
	  echo "run: 1 of 2, the program is built from these sources already"; \
	else \
	  echo "run: 1 of 2, building gatepost and what it uses, one line per crate: about five minutes on a new machine with two cores"; \
	  cargo build --package gatepost && touch target/debug/gatepost; \
	fi
	@echo "run: 2 of 2, every command on examples/quickstart, then a server for it"
	scripts/quickstart target/debug/gatepost

test: servers lint ## format, lints, all tests; installs and builds every server that they need; ends with the number of tests
	scripts/run-tests --workspace

# Tests of documents that need a program which is not there are left out by name, also where CI is set.
test-quick: lint  ## format, lints, and the tests that need no other program
	env -u CI scripts/run-tests --package gatepost-core --package gatepost-objects --package gatepost-worlds --package gatepost-testkit
	env -u CI scripts/run-tests --package gatepost --lib --test cases --test diagnostics --test faults --test generated --test documents

lint: setup       ## format, lints, and the rules for dependencies (deny.toml) alone
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	scripts/deny

fmt: setup        ## formats all code
	cargo fmt --all

bench:            ## every benchmark, optimized; BENCH_ONLY=word: those of benches/scale with the word in their name
	@scripts/setup bench
	cargo bench --workspace --bench $(if $(BENCH_ONLY),scale,'*')

chaos: servers     ## half an hour of faults at random with 2,000 routes; MINUTES=5 takes less, GATEPOST_CHAOS_SEED=n repeats one
	GATEPOST_CHAOS_MINUTES=$(or $(MINUTES),30) cargo test --package gatepost --test chaos

fuzz: setup        ## a minute of every fuzz target; FUZZ_SECONDS=1800 takes longer
	scripts/fuzz $(or $(FUZZ_SECONDS),60)

bless: setup      ## rewrites the expected outputs of tests/cases, generated files, and what documents and examples show; read the diff
	GATEPOST_BLESS=1 cargo test --quiet --package gatepost --test cases --test generated --test documents

docs: setup       ## the documentation as a site in target/site, with every link checked; builds mdBook once
	scripts/docs

setup:            ## installs what building needs and this machine lacks
	@scripts/setup

servers:          ## installs and builds the servers that tests run
	@scripts/setup tests
