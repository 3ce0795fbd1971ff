//! Single frames through the switch: ARP, ping, and frames that the switch must not touch.

use std::time::Duration;

use etherparse::{Icmpv4Type, PacketBuilder};

use crate::bench::{Bench, PORTS, host_ip, host_mac};
use crate::guest::PATIENCE;

/// EtherType of frames that only tests send (IEEE 802 local experimental).
pub const EXPERIMENTAL: u16 = 0x88b5;

/// Host 0 asks for host 1 by ARP and pings it. Each frame must arrive as it was sent, and nowhere else.
#[track_caller]
pub fn arp_and_ping(bench: &mut Bench) {
    bench.wires.forget();
    let request = arp(1, [0xff; 6], 0, 1);
    bench.send(0, &request);
    expect(bench, "ARP request", &request, &[1, 2]);
    let reply = arp(2, host_mac(0).0, 1, 0);
    bench.send(1, &reply);
    expect(bench, "ARP reply", &reply, &[0]);
    let echo = |from: usize, to: usize, is_reply: bool| {
        let header = etherparse::IcmpEchoHeader { id: 7, seq: 1 };
        let kind = if is_reply { Icmpv4Type::EchoReply(header) } else { Icmpv4Type::EchoRequest(header) };
        let builder = PacketBuilder::ethernet2(host_mac(from).0, host_mac(to).0)
            .ipv4(host_ip(from).octets(), host_ip(to).octets(), 64)
            .icmpv4(kind);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[0x5a; 56]).expect("a frame");
        frame
    };
    let (request, reply) = (echo(0, 1, false), echo(1, 0, true));
    bench.send(0, &request);
    expect(bench, "echo request", &request, &[1]);
    bench.send(1, &reply);
    expect(bench, "echo reply", &reply, &[0]);
}

/// A frame of class 0 from host `from` to host `to` that marks a moment on the wire.
pub fn marker(from: usize, to: usize, number: u8) -> Vec<u8> {
    let mut frame = ethernet(host_mac(to).0, from, EXPERIMENTAL);
    frame.push(number);
    frame.resize(60, 0);
    frame
}

/// Waits for `frame` at each NIC of `ports`, and checks that no other has sent it.
#[track_caller]
fn expect(bench: &mut Bench, what: &str, frame: &[u8], ports: &[usize]) {
    let has = |wires: &crate::wire::Wires, port: usize| wires.seen(port).others.iter().any(|seen| seen == frame);
    let came = bench.listen(PATIENCE, |wires| ports.iter().all(|port| has(wires, *port)));
    let log = bench.log();
    let seen: Vec<_> = (0..PORTS).map(|port| &bench.wires.seen(port).others).collect();
    assert!(came, "no {what}: {seen:02x?} {log}");
    bench.listen(Duration::from_millis(20), |_| false);
    for port in (0..PORTS).filter(|port| !ports.contains(port)) {
        assert!(!has(&bench.wires, port), "{what} left by port {port} too");
    }
}

fn ethernet(to: [u8; 6], from: usize, ethertype: u16) -> Vec<u8> {
    [&to[..], &host_mac(from).0, &ethertype.to_be_bytes()].concat()
}

/// An ARP message of RFC 826 between two hosts, in a frame of the least length.
fn arp(operation: u8, to: [u8; 6], sender: usize, target: usize) -> Vec<u8> {
    let mut frame = ethernet(to, sender, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(host_mac(sender).0);
    frame.extend(host_ip(sender).octets());
    frame.extend(if operation == 1 { [0; 6] } else { host_mac(target).0 });
    frame.extend(host_ip(target).octets());
    frame.resize(60, 0);
    frame
}
