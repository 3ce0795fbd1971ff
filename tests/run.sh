#!/bin/bash
# All tests, with and without DPDK. `make test` calls this once the packages are there. It says what each stage took.
#
# Each configuration is built once: with DPDK for the tests, and without DPDK for counts of instructions. What
# needs no libdpdk is also linted without it, so that the layering cannot rot. Each test runs once, but for those in which
# dataplane lcores matter: they run with two lcores too.
#
# A DPDK environment starts once per process and dataplane lcores poll without rest, so tests that run a switch go one
# at a time: nextest gives each its process and .config/nextest.toml its turn; without nextest, one thread does.
#
# The commands of CONTRIBUTING.md and tests/README.md are run here.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
log=
shown=
build=
names=()
times=()
began=0

# Ends the stage before and begins another. Without a name it only ends it.
stage() {
    [ ${#names[@]} -le ${#times[@]} ] || times+=($((SECONDS - began)))
    began=$SECONDS
    [ -n "${1:-}" ] || return 0
    names+=("$1")
    printf '\n== %s (%s s until here)\n' "$1" "$SECONDS"
}

table() {
    local code=$? stage
    [ -z "$build" ] || kill -- "-$build" 2>/dev/null || true
    stage ''
    printf '\nseconds  stage\n'
    for stage in "${!names[@]}"; do printf '%7s  %s\n' "${times[$stage]}" "${names[$stage]}"; done
    printf '%7s  all\n' "$SECONDS"
    [ "$code" = 0 ] || printf 'FAILED: %s\n' "${names[-1]}"
    # Last of all, since of a long output often only the end is kept.
    [ "$code" = 0 ] || cat "$log" "$shown" | reasons
    rm -f "$log" "$shown"
    exit "$code"
}

# Of the output of tests: the binary and the name of each that failed, by nextest or by cargo.
failures() {
    sed -nE 's/^ *Running .*\(.*\/([a-z_0-9]+)-[0-9a-f]+\)$/binary \1/p
        s/^test (.*) \.\.\. FAILED$/test \1/p
        s/^ *(FAIL|TIMEOUT|ABORT|SIG[A-Z]+|LEAK-FAIL|FAIL \+ LEAK|XFAIL|ABORT SIG [0-9]+) \[[^]]*\] (\( *[0-9]+\/[0-9]+\) )?([^ ]+) ([^ ]+)$/whole \3 \4/p' |
        awk '$1 == "binary" { binary = $2 } $1 == "test" { print binary, $2 } $1 == "whole" { print $2, $3 }' | sort -u
}

# How many failed, as nextest or the binaries say themselves.
failed_count() {
    sed -nE 's/^ *Summary .* tests? run: (.*)$/\1/p; s/^test result: FAILED\. [0-9]+ passed; ([0-9]+) failed;.*/\1 failed/p' |
        tr ',' '\n' | awk '/ (failed|timed out|exec failed)/ { sum += $1 } END { print sum + 0 }'
}

# Which tests failed and what they said, in few lines.
reasons() {
    local text
    text=$(cat)
    failures <<<"$text" | head -10
    grep -A 2 -h 'panicked at' <<<"$text" | cut -c 1-200 | tail -12 || true
}
# Features of dependencies are those of all selected packages together, so that each of these selects the whole workspace:
# otherwise dependencies, and all that stands on them, would be built once more.
tests() { $cargo test --workspace --no-fail-fast "$@"; }
nextest() { $cargo nextest run --workspace "$@"; }

# Without DPDK, the packet path as shipped: another directory of artifacts, so that cargo builds it beside the other
# configuration.
counts() { $cargo bench --profile counts --no-default-features --bench instructions "$@"; }

# Test binaries that run a switch begin with this line; all others are pure.
of_switches() { names_of "$(grep -l '^#!\[cfg(feature = "dpdk")\]' tests/*/main.rs tests/*.rs)"; }
pure() { names_of "$(grep -L '^#!\[cfg(feature = "dpdk")\]' tests/*/main.rs tests/*.rs tests/loom/tests/*.rs crates/*/tests/*/main.rs)"; }
names_of() { sed -E 's,^(crates/[a-z]+/)?tests/(loom/tests/)?,--test ,; s,/main,,; s,\.rs$,,' <<<"$1"; }

has_nextest=
if $cargo nextest --version >/dev/null 2>&1; then has_nextest=1; fi

# Black-box tests in which no frame, cell or order crosses between dataplane lcores: one lcore is enough for them. Either they
# end before any lcore starts, or go the same way whichever lcore does it:
#   switch: refusals, outputs, notify, scraping, unprivileged, unread, threads, quiet
#   switch: simulated   a comparison with a scenario of one lcore: two that are late at different times fill groups otherwise
#   tap:    script, pause_received, upgrade   a script of one's own, a port's own timers, and starts and ends
#   tap:    claims, nic_check, services, senders of one port, killed daemons, BFD   what the control plane and daemons do
#   behave: maps, mapped, speeds, flooding   the class of a frame, and a port's own timers
once='refusals:: outputs:: notify:: scraping:: unprivileged:: unread:: threads:: quiet_tests:: simulated:: script:: pause_received::
upgrade:: claims:: nic_check:: services:: linux::senders_of_one_port leaf_spine::killed leaf_spine::bfd maps:: mapped:: speeds:: flooding::'
once=$(tr '\n' ' ' <<<"$once")
once=${once% }
prefix="test(/^(${once// /|})/)"

# Two lcores that never sleep need two CPUs. Their ports are at one lcore and at both, so tests with real hosts, which take
# the longest, run with two lcores only. Tests of the switch alone and of behaviour run both ways.
with_two=
if [ "$(nproc)" -ge 2 ]; then with_two=1; fi
hosts='tap pair'

# Tests that run a switch with one lcore, which .config/nextest.toml takes one at a time.
of_group=$(sed -n "s/^filter = '\(.*\)'$/\1/p" .config/nextest.toml)
switches() {
    local code=0 name rest=
    if [ "$has_nextest" ]; then
        [ -z "$with_two" ] || rest=" and not (binary(/^(${hosts// /|})$/) and not $prefix)"
        nextest --no-fail-fast -E "($of_group)$rest"
        return
    fi
    tests --lib -- --test-threads=1 dpdk:: || code=1
    for name in $(of_switches); do
        [ "$name" != --test ] || continue
        [[ $with_two && " $hosts " == *" $name "* ]] || rest+=" --test $name"
    done
    # shellcheck disable=SC2086
    tests $rest -- --test-threads=1 || code=1
    # shellcheck disable=SC2046,SC2086
    [ -z "$with_two" ] || tests $(printf -- '--test %s ' $hosts) -- --test-threads=1 $once || code=1
    return "$code"
}

# All that may differ with two lcores.
two() {
    local boxes code=0
    # shellcheck disable=SC2086
    boxes="--test switch --test behave $(printf -- '--test %s ' $hosts)"
    if [ "$has_nextest" ]; then
        # shellcheck disable=SC2086
        nextest --no-fail-fast $boxes -E "not $prefix" || code=1
    else
        # shellcheck disable=SC2046,SC2086
        tests $boxes -- --test-threads=1 $(printf -- '--skip %s ' $once) || code=1
    fi
    return "$code"
}

# A test of a switch looks at a clock while others compute. If it failed, it is run once more alone, and that judges.
# A binary that ended without its result has failed for good: nobody knows which tests it left out. Likewise if fewer
# names are found than failures are counted.
alone() {
    local found id test count=0
    found=$(failures <"$shown")
    [ "$(failed_count <"$shown")" = "$(wc -l <<<"$found")" ] || exit 1
    [ "$has_nextest" ] || [ "$(grep -c '^ *Running ' "$shown")" = "$(grep -c '^test result: ' "$shown")" ] || exit 1
    : >"$log"
    : >"$shown"
    while read -r id test; do
        [ -n "$test" ] || exit 1
        printf '\n== once more, alone: %s %s\n' "$id" "$test"
        one "$id" "$test" </dev/null 2>&1 | tee "$log" | tee -a "$shown"
        # A name that matches no test is no success.
        grep -qE '(1 test run: 1 passed|test result: ok\. 1 passed)' "$log"
        count=$((count + 1))
        [ "$count" -le 5 ] || { echo "more than five tests failed: not by chance"; exit 1; }
    done <<<"$found"
    names[-1]+=" ($count passed alone only: ${found//$'\n'/, })"
}

one() {
    if [ "$has_nextest" ]; then
        nextest -E "binary_id(=$1) & test(=$2)"
    elif [ -e "tests/$1.rs" ] || [ -e "tests/$1/main.rs" ]; then
        tests --test "$1" -- --exact "$2"
    else
        tests --lib -- --exact "$2"
    fi
}

# All others, and the counts of instructions.
beside() {
    if [ "$has_nextest" ]; then
        nextest --no-fail-fast -E "not ($of_group)"
    else
        # shellcheck disable=SC2046
        tests --lib --bins $(pure) -- --quiet --skip dpdk::
    fi
    tests --doc -- --quiet
    counts
}

if [ "${1:-}" = beside ]; then
    beside
    exit
fi
log=$(mktemp)
shown=$(mktemp)
trap table EXIT
trap 'exit 130' INT TERM

stage "format"
$cargo fmt --all --check

stage "lints and documentation"
# A process group of its own, so that it ends with this script.
set -m
counts --no-run >"$log" 2>&1 &
build=$!
set +m
$cargo clippy --workspace --all-targets --quiet -- -D warnings
$cargo clippy --workspace --exclude dpdk-sys --exclude holdfast-dpdk --exclude holdfast-control --all-targets --no-default-features --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" $cargo doc --workspace --no-deps --quiet

stage "build of the tests"
if [ "$has_nextest" ]; then nextest --no-run; else tests --no-run; fi

# Nothing is built while tests look at the clock.
stage "rest of the build for counts"
wait "$build" || { build=; cat "$log"; exit 1; }
build=

# Tests in real time wait more than they compute. What needs no clock runs beside them, and only where nothing else wants
# to run, as an idle task of the kernel's scheduler.
stage "all tests"
set -m
chrt --idle 0 tests/run.sh beside >"$log" 2>&1 &
build=$!
set +m
failed=
switches 2>&1 | tee "$shown" || failed=1
wait "$build" || { cat "$log"; exit 1; }
build=
cat "$log"
[ -z "$failed" ] || alone

if [ -z "$with_two" ]; then
    echo "one CPU: nothing is run with two lcores"
else
    stage "the switch with two lcores"
    export HOLDFAST_TEST_ARGS="--lcores 2"
    two 2>&1 | tee "$shown" || alone
fi

# Ten minutes, most of them a release build, are not for every run.
if [ "${HOLDFAST_DOCKER_TEST:-}" ]; then
    stage "the image, the recipe for CI and the Debian package"
    tests/docker/run.sh
else
    printf '\nThe image is not tried here, since its build takes ten minutes: `make docker-test`, or HOLDFAST_DOCKER_TEST=1\n'
fi
