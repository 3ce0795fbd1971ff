#!/bin/sh
# build.sh DIRECTORY: builds into DIRECTORY (by default target/perf) the generator, libhfgen.so, and DPDK's examples l2fwd
# and l3fwd. Debian ships neither headers for drivers nor the examples; they come from its source package of the very
# version that is installed. apt checks signatures and hashes. What is there already is not made again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${CARGO_TARGET_DIR:-$here/../../target}/perf}
mkdir -p "$out"
out=$(cd "$out" && pwd)

fail() { echo "error: $*" >&2; exit 1; }

pkg-config --exists libdpdk || fail "libdpdk is missing; \`docker/install-packages build\` installs it"
version=$(dpkg-query -W -f '${source:Version}' libdpdk-dev 2>/dev/null) ||
    fail "libdpdk is not Debian's, so its source package would not fit; install libdpdk-dev"

# The Debian mirrors this machine has already, as sources of source packages, with lists of their own: nothing of the
# machine's is changed.
fetch() {
    apt="$out/apt"
    mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1)
    mirror=$(echo "${mirror:-http://deb.debian.org/debian}" | tr -d ' ')
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    {
        echo "deb-src [signed-by=$key] $mirror $release main"
        echo "deb-src [signed-by=$key] $mirror $release-updates main"
        echo "deb-src [signed-by=$key] http://deb.debian.org/debian-security $release-security main"
    } > "$apt/sources.list"
    options="-q -o Dir::Etc::SourceList=$apt/sources.list -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists=$apt/lists -o Dir::Cache=$apt/cache -o APT::Sandbox::User="
    # shellcheck disable=SC2086 # a list of options
    (cd "$apt" && apt-get $options update && apt-get $options source --download-only "dpdk=$version") >"$apt/log" 2>&1 ||
        fail "the source package dpdk=$version cannot be had from $mirror; $apt/log says why"
    rm -rf "$out/dpdk" && mkdir "$out/dpdk"
    tar -xJf "$apt"/dpdk_*.orig.tar.xz -C "$out/dpdk" --strip-components=1 --wildcards \
        '*/lib/ethdev/ethdev_*.h' '*/lib/eal/include/dev_driver.h' '*/lib/eal/include/bus_driver.h' \
        '*/drivers/bus/vdev/*.h' '*/drivers/bus/pci/*.h' '*/drivers/bus/vmbus/*.h' \
        '*/examples/l2fwd/*' '*/examples/l3fwd/*' '*/examples/common/*'
    rm -rf "$apt"
    echo "$version" > "$out/dpdk/version"
}

# VPP needs the headers of the other buses (perf/README.md).
if [ "$(cat "$out/dpdk/version" 2>/dev/null)" != "$version" ] || [ ! -d "$out/dpdk/drivers/bus/vmbus" ]; then
    fetch
fi
stamp=$(cat "$here"/*.c "$here"/*.h "$here/build.sh" "$out/dpdk/version" | sha256sum)
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ] && [ -e "$out/libhfgen.so" ] && [ -e "$out/l2fwd" ] && [ -e "$out/l3fwd" ]; then
    exit 0
fi

dpdk="$out/dpdk"
flags="-O3 -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk)"
libs=$(pkg-config --libs libdpdk)
cc=${CC:-cc}
# shellcheck disable=SC2086 # lists of flags
{
    $cc -shared -fPIC -Wall -Wextra -DALLOW_INTERNAL_API $flags -I"$dpdk/lib/ethdev" -isystem "$dpdk/drivers/bus/vdev" \
        -isystem "$dpdk/lib/eal/include" -o "$out/libhfgen.so" "$here/generator.c" $libs -lrte_bus_vdev
    # Its pool is sized from this constant, and must hold what is posted ahead; nothing else hangs on it.
    sed 's/^#define RX_DESC_DEFAULT 1024$/#define RX_DESC_DEFAULT 16384/' "$dpdk/examples/l2fwd/main.c" >"$dpdk/l2fwd.c"
    $cc -w $flags "$dpdk/l2fwd.c" -o "$out/l2fwd" $libs
    # The two *_parse.c are included by others.
    $cc -w $flags -I"$dpdk/examples/common" $(ls "$dpdk"/examples/l3fwd/*.c | grep -v _parse.c) -o "$out/l3fwd" $libs
}
echo "$stamp" > "$out/stamp"
