#!/bin/sh
# Hosts for the switch of tap-tor.yaml: one network namespace for each tap.
#
#   holdfast run conf/tap-tor.yaml     in one terminal, as root
#   conf/tap-tor.sh up                 in another: makes the namespaces and gives each its tap and its addresses
#   conf/tap-tor.sh exec 0 ping 10.48.0.2
#   conf/tap-tor.sh down               gives the taps back and removes the namespaces
#
# `up` and `down` may be repeated; `up` again after the switch was restarted gives the hosts its new taps.
set -eu

hosts=${HOLDFAST_HOSTS:-4}                 # how many
prefix=${HOLDFAST_PREFIX:-holdfast-h}      # namespaces are called holdfast-h0, ...
tap=${HOLDFAST_TAP:-hf}                    # taps are called hf0, ..., as in tap-tor.yaml
patience=${HOLDFAST_WAIT:-10}              # seconds that `up` waits for the switch

# Frames that a tap holds for the switch. The kernel's 500 are gone in a few milliseconds of TCP.
queue=4096

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

usage() {
    echo "usage: $0 up | down | exec HOST COMMAND..." >&2
    exit 2
}

# There is no point in half of it without the rest.
check_machine() {
    command -v ip >/dev/null || fail "there is no \`ip\`; install iproute2"
    [ "$(id -u)" = 0 ] || fail "only root can make network namespaces; run it with sudo"
}

has_namespace() {
    ip netns list | grep -q "^$1\( \|\$\)"
}

# Whether the namespace $1 has the tap $2.
has_tap() {
    has_namespace "$1" && ip -n "$1" link show dev "$2" >/dev/null 2>&1
}

# Whether the tap $1 is up, as DPDK leaves it when it has made it: moved before, it would be made anew or lack its queues.
is_made() {
    ip link show dev "$1" up 2>/dev/null | grep -q .
}

# Moves the tap $1 to the namespace $2 as soon as the switch has made it.
take_tap() {
    waited=0
    until is_made "$1" && ip link set dev "$1" netns "$2" 2>/dev/null; do
        if [ "$waited" -ge "$((patience * 10))" ]; then
            fail "there is no interface $1; start the switch first: holdfast run conf/tap-tor.yaml"
        fi
        sleep 0.1
        waited=$((waited + 1))
    done
}

# Host $1 gets its tap.
up() {
    namespace=$prefix$1 interface=$tap$1 address=$(($1 + 1))
    if has_tap "$namespace" "$interface"; then
        return
    fi
    if ! has_namespace "$namespace"; then
        ip netns add "$namespace"
        made="$made $namespace"
    fi
    take_tap "$interface" "$namespace"
    # A switch's neighbour needs no duplicate address detection to be sure of these.
    ip -n "$namespace" address add "10.48.0.$address/24" dev "$interface"
    ip -n "$namespace" address add "fd48::$address/64" dev "$interface" nodad
    ip -n "$namespace" link set dev "$interface" txqueuelen "$queue"
    ip -n "$namespace" link set dev lo up
    # Moved to another namespace a tap arrives down. Its offloads are off: DPDK's tap asks for none.
    ip -n "$namespace" link set dev "$interface" up
}

# Host $1 gives its tap back to where this runs, so that the switch keeps it, and goes.
down() {
    namespace=$prefix$1 interface=$tap$1
    if has_tap "$namespace" "$interface"; then
        ip -n "$namespace" link set dev "$interface" down
        # Up again, or the next `up` would wait for the switch to make it.
        ip -n "$namespace" link set dev "$interface" netns $$ && ip link set dev "$interface" up || true
    fi
    if has_namespace "$namespace"; then
        ip netns delete "$namespace"
    fi
}

each() {
    host=0
    while [ "$host" -lt "$hosts" ]; do
        "$1" "$host"
        host=$((host + 1))
    done
}

# What was made goes again if not all of it could be.
undo() {
    code=$?
    if [ "$code" != 0 ]; then
        for namespace in $made; do
            interface=$tap${namespace#"$prefix"}
            ip -n "$namespace" link set dev "$interface" netns $$ 2>/dev/null && ip link set dev "$interface" up || true
            ip netns delete "$namespace"
        done
    fi
    exit "$code"
}

say_what_to_try() {
    cat <<END
$hosts hosts: 10.48.0.1 to 10.48.0.$hosts and fd48::1 to fd48::$hosts. Try:
  $0 exec 0 ping -c 3 10.48.0.2
  $0 exec 0 ping -c 3 fd48::3
  $0 exec 1 iperf3 -s -D -1 && $0 exec 0 iperf3 -c 10.48.0.2
  $0 exec 0 ip -s link show dev ${tap}0      (TX dropped: what the switch did not fetch in time)
  $0 down
END
}

case "${1:-}" in
up)
    [ $# = 1 ] || usage
    check_machine
    made=
    trap undo EXIT
    trap 'exit 130' INT TERM
    each up
    say_what_to_try
    ;;
down)
    [ $# = 1 ] || usage
    check_machine
    each down
    ;;
exec)
    [ $# -ge 3 ] || usage
    check_machine
    namespace=$prefix$2
    shift 2
    has_namespace "$namespace" || fail "there is no host $namespace; make the hosts with \`$0 up\`"
    exec ip netns exec "$namespace" "$@"
    ;;
*)
    usage
    ;;
esac
