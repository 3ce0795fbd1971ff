//! Targets of a fuzzer: one function for each kind of input from outside, with an input of any bytes. None may panic,
//! and what an input makes the program keep is bounded.
//!
//! `tests/fuzz/main.rs` calls them with the kept corpus, `tests/fuzz/afl` with the inputs of AFL++.

use std::sync::{Arc, LazyLock};

use holdfast::config;
use holdfast::lacp::{self, GroupSettings, Negotiation};
use holdfast::lldp::{self, MOST_NEIGHBOURS, Stated, System, Timing};
use holdfast::mmu::HpccRules;
use holdfast::netlink::decode::entry_key;
use holdfast::netlink::{Limits, Mirror, TableName, decode, messages};
use holdfast::plan::SwitchSpec;
use holdfast::route::{FibWriter, PuntCause, PuntFrame, SoftFib};
use holdfast::router::{Router, fixture};
use holdfast::sim::hpcc::{Inputs, MmuSizes};
use holdfast::units::Nanos;
use holdfast::wire::lldp::Aggregation;
use holdfast::wire::parse::L3;
use holdfast::wire::{self, MacAddr, loop_probe, mac_control, parse};

/// A function that takes an input.
pub type Target = fn(&[u8]);

/// All targets by their names, which are those of the directories of their inputs.
pub const TARGETS: [(&str, Target); 8] = [
    ("wire", frame),
    ("router", router),
    ("lldp", lldp_agent),
    ("lacp", lacp_agent),
    ("netlink", netlink),
    ("config", configuration),
    ("faults", faults),
    ("hpcc", hpcc),
];

/// Most frames that a target takes from one input.
const MOST_FRAMES: usize = 32;

/// A switch of two ports.
static SWITCH: LazyLock<SwitchSpec> = LazyLock::new(|| {
    let text = "{preset: roce, ports: [{name: p1, device: ring, speed: 25G}, {name: p2, device: ring, speed: 1G}], \
                hosts: [{name: h1, port: p1}, {name: h2, port: p2}]}";
    config::parse("fuzz", text).unwrap_or_else(|errors| panic!("{errors}")).switch
});

/// Cuts an input into frames. Each has three bytes in front: one for the target, then the length, with the high byte
/// first.
fn frames(input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut remaining = input;
    std::iter::from_fn(move || {
        let (&[op, high, low], behind) = remaining.split_first_chunk()?;
        let (frame, next) = behind.split_at(behind.len().min(u16::from_be_bytes([high, low]).into()));
        remaining = next;
        Some((op, frame))
    })
    .take(MOST_FRAMES)
}

/// Reads a frame by every parser. The quick parsers agree with the one for any frame.
fn frame(input: &[u8]) {
    let any = parse(input);
    if let Some(plain) = wire::parse_plain(input) {
        let any = any.as_ref().expect("a plain frame is no malformed one");
        let marks = (plain.usual.traffic_class, plain.l3, plain.l3_offset, plain.vlan, plain.pcp);
        let expected = (any.traffic_class, any.l3, any.l3_offset, any.vlan().unwrap_or(0), any.pcp().unwrap_or(0));
        assert_eq!(marks, expected);
    }
    if let Some(usual) = wire::parse_usual(input) {
        assert_eq!(wire::parse_plain(input).map(|plain| plain.usual), Some(usual));
    }
    let _ = (wire::glance(input), wire::glance_usual(input), wire::glance_roce(input), any.map(|any| any.l4()));
    let _ = (mac_control::parse(input), wire::cnm::parse(input), loop_probe::ReceivedProbe::parse(input));
    let _ = (wire::ip::Ipv4::read(input), wire::ip::Ipv6::read(input));
}

/// Frames to a router, with time between them.
fn router(input: &[u8]) {
    const OF_IP: [PuntCause; 8] = [
        PuntCause::NeighbourDiscovery,
        PuntCause::Icmp,
        PuntCause::Local,
        PuntCause::Resolve,
        PuntCause::TimeExceeded,
        PuntCause::Unreachable,
        PuntCause::TooBig,
        PuntCause::Bgp,
    ];
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut now = Nanos(1_000_000_000);
    let mut router = Router::new(&fixture::two_ports(), fibs, now);
    for (op, bytes) in frames(input) {
        let Ok(headers) = parse(bytes) else { continue };
        let cause = if headers.l3 == L3::Other { PuntCause::Arp } else { OF_IP[usize::from(op >> 1 & 7)] };
        let port = op & 1;
        let vlan = 4094 - u16::from(port);
        let bytes = bytes.to_vec();
        let frame = PuntFrame { bytes, port, vlan, l3_offset: headers.l3_offset, cause, may_wait: op & 16 != 0 };
        router.receive(&frame, now);
        now.0 += u64::from(op >> 5) * 700_000_000;
        router.tick(now);
        if router.update().is_some() {
            router.settle();
        }
        assert!(router.take_output().len() < 100, "few frames answer one");
    }
}

/// Frames to an agent of LLDP at two ports, with time between them.
fn lldp_agent(input: &[u8]) {
    static PORTS: LazyLock<[Option<Stated>; 2]> =
        LazyLock::new(|| [0, 1].map(|port| lldp::stated(&SWITCH, port, &System::default(), Aggregation::default())));
    let mut agent = lldp::Agent::new(PORTS.to_vec(), Timing::default());
    let mut now = Nanos(0);
    (0..2).for_each(|port| agent.link(port, true, now));
    for (op, frame) in frames(input) {
        let port = usize::from(op & 1);
        agent.received(port, frame, now);
        now.0 += u64::from(op >> 3) * 1_000_000_000;
        match op >> 1 & 3 {
            0 => agent.link(port, op & 8 != 0, now),
            _ => agent.tick(now),
        }
        let (sent, told) = (agent.take_frames().len(), agent.take_events().len());
        assert!(sent < 100 && told < 200, "{sent} frames and {told} events");
        let view = agent.view(now);
        assert!(view.ports.iter().all(|port| port.neighbours.len() <= MOST_NEIGHBOURS));
    }
}

/// Frames to an agent of LACP with an active and a passive group, with time between them.
fn lacp_agent(input: &[u8]) {
    let group = |ports: &[usize], is_active| {
        let negotiation = Some(Negotiation { is_active, is_fast: true });
        GroupSettings { name: "bond".into(), ports: ports.iter().copied().collect(), negotiation, min_links: 1 }
    };
    let mut agent = lacp::Agent::new(lacp::Settings {
        system: MacAddr::local(1, 0),
        names: (0..4).map(|port| format!("p{port}")).collect(),
        macs: (0..4).map(|port| MacAddr::local(1, port)).collect(),
        groups: vec![group(&[0, 1], true), group(&[2], false)],
    });
    let mut now = Nanos(1_000_000);
    (0..3).for_each(|port| agent.link(port, true, now));
    for (op, frame) in frames(input) {
        let port = usize::from(op & 3);
        agent.received(port, frame, now);
        now.0 += u64::from(op >> 3) * 100_000_000;
        match op >> 2 & 1 {
            0 => agent.link(port, op & 8 != 0, now),
            _ => agent.tick(now),
        }
        let (sent, told) = (agent.take_frames().len(), agent.take_events().len());
        assert!(sent < 100 && told < 100, "{sent} frames and {told} events");
        assert!((agent.distributing() - agent.collecting()).is_empty());
    }
}

/// A datagram of the kernel's routing tables.
fn netlink(input: &[u8]) {
    let limits = Limits { links: 8, addresses: 8, neighbours: 8, next_hops: 8, routes: 32 };
    let mut mirror = Mirror::new(limits);
    for message in messages(input).map_while(Result::ok) {
        match decode(message.kind, message.flags, message.payload) {
            Ok(Some(event)) => mirror.feed(event),
            Ok(None) => {}
            Err(_) => mirror.keep_undecoded(TableName::ALL[0], entry_key(message.kind, message.payload)),
        }
        let _ = (message.answer(), mirror.changes(4));
        let sizes = mirror.sizes();
        assert!(sizes.routes <= limits.routes && sizes.next_hops <= limits.next_hops, "{sizes:?}");
    }
}

/// A configuration, which is valid or wrong in places that its errors name.
fn configuration(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(errors) = config::parse("fuzz", text) {
        assert!(!errors.to_string().is_empty());
    }
}

/// A request of faults.
fn faults(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(errors) = config::read_faults(text, &SWITCH) {
        assert!(!errors.to_string().is_empty());
    }
}

/// HPCC's configuration, topology and flows, with a line `---` between them.
fn hpcc(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut parts = text.splitn(3, "---\n");
    let texts = [(); 3].map(|()| parts.next().unwrap_or_default());
    let prepared = Inputs::of(texts).and_then(|inputs| inputs.prepare(None, (HpccRules::NONE, MmuSizes::Hpcc)));
    if let Err(errors) = prepared {
        assert!(!errors.to_string().is_empty());
    }
}
