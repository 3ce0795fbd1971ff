#!/bin/bash
# A release, tried: built twice in different directories and compared to the byte; the program in a root directory that
# has nothing else; the archives, the bill of materials and the sums. `make release-test` calls this; on two CPUs it takes
# some twenty minutes, most of them two builds. With HOLDFAST_RELEASE a program that was built elsewhere, such as in the
# container of docker/Dockerfile, takes the place of the second build.
#
# The commands of docs/releases.md, packaging/README.md and docs/install.md are run here.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

[ -z "$(git status --porcelain)" ] || fail "uncommitted changes: the two builds would differ"
say "the first build"
packaging/build-release "$work/one"

say "the second build, in another directory"
git clone -q . "$work/clone"
if [ -n "${HOLDFAST_RELEASE:-}" ]; then
    (cd "$work/clone" && HOLDFAST_BINARY=$HOLDFAST_RELEASE packaging/build-release "$work/two")
else
    (cd "$work/clone" && CARGO_TARGET_DIR=$work/target packaging/build-release "$work/two")
fi
cmp "$work/one/SHA256SUMS" "$work/two/SHA256SUMS" || { diff "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"; fail "they differ"; }
cat "$work/one/SHA256SUMS"

say "the sums, the archive and the bill of materials"
(cd "$work/one" && sha256sum --check --quiet SHA256SUMS)
tar -C "$work" -xzf "$work"/one/holdfast-*-linux-x86_64.tar.gz
program=$(echo "$work"/holdfast-*-linux-x86_64/holdfast)
"$program" --version | tee "$work/version"
grep -qx "commit: $(git describe --tags --always --dirty)" "$work/version" || fail "it names another commit"
grep -q '^DPDK: .*, static$' "$work/version" || fail "DPDK is not static"
! readelf -d "$program" | grep -q NEEDED || fail "it needs shared libraries"
grep -q '"bomFormat": "CycloneDX"' "$work"/one/holdfast-*.cdx.json
grep -q 'pkg:deb/debian/libdpdk-dev@' "$work"/one/holdfast-*.cdx.json
for file in copyright crates.txt sources debian/libc6-dev.txt common-licenses/LGPL-2.1; do
    [ -s "$(dirname "$program")/notices/$file" ] || fail "the archive has no notices/$file"
done
dpkg-deb -f "$work"/one/holdfast_*.deb Depends | grep -qx adduser || fail "the package depends on libraries"

say "the program alone in a root directory"
mkdir -p "$work/root/proc" "$work/root/sys" "$work/root/run" "$work/root/dev"
cp "$program" "$work/root/holdfast"
unshare --mount --net sh -euc '
    mount --bind /proc "$0/proc"; mount --bind /sys "$0/sys"; mount --bind /dev "$0/dev"
    ip link set lo up
    chroot "$0" /holdfast run --duration 2s --metrics off --fail-on-loss' "$work/root" >"$work/incast" || { tail "$work/incast"; fail "the incast"; }
grep -x 'lossless: KEPT' "$work/incast"
say "done"
