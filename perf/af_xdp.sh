#!/bin/bash
# af_xdp.sh [SECONDS]: frames per second of a switch by AF_XDP and by af_packet, alternately, on a veth pair. Needs root
# and the release build.
#
# One core runs the switch and two virtual hosts. A frame goes from the first host out by one end of the pair, and comes
# back by the other end for the second host. So the rate counts one transmission and one reception.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
seconds=${1:-5}
holdfast=${CARGO_TARGET_DIR:-target}/release/holdfast
space=holdfast-perf-$$
work=$(mktemp -d)
trap 'ip netns del "$space" 2>/dev/null || true; rm -rf "$work"' EXIT

# DRIVER FRAME: the rate at the second host.
measure() {
    ip netns add "$space"
    ip -n "$space" link set lo up
    ip -n "$space" link add va type veth peer name vb
    for end in va vb; do ip -n "$space" link set dev "$end" addrgenmode none up; done
    cat >"$work/switch.yaml" <<END
ports:
  - {name: from, device: ring, speed: 100G, vlan: 10}
  - {name: out, device: "$1_a,iface=va", speed: 100G, vlan: 10}
  - {name: back, device: "$1_b,iface=vb", speed: 100G, vlan: 20}
  - {name: to, device: ring, speed: 100G, vlan: 20}
fdb:
  static:
    - {mac: "02:48:46:00:02:00", port: out, vlan: 10}
    - {mac: "02:48:46:00:02:00", port: to, vlan: 20}
hosts:
  - name: sender
    port: from
    mac: "02:48:46:00:01:00"
    flows: [{to: {mac: "02:48:46:00:02:00", ip: 10.0.0.2}, kind: udp, rate: 20G, frame: $2}]
  - {name: receiver, port: to, mac: "02:48:46:00:02:00"}
END
    HOLDFAST_SOCKET=off ip netns exec "$space" "$holdfast" run "$work/switch.yaml" --duration "$seconds" --json \
        >"$work/report" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    ip netns del "$space"
    python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
frames = sum(part["sent_frames"] for part in report["ports"][3]["classes"])
print(round(frames / report["seconds"]))' "$work/report"
}

for _ in 1 2 3; do
    for frame in 64 1000; do
        for driver in net_af_packet net_af_xdp; do
            rate=$(measure "$driver" "$frame")
            printf '%s, %d B: %d frames a second\n' "$driver" "$frame" "$rate"
        done
    done
done
