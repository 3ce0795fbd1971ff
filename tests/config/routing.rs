//! `routing:`: the router that a configuration describes, and refusals word for word.

mod linux;

use std::net::IpAddr;

use holdfast::forward::VlanMode;
use holdfast::route::{Attachment, FibSize, NextHopSpec, RouteSpec, RoutingSpec};
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;

use super::*;

/// Two uplinks that are routed, and two hosts in VLAN 10.
const TOR: &str = "\
ports:
  - {name: h1, device: net_null0, speed: 10G, vlan: 10}
  - {name: h2, device: net_null1, speed: 10G, vlan: {tagged: [10, 4094]}, mtu: 9000}
  - {name: u1, device: net_null2, speed: 10G, mtu: 9000}
  - {name: u2, device: net_null3, speed: 10G, mac: 02:00:00:00:00:42}
";

const INTERFACES: &str = "  interfaces:
    - {vlan: 10, addresses: [10.10.0.1/24, \"fd00:10::1/64\"]}
    - {port: u2, addresses: [10.0.2.1/31, \"fe80::1/64\"]}
    - {port: u1, addresses: [10.0.1.1/31, \"fd00:1::/127\"]}
";

/// Accepts the interfaces of the ToR with more keys of `routing`.
fn tor(more: &str) -> Config {
    accept(&format!("{TOR}routing:\n{INTERFACES}{more}"))
}

fn routing(config: &Config) -> &RoutingSpec {
    config.switch.routing.as_ref().expect("a router")
}

/// Refuses `text` after the ports of the ToR; it begins in line 6.
#[track_caller]
fn refuse_after_ports(text: &str, expected: &str) {
    refuse(&format!("{TOR}{text}"), expected);
}

/// Refuses `text` after the interfaces of the ToR; it begins in line 11.
#[track_caller]
fn refuse_after_interfaces(text: &str, expected: &str) {
    refuse(&format!("{TOR}routing:\n{INTERFACES}{text}"), expected);
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn interfaces_get_ports_vlans_macs_and_mtu() {
    let config = tor("");
    let routing = routing(&config);
    let all: Vec<_> = routing.interfaces.iter().map(|spec| (spec.name.as_str(), spec.attachment, spec.vlan)).collect();
    // VLAN 4094 is that of a trunk.
    let expected =
        [("u1", Attachment::Port(2), 4093), ("u2", Attachment::Port(3), 4092), ("vlan10", Attachment::Vlan, 10)];
    assert_eq!(all, expected, "routed ports first");
    let vlans: Vec<&VlanMode> = config.switch.ports[2..].iter().map(|port| &port.vlan).collect();
    assert_eq!(vlans, [&VlanMode::Routed(4093), &VlanMode::Routed(4092)]);
    assert_eq!(routing.interfaces.iter().map(|spec| spec.mtu).collect::<Vec<_>>(), [9000, 1500, 1500]);
    let ports: Vec<PortSet> = routing.interfaces.iter().map(|spec| spec.ports).collect();
    assert_eq!(ports, [PortSet::only(2), PortSet::only(3), PortSet::first(2)]);
    let macs: Vec<MacAddr> = routing.interfaces.iter().map(|spec| spec.mac).collect();
    assert_eq!(macs, [2, 3, 0].map(|port: usize| config.switch.ports[port].mac));
    assert_eq!(routing.interfaces[1].addresses, ["10.0.2.1/31", "fe80::1/64"].map(|own| own.parse().unwrap()));
    assert_eq!(routing.fib, FibSize { ipv4: 65_536, ipv6: 16_384 });
    assert!(!routing.is_symmetric && config.warnings.is_empty());
}

#[test]
fn switch_without_routing_only_bridges() {
    let config = accept(&format!("{PORTS}routing:\n"));
    assert_eq!(config.switch.routing, None, "a key without a value counts as absent");
    assert_eq!(config.switch.ports[0].vlan, VlanMode::Access(1));
}

#[test]
fn routes_and_neighbours_get_their_interfaces() {
    let config = tor("  routes:
    - {to: 10.9.0.0/16, drop: true}
    - {to: 0.0.0.0/0, via: [{gateway: 10.0.2.0, weight: 256}, 10.0.1.0, {gateway: \"fe80::9\", port: u2}]}
    - {to: \"::/0\", via: [{gateway: \"fd00:1::1\", port: u1}]}
    - {to: 10.10.0.128/25, via: [10.10.0.7]}
  neighbours:
    - {vlan: 10, address: 10.10.0.7, mac: 02:00:00:00:00:07}
    - {port: u1, address: \"fe80::9\", mac: 02:00:00:00:00:09}
    - {port: u2, address: \"fe80::9\", mac: 02:00:00:00:00:09}
    - {address: 10.0.1.0, mac: 02:00:00:00:00:08}
");
    let routing = routing(&config);
    let hop = |address: &str, interface, weight| NextHopSpec { address: ip(address), interface, weight };
    let route = |prefix: &str, next_hops: &[NextHopSpec]| RouteSpec {
        prefix: prefix.parse().unwrap(),
        next_hops: next_hops.to_vec(),
    };
    let expected = [
        route("0.0.0.0/0", &[hop("10.0.1.0", 0, 1), hop("10.0.2.0", 1, 256), hop("fe80::9", 1, 1)]),
        route("10.9.0.0/16", &[]),
        route("10.10.0.128/25", &[hop("10.10.0.7", 2, 1)]),
        route("::/0", &[hop("fd00:1::1", 0, 1)]),
    ];
    assert_eq!(routing.routes, expected);
    let neighbours: Vec<(u16, IpAddr)> =
        routing.neighbours.iter().map(|neighbour| (neighbour.interface, neighbour.address)).collect();
    assert_eq!(neighbours, [(0, ip("10.0.1.0")), (0, ip("fe80::9")), (1, ip("fe80::9")), (2, ip("10.10.0.7"))]);
}

#[test]
fn order_of_interfaces_routes_and_next_hops_does_not_matter() {
    let file = |interfaces: [&str; 2], hops: &str, routes: [&str; 2]| {
        let [first, second] = interfaces;
        let [route, other] = routes.map(|to| format!("{{to: {to}, via: [{hops}]}}"));
        accept(&format!("{TOR}routing: {{interfaces: [{first}, {second}], routes: [{route}, {other}]}}\n")).switch
    };
    let interfaces = ["{port: u1, addresses: [10.0.1.1/31]}", "{port: u2, addresses: [10.0.2.1/31]}"];
    let [first, second] = interfaces;
    let one = file(interfaces, "10.0.1.0, 10.0.2.0", ["10.7.0.0/16", "10.8.0.0/16"]);
    assert_eq!(one, file([second, first], "10.0.2.0, 10.0.1.0", ["10.8.0.0/16", "10.7.0.0/16"]));
}

/// The addresses of NICs are known only at start.
#[test]
fn unwritten_macs_and_seed_follow_the_ports() {
    let file = |hash: &str| {
        let mac = "mac: 02:00:00:00:00:07, ";
        let text = format!("{TOR}routing:\n{INTERFACES}{hash}").replace("{port: u1, ", &format!("{{port: u1, {mac}"));
        let mut config = accept(&text);
        let before = routing(&config).hash_seed;
        for (index, port) in (0..).zip(&mut config.switch.ports) {
            port.mac = MacAddr::local(9, index);
        }
        config.follow_ports();
        (before, config)
    };
    let (before, config) = file("");
    let macs: Vec<MacAddr> = routing(&config).interfaces.iter().map(|spec| spec.mac).collect();
    assert_eq!(macs, [MacAddr([2, 0, 0, 0, 0, 7]), MacAddr::local(9, 3), MacAddr::local(9, 0)]);
    assert_ne!(routing(&config).hash_seed, before, "switches differ");
    let (before, config) = file("  hash: {seed: 7, symmetric: true}\n");
    assert_eq!((before, routing(&config).hash_seed, routing(&config).is_symmetric), (7, 7, true));
}

#[test]
fn interface_without_place_or_with_two_is_refused() {
    refuse_after_ports(
        "routing: {interfaces: [{addresses: [10.0.1.1/31]}]}\n",
        "x.yaml:6:24: routing.interfaces[0]: `port` or `vlan` is missing; write e.g. `port: p1` to route at a port, or `vlan: 10`",
    );
    refuse_after_ports(
        "routing: {interfaces: [{port: u1, vlan: 10, addresses: [10.0.1.1/31]}]}\n",
        "x.yaml:6:41: routing.interfaces[0].vlan: `port` and `vlan` exclude each other; keep one of the two",
    );
    refuse_after_ports(
        "routing: {interfaces: [{port: u9, addresses: [10.0.1.1/31]}, {vlan: 0, addresses: [10.0.1.1/31]}]}\n",
        "\
x.yaml:6:31: routing.interfaces[0].port: there is no port `u9`; write `h1`, `h2`, `u1` or `u2`
x.yaml:6:69: routing.interfaces[1].vlan: `0` is not a VLAN; write a whole number from 1 to 4094
x.yaml:6:84: routing.interfaces[1].addresses[0]: `10.0.1.1` is already the address of routing.interfaces[0]; write another",
    );
}

#[test]
fn routing_without_interface_is_refused() {
    let example = "[{port: p1, addresses: [10.0.1.1/31]}]";
    refuse_after_ports(
        "routing: {}\n",
        &format!("x.yaml:6:10: routing: `interfaces` is missing; write e.g. `interfaces: {example}`"),
    );
    refuse_after_ports(
        "routing: {interfaces: []}\n",
        "x.yaml:6:23: routing.interfaces: there is no interface; write e.g. `- {port: p1, addresses: [10.0.1.1/31]}`",
    );
    refuse_after_ports(
        "routing: {interfaces: [{port: u1}, {port: u2, addresses: []}]}\n",
        "\
x.yaml:6:24: routing.interfaces[0]: `addresses` is missing; write e.g. `addresses: [10.0.1.1/31]`
x.yaml:6:58: routing.interfaces[1].addresses: there is no address; write e.g. [10.0.1.1/31, \"2001:db8:1::/127\"]",
    );
}

#[test]
fn second_interface_of_a_port_or_vlan_is_refused() {
    refuse_after_ports(
        "routing:
  interfaces:
    - {port: u1, addresses: [10.0.1.1/31]}
    - {vlan: 10, addresses: [10.0.2.1/31]}
    - {vlan: 10, addresses: [10.0.3.1/31]}
    - {port: u1, addresses: [10.0.4.1/31]}
",
        "\
x.yaml:10:14: routing.interfaces[2].vlan: VLAN 10 has an interface already; keep one of the two
x.yaml:11:14: routing.interfaces[3].port: port `u1` has an interface already; keep one of the two",
    );
}

#[test]
fn routed_port_with_vlan_is_refused() {
    refuse_after_ports(
        "routing: {interfaces: [{port: h1, addresses: [10.0.1.1/31]}]}\n",
        "x.yaml:2:53: ports[0].vlan: port `h1` has an interface and so bridges nothing; remove `vlan`, or write `vlan` instead of `port` in `routing.interfaces`",
    );
}

#[test]
fn vlan_interface_without_port_is_refused() {
    refuse_after_ports(
        "routing: {interfaces: [{vlan: 1, addresses: [10.0.1.1/31]}, {port: u1, addresses: [10.0.2.1/31]}, {port: u2, addresses: [10.0.3.1/31]}]}\n",
        "x.yaml:6:31: routing.interfaces[0].vlan: no port carries VLAN 1; write a VLAN of a port, or `vlan: 1` at a port without an interface",
    );
}

#[test]
fn port_with_the_name_of_a_vlan_interface_is_refused() {
    let ports = TOR.replace("u1", "vlan10");
    refuse(
        &format!("{ports}routing: {{interfaces: [{{vlan: 10, addresses: [10.0.1.1/31]}}]}}\n"),
        "x.yaml:6:31: routing.interfaces[0].vlan: port `vlan10` has the name of this interface; write another name for the port",
    );
}

#[test]
fn routed_port_without_free_vlan_is_refused() {
    refuse(
        "\
ports:
  - {name: h1, device: net_tap0, speed: 10G, vlan: {tagged: [1-4094]}}
  - {name: u1, device: net_tap1, speed: 10G}
routing: {interfaces: [{port: u1, addresses: [10.0.1.1/31]}]}
",
        "x.yaml:4:24: routing.interfaces[0]: the ports carry all VLANs from 1 to 4094, and a routed port needs one inside the switch; remove one from `ports[].vlan`",
    );
}

#[test]
fn router_with_64_ports_is_refused() {
    let ports = |count: u32| {
        let interfaces = "routing: {interfaces: [{port: p1, addresses: [10.0.1.1/31]}]}";
        format!("ports: [{{name: p*, count: {count}, device: net_null*, speed: 1G}}]\n{interfaces}\n")
    };
    accept(&ports(63));
    refuse(
        &ports(64),
        "x.yaml:2:10: routing: a switch that routes has at most 63 ports, and this one has 64; remove a port",
    );
}

#[test]
fn ipv6_on_a_small_mtu_is_refused() {
    let ports = PORTS.replace("net_tap1, speed: 10G", "net_tap1, speed: 10G, mtu: 1279");
    accept(&format!("{ports}routing: {{interfaces: [{{vlan: 1, addresses: [10.0.1.1/31]}}]}}\n"));
    refuse(
        &format!("{ports}routing: {{interfaces: [{{vlan: 1, addresses: [\"fd00::1/64\"]}}]}}\n"),
        "x.yaml:4:45: routing.interfaces[0].addresses: IPv6 needs an MTU of at least 1280, and port `p2` has 1279; write `mtu: 1280` or more there, or no IPv6 address",
    );
}

#[test]
fn mac_of_another_station_or_a_group_is_refused_for_an_interface() {
    refuse(
        &format!(
            "{RINGS}hosts: [{{name: a, port: p1, mac: 02:00:00:00:00:01}}, {{name: b, port: p2}}]\nrouting: {{interfaces: [{{vlan: 1, mac: 02:00:00:00:00:01, addresses: [10.0.1.1/24]}}]}}\n"
        ),
        "x.yaml:2:34: hosts[0].mac: `02:00:00:00:00:01` is already the MAC address of routing.interfaces[0]; write another",
    );
    refuse_beside_ports(
        "routing: {interfaces: [{vlan: 1, mac: 01:00:00:00:00:01, addresses: [10.0.1.1/24]}]}\n",
        "x.yaml:4:39: routing.interfaces[0].mac: `01:00:00:00:00:01` is a group address; write a station address, e.g. 02:48:46:00:00:01",
    );
    let shared = "{port: u1, mac: 02:00:00:00:00:07, addresses: [10.0.1.1/31]}, {port: u2, mac: 02:00:00:00:00:07, addresses: [10.0.2.1/31]}";
    accept(&format!("{TOR}routing: {{interfaces: [{shared}]}}\n"));
}

/// Each case: an address of an interface, and the error.
#[test]
fn invalid_address_of_an_interface_is_refused() {
    let cases = [
        ("10.0.1.1", "`10.0.1.1` has no prefix length; write e.g. 10.0.1.1/24"),
        ("fd00::1", "`fd00::1` has no prefix length; write e.g. \"fd00::1/64\""),
        (
            "10.0.1/24",
            "`10.0.1/24` is not an address with the prefix length of its network; write e.g. 10.0.1.1/24 or \"2001:db8::1/64\"",
        ),
        ("10.0.1.1/7", "`10.0.1.1/7` has a prefix length out of range; write from /8 to /32"),
        ("fd00::1/15", "`fd00::1/15` has a prefix length out of range; write from /16 to /128"),
        ("10.0.1.0/24", "`10.0.1.0/24` is the address of the network itself; write e.g. 10.0.1.1/24"),
        ("10.0.1.255/24", "`10.0.1.255/24` is the broadcast address of the network; write e.g. 10.0.1.1/24"),
        ("fd00::/64", "`fd00::/64` is the anycast address of the network's routers; write e.g. fd00::1/64"),
        ("0.1.2.3/24", "`0.1.2.3` is an address of \"this network\" (0.0.0.0/8); write the address of a host"),
        ("127.0.0.1/8", "`127.0.0.1` is a loopback address; write the address of a host"),
        ("224.0.0.5/24", "`224.0.0.5` is a multicast address; write the address of a host"),
        ("240.0.0.1/24", "`240.0.0.1` is a reserved address (240.0.0.0/4); write the address of a host"),
        ("::/64", "`::` is the unspecified address; write the address of a host"),
        ("::1/128", "`::1` is the loopback address; write the address of a host"),
        ("ff02::1/64", "`ff02::1` is a multicast address; write the address of a host"),
        ("::ffff:10.0.0.1/112", "`::ffff:10.0.0.1` is an IPv4 address in IPv6 form; write the address of a host"),
    ];
    for (address, expected) in cases {
        refuse_after_ports(
            &format!("routing: {{interfaces: [{{port: u1, addresses: [\"{address}\"]}}]}}\n"),
            &format!("x.yaml:6:47: routing.interfaces[0].addresses[0]: {expected}"),
        );
    }
    for address in ["10.0.1.0/31", "10.0.1.1/31", "10.0.1.1/32", "fd00::/127", "fd00::1/128", "fe80::1/64"] {
        accept(&format!("{TOR}routing: {{interfaces: [{{port: u1, addresses: [\"{address}\"]}}]}}\n"));
    }
}

#[test]
fn duplicate_addresses_and_overlapping_networks_are_refused() {
    refuse_after_ports(
        "routing:
  interfaces:
    - {port: u1, addresses: [10.0.1.1/24, 10.0.1.1/25, \"fe80::1/64\", \"fe80::1/64\"]}
    - {port: u2, addresses: [10.0.1.1/31, \"fe80::1/64\"]}
",
        "\
x.yaml:8:43: routing.interfaces[0].addresses[1]: `10.0.1.1` is already the address of routing.interfaces[0]; write another
x.yaml:8:70: routing.interfaces[0].addresses[3]: `fe80::1` is already the address of routing.interfaces[0]; write another
x.yaml:9:30: routing.interfaces[1].addresses[0]: `10.0.1.1` is already the address of routing.interfaces[0]; write another",
    );
    refuse_after_ports(
        "routing:
  interfaces:
    - {port: u1, addresses: [10.0.1.1/24, \"fd00::1/64\"]}
    - {port: u2, addresses: [10.0.0.1/16, \"fd00::2/80\"]}
",
        "\
x.yaml:8:29: routing.interfaces[0].addresses: network 10.0.1.0/24 overlaps 10.0.0.0/16 of interface `u2`; write networks that do not overlap
x.yaml:9:29: routing.interfaces[1].addresses: network fd00::/80 overlaps fd00::/64 of interface `u1`; write networks that do not overlap",
    );
    accept(&format!(
        "{TOR}routing: {{interfaces: [{{port: u1, addresses: [10.0.1.1/24, 10.0.1.2/24, 10.0.1.3/25]}}]}}\n"
    ));
    let many: Vec<String> = (1..=17).map(|host| format!("10.0.1.{host}/24")).collect();
    refuse_after_ports(
        &format!("routing: {{interfaces: [{{port: u1, addresses: [{}]}}]}}\n", many.join(", ")),
        "x.yaml:6:46: routing.interfaces[0].addresses: 17 addresses are more than the 16 that an interface can have; remove some",
    );
}

/// Each case: a destination, and the error.
#[test]
fn invalid_destination_is_refused() {
    let cases = [
        ("10.9.0.0", "`10.9.0.0` has no prefix length; write e.g. 10.9.0.0/32"),
        ("default", "`default` is not a prefix; write e.g. 10.9.0.0/16 or \"2001:db8:9::/48\""),
        ("10.9.1.0/16", "`10.9.1.0/16` has bits beyond its prefix; write 10.9.0.0/16"),
        ("fd00::1/64", "`fd00::1/64` has bits beyond its prefix; write fd00::/64"),
        (
            "127.0.0.0/16",
            "packets to 127.0.0.0/8 (the loopback network) are never routed; write another prefix than `127.0.0.0/16`",
        ),
        ("224.0.0.0/4", "packets to 224.0.0.0/4 (multicast) are never routed; write another prefix than `224.0.0.0/4`"),
        ("fe80::/64", "packets to fe80::/10 (link-local) are never routed; write another prefix than `fe80::/64`"),
        ("10.0.1.0/31", "`10.0.1.0/31` is the network of interface `u1`, which needs no route; remove it"),
    ];
    for (to, expected) in cases {
        refuse_after_interfaces(
            &format!("  routes: [{{to: \"{to}\", drop: true}}]\n"),
            &format!("x.yaml:11:17: routing.routes[0].to: {expected}"),
        );
    }
    refuse_after_interfaces(
        "  routes: [{to: 10.9.0.0/16, drop: true}, {to: 10.9.0.0/16, via: [10.0.1.0]}]\n",
        "x.yaml:11:48: routing.routes[1].to: `10.9.0.0/16` is already the destination of routing.routes[0]; write another",
    );
}

#[test]
fn route_without_next_hop_or_with_too_many_is_refused() {
    refuse_after_interfaces(
        "  routes: [{to: 10.9.0.0/16}, {to: 10.8.0.0/16, drop: false}, {via: [10.0.1.0]}]\n",
        "\
x.yaml:11:12: routing.routes[0]: `via` is missing; write e.g. `via: [10.0.1.0]`, or `drop: true`
x.yaml:11:31: routing.routes[1]: `via` is missing; write e.g. `via: [10.0.1.0]`, or `drop: true`
x.yaml:11:63: routing.routes[2]: `to` is missing; write e.g. `to: 0.0.0.0/0`",
    );
    refuse_after_interfaces(
        "  routes: [{to: 10.9.0.0/16, via: [10.0.1.0], drop: true}, {to: 10.8.0.0/16, via: []}]\n",
        "\
x.yaml:11:53: routing.routes[0].drop: `via` and `drop` exclude each other; keep one of the two
x.yaml:11:83: routing.routes[1].via: there is no next hop; write e.g. [10.0.1.0], or `drop: true` instead of `via`",
    );
    let many = |count: u32| {
        let hops: Vec<String> = (2..count + 2).map(|host| format!("10.10.0.{host}")).collect();
        format!("  routes: [{{to: 10.9.0.0/16, via: [{}]}}]\n", hops.join(", "))
    };
    assert_eq!(routing(&tor(&many(64))).routes[0].next_hops.len(), 64);
    refuse_after_interfaces(
        &many(65),
        "x.yaml:11:35: routing.routes[0].via: 65 next hops are more than the 64 that a route can have; remove some",
    );
}

/// Each case: a next hop, the end of its place, and the error.
#[test]
fn invalid_next_hop_is_refused() {
    let cases = [
        ("up", "36: routing.routes[0].via[0]: `up` is not an IP address; write e.g. 10.0.1.0 or \"2001:db8::1\""),
        ("224.0.0.5", "36: routing.routes[0].via[0]: `224.0.0.5` is a multicast address; write the address of a host"),
        (
            "10.7.0.1",
            "36: routing.routes[0].via[0]: `10.7.0.1` is on no network of any interface; write e.g. a host of 10.0.1.0/31, at `u1`",
        ),
        (
            "10.0.1.1",
            "36: routing.routes[0].via[0]: `10.0.1.1` is an address of this switch; write that of a neighbour",
        ),
        (
            "10.10.0.255",
            "36: routing.routes[0].via[0]: `10.10.0.255` is the broadcast address of the network, 10.10.0.0/24; write that of a host",
        ),
        (
            "\"fe80::9\"",
            "36: routing.routes[0].via[0]: `fe80::9` is a link-local address, so its interface is unknown; add e.g. `port: p1` or `vlan: 10`",
        ),
        (
            "{gateway: \"fe80::1\", port: u2}",
            "46: routing.routes[0].via[0].gateway: `fe80::1` is an address of this switch; write that of a neighbour",
        ),
        (
            "{gateway: 10.0.1.0, port: u2}",
            "46: routing.routes[0].via[0].gateway: `10.0.1.0` is on no network of interface `u2`; write its interface, `u1`",
        ),
        (
            "{gateway: 10.7.0.1, vlan: 10}",
            "46: routing.routes[0].via[0].gateway: `10.7.0.1` is on no network of interface `vlan10`; write e.g. a host of 10.10.0.0/24, at `vlan10`",
        ),
        (
            "{gateway: 10.0.1.0, port: h1}",
            "62: routing.routes[0].via[0].port: port `h1` has no interface; write one of `routing.interfaces`",
        ),
        (
            "{gateway: 10.0.1.0, vlan: 4094}",
            "62: routing.routes[0].via[0].vlan: VLAN 4094 has no interface; write one of `routing.interfaces`",
        ),
        (
            "{gateway: 10.0.1.0, weight: 257}",
            "64: routing.routes[0].via[0].weight: `257` is not a weight; write a whole number from 1 to 256",
        ),
        ("{port: u1}", "36: routing.routes[0].via[0]: `gateway` is missing; write e.g. `gateway: 10.0.1.0`"),
        (
            "10.0.1.0, {gateway: 10.0.1.0, port: u1}",
            "46: routing.routes[0].via[1]: `10.0.1.0` is a next hop of this route already; remove it, or write a `weight`",
        ),
    ];
    for (hop, expected) in cases {
        refuse_after_interfaces(
            &format!("  routes: [{{to: 10.9.0.0/16, via: [{hop}]}}]\n"),
            &format!("x.yaml:11:{expected}"),
        );
    }
    refuse_after_interfaces(
        "  routes: [{to: \"::/0\", via: [10.0.1.0]}]\n",
        "x.yaml:11:30: routing.routes[0].via: `10.0.1.0` is an IPv4 next hop of the IPv6 prefix ::/0; write an IPv6 one",
    );
    refuse_after_ports(
        "routing: {interfaces: [{port: u1, addresses: [10.0.1.1/31]}], routes: [{to: \"::/0\", via: [\"fd00::1\"]}]}\n",
        "x.yaml:6:91: routing.routes[0].via[0]: `fd00::1` is on no network of any interface; give an interface an address of the same network",
    );
}

#[test]
fn errors_of_an_interface_cause_no_errors_of_its_routes() {
    refuse_after_ports(
        "routing: {interfaces: [{port: u1, addresses: [10.0.1.1]}], routes: [{to: 0.0.0.0/0, via: [10.0.1.0]}]}\n",
        "x.yaml:6:47: routing.interfaces[0].addresses[0]: `10.0.1.1` has no prefix length; write e.g. 10.0.1.1/24",
    );
}

#[test]
fn invalid_neighbour_is_refused() {
    let mac = "mac: 02:00:00:00:00:01";
    refuse_after_interfaces(
        &format!("  neighbours: [{{address: 10.0.1.0, {mac}}}, {{port: u1, address: 10.0.1.0, {mac}}}]\n"),
        "x.yaml:11:81: routing.neighbours[1].address: `10.0.1.0` is already the address of routing.neighbours[0]; write another",
    );
    refuse_after_interfaces(
        &format!("  neighbours: [{{vlan: 10, address: 10.10.0.1, {mac}}}, {{port: u1, address: 10.9.0.1, {mac}}}]\n"),
        "\
x.yaml:11:36: routing.neighbours[0].address: `10.10.0.1` is an address of this switch; write that of a neighbour
x.yaml:11:92: routing.neighbours[1].address: `10.9.0.1` is on no network of interface `u1`; write e.g. a host of 10.0.1.0/31, at `u1`",
    );
    refuse_after_interfaces(
        "  neighbours: [{port: u2, address: 10.0.2.0, mac: 02:00:00:00:00:42}, {port: u1, address: 10.0.1.0, mac: 01:00:00:00:00:01}, {port: u1, address: \"fe80::7\"}]\n",
        "\
x.yaml:11:51: routing.neighbours[0].mac: `02:00:00:00:00:42` is the address of this switch at interface `u2`; write that of the neighbour
x.yaml:11:106: routing.neighbours[1].mac: `01:00:00:00:00:01` is a group address; write a station address, e.g. 02:48:46:00:00:01
x.yaml:11:126: routing.neighbours[2]: `mac` is missing; write e.g. `mac: 02:00:00:00:00:01`",
    );
}

#[test]
fn hash_and_fib_out_of_range_are_refused() {
    refuse_after_interfaces(
        "  hash: {seed: -1, symmetric: both}\n  fib: {ipv4: 1023, ipv6: 1048577}\n",
        "\
x.yaml:11:16: routing.hash.seed: `-1` is not a seed; write a whole number from 0 to 18446744073709551615
x.yaml:11:31: routing.hash.symmetric: `both` is not one of the choices; write `true` or `false`
x.yaml:12:15: routing.fib.ipv4: `1023` is not a count of prefixes; write a whole number from 1024 to 4194304
x.yaml:12:27: routing.fib.ipv6: `1048577` is not a count of prefixes; write a whole number from 1024 to 1048576",
    );
}

#[test]
fn more_prefixes_than_the_fib_holds_are_refused() {
    let routes = |count: u32| {
        let routes: Vec<String> =
            (0..count).map(|net| format!("{{to: 10.{}.{}.0/24, drop: true}}", 20 + net / 256, net % 256)).collect();
        format!("  routes: [{}]\n  fib: {{ipv4: 1024}}\n", routes.join(", "))
    };
    // Three addresses and their networks.
    tor(&routes(1018));
    refuse_after_interfaces(
        &routes(1019),
        "x.yaml:12:8: routing.fib: there is room for 1024 prefixes of ipv4, and the addresses, routes and neighbours here have 1025; write `fib: {ipv4: 4096}` or more",
    );
}

#[test]
fn static_entry_with_the_address_of_the_router_is_refused() {
    refuse_after_interfaces(
        "fdb: {static: [{vlan: 10, mac: 02:48:46:00:00:00, port: h1}, {vlan: 4094, mac: 02:48:46:00:00:00, port: h2}]}\n",
        "x.yaml:11:16: fdb.static[0]: 02:48:46:00:00:00 in VLAN 10 is the address of this switch, which routes there; remove the entry",
    );
    refuse_after_interfaces(
        "fdb: {static: [{vlan: 4093, mac: 02:00:00:00:00:01, port: u1}]}\n",
        "x.yaml:11:59: fdb.static[0].port: port u1 does not carry VLAN 4093; write a VLAN of the port, or another port",
    );
}

#[test]
fn router_stations_count_in_the_capacity_of_the_fdb() {
    let interfaces = "routing: {interfaces: [{count: 9, vlan: \"*\", addresses: [10.0.*.1/24]}]}";
    refuse(
        &format!(
            "ports: [{{name: p1, device: net_tap0, speed: 1G, vlan: {{tagged: [1-9]}}}}]\nfdb: {{capacity: 16}}\n{interfaces}\n"
        ),
        "x.yaml:2:17: fdb.capacity: 9 static entries and interfaces are too many for a capacity of 16; write `capacity: 36` or more",
    );
}

#[test]
fn ageing_shorter_than_neighbours_need_is_warned_of() {
    let file = |ageing: &str| format!("{TOR}routing:\n{INTERFACES}fdb: {{ageing: {ageing}}}\n");
    warn(
        &file("59s"),
        "x.yaml:11:15: fdb.ageing: `59s` is short for a switch that routes: a silent neighbour in a VLAN is forgotten before the router asks for it again; write `60s` or more",
    );
    for ageing in ["60s", "0s"] {
        assert_eq!(accept(&file(ageing)).warnings, [""; 0]);
    }
    let ports_only = "routing: {interfaces: [{port: u1, addresses: [10.0.1.1/31]}]}\nfdb: {ageing: 10s}\n";
    assert_eq!(accept(&format!("{TOR}{ports_only}")).warnings, [""; 0]);
}

#[test]
fn simulated_switch_routes_at_ports_without_device() {
    let overrides = config::Overrides { simulated: true, ..config::Overrides::default() };
    let text = "ports: [{name: p1, speed: 10G}]\nrouting: {interfaces: [{port: p1, addresses: [10.0.1.1/31]}]}\n";
    let config = overrides.parse("x.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(routing(&config).interfaces[0].vlan, 4094);
}

#[test]
fn check_shows_interfaces_and_counts_of_routes() {
    let path = conf_dir().join("router.yaml");
    let (code, stdout, stderr) = commands::holdfast(&["check", path.to_str().unwrap()]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = stdout.lines().map(words).collect();
    for line in [
        "spine1 spine1 internal 4094 9000 of port spine1 10.0.1.1/31, fd00:1::1/127",
        "vlan10 host1, host2 10 9000 of port host1 10.10.0.1/24, fd00:10::1/64",
        "routing: 3 routes (4 next hops, 1 drop), 0 static neighbours; room for 65536 IPv4 and 16384 IPv6 prefixes",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line} is missing:\n{stdout}");
    }
    assert!(!stdout.contains("warning"), "{stdout}");
    let (_, json, _) = commands::holdfast(&["check", path.to_str().unwrap(), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let routing = &json["outlook"]["routing"];
    assert_eq!((&routing["routes"], &routing["next_hops"]), (&3.into(), &4.into()));
    assert_eq!(
        (&routing["interfaces"][1]["vlan"], &routing["interfaces"][1]["is_internal"]),
        (&4093.into(), &true.into())
    );
    assert_eq!(routing["interfaces"][2]["addresses"][0], "10.10.0.1/24");
}
