#!/bin/bash
# The program without DPDK, checked by the compiler for systems that this machine is not. Nothing is linked or run.
# `make check-targets` calls this. It takes the standard library of each target by rustup, or says why it did not.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
targets='aarch64-unknown-linux-gnu aarch64-apple-darwin'

has_library() { [ -n "$(find "$(rustc --print target-libdir --target "$1")" -name 'libstd-*' 2>/dev/null)" ]; }

for target in $targets; do
    if ! has_library "$target" && ! rustup target add "$target"; then
        echo "skipped: $target: no standard library (rustup target add $target)"
        continue
    fi
    # A warning is an error, as in the lints of this system.
    RUSTFLAGS="-D warnings" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/targets $cargo check --quiet --target "$target" \
        --no-default-features --workspace --exclude dpdk-sys --exclude holdfast-dpdk --exclude holdfast-control
    echo "checked: $target"
done
