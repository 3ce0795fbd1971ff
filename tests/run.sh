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
$cargo test --no-default-features --lib --bins --test pipeline --test config -- --quiet

say "examples in the documentation"
$cargo test --workspace --doc -- --quiet

say "format and lints"
$cargo fmt --all --check
$cargo clippy --workspace --all-targets --quiet -- -D warnings
$cargo clippy --all-targets --no-default-features --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" $cargo doc --workspace --no-deps --quiet

say "everything"
if $cargo nextest --version >/dev/null 2>&1; then
    $cargo nextest run --workspace --no-fail-fast
else
    $cargo test --workspace -- --test-threads=1
fi
