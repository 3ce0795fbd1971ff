#!/bin/sh
# Benchmarks: the whole pipeline in cycles a packet, then single decisions. Figures of one run compare with each other;
# those of two machines, or of two days on a shared one, do not.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
$cargo bench --quiet --bench pipeline -- "$@"
$cargo bench --quiet --bench decisions -- --warm-up-time 0.5 --measurement-time 1 --noplot
