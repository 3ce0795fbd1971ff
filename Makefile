# What a person types. Packages that must be there are listed in docker/packages.txt and nowhere else.

CARGO ?= cargo
RUN_ARGS ?=
TIME ?= 60s
RELEASE = $${CARGO_TARGET_DIR:-target}/release/holdfast

.PHONY: run build ready announce test check-targets test-debian13 test-nic test-rdma test-sweep fuzz docker-test deb release release-test lint perf deps deps-test deps-perf deps-docker deps-guest simulator clean

## Installs what is missing, builds, and runs the incast on in-process ports.
run: build
	$(RELEASE) run $(RUN_ARGS)

build: ready announce deps
	$(CARGO) build --release --bin holdfast

ready:
	@command -v $(firstword $(CARGO)) >/dev/null || { echo "error: there is no $(firstword $(CARGO)); install Rust 1.90 or newer (https://rustup.rs), and run make again" >&2; exit 1; }

# A fresh machine gets this, and waits so long.
announce: ready
	@[ -e "$(RELEASE)" ] || echo "The first time takes two steps: some 320 packages of Debian with DPDK, as root (170 MB to fetch, 1 GB of disk, some two minutes; fewer if some are there), and a build (four to eight minutes on two cores)."

## Installs what the tests need and runs them all, with and without DPDK.
test: deps deps-test
	tests/run.sh

## The tests on Debian 13 with its DPDK, in a root directory that debootstrap makes; as root: tests/README.md.
test-debian13: ready
	docker/install-packages debian
	tests/debian/run.sh trixie

## What needs no DPDK, checked by the compiler for arm64 and macOS. Two minutes.
check-targets: ready
	tests/targets.sh

## The switch on NICs that QEMU emulates, with Debian's kernel, without KVM and without root: docs/nics.md.
test-nic: deps deps-guest
	$(CARGO) test --workspace --test nic -- --ignored --nocapture --test-threads=1 $(NIC_ARGS)

## RDMA between virtual machines through the switch, without KVM: docs/guests.md. Some three minutes beside the build.
test-rdma: deps
	docker/install-packages guest rdma
	$(CARGO) test --workspace --test rdma -- --ignored --nocapture

## Shards of a sweep by GNU parallel and Slurm, and the job for Kubernetes: docs/sweeps.md. Two minutes beside the build.
test-sweep: deps
	docker/install-packages sweep
	$(CARGO) build --no-default-features --bin holdfast
	tests/sweep/run.sh $${CARGO_TARGET_DIR:-target}/debug/holdfast

## AFL++ for TIME in all on eight kinds of input: tests/fuzz/README.md. Its first build takes minutes.
fuzz:
	tests/fuzz/run.sh $(TIME)

## The image, docker/compose.yaml, the recipe for CI, labs and the Debian package, tried: docs/docker.md. Some ten minutes.
docker-test: deps deps-docker
	tests/docker/run.sh

## A Debian package in target/.
deb: build deps-test
	packaging/build-deb $(RELEASE) $${CARGO_TARGET_DIR:-target}

## A release in dist/: the static program, its Debian package, bill of materials and sums: docs/releases.md. One build.
release: deps deps-test
	packaging/build-release dist

## The release, built twice and compared, and tried in an empty root directory, as root. Some twenty minutes.
release-test: deps deps-test
	tests/release/run.sh

## The simulator, built by a profile of simulations, for long runs: docs/simulation.md. It takes two builds.
simulator: deps
	perf/build-simulator

## What reviewers insist on.
lint: deps
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace --exclude dpdk-sys --exclude holdfast-dpdk --exclude holdfast-control --all-targets --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items

## Benchmarks, and other switches beside this one: perf/README.md.
perf: deps deps-perf
	perf/run.sh

deps: ready
	@docker/install-packages build run

deps-test:
	@docker/install-packages test watch

deps-guest:
	@docker/install-packages guest

# Whoever has an engine keeps it.
deps-docker:
	@docker info >/dev/null 2>&1 || docker/install-packages docker

deps-perf:
	@docker/install-packages perf

clean:
	$(CARGO) clean
