#!/bin/bash
# run.sh SUITE [STAGE ...]: builds and tests this tree on another Debian, in a root directory that debootstrap makes once
# in cargo's target directory. Needs root. Says what each stage took. Stages, all by default:
#   build     the program
#   incast    `holdfast run`, as `make run` does
#   units     of all crates, and tests that run no switch
#   switches  tests/switch, tests/tap and tests/behave
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:?usage: run.sh SUITE [STAGE ...]}
shift
stages=("$@")
[ $# -gt 0 ] || stages=(build incast units switches)
[ "$(id -u)" = 0 ] || { echo "error: chroot and mounts need root; run it by sudo" >&2; exit 1; }
kept=${CARGO_TARGET_DIR:-target}/debian/$suite
began=$SECONDS
took() { printf '== %s on %s: %s s\n' "$1" "$suite" $((SECONDS - began)); began=$SECONDS; }
inside() { tests/debian/in "$kept/root" "$kept/target" "$@"; }
tests() { inside cargo nextest run --workspace --no-fail-fast "$@"; }

mkdir -p "$kept"
kinds=(build run)
case " ${stages[*]} " in
    *" units "* | *" switches "*)
        kinds+=(test)
        command -v cargo-nextest >/dev/null || { echo "error: tests need cargo-nextest" >&2; exit 1; } ;;
esac
tests/debian/root "$suite" "$kept/root" "${kinds[@]}"
took root
for stage in "${stages[@]}"; do
    case $stage in
        # With a test, so that dependencies have the features that all tests need, and are built once.
        build) inside cargo build --workspace --bin holdfast --test links ;;
        incast)
            inside /target/debug/holdfast --version
            inside /target/debug/holdfast run | tee "$kept/incast"
            grep -q KEPT "$kept/incast" ;;
        units) tests -E 'not binary(/^(switch|tap|behave|pair|api|monitoring|top|nic|rdma|architecture|loom.*)$/)' ;;
        switches) tests -E 'binary(/^(switch|tap|behave)$/)' ;;
        *) echo "error: there is no stage $stage" >&2; exit 2 ;;
    esac
    took "$stage"
done
