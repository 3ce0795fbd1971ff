//! NICs by which the machine is reached: the doctor names what ends with them, and first offers another NIC.

use holdfast::doctor::Level::{Bad, Ok as Fine};
use holdfast::doctor::script;

use crate::server::{NICS, Server, at};

const A: &str = "0000:3b:00.0";
const HEAD: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";

/// A server whose NIC of port a is eth0, and whose eth9 is not on PCI.
fn server() -> Server {
    let server = Server::new();
    server.nic(A, "0x8086", "0x10fb", Some("ixgbe"), "1", "40");
    server.file(&format!("sys/bus/pci/devices/{A}/net/eth0/mtu"), "1500\n");
    server
}

/// Words of an address as this processor's kernel writes them.
fn hex(address: &str) -> String {
    let word = |bytes: &[u8]| format!("{:08X}", u32::from_ne_bytes(bytes.try_into().expect("four bytes")));
    match address.parse().expect("an address") {
        std::net::IpAddr::V4(address) => word(&address.octets()),
        std::net::IpAddr::V6(address) => address.octets().chunks(4).map(word).collect(),
    }
}

fn route(interface: &str, network: &str, mask: &str) -> String {
    format!("{interface}\t{}\t00000000\t0001\t0\t0\t0\t{}\t0\t0\t0\n", hex(network), hex(mask))
}

/// A connection of TCP at a local port, with its state.
fn connection(own: &str, port: u16, peer: &str, state: &str) -> String {
    format!("   0: {}:{port:04X} {}:C001 {state} 00000000:00000000 00:00000000 00000000\n", hex(own), hex(peer))
}

fn bound(server: &Server) -> String {
    at(&server.examine(NICS, None), Bad, "port a")
}

#[test]
fn nic_with_the_default_route_is_named_and_another_is_the_first_remedy() {
    let server = server();
    let (default, other) = (route("eth0", "0.0.0.0", "0.0.0.0"), route("eth9", "10.0.0.0", "255.0.0.0"));
    server.file("proc/net/route", &format!("{HEAD}{default}{other}"));
    let text = bound(&server);
    let what = "0000:3b:00.0 is bound to the kernel's ixgbe (eth0) and has the default route > write another NIC as the \
                port's `device` (none here is free); or, from a console, since the default route will end: `modprobe";
    assert!(text.starts_with(what), "{text}");
    server.nic("0000:01:00.0", "0x8086", "0x1521", Some("igb"), "0", "12");
    assert!(bound(&server).contains("(free: 0000:01:00.0)"), "{}", bound(&server));
    // The script has no command for it, only the remedy as a comment.
    let text = script(&server.examine(NICS, None));
    assert!(text.contains("\n# By hand: write another NIC"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("driverctl")), "{text}");
    // Without a configuration too.
    let findings = server.look();
    let text = at(&findings, Fine, "nic 0000:3b:00.0");
    let remedy = "> it has the default route: give another NIC to the switch (free: 0000:01:00.0)";
    assert!(text.ends_with(remedy), "{text}");
    // By another interface nothing ends.
    server.file("proc/net/route", &format!("{HEAD}{}", route("eth9", "0.0.0.0", "0.0.0.0")));
    let text = bound(&server);
    assert!(text.contains("(eth0) > `modprobe") && !text.contains("console"), "{text}");
}

#[test]
fn nic_of_an_ssh_session_is_named_also_below_a_bond() {
    let server = server();
    server.file("sys/class/net/eth0/upper_bond0/mtu", "1500\n");
    server.file("sys/class/net/bond0/upper_bond0.7/mtu", "1500\n");
    let network = |length: &str| route("bond0.7", "192.0.2.0", length);
    let default = route("eth9", "0.0.0.0", "0.0.0.0");
    server.file("proc/net/route", &format!("{HEAD}{default}{}", network("255.255.255.0")));
    let session = connection("192.0.2.1", 22, "192.0.2.7", "01");
    server.file("proc/net/tcp", &session);
    let text = bound(&server);
    assert!(text.contains("has the ssh session of 192.0.2.7 >"), "{text}");
    // A route that is more specific leads elsewhere.
    let elsewhere = route("eth9", "192.0.2.0", "255.255.255.128");
    server.file("proc/net/route", &format!("{HEAD}{elsewhere}{}", network("255.255.255.0")));
    assert!(bound(&server).contains("(eth0) > `modprobe"), "{}", bound(&server));
    // Neither a listener nor another service is a session.
    server.file("proc/net/route", &format!("{HEAD}{default}{}", network("255.255.255.0")));
    let others = [connection("192.0.2.1", 22, "0.0.0.0", "0A"), connection("192.0.2.1", 443, "192.0.2.7", "01")];
    server.file("proc/net/tcp", &others.concat());
    assert!(bound(&server).contains("(eth0) > `modprobe"), "{}", bound(&server));
    // A socket of IPv6 may have a peer of IPv4.
    server.file("proc/net/tcp6", &connection("::ffff:192.0.2.1", 22, "::ffff:192.0.2.7", "01"));
    assert!(bound(&server).contains("has the ssh session of 192.0.2.7 >"), "{}", bound(&server));
}

#[test]
fn nic_with_routes_of_ipv6_is_named() {
    let server = server();
    let zero = "0".repeat(32);
    let row = |length: &str, flags: &str| {
        format!("{zero} {length} {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 {flags} eth0\n")
    };
    server.file("proc/net/tcp6", &connection("2001:db8::1", 22, "2001:db8:1::7", "01"));
    server.file("proc/net/ipv6_route", &row("00", "00000003"));
    let text = bound(&server);
    assert!(text.contains("has the default route and the ssh session of 2001:db8:1::7 >"), "{text}");
    // The kernel's own route that rejects everything is none.
    server.file("proc/net/ipv6_route", &row("00", "00200200"));
    assert!(bound(&server).contains("(eth0) > `modprobe"), "{}", bound(&server));
}
