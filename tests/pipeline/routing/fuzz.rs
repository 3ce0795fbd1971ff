//! Random and mutated frames to a switch that routes: no frame causes a panic or leaks a cell or a buffer, and each is
//! counted once.
//!
//! 200,000 frames by default; `HOLDFAST_FUZZ_FRAMES` and `HOLDFAST_FUZZ_SEED` choose other runs.

use holdfast::mmu::HeadroomPolicy;
use holdfast::plan::DropReason;
use holdfast::qos::wred::XorShift;
use holdfast::route::{InjectTo, PuntCause, PuntFrame};
use holdfast::wire::MacAddr;

use super::bed::*;
use super::packet::{CUSTOMER, Packet, SERVICE, fix_checksum, with_payload};
use crate::fuzz::{make_eventful, setting};
use crate::harness::*;

/// Number of frames from which on a run reaches each drop reason of the router and each cause.
const ENOUGH: u64 = 100_000;

/// Random numbers, and choices by them.
struct Dice(XorShift);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0.roll() as usize % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Whether an event with the probability of one in `n` happens.
    fn is_one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Returns a frame of any kind for `port`: noise, or a valid one with some bytes changed, cut or appended.
fn any_frame(dice: &mut Dice, port: usize) -> Vec<u8> {
    let mut frame = match dice.below(16) {
        0 => return (0..dice.below(120)).map(|_| dice.below(256) as u8).collect(),
        1 => no_packet(dice, port),
        2 => pfc(dice),
        _ => packet_frame(dice, port),
    };
    let l3 = if frame.get(12..14) == Some(&[8, 0]) { 14 } else { 18 };
    for _ in 0..[0, 0, 1, 3][dice.below(4)] {
        let at = dice.below(frame.len().min(64));
        frame[at] = dice.below(256) as u8;
    }
    // Mutations behind a wrong checksum would reach nothing.
    if frame.len() > l3 + 60 && frame[l3] == 0x45 && !dice.is_one_in(8) {
        fix_checksum(&mut frame, l3);
    }
    if dice.is_one_in(16) {
        frame.truncate(dice.below(frame.len() + 1));
    }
    frame
}

/// A packet: mostly to the router, from and to addresses of any kind.
fn packet(dice: &mut Dice, port: usize) -> Packet {
    let (is_v6, vlan) = (dice.is_one_in(2), (port == 3).then(|| dice.pick(&[10, 20])));
    let hop = dice.pick(&[0, 1, 2, 3, 4, 5, 6, 100, 100, 99, 200, 201, 202]);
    let mut packet = packet_at(port, vlan, hop, is_v6);
    if dice.is_one_in(8) {
        let own = own_addresses(dice.below(4))[usize::from(is_v6)];
        (if dice.is_one_in(2) { packet.dst = own } else { packet.src = own });
    }
    if dice.is_one_in(16) {
        let odd = if is_v6 { ["ff02::1", "::1", "fe80::5"] } else { ["224.0.0.9", "127.0.0.1", "169.254.0.5"] };
        let odd = dice.pick(&odd).parse().unwrap();
        (if dice.is_one_in(2) { packet.dst = odd } else { packet.src = odd });
    }
    packet.ttl = dice.pick(&[0, 1, 2, 64, 64, 64, 64, 64, 64, 64, 64, 255]);
    (packet.dscp, packet.ecn) = (dice.pick(&[0, LOSSLESS_DSCP, 46, 48, 8]), dice.below(4) as u8);
    packet.ports = (dice.below(1 << 16) as u16, dice.pick(&[4791, 179, 3784, 53]));
    packet.payload = dice.pick(&[20, 60, 300, 860, 1400, 1470, 1480]);
    packet.is_whole = dice.is_one_in(2);
    packet.fragment =
        if dice.is_one_in(8) && !is_v6 { (dice.below(100) as u16, dice.is_one_in(2)) } else { (0, false) };
    // Other stations, so that bridged frames are among the routed ones.
    if dice.is_one_in(6) {
        packet.macs.1 = dice.pick(&[mac(2), mac(3), mac(5), mac(88), MacAddr::BROADCAST, own_mac(0)]);
    }
    if dice.is_one_in(16) {
        packet.macs.0 = dice.pick(&[own_mac(2), own_mac(3), mac(2), mac(5)]);
    }
    if dice.is_one_in(8) {
        packet.tag = Some((dice.pick(&[CUSTOMER, SERVICE]), dice.pick(&[0, 10, 20, 4094, 7 << 13 | 10])));
    }
    packet
}

/// A packet as a frame, some of them with IPv4 options or a second tag.
fn packet_frame(dice: &mut Dice, port: usize) -> Vec<u8> {
    let packet = packet(dice, port);
    let mut frame = packet.frame();
    match dice.below(24) {
        0 if packet.tag.is_some() => frame.splice(16..16, [0x81, 0, 0, 7]).for_each(drop),
        1 if packet.tag.is_none() && packet.dst.is_ipv4() => {
            frame.splice(34..34, [1, 1, 1, 0]);
            let length = u16::from_be_bytes([frame[16], frame[17]]) + 4;
            frame[14] = 0x46;
            frame[16..18].copy_from_slice(&length.to_be_bytes());
            fix_checksum(&mut frame, 14);
        }
        2..4 if packet.tag.is_none() => {
            // A TCP header of five words.
            let (protocol, words) = if packet.dst.is_ipv4() { (23, 46) } else { (20, 66) };
            (frame[protocol], frame[words]) = (6, 0x50);
        }
        _ => {}
    }
    frame
}

/// ARP, LLDP, ICMP, neighbour discovery, or a protocol that the router does not know.
fn no_packet(dice: &mut Dice, port: usize) -> Vec<u8> {
    let own = own_mac(interface_at(port, None));
    let to = dice.pick(&[own, MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1]), MacAddr::LLDP]);
    let macs = (mac(100 + port), to);
    match dice.below(4) {
        0 => {
            let is_v6 = dice.is_one_in(2);
            let (dst, ttl) = (own_addresses(2)[usize::from(is_v6)], dice.pick(&[64, 255]));
            let packet = Packet { macs, dst, ttl, ..packet_at(port, None, 0, is_v6) };
            let mut frame = packet.frame();
            let (protocol, kind) = if is_v6 { (20, 54) } else { (23, 34) };
            frame[protocol] = if is_v6 { 58 } else { 1 };
            frame[kind] = dice.pick(&[128, 135, 136]);
            frame
        }
        _ => with_payload(macs, dice.pick(&[0x0806, 0x0806, 0x88cc, 0x88b5]), &[0; 46]),
    }
}

/// A PFC frame.
fn pfc(dice: &mut Dice) -> Vec<u8> {
    let mut payload = vec![1, 1, 0, dice.below(256) as u8];
    payload.resize(46, dice.below(256) as u8);
    with_payload((mac(1), MacAddr::MAC_CONTROL), 0x8808, &payload)
}

/// The control plane of a run: it takes all punted frames and counts them.
#[derive(Default)]
struct Control {
    causes: [u64; PuntCause::COUNT],
    /// Frames that exist only here: neither dropped nor sent.
    consumed: u64,
}

impl Control {
    fn take(&mut self, punted: Vec<PuntFrame>) {
        for frame in punted {
            self.causes[frame.cause as usize] += 1;
            self.consumed += u64::from(is_consumed(&frame));
        }
    }
}

/// Whether the punted frame was neither dropped nor flooded to ports. Ports 3, 4 and 5 always have a link, so that each
/// frame of a VLAN has another member to go to.
fn is_consumed(frame: &PuntFrame) -> bool {
    let to = MacAddr(*frame.bytes.first_chunk().unwrap());
    match frame.cause {
        PuntCause::TimeExceeded | PuntCause::Unreachable | PuntCause::TooBig => false,
        PuntCause::Resolve => frame.may_wait,
        _ if to.is_group() => frame.port < 2 || to == MacAddr::LLDP,
        _ => true,
    }
}

/// Changes something else than traffic: links, rings, tables, time, and frames of the control plane.
fn disturb(bed: &mut RoutingBed, dice: &mut Dice, port: usize) {
    match dice.below(64) {
        0 if port < 3 => bed.switch.set_link(port, false),
        1 => bed.io.set_room(port, Some(dice.below(40))),
        2..4 => (0..PORTS).for_each(|port| bed.switch.set_link(port, true)),
        4..6 => (0..PORTS).for_each(|port| bed.io.set_room(port, None)),
        6..9 => bed.switch.set_routes(&Tables::default().share()),
        9 => bed.switch.set_routes(&Tables::empty().share()),
        10..14 => bed.learn(),
        // The policers refill.
        14..18 => bed.now += HZ / 200,
        18..24 => {
            let to = dice.pick(&[mac(2), mac(77), MacAddr::BROADCAST]);
            let frame = Packet { macs: (own_mac(2), to), ..packet_at(2, None, 1, false) }.frame();
            let (way, vlan) = dice.pick(&[
                (InjectTo::Port(0), 4094),
                (InjectTo::Port(1), 4093),
                (InjectTo::Vlan(10), 10),
                (InjectTo::Vlan(20), 20),
            ]);
            let lcore = dice.below(bed.links.len());
            bed.links[lcore].inject(&frame, way, vlan);
        }
        _ => {}
    }
}

fn fuzz(policy: HeadroomPolicy, frames: u64, seed: u32) -> (RoutingBed, Control) {
    let mut spec = routing_spec();
    make_eventful(&mut spec, policy);
    // Packets arrive that are too long for their next hops.
    for port in [0, 3] {
        spec.ports[port].mtu = 1600;
    }
    let mut bed = RoutingBed::with(&spec, Tables::default());
    let (mut dice, mut control, mut received) = (Dice(XorShift::new(seed)), Control::default(), 0);
    while received < frames {
        let port = dice.below(PORTS);
        let burst = 1 + dice.below(60) as u64;
        for _ in 0..burst {
            let frame = any_frame(&mut dice, port);
            bed.io.inject(port, &frame);
        }
        received += burst;
        disturb(&mut bed, &mut dice, port);
        bed.run(dice.below(8) as u64 * 1000);
        (0..PORTS).for_each(|port| drop(bed.io.sent_all(port)));
        if !dice.is_one_in(4) {
            control.take(bed.punted());
        }
    }
    settle(&mut bed, &mut control);
    check_conservation(&bed, &control, received);
    (bed, control)
}

/// Lets all frames leave and asserts that none is left.
fn settle(bed: &mut RoutingBed, control: &mut Control) {
    for port in 0..PORTS {
        bed.switch.set_link(port, true);
        bed.io.set_room(port, None);
    }
    for _ in 0..2_000 {
        bed.run(10_000);
        control.take(bed.punted());
    }
    bed.assert_empty();
    for port in 0..PORTS {
        assert_eq!(bed.counters.ports[port].xoff_mask.get(), 0, "no XOFF without its XON");
    }
}

/// Asserts that every received, injected and copied frame was sent, dropped for a reason, or consumed, and only once.
fn check_conservation(bed: &RoutingBed, control: &Control, received: u64) {
    let (mut sent, mut dropped, mut consumed) = (0, 0, control.consumed);
    for port in (0..bed.counters.ports.len()).flat_map(|port| bed.counters.of_port(port)) {
        sent += port.tx_frames.iter().map(|count| count.get()).sum::<u64>();
        dropped += port.drops.iter().flatten().map(|count| count.get()).sum::<u64>();
        consumed += port.pfc_rx_frames.get() + port.pause_rx_frames.get();
    }
    let injected = bed.sum(|lcore| lcore.injected_frames.get());
    assert_eq!(received + bed.io.copies + injected, sent + dropped + consumed);
    let punted: [u64; PuntCause::COUNT] = std::array::from_fn(|cause| bed.sum(|lcore| lcore.punted[cause].get()));
    assert_eq!(punted, control.causes, "each punted frame was counted and taken");
}

/// Reasons that only routed frames have.
fn reasons() -> impl Iterator<Item = DropReason> {
    DropReason::TABLE.iter().map(|(reason, ..)| *reason).filter(|reason| reason.is_of_routing())
}

#[test]
fn random_frames_to_the_router_neither_panic_nor_leak() {
    let frames = setting("HOLDFAST_FUZZ_FRAMES", 200_000);
    let seed = setting("HOLDFAST_FUZZ_SEED", 0x0a11_fade) as u32;
    let policies = [HeadroomPolicy::Independent, HeadroomPolicy::SharedPool, HeadroomPolicy::Dynamic];
    let (mut drops, mut causes) = ([0; DropReason::COUNT], [0; PuntCause::COUNT]);
    let (mut routed, mut injected) = (0, 0);
    for (policy, nth) in policies.into_iter().zip(0..) {
        let (bed, control) = fuzz(policy, frames / 3, seed.wrapping_add(nth));
        for (_, reason, count) in bed.all_drops() {
            drops[reason as usize] += count;
        }
        causes.iter_mut().zip(control.causes).for_each(|(sum, count)| *sum += count);
        routed += bed.sum(|lcore| lcore.routed_frames.get());
        injected += bed.sum(|lcore| lcore.injected_frames.get());
    }
    let rarest = reasons().map(|reason| (drops[reason as usize], reason.label())).min().unwrap();
    // This switch has no link aggregation group and sends no probes.
    let absent = [PuntCause::Lacp, PuntCause::LoopProbe];
    let table = PuntCause::TABLE.iter().filter(|(cause, ..)| !absent.contains(cause));
    let rarest_cause = table.map(|(cause, label, _)| (causes[*cause as usize], *label)).min().unwrap();
    println!("{routed} routed, {injected} injected; rarest: {rarest:?}, {rarest_cause:?}");
    assert!(frames < ENOUGH || rarest.0 > 0, "no frame was dropped as {}", rarest.1);
    assert!(frames < ENOUGH || rarest_cause.0 > 0, "no frame was punted as {}", rarest_cause.1);
    assert!(frames < ENOUGH || routed > frames / 20 && injected > 100, "{routed} routed, {injected} injected");
}
