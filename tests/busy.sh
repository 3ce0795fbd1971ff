#!/bin/bash
# Runs tests with a busy loop on each CPU, some times over, and says which of them failed in which round.
#
#     tests/busy.sh ROUNDS [ARGUMENTS]
#
# ARGUMENTS are those of `cargo nextest run`; without any, all tests that run a switch in real time. Examples:
#
#     tests/busy.sh 5                                          five rounds of these
#     tests/busy.sh 5 --workspace                              of everything
#     tests/busy.sh 3 --workspace --test switch -E 'test(overload)'   of a part
#     HOLDFAST_TEST_ARGS="--lcores 2" tests/busy.sh 3          with two lcores
#     HOLDFAST_STALL=200 tests/busy.sh 3                      each CPU is also taken away for 200 ms, every two seconds
#
# A stall is a loop with real-time priority, so it needs root; it is what a hypervisor does that gives a CPU to others. Loops
# end with this script, by their process numbers, and after HOLDFAST_BUSY_MINUTES (120) in any case.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
'' | *[!0-9]*) sed -n '3,15p' "$0" >&2; exit 2 ;;
esac
rounds=$1
shift
[ $# -gt 0 ] || set -- --workspace --test switch --test tap --test behave --test pair --test api --test monitoring --test top
cargo=${CARGO:-cargo}
seconds=$((${HOLDFAST_BUSY_MINUTES:-120} * 60))
log=$(mktemp)
loops=()
tests=

clean() {
    [ -z "$tests" ] || kill "$tests" 2>/dev/null || true
    # Each is a process group of its own, so that nothing which a loop started is left either.
    for loop in "${loops[@]}"; do kill -- "-$loop" 2>/dev/null || true; done
    rm -f "$log"
}
trap clean EXIT
trap 'exit 130' INT TERM

# Starts a program for each CPU that this script may use, each in a process group of its own.
on_each_cpu() {
    local cpu
    for cpu in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g' | xargs -n 1 | sed 's/\(.*\)-\(.*\)/seq \1 \2/;t;s/^/echo /' | sh); do
        setsid timeout "$seconds" taskset -c "$cpu" "$@" &
        loops+=($!)
    done
}

# What is to be tested is built before the loops begin.
$cargo nextest run --no-run "$@"
on_each_cpu sh -c 'while :; do :; done'
if [ -n "${HOLDFAST_STALL:-}" ]; then
    on_each_cpu chrt -f 10 bash -c 'while :; do
        sleep 2
        end=$((${EPOCHREALTIME/./} + $0 * 1000))
        while [ "${EPOCHREALTIME/./}" -lt "$end" ]; do :; done
    done' "$HOLDFAST_STALL"
fi

bad=0
for round in $(seq "$rounds"); do
    start=$SECONDS
    code=0
    # In the background, so that a signal ends this script at once, and the tests and loops with it.
    CI=true $cargo nextest run --no-fail-fast "$@" >"$log" 2>&1 &
    tests=$!
    wait "$tests" || code=$?
    tests=
    printf 'round %s of %s: %s s, %s\n' "$round" "$rounds" $((SECONDS - start)) "$(grep -E '^ +Summary' "$log" | sed 's/^ *//')"
    [ "$code" = 0 ] && continue
    bad=$((bad + 1))
    # Of a failure its last lines too; without a test that failed, whatever there is.
    grep -E '^ +(FAIL|TIMEOUT|SIG[A-Z]+|LEAK-FAIL|ABORT) ' "$log" | sort -u | sed 's/^ */    /' || tail -20 "$log"
    cp "$log" "${TMPDIR:-/tmp}/holdfast-busy-$$-$round.log"
    printf '    its output: %s\n' "${TMPDIR:-/tmp}/holdfast-busy-$$-$round.log"
done
[ "$bad" = 0 ] || { printf '%s of %s rounds failed\n' "$bad" "$rounds"; exit 1; }
printf 'all %s rounds passed\n' "$rounds"
