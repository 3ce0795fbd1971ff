#!/bin/sh
# A lossless ToR between containers, for CI: docs/ci.md. Needs a Docker engine and nothing else on the machine: what touches
# network namespaces is done by a container of the switch's image.
#
#   lossless-tor.sh up CONTAINER...     starts the switch, and gives each of these containers (at most four, `--network none`)
#                                       an interface `eth0` with the address 10.48.0.N/24
#   lossless-tor.sh check [CONTAINER...]
#                                       ends the switch; fails if a lossless class lost a frame, or saw none. Fails too if
#                                       one of these containers lost a frame in front of the switch, of whatever class
#   lossless-tor.sh down                removes the switch, whatever state it is in
set -eu

image=${HOLDFAST_IMAGE:-holdfast:latest}
switch=${HOLDFAST_NAME:-holdfast-tor}
# A configuration in place of conf/tap-tor.yaml, by its whole path; its ports are taps called hf0, hf1, ...
config=${HOLDFAST_CONFIG:-}
# RoCE's class in the preset: DSCP 24 to 31.
class=${HOLDFAST_CLASS:-3}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

pid() {
    docker inspect -f '{{.State.Pid}}' "$1"
}

# Runs shell commands where the namespaces of all containers can be seen.
beside() {
    docker run --rm --pid host --network none --user 0 --cap-drop ALL --cap-add SYS_ADMIN --cap-add SYS_PTRACE \
        --cap-add NET_ADMIN --security-opt apparmor=unconfined --entrypoint sh "$image" -euc "$1"
}

# Waits for $1 to succeed, at most 30 s.
wait_for() {
    waited=0
    until sh -c "$1" >/dev/null 2>&1; do
        [ "$waited" -lt 60 ] || return 1
        sleep 0.5
        waited=$((waited + 1))
    done
}

up() {
    [ $# -ge 1 ] && [ $# -le 4 ] || fail "name one to four containers"
    docker run -d --name "$switch" --network none --cap-add NET_ADMIN --cap-add NET_RAW --device /dev/net/tun \
        --stop-timeout 40 ${config:+-v "$config:/etc/holdfast/tap-tor.yaml:ro"} "$image" \
        run /etc/holdfast/tap-tor.yaml --duration 0 --metrics 127.0.0.1:9464 --json --fail-on-loss >/dev/null
    wait_for "docker exec $switch /usr/libexec/holdfast/healthcheck" || {
        docker logs --tail 40 "$switch" >&2
        fail "the switch did not start"
    }
    tor=$(pid "$switch")
    port=0
    for host in "$@"; do
        beside "
            nsenter -t $tor -n ip link set dev hf$port netns $(pid "$host")
            ns() { nsenter -t $(pid "$host") -n \"\$@\"; }
            ns ip link set dev hf$port name eth0
            ns ip link set dev eth0 qlen 4096
            ns ip address add 10.48.0.$((port + 1))/24 dev eth0
            ns ip link set dev lo up
            ns ip link set dev eth0 up"
        port=$((port + 1))
    done
    echo "$switch: $port hosts, 10.48.0.1 to 10.48.0.$port"
}

# The sum of the samples of $1 in the metrics on standard input that have the labels $2.
sum() {
    awk -v name="$1" -v labels="$2" 'index($0, name "{") == 1 && index($0, labels) { sum += $NF } END { printf "%d\n", sum }'
}

check() {
    lost=0
    for host in "$@"; do
        here=$(docker exec "$host" cat /sys/class/net/eth0/statistics/tx_dropped)
        [ "$here" = 0 ] || echo "$host: $here frames lost in its interface, in front of the switch"
        lost=$((lost + here))
    done
    metrics=$(docker exec "$switch" /usr/libexec/holdfast/healthcheck /metrics)
    received=$(printf '%s\n' "$metrics" | sum holdfast_port_received_frames_total "tc=\"$class\"")
    dropped=$(printf '%s\n' "$metrics" | sum holdfast_port_dropped_frames_total "tc=\"$class\"")
    docker stop -t 40 "$switch" >/dev/null
    code=$(docker inspect -f '{{.State.ExitCode}}' "$switch")
    echo "class $class: $received frames received, $dropped dropped; the switch ended with $code"
    [ "$code" = 0 ] || { docker logs --tail 40 "$switch" >&2; fail "the switch did not keep class $class lossless, or did not run"; }
    [ "$received" -gt 0 ] || fail "no frame of class $class: mark the traffic with DSCP 24 to 31"
    [ "$dropped" = 0 ] || { docker logs --tail 40 "$switch" >&2; fail "$dropped frames of class $class were dropped"; }
    [ "$lost" = 0 ] || fail "$lost frames never came to the switch, which was not polled in time: give it a CPU of its own"
}

case "${1:-}" in
up) shift; up "$@" ;;
check) shift; check "$@" ;;
down) docker rm -f "$switch" >/dev/null 2>&1 || true ;;
*) sed -n '2,11p' "$0" >&2; exit 2 ;;
esac
