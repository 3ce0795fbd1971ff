#!/bin/bash
# asan.sh: AddressSanitizer, with overflow checks, on tests of the code without DPDK: unit tests, tests/pipeline and
# the kept inputs of tests/fuzz. `make asan` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
# The runtime is in the stable toolchain, but the option is not stable.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -C overflow-checks=on" CARGO_PROFILE_DEV_DEBUG=0
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}/asan")
export CARGO_TARGET_DIR PROPTEST_CASES=${PROPTEST_CASES:-32}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# With a target named, cargo instruments no build script and no procedural macro.
tests() { $cargo test --quiet --no-default-features --target x86_64-unknown-linux-gnu "$@"; }

tests --lib --test pipeline --test fuzz --no-run
if tests --lib -- --ignored --exact asan_tests::read_behind_an_allocation_is_reported >"$log" 2>&1 ||
    ! grep -q 'AddressSanitizer: heap-buffer-overflow' "$log"; then
    tail -20 "$log"
    echo "FAILED: AddressSanitizer does not report a read behind an allocation" >&2
    exit 1
fi
# Left out are tests that take minutes and run the same code as others.
tests --lib -- --skip sim:: --skip verify:: --skip top::tests::sizes
tests --test pipeline --test fuzz
