#!/bin/sh
# A routed fabric on one machine: two leaves, two spines, a host behind each leaf, and FRR at each switch. As root:
#
#   conf/leaf-spine.sh up                     starts everything, and returns when the hosts reach each other
#   conf/leaf-spine.sh exec h1 ping 10.1.2.2
#   conf/leaf-spine.sh show leaf1 routes      `holdfast show` of a switch
#   conf/leaf-spine.sh vtysh leaf1 -c 'show bgp summary'
#   conf/leaf-spine.sh cut 1 2                cuts the link from leaf 1 to spine 2; `join 1 2` mends it
#   conf/leaf-spine.sh silence 1 2            stops its frames although the link stays up; `join 1 2` mends it
#   conf/leaf-spine.sh down
#
# `up` again starts whatever has ended. A switch is a process in the namespace "leaf1-ports", where its ports are ends of
# veth pairs. Its addresses and its daemons are in the namespace "leaf1" (docs/linux.md). watchfrr restarts daemons.
set -eu

prefix=${HOLDFAST_PREFIX:-holdfast-}                 # namespaces are called holdfast-leaf1, ...
state=${HOLDFAST_STATE:-/run/holdfast-leaf-spine}    # configurations, logs, numbers of processes
holdfast=${HOLDFAST:-holdfast}
patience=${HOLDFAST_WAIT:-60}                        # seconds that `up` waits for the fabric
frr=${FRR_LIB:-/usr/lib/frr}

switches="leaf1 leaf2 spine1 spine2"
begun=                                               # switches that this script has started
mark=made-by-leaf-spine                              # a file in each directory of FRR that this script has made

# Standard error, also of commands whose output is discarded.
exec 3>&2

fail() {
    printf 'error: %s\n' "$*" >&3
    exit 1
}

usage() {
    echo "usage: $0 up | down | start SWITCH | exec NAMESPACE COMMAND... | show SWITCH TABLE... | vtysh SWITCH ARGUMENT..." >&2
    echo "       $0 cut LEAF SPINE | silence LEAF SPINE | join LEAF SPINE" >&2
    exit 2
}

check_machine() {
    case $state in
    *[!A-Za-z0-9/._-]*) fail "HOLDFAST_STATE is \`$state\`; use a path of letters, digits, dots and dashes" ;;
    esac
    case $prefix in
    *[!A-Za-z0-9_-]*) fail "HOLDFAST_PREFIX is \`$prefix\`; FRR takes letters, digits, _ and -" ;;
    esac
    [ "$(id -u)" = 0 ] || fail "only root can make network namespaces; run it with sudo"
    command -v ip >/dev/null || fail "there is no \`ip\`; install iproute2"
    command -v tc >/dev/null || fail "there is no \`tc\`; install iproute2"
    command -v nsenter >/dev/null || fail "there is no \`nsenter\`; install util-linux"
    command -v ethtool >/dev/null || fail "there is no \`ethtool\`; install ethtool"
    [ -x "$frr/frrinit.sh" ] || fail "there is no $frr/frrinit.sh; install frr"
    [ -w /etc/frr ] || fail "/etc/frr cannot be written, and FRR reads its configuration there; make it writable"
    command -v "$holdfast" >/dev/null || fail "there is no $holdfast; build it, or set HOLDFAST to its path"
}

inside() {
    namespace=$prefix$1
    shift
    nsenter --net="/run/netns/$namespace" -- "$@"
}

# Waits until a command succeeds.
wait_for() {
    what=$1 waited=0
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$waited" -lt "$((patience * 5))" ] || fail "no $what within $patience s; logs are in $state"
        sleep 0.2
        waited=$((waited + 1))
    done
}

make_namespace() {
    [ -e "/run/netns/$prefix$1" ] || ip netns add "$prefix$1"
    ip -n "$prefix$1" link set dev lo up
}

# A cable from interface $2 of switch $1 to interface $4 of namespace $3.
make_cable() {
    ip -n "$prefix$1-ports" link show dev "$2" >/dev/null 2>&1 ||
        ip -n "$prefix$1-ports" link add "$2" type veth peer name "$4" netns "$prefix$3"
    bring_up "$1" "$2"
}

# Without addresses the kernel sends nothing itself.
bring_up() {
    ip -n "$prefix$1-ports" link set dev "$2" addrgenmode none up
}

# Host $1 behind leaf $1. A switch reads frames as they are, so the host must not leave checksums to its interface.
make_host() {
    make_namespace "h$1"
    make_cable "leaf$1" host "h$1" eth0
    inside "h$1" ethtool -K eth0 tx off >/dev/null
    ip -n "${prefix}h$1" link set dev eth0 up
    ip -n "${prefix}h$1" address replace "10.1.$1.2/24" dev eth0
    ip -n "${prefix}h$1" address replace "fd00:1:$1::2/64" dev eth0 nodad
    ip -n "${prefix}h$1" route replace default via "10.1.$1.1"
    ip -n "${prefix}h$1" route replace default via "fd00:1:$1::1"
}

# CPU $1 modulo those that this may use.
cpu() {
    allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' '\n')
    list=$(for part in $allowed; do seq "${part%-*}" "${part#*-}"; done)
    set -- "$1" $list
    number=$1
    shift
    shift "$((number % $#))"
    echo "$1"
}

# The configuration of switch $1, number $2. The ports follow, each with the name of its interface.
configure() {
    name=$1 number=$2
    shift 2
    ports='' interfaces='' port=0
    while [ $# -gt 0 ]; do
        port=$((port + 1))
        ports="$ports
  - {name: $1, device: \"net_af_packet$port,iface=$1,framecnt=4096,qdisc_bypass=0\", speed: 200M,
     mac: \"02:48:46:1${number}:00:0$port\", rx_descriptors: 4096}"
        case $1 in
        host) addresses=", addresses: [10.1.$number.1/24, \"fd00:1:$number::1/64\"]" ;;
        *) addresses= ;;
        esac
        interfaces="$interfaces
    - {port: $1$addresses}"
        shift
    done
    cat >"$state/$name.yaml" <<END
preset: roce
ports:$ports
routing:
  linux: {namespace: "$prefix$name"}
  interfaces:$interfaces
buffer: {size: 32MiB}
# Switches and hosts share the CPUs: a lcore without frames sleeps, and headroom covers 10 ms without a poll.
lcores:
  control: $(cpu "$((number + 1))")
  dataplane: $(cpu "$number")
  poll_gap: 10ms
  idle: {wait: sleep, after: 50us, longest: 500us, wake: 9ms, lossless: true}
metrics: 127.0.0.1:9464
api: {socket: "$state/$name.sock"}
END
}

# FRR of switch $1 with number $2, autonomous system $3 and the given neighbours. Its pathspace is called as its namespace.
configure_frr() {
    name=$1 number=$2 system=$3 directory=/etc/frr/$prefix$1
    shift 3
    [ ! -e "$directory" ] || is_own "$name" || fail "$directory belongs to another FRR; choose another HOLDFAST_PREFIX"
    mkdir -p "$state/$name" "$directory"
    : >"$directory/$mark"
    cat >"$directory/daemons" <<'END'
bgpd=yes
bfdd=yes
watchfrr_options="--netns --min-restart-interval=1 --max-restart-interval=2"
# zebra of FRR 8.4 keeps routes of the one before for ever if it does not read them in the second of its start.
flush_and() {
    ip -4 route flush proto bgp
    ip -6 route flush proto bgp
    "$@"
}
zebra_wrap=flush_and
END
    {
        cat <<END
hostname $name
log file $state/$name/frr.log
no zebra nexthop kernel enable
interface lo
 ip address 10.255.0.$number/32
 ipv6 address fd00:255::$number/128
exit
router bgp $system
 bgp router-id 10.255.0.$number
 bgp bestpath as-path multipath-relax
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 timers bgp 3 9
 neighbor fabric peer-group
 neighbor fabric remote-as external
 neighbor fabric advertisement-interval 0
 neighbor fabric timers connect 1
 neighbor fabric bfd profile fabric
END
        for neighbour; do
            echo " neighbor $neighbour interface peer-group fabric"
        done
        for family in ipv4 ipv6; do
            cat <<END
 address-family $family unicast
  redistribute connected
  neighbor fabric activate
  maximum-paths 2
 exit-address-family
END
        done
        # Switches share the CPUs, so a session must survive a daemon that waits for one: detection takes 1.5 s.
        cat <<END
exit
bfd
 profile fabric
  receive-interval 300
  transmit-interval 300
  detect-multiplier 5
 exit
exit
END
    } >"$directory/frr.conf"
    : >"$directory/vtysh.conf"
    chown -R frr:frr "$state/$name" "$directory"
}

# Whether the process of file $1 runs. Its arguments name the directory, so another process cannot be meant.
runs() {
    [ -s "$1" ] && { tr '\0' ' ' <"/proc/$(cat "$1")/cmdline"; } 2>/dev/null | grep -q "$state/"
}

# Whether no process of file $1 is about to end: its threads have its sockets until the last one has ended.
is_gone() {
    [ -s "$1" ] || return 0
    process=/proc/$(cat "$1")
    [ ! -e "$process/status" ] || [ -n "$(tr '\0' ' ' <"$process/cmdline")" ] || {
        grep -q '^State:.Z' "$process/status" && grep -q '^Threads:.[01]$' "$process/status"
    }
}

# Whether the process of file $1 has its own command. Before that it is a copy of this script, which `runs` does not know.
has_begun() {
    ! { tr '\0' ' ' <"/proc/$(cat "$1")/cmdline"; } 2>/dev/null | grep -qF "$0"
}

# The last lines of file $1.
last_lines() {
    tail -n 15 "$1"
}

has_ended() {
    ! runs "$state/$1.pid" && is_gone "$state/$1.pid"
}

# Whether switch $1 runs with a socket, which one that ends removes first, or has ended.
is_settled() {
    { runs "$state/$1.pid" && [ -S "$state/$1.sock" ]; } || has_ended "$1"
}

# Whether switch $1 answers.
serves() {
    runs "$state/$1.pid" && "$holdfast" show version --socket "$state/$1.sock"
}

start_switch() {
    wait_for "answer or end of the process before" is_settled "$1"
    runs "$state/$1.pid" && return
    wait_for "end of the process before" is_gone "$state/$1.pid"
    runs "$state/$1.pid" && return
    begun="$begun $1 "
    # The kernel shares CPUs between sessions (sched(7), autogroup). On busy ones a switch would not poll for a second.
    # shellcheck disable=SC2016
    nsenter --net="/run/netns/$prefix$1-ports" -- setsid sh -c 'echo -15 2>/dev/null >/proc/self/autogroup; exec "$@"' sh \
        "$holdfast" run "$state/$1.yaml" --json --socket "$state/$1.sock" \
        >"$state/$1.out" 2>"$state/$1.log" </dev/null 3>&- &
    echo $! >"$state/$1.pid"
    wait_for "start of $1" has_begun "$state/$1.pid"
}

# Whether switch $1 answers and has its taps. One that was ending when this script began is started when it has ended.
has_taps() {
    if has_ended "$1"; then
        case $begun in
        *" $1 "*) fail "$1 has ended. The end of $state/$1.log: $(last_lines "$state/$1.log")" ;;
        esac
        start_switch "$1"
    fi
    serves "$1" && [ -e "/run/netns/$prefix$1" ] && case $1 in
    leaf*) inside "$1" ip link show dev u2 ;;
    *) inside "$1" ip link show dev d2 ;;
    esac
}

# Whether this script has made the configuration of switch $1.
is_own() {
    [ -e "/etc/frr/$prefix$1/$mark" ]
}

# Whether watchfrr of switch $1 runs. Its pathspace is the switch's alone.
is_watched() {
    pid=$(cat "/run/frr/$prefix$1/watchfrr.pid" 2>/dev/null) &&
        { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF -- "-N $prefix$1 "
}

# The daemons of switch $1 that run. Each names its pathspace.
daemons() {
    for process in /proc/[0-9]*; do
        ! { tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null | grep -qF -- "-N $prefix$1 " || echo "${process#/proc/}"
    done
}

has_no_daemons() {
    [ -z "$(daemons "$1")" ]
}

# Starts, stops (order $1) FRR of switch $2 with all its daemons.
order_frr() {
    "$frr/frrinit.sh" "$1" "$prefix$2" >"$state/$2/$1.out" 2>&1 3>&- </dev/null
}

start() {
    start_switch "$1"
    wait_for "taps of $1" has_taps "$1"
    # frrinit.sh does not tell whether its watchfrr has started.
    is_watched "$1" || order_frr start "$1" || true
    is_watched "$1" || fail "FRR of $1 does not start: $(last_lines "$state/$1/start.out")"
}

hosts_reach() {
    inside h1 ping -n -c 1 -W 1 10.1.2.2 && inside h1 ping -n -c 1 -W 1 fd00:1:2::2
}

# Whether leaf $1 has both paths to the other host in both families.
has_both_paths() {
    other=$((3 - $1))
    [ "$(inside "leaf$1" ip route show "10.1.$other.0/24" | grep -c 'dev u')" = 2 ] &&
        [ "$(inside "leaf$1" ip -6 route show "fd00:1:$other::/64" | grep -c 'dev u')" = 2 ]
}

# Whether leaf $1 has BFD sessions with both spines.
has_bfd() {
    [ "$(vtysh -N "${prefix}leaf$1" -c 'show bfd peers' | grep -c 'Status: up')" = 2 ]
}

up() {
    # The daemons become the user frr, who must reach the files of their logs.
    mkdir -p "$state"
    chmod 755 "$state"
    for switch in $switches; do
        make_namespace "$switch"
        make_namespace "$switch-ports"
    done
    for leaf in 1 2; do
        for spine in 1 2; do
            make_cable "leaf$leaf" "u$spine" "spine$spine-ports" "d$leaf"
            bring_up "spine$spine" "d$leaf"
        done
        make_host "$leaf"
        configure "leaf$leaf" "$leaf" host u1 u2
        configure_frr "leaf$leaf" "$leaf" "6510$leaf" u1 u2
    done
    for spine in 1 2; do
        configure "spine$spine" "$((spine + 2))" d1 d2
        configure_frr "spine$spine" "$((spine + 2))" 65200 d1 d2
    done
    for switch in $switches; do
        start_switch "$switch"
    done
    for switch in $switches; do
        start "$switch"
    done
    wait_for "answer of host 2" hosts_reach
    wait_for "second path from leaf 1" has_both_paths 1
    wait_for "second path from leaf 2" has_both_paths 2
    wait_for "BFD sessions of leaf 1" has_bfd 1
    wait_for "BFD sessions of leaf 2" has_bfd 2
}

# Ends the process of file $1 by signal $2.
stop() {
    if runs "$1"; then
        kill "-$2" "$(cat "$1")" || true
    fi
}

is_over() {
    ! runs "$1"
}

# FRR of a switch first, each in its own time, then the switches.
down() {
    stopping=
    for switch in $switches; do
        is_own "$switch" || continue
        # It could not end while it is stopped.
        ! is_watched "$switch" || kill -CONT "$(cat "/run/frr/$prefix$switch/watchfrr.pid")" || true
        mkdir -p "$state/$switch"
        order_frr stop "$switch" &
        stopping="$stopping $switch:$!"
    done
    for each in $stopping; do
        # FRR leaves a daemon that hangs, or whose file with its process number is lost.
        wait "${each#*:}" || true
        daemons "${each%:*}" | xargs -r kill -KILL || true
        wait_for "end of FRR of ${each%:*}" has_no_daemons "${each%:*}"
    done
    for switch in $switches; do
        ! is_own "$switch" || rm -rf "/etc/frr/$prefix$switch" "/run/frr/$prefix$switch"
        stop "$state/$switch.pid" TERM
    done
    for switch in $switches; do
        wait_for "end of the process in $state/$switch.pid" is_over "$state/$switch.pid"
    done
    for namespace in h1 h2 $switches; do
        for name in "$prefix$namespace" "$prefix$namespace-ports"; do
            [ ! -e "/run/netns/$name" ] || ip netns delete "$name"
        done
    done
    rm -rf "$state"
}

# Queueing discipline $3 at both ends of the cable from leaf $1 to spine $2.
set_queues() {
    tc -n "${prefix}leaf$1-ports" qdisc replace dev "u$2" root "$3"
    tc -n "${prefix}spine$2-ports" qdisc replace dev "d$1" root "$3"
}

say_what_to_try() {
    cat <<END
Two leaves, two spines, hosts h1 (10.1.1.2, fd00:1:1::2) and h2 (10.1.2.2, fd00:1:2::2). Try:
  $0 exec h1 ping -c 3 fd00:1:2::2
  $0 exec h2 iperf3 -s -D -1 && $0 exec h1 iperf3 -c 10.1.2.2
  $0 show leaf1 routes
  $0 vtysh leaf1 -c 'show bgp summary'
  $0 cut 1 2 && sleep 3 && $0 show leaf1 routes && $0 join 1 2
  $0 down
END
}

[ $# -ge 1 ] || usage
order=$1
shift
check_machine
case $order in
up)
    [ $# = 0 ] || usage
    up
    say_what_to_try
    ;;
down)
    [ $# = 0 ] || usage
    down
    ;;
start)
    [ $# = 1 ] || usage
    start "$1"
    ;;
exec)
    [ $# -ge 2 ] || usage
    inside "$@"
    ;;
show)
    [ $# -ge 2 ] || usage
    switch=$1
    shift
    "$holdfast" show --socket "$state/$switch.sock" "$@"
    ;;
vtysh)
    [ $# -ge 1 ] || usage
    switch=$1
    shift
    vtysh -N "$prefix$switch" "$@"
    ;;
cut)
    [ $# = 2 ] || usage
    ip -n "${prefix}leaf$1-ports" link set dev "u$2" down
    ;;
silence)
    [ $# = 2 ] || usage
    set_queues "$1" "$2" blackhole
    ;;
join)
    [ $# = 2 ] || usage
    ip -n "${prefix}leaf$1-ports" link set dev "u$2" up
    set_queues "$1" "$2" noqueue
    ;;
*)
    usage
    ;;
esac
