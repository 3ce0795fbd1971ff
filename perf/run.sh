#!/bin/sh
# Benchmarks: the whole pipeline in cycles a packet, two lcores beside one, a congested switch, how fast PFC acts, other
# switches beside this one, then single decisions. Figures of one run compare with each other; those of two machines, or of
# two days on a shared one, do not.
# Arguments are for the peers: `perf/run.sh --quick`.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
$cargo bench --quiet --bench pipeline
# All classes in turn, large frames, both, and an operator's defaults, each to be compared with the row of 1,024 flows.
for load in "--classes 8" "--len 1500" "--classes 8 --len 1500" "--operator"; do
    # shellcheck disable=SC2086
    $cargo bench --quiet --bench pipeline -- --flows 1024 --posted 1024 $load
done
$cargo bench --quiet --bench pipeline -- --kind routed
$cargo bench --quiet --bench pipeline -- --kind routed-cold
$cargo bench --quiet --bench cores
$cargo bench --quiet --bench load -- --json
$cargo bench --quiet --bench reaction -- --json
$cargo bench --quiet --bench scrape
# Tables of the internet's size take 2 GiB, which not every machine has.
$cargo bench --quiet --bench fib || $cargo bench --quiet --bench fib -- --quick
# A peer that is missing has been named, and the others were measured: no reason to leave out the rest.
# Medians of nine rounds: half an hour.
$cargo bench --quiet --bench peers -- --rounds "${ROUNDS:-9}" "$@" || echo "perf/run.sh: not all peers were measured; the reasons are above" >&2
$cargo bench --quiet --bench decisions -- --warm-up-time 0.5 --measurement-time 1 --noplot
