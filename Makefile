# What a person types. Packages that must be there are listed in docker/packages.txt and nowhere else.

CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
RUN_ARGS ?=

.PHONY: run build test lint perf deps deps-test deps-perf clean

## Installs what is missing, builds, and runs the incast on in-process ports.
run: build
	$${CARGO_TARGET_DIR:-target}/release/holdfast run $(RUN_ARGS)

build: deps
	$(CARGO) build --release --bin holdfast

## Installs what the tests need and runs them all, with and without DPDK.
test: deps deps-test
	tests/run.sh

## What reviewers insist on.
lint: deps
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --all-targets --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items

## Benchmarks, and other switches beside this one: perf/README.md.
perf: deps deps-perf
	perf/run.sh

deps:
	@docker/install-packages build run

deps-test:
	@docker/install-packages test

deps-perf:
	@perf/peers/install

clean:
	$(CARGO) clean
