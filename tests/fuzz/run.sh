#!/bin/bash
# run.sh [TIME [TARGET ...]]: looks for inputs that panic, overflow, hang, take too much memory or leave it (AddressSanitizer),
# for TIME in all (60s), in all targets of tests/fuzz/targets.rs or the named ones. `make fuzz` calls it. It builds AFL++ and the
# targets in cargo's target directory when they are not there, and goes on from the inputs that it found before.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=0.18.2
seconds=${1:-60}
seconds=${seconds%s}
[[ $seconds =~ ^[0-9]+$ ]] || { echo "error: TIME is a number of seconds, such as 60s" >&2; exit 2; }
shift $(($# > 0))
dir=$(realpath -m "${CARGO_TARGET_DIR:-target}/fuzz")
mkdir -p "$dir"
# `cargo afl` keeps AFL++ below this.
export XDG_DATA_HOME=$dir/data PATH=$dir/tools/bin:$PATH CARGO_TARGET_DIR=$dir
cargo-afl afl --version 2>/dev/null | grep -q "^cargo-afl $version " ||
    CARGO_TARGET_DIR=$dir/tools/build cargo install --quiet --locked --force cargo-afl --version "$version" --root "$dir/tools"
[ -n "$(compgen -G "$XDG_DATA_HOME/afl.rs/*/*/afl/bin/afl-fuzz")" ] || cargo afl config --build >"$dir/afl.log" 2>&1

# Versions are those of tests/fuzz/afl/Cargo.lock, which agree with the workspace's: tests/fuzz/main.rs.
manifest=tests/fuzz/afl/Cargo.toml
host=$(rustc -vV | sed -n 's/^host: //p')
# The runtime of AddressSanitizer is in the stable toolchain, but its option is not stable. `cargo afl` adds checks of overflows.
# With a target named, cargo instruments no build script and no procedural macro.
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address AFL_OPT_LEVEL=1 \
    cargo afl build --quiet --locked --target "$host" --manifest-path "$manifest" || {
    echo "If the lock file needs an update: cp Cargo.lock tests/fuzz/afl/; cargo update --workspace --manifest-path $manifest" >&2
    exit 1
}
program=$dir/$host/debug/holdfast-fuzz
[[ $("$program" read-behind-an-allocation 2>&1 || true) == *"AddressSanitizer: heap-buffer-overflow"* ]] ||
    { echo "FAILED: AddressSanitizer does not report a read behind an allocation" >&2; exit 1; }
[ $# -gt 0 ] || mapfile -t targets < <("$program")
[ $# = 0 ] || targets=("$@")
each=$((seconds / ${#targets[@]}))
[ "$each" -gt 0 ] || each=1

# A busy machine may stop a run for seconds.
export AFL_HANG_TMOUT=20000
# AddressSanitizer reserves terabytes, so that it is the one to bound what is used.
export ASAN_OPTIONS=hard_rss_limit_mb=2048:abort_on_error=1:symbolize=0:detect_leaks=0
export AFL_NO_UI=1 AFL_AUTORESUME=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
found=0
for target in "${targets[@]}"; do
    out=$dir/found/$target
    mkdir -p "$out"
    cargo afl fuzz -V "$each" -t 1000+ -m none -i "tests/fuzz/corpus/$target" -o "$out" -- "$program" "$target" \
        >"$out/log" 2>&1 || { tail -20 "$out/log"; echo "FAILED: $target does not start" >&2; exit 1; }
    awk -F' *: *' -v target="$target" '{ value[$1] = $2 }
        END { printf "%-8s %9d runs, %d inputs, %s of the branches\n", target, value["execs_done"], value["corpus_count"], value["bitmap_cvg"] }' \
        "$out/default/fuzzer_stats"
    for input in "$out"/default/crashes/id:* "$out"/default/hangs/id:*; do
        [ -e "$input" ] || continue
        echo "FOUND: $input; mend it and add it to tests/fuzz/corpus/$target" >&2
        found=1
    done
done
exit "$found"
