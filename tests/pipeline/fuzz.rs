//! Random and mutated frames through parser and pipeline: no frame causes a panic or leaks a cell or a buffer.
//!
//! Ten million frames by default; `HOLDFAST_FUZZ_FRAMES` and `HOLDFAST_FUZZ_SEED` choose other runs.

use holdfast::forward::{LagSpec, LagState, VlanMode};
use holdfast::mmu::HeadroomPolicy;
use holdfast::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use holdfast::plan::counters::LcoreCounters;
use holdfast::plan::exception::ExceptionLink;
use holdfast::plan::mirror::{CopyFrame, MirrorSession};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::qos::wred::XorShift;
use holdfast::qos::{FloodKind, WredProfile};
use holdfast::route::InjectTo;
use holdfast::sets::PortSet;
use holdfast::units::{Bytes, Cells, Nanos, PacketRate, Ticks};
use holdfast::wire::MacAddr;

use crate::harness::*;
use crate::layout::Layout;

const PORTS: usize = 6;
/// Number of frames from which on a run reaches each drop reason: see tests/fuzz/README.md.
const ENOUGH: u64 = 4_000_000;

/// Returns a frame of any kind: noise, or a valid one with some bytes changed, cut or appended.
fn any_frame(rng: &mut XorShift) -> Vec<u8> {
    let roll = rng.roll();
    if roll.is_multiple_of(4) {
        let len = rng.roll() as usize % 120;
        return (0..len).map(|_| rng.roll() as u8).collect();
    }
    let kind = rng.roll();
    let dscp = [0, LOSSLESS_DSCP, 46, 48, 8][kind as usize % 5];
    let to = [0xffff, 0, 1, 2, 3, 4, 5, 77][rng.roll() as usize % 8];
    let mut frame = frame(rng.roll() as usize % PORTS, to, dscp, 42 + rng.roll() as usize % 1500);
    // One of four frames is not ECN-capable, so WRED drops it.
    if kind >> 30 == 0 {
        frame[15] &= !3;
    }
    match rng.roll() % 8 {
        0 => frame.splice(12..12, [0x81, 0x00, rng.roll() as u8, rng.roll() as u8]).for_each(drop),
        1 => frame = ipv6(frame, rng),
        4 => frame.splice(12..12, [0x88, 0xa8, 0, rng.roll() as u8, 0x81, 0x00, 0, 1]).for_each(drop),
        2 => {
            frame[12..14].copy_from_slice(&[0x88, 0x08]);
            let roll = rng.roll();
            frame[14..18].copy_from_slice(&[1, 1, 0, roll as u8]);
            // Three of four PFC frames have the destination that PFC requires.
            if roll >> 8 & 3 != 0 {
                frame[..6].copy_from_slice(&MacAddr::MAC_CONTROL.0);
            }
        }
        3 => {
            frame[..5].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0]);
            // Half are of spanning tree.
            if rng.roll().is_multiple_of(2) {
                frame[5] = 0;
                frame[12..17].copy_from_slice(&[0, 38, 0x42, 0x42, 3]);
            }
        }
        _ => {}
    }
    for _ in 0..rng.roll() % 4 {
        let at = rng.roll() as usize % frame.len().min(64);
        frame[at] = rng.roll() as u8;
    }
    if rng.roll().is_multiple_of(8) {
        frame.truncate(rng.roll() as usize % (frame.len() + 1));
    }
    frame
}

/// Returns the payload in IPv6, half of the time behind a hop-by-hop header.
fn ipv6(ipv4: Vec<u8>, rng: &mut XorShift) -> Vec<u8> {
    let class = ipv4[15];
    let extended = rng.roll().is_multiple_of(2);
    let segment = &ipv4[34..];
    let length = (segment.len() + if extended { 8 } else { 0 }) as u16;
    let mut frame = ipv4[..12].to_vec();
    frame.extend([0x86, 0xdd, 0x60 | class >> 4, class << 4, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([if extended { 0 } else { 17 }, 64]);
    frame.extend([1; 32]);
    if extended {
        frame.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    }
    frame.extend(segment);
    frame
}

/// Returns the number in the environment variable `name`.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The port with several receive queues and `pfc: queue`.
const QUEUED: usize = 5;

/// A port that sends copies only, and all ports.
const OUTPUT: usize = PORTS;
const ALL_PORTS: usize = PORTS + 1;

/// Returns a switch whose settings cause as many different events as possible.
fn eventful(policy: HeadroomPolicy) -> SwitchSpec {
    let mut spec = spec(ALL_PORTS);
    let everything = MirrorSession { dropped: true, marked: true, rate: u32::MAX, ..MirrorSession::default() };
    let sample = MirrorSession { sample: 100, rate: u32::MAX, ..MirrorSession::default() };
    spec.mirror.sessions.extend([everything, sample]);
    spec.mirror.outputs = PortSet::only(OUTPUT);
    spec.ports[1].vlan = VlanMode::Trunk { tagged: (1..100).collect(), native: None };
    spec.ports[2].vlan = VlanMode::Trunk { tagged: vec![2], native: Some(1) };
    make_eventful(&mut spec, policy);
    let group = LagSpec { name: String::new(), ports: bonded(), min_links: 1, is_negotiated: false };
    spec.lags.groups.push(group);
    spec
}

/// Members of a link aggregation group.
fn bonded() -> PortSet {
    [3, 4].into_iter().collect()
}

/// Any state of the members.
fn any_state(rng: &mut XorShift) -> LagState {
    let mut any = || PortSet::from_bits(rng.roll().into()) & bonded();
    LagState { collecting: any(), distributing: any(), closed: any() }
}

/// Gives a switch of six ports settings that cause as many different events as possible.
pub fn make_eventful(spec: &mut SwitchSpec, policy: HeadroomPolicy) {
    spec.ports[3].pfc = PfcMode::Off;
    spec.ports[4].mtu = 900;
    spec.ports[4].pfc = PfcMode::Asymmetric;
    (spec.ports[QUEUED].pfc, spec.ports[QUEUED].rx_queues) = (PfcMode::Queue, 4);
    spec.ports[0].live.rewrite.dscp = [0, 8, 16, 26, 34, 40, 48, 56].map(Some);
    spec.ports[1].live.rewrite.pcp = [7, 6, 5, 4, 3, 2, 1, 0].map(Some);
    spec.buffer.policy = policy;
    spec.buffer.lossy_shared = Cells(300);
    // With a shared pool: less than the sum of the groups' headroom.
    spec.buffer.headroom = if policy == HeadroomPolicy::SharedPool { Cells(7) } else { spec.buffer.headroom };
    let actions = [WatchdogAction::Drop, WatchdogAction::Forward, WatchdogAction::Alert];
    for (index, port) in spec.ports.iter_mut().enumerate() {
        port.buffer.policy = policy;
        port.buffer.insurance = Cells(if policy == HeadroomPolicy::Dynamic { 6 } else { 0 });
        port.buffer.reserve = [Cells(8), Cells(8)];
        port.backlog_mark = Some(20);
        // Much shorter than usual: pauses end before more frames come.
        port.live.watchdog =
            Some(WatchdogSpec { detection: Nanos(40_000), restoration: Nanos(40_000), action: actions[index % 3] });
        port.live.stuck_after = Some(Nanos(50_000));
    }
    spec.ports[..3].iter_mut().for_each(|port| port.checks_l4 = true);
    spec.ports[0].live.flood_limits = [Some(PacketRate(100)); FloodKind::COUNT];
    for queue in &mut spec.queues {
        queue.wred = WredProfile::new(Bytes(2000), Bytes(20_000), "50%".parse().unwrap());
        // Without a reserve frames are queued in runs, with one they are queued one by one.
        let has_reserve = policy != HeadroomPolicy::Independent && queue.limit.is_some();
        queue.reserve = Cells(if has_reserve { 3 } else { 0 });
    }
}

#[test]
fn random_and_mutated_frames_neither_panic_nor_leak() {
    let frames = setting("HOLDFAST_FUZZ_FRAMES", 10_000_000 / u64::from(Layout::current().lcores));
    let seed = setting("HOLDFAST_FUZZ_SEED", 0x0a11_fade) as u32;
    let policies = [HeadroomPolicy::Independent, HeadroomPolicy::SharedPool, HeadroomPolicy::Dynamic];
    let mut seen = [0; DropReason::COUNT];
    for policy in policies {
        let bed = fuzz(policy, frames / 3, seed);
        for (reason, ..) in DropReason::TABLE {
            seen[*reason as usize] += (0..ALL_PORTS).map(|port| bed.drops(port, *reason)).sum::<u64>();
        }
    }
    check_that_it_was_worth_it(&seen, frames);
}

fn fuzz(policy: HeadroomPolicy, frames: u64, seed: u32) -> Bed {
    let mut bed = Bed::new(&eventful(policy));
    let mut mirrors = bed.switch.attach_mirrors();
    let mut rng = XorShift::new(seed);
    let (mut injected, mut marked_ipv6) = (0, 0);
    while injected < frames {
        let port = rng.roll() as usize % PORTS;
        let burst = 1 + u64::from(rng.roll() % 60);
        for _ in 0..burst {
            let queue = if port == QUEUED { rng.roll() as usize % 4 } else { 0 };
            bed.io.inject_queue(port, queue, &any_frame(&mut rng));
        }
        injected += burst;
        match rng.roll() % 64 {
            0 => bed.switch.set_link(port, false),
            1 => bed.io.set_room(port, Some(rng.roll() as usize % 40)),
            2 => (0..ALL_PORTS).for_each(|port| bed.switch.set_link(port, true)),
            3 => (0..ALL_PORTS).for_each(|port| bed.io.set_room(port, None)),
            4 => bed.switch.clear_watermarks(),
            5 => bed.switch.set_blocked(PortSet::only(port)),
            6 => bed.switch.set_blocked(PortSet::EMPTY),
            7 => bed.switch.set_lags(any_state(&mut rng)),
            8 => bed.switch.set_lags(LagState { collecting: bonded(), distributing: bonded(), closed: PortSet::EMPTY }),
            9 => {
                bed.io.inject(OUTPUT, &any_frame(&mut rng));
                injected += 1;
            }
            10 => send_copies(&mut mirrors, &mut rng),
            11 => bed.switch.set_link(OUTPUT, false),
            12 => bed.io.set_room(OUTPUT, Some(rng.roll() as usize % 10)),
            _ => {}
        }
        bed.run(u64::from(rng.roll() % 8) * 1000);
        take_copies(&mut mirrors);
        for port in 0..ALL_PORTS {
            marked_ipv6 += bed.data(port).iter().filter(|frame| is_marked_ipv6(frame)).count();
        }
    }
    bed.switch.set_lags(LagState { collecting: bonded(), distributing: bonded(), closed: PortSet::EMPTY });
    settle(&mut bed);
    check_conservation(&bed, injected);
    check_copies(&bed, frames);
    assert!(frames < 400_000 || marked_ipv6 > 0, "no IPv6 frame was marked");
    bed
}

fn is_marked_ipv6(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.get(15).is_some_and(|byte| byte >> 4 & 3 == 3)
}

/// Asserts that every received frame and every copy was sent, dropped for a reason, or consumed, and only once.
fn check_conservation(bed: &Bed, injected: u64) {
    let (mut sent, mut dropped, mut consumed) = (0, 0, 0);
    for port in (0..ALL_PORTS).flat_map(|port| bed.counters.of_port(port)) {
        sent += port.tx_frames.iter().map(|count| count.get()).sum::<u64>();
        dropped += port.drops.iter().flatten().map(|count| count.get()).sum::<u64>();
        consumed += port.pfc_rx_frames.get() + port.pause_rx_frames.get();
    }
    assert_eq!(injected + sent_copies(bed) + bed.io.copies, sent + dropped + consumed);
}

/// Takes all copies, as the thread of mirrors does.
fn take_copies(mirrors: &mut [ExceptionLink<CopyFrame>]) {
    for link in mirrors {
        while let Some(copy) = link.receive() {
            assert!(copy.bytes.len() <= usize::from(copy.len) && copy.bytes.len() <= 128, "{copy:?}");
            assert!(usize::from(copy.ingress) < ALL_PORTS, "{copy:?}");
            link.give_back(copy);
        }
    }
}

/// Sends copies by the output, as the thread of mirrors does.
fn send_copies(mirrors: &mut [ExceptionLink<CopyFrame>], rng: &mut XorShift) {
    let link = &mut mirrors[OUTPUT % usize::from(Layout::current().lcores)];
    for _ in 0..rng.roll() % 20 {
        let _ = link.inject(&any_frame(rng), InjectTo::Link(OUTPUT as u8), 0);
    }
}

/// Copies that the output has sent or dropped.
fn sent_copies(bed: &Bed) -> u64 {
    bed.counters.lcores.iter().map(|lcore| lcore.injected_frames.get()).sum()
}

/// Asserts that each dropped and each marked frame was copied, or counted as not copied.
fn check_copies(bed: &Bed, frames: u64) {
    let of_lcores = |kind: usize| -> u64 {
        let counts = |lcore: &LcoreCounters| {
            lcore.copies[kind].get() + lcore.copies_policed[kind].get() + lcore.copies_full[kind].get()
        };
        bed.counters.lcores.iter().map(|lcore| counts(lcore)).sum()
    };
    let ports = || (0..ALL_PORTS).flat_map(|port| bed.counters.of_port(port));
    let dropped: u64 = ports().flat_map(|port| port.drops.iter().flatten()).map(|count| count.get()).sum();
    // A frame that a device did not take in time is marked, comes back and leaves: it is copied once and counts once.
    let marked: u64 = ports().flat_map(|port| &port.ecn_marked).map(|count| count.get()).sum();
    // The loss of a copy is not copied.
    assert!((dropped - sent_copies(bed)..=dropped).contains(&of_lcores(0)), "{} of {dropped}", of_lcores(0));
    assert_eq!(of_lcores(1), marked);
    assert!(frames < 400_000 || of_lcores(2) > frames / 200, "{} samples", of_lcores(2));
}

/// Lets all frames leave and asserts that none is left.
fn settle(bed: &mut Bed) {
    for port in 0..ALL_PORTS {
        bed.switch.set_link(port, true);
        bed.io.set_room(port, None);
    }
    for _ in 0..20_000 {
        bed.run(10_000);
    }
    bed.assert_empty();
    for port in 0..PORTS {
        assert_eq!(bed.counters.ports[port].xoff_mask.get(), 0, "no XOFF without its XON");
    }
    assert!(bed.switch.shutdown(&mut bed.io, Ticks(bed.now)));
}

/// Asserts that the run reached enough drop reasons: a run that reaches few proves little.
fn check_that_it_was_worth_it(seen: &[u64], frames: u64) {
    // Queues reach their limits before groups do. A flood always finds a member, copies always find a buffer, and no
    // port has more frames than a poll receives for long.
    // This switch has no control plane and does not route.
    let is_out_of_reach = |reason: DropReason| {
        reason.is_of_routing()
            || matches!(
                reason,
                DropReason::AdminDown
                    | DropReason::Threshold
                    | DropReason::PoolEmpty
                    | DropReason::NoMember
                    | DropReason::NoBuffer
                    | DropReason::Shed
                    | DropReason::Shutdown
                    | DropReason::PuntPoliced
            )
    };
    let reached = DropReason::TABLE.iter().filter(|(reason, ..)| !is_out_of_reach(*reason));
    let counts = reached.map(|(reason, label, _)| (seen[*reason as usize], *label));
    let (rarest, label) = counts.min().expect("there are reasons");
    println!("the rarest reason is {label}: {rarest} of {frames} frames");
    assert!(
        frames < ENOUGH || rarest > 0,
        "no frame was dropped as {label}: make such frames in `any_frame`, or add the reason to `is_out_of_reach`"
    );
}
