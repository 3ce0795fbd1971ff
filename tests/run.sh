#!/bin/sh
# All tests, with and without DPDK. `make test` calls this once the packages are there.
#
# A DPDK environment starts once per process and dataplane lcores poll without rest, so tests that run a switch go one
# at a time: nextest gives each its process and .config/nextest.toml its turn; without nextest, one thread does.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

say() { printf '\n== %s\n' "$*"; }

say "the pure rooms, without libdpdk"
$cargo test --no-default-features --lib --bins --test pipeline --test config --test sim_docs --test doctor \
    --test generated --test packaging -- --quiet

say "examples in the documentation"
$cargo test --workspace --doc -- --quiet

say "format and lints"
$cargo fmt --all --check
$cargo clippy --workspace --all-targets --quiet -- -D warnings
$cargo clippy --all-targets --no-default-features --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" $cargo doc --workspace --no-deps --quiet

say "everything"
if $cargo nextest --version >/dev/null 2>&1; then
    nextest=1
    $cargo nextest run --workspace --no-fail-fast
else
    nextest=
    $cargo test --workspace -- --test-threads=1
fi

# As shipped, so a release build; a benchmark target, since those are built with that profile.
say "instructions of the packet path"
$cargo bench --no-default-features --bench instructions

# Ignored without optimisation. The profile is the benchmark's, so that the library is built already.
say "speed of the simulator"
$cargo test --profile bench --no-default-features --test sim_docs -- --quiet speed

# Ten minutes, most of them a release build, are not for every run.
if [ "${HOLDFAST_DOCKER_TEST:-}" ]; then
    say "the image, the recipe for CI and the Debian package"
    tests/docker/run.sh
else
    say "the image is not tried here, since its build takes ten minutes: \`make docker-test\`, or HOLDFAST_DOCKER_TEST=1"
fi

# The black-box tests once more with two dataplane lcores. Left out is what ends before any lcore starts or hangs on none:
#   refusals, outputs   a configuration or machine that will not do, and output that goes nowhere
#   script              conf/tap-tor.sh, whose arguments and namespaces are the subject
#   simulated           a comparison with a scenario of one lcore: two that are late at different times fill groups otherwise
# Two lcores that never sleep need two CPUs.
if [ "$(nproc)" -lt 2 ]; then
    say "one CPU: nothing is run with two lcores"
    exit
fi
say "the switch with two lcores"
export HOLDFAST_TEST_ARGS="--lcores 2"
if [ "$nextest" ]; then
    $cargo nextest run --no-fail-fast --test switch --test tap --test behave --test pair \
        -E 'not test(/^(refusals|outputs|script|simulated)::/)'
else
    $cargo test --test switch --test tap --test behave --test pair -- --test-threads=1 \
        --skip refusals:: --skip outputs:: --skip script:: --skip simulated::
fi
