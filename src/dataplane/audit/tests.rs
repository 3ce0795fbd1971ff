//! The auditor over random switches and random traffic, half poll by half poll: no alarm while there is nothing wrong, and
//! one for each fault that the mutants know.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;
use crate::dataplane::counters::Counters;
use crate::dataplane::memory::{MemPacket, MemPorts};
use crate::dataplane::{PortSpec, QueueSpec};
use crate::forward::FdbSpec;
use crate::mmu::{BufferPlan, GroupProfile, PortProfile, QueueLimit, Threshold};
use crate::mutant::{self, Mutant};
use crate::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use crate::qos::{ClassMap, QueueDiscipline, WredProfile};
use crate::units::{Alpha, BitRate, Bytes, Nanos, Quanta, Ticks};
use crate::wire::MacAddr;
use crate::wire::mac_control::PfcFrame;

const PORTS: usize = 4;
/// A tick is a nanosecond.
const HZ: u64 = 1_000_000_000;
const CELL: u64 = 208;
/// Classes that frames have here; the first is lossy.
const TRAFFIC: [u8; 3] = [0, 3, 4];
const LOSSLESS: u8 = 0b1_1000;

/// What happens to a switch.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// Half a poll of an lcore.
    Half(usize),
    /// From, to, class, bytes, how many. Nobody knows where the last station is.
    Frames(usize, usize, u8, usize, usize),
    /// The peer of a port pauses these priorities.
    Pause(usize, u8, u16),
    Link(usize, bool),
    /// A port takes so many frames.
    Room(usize, Option<usize>),
    Wait(u64),
    ClearWatermarks,
}

struct Bed {
    fleet: Vec<Pipeline<MemPacket>>,
    io: MemPorts,
    /// Frames that the first half of an lcore's poll has received.
    received: Vec<Option<usize>>,
    auditor: Auditor,
    now: u64,
}

impl Bed {
    fn new(spec: &SwitchSpec) -> Self {
        let counters = Arc::new(Counters::new(spec.ports.len(), usize::from(spec.lcores)));
        let mut fleet = Pipeline::fleet(spec, &counters, HZ, 1);
        for part in &mut fleet {
            for port in 0..spec.ports.len() {
                part.learn(1, mac(port), port, Ticks(HZ));
            }
        }
        let received = vec![None; fleet.len()];
        Self { fleet, io: MemPorts::new(spec.ports.len()), received, auditor: Auditor::new(spec), now: HZ }
    }

    fn half(&mut self, lcore: usize) -> Check {
        let now = Ticks(self.now);
        let part = &mut self.fleet[lcore];
        match self.received[lcore].take() {
            None => self.received[lcore] = Some(part.poll_in(&mut self.io, now)),
            Some(received) => _ = part.poll_out(&mut self.io, now, received),
        }
        self.auditor.check(&self.fleet)
    }

    /// A poll of each lcore, in halves.
    fn poll(&mut self) -> Check {
        (0..self.fleet.len()).try_for_each(|lcore| self.half(lcore).and_then(|()| self.half(lcore)))
    }

    fn pause(&mut self, port: usize, priorities: u8, quanta: u16) {
        let pfc = PfcFrame { enabled: priorities, quanta: [Quanta(quanta); CLASSES] };
        self.io.inject(port, &pfc.emit(mac(port)));
    }

    fn frames(&mut self, from: usize, to: usize, class: u8, bytes: usize, count: usize) {
        (0..count).for_each(|_| self.io.inject(from, &frame(from, to, class, bytes)));
    }

    fn step(&mut self, event: Event) -> Check {
        match event {
            Event::Half(lcore) => return self.half(lcore % self.fleet.len()),
            Event::Frames(from, to, class, bytes, count) => self.frames(from, to, class, bytes, count),
            Event::Pause(port, priorities, quanta) => self.pause(port, priorities, quanta),
            Event::Link(port, up) => self.fleet.iter_mut().for_each(|part| part.set_link(port, up, Ticks(self.now))),
            Event::Room(port, room) => self.io.set_room(port, room),
            Event::Wait(ns) => self.now += ns,
            Event::ClearWatermarks => self.fleet.iter_mut().for_each(Pipeline::clear_watermarks),
        }
        Ok(())
    }

    /// Nobody pauses any more, and all leaves.
    fn drain(&mut self) -> Check {
        for port in 0..PORTS {
            self.step(Event::Link(port, true))?;
            self.step(Event::Room(port, None))?;
            self.pause(port, 0xff, 0);
        }
        for lcore in 0..self.fleet.len() {
            if self.received[lcore].is_some() {
                self.half(lcore)?;
            }
        }
        for poll in 0..4000 {
            self.now += 1000;
            self.poll()?;
            let held: usize = self.fleet.iter().map(|part| part.held_frames() + part.held_cells() as usize).sum();
            if held == 0 && poll > 20 {
                break;
            }
        }
        (0..3).try_for_each(|_| self.poll())?;
        self.auditor.check_idle(&self.fleet)
    }
}

fn mac(port: usize) -> MacAddr {
    MacAddr::local(1, port as u16)
}

/// An IPv4 packet that may be marked; its class selector is the class.
fn frame(from: usize, to: usize, class: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..6].copy_from_slice(&mac(to).0);
    bytes[6..12].copy_from_slice(&mac(from).0);
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, class << 5 | 2]);
    bytes[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 253]);
    bytes
}

fn threshold() -> impl Strategy<Value = Threshold> {
    let dynamic = (-3_i8..4).prop_map(|exponent| Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap()));
    prop_oneof![(0_u32..40).prop_map(|cells| Threshold::Static(Cells(cells))), dynamic]
}

fn group(lossless: bool) -> impl Strategy<Value = GroupProfile> {
    (threshold(), 0_u32..12, 0_u32..8, 0_u32..5, 0_u32..20).prop_map(
        move |(threshold, reserve, offset, floor, headroom)| {
            let [xon_offset, xon_floor, headroom] =
                [offset, floor, headroom].map(|cells| Cells(if lossless { cells } else { 0 }));
            GroupProfile { lossless, reserve: Cells(reserve), threshold, xon_offset, xon_floor, headroom }
        },
    )
}

fn port_profile(policy: HeadroomPolicy) -> impl Strategy<Value = PortProfile> {
    let groups = prop::array::uniform2(group(true));
    (group(false), groups, [0_u32..10, 0_u32..10], 0_u32..20).prop_map(move |(lossy, lossless, reserve, insurance)| {
        let mut groups = [lossy; CLASSES];
        (groups[3], groups[4]) = (lossless[0], lossless[1]);
        let insurance = Cells(if policy == HeadroomPolicy::Dynamic { insurance } else { 0 });
        PortProfile { groups, reserve: reserve.map(Cells), policy, insurance }
    })
}

fn queue(is_lossless: bool) -> impl Strategy<Value = QueueSpec> {
    let limit = prop::option::weighted(0.7, threshold());
    (1_u16..4, limit, 0_u32..6, any::<bool>()).prop_map(move |(weight, limit, reserve, is_marked)| QueueSpec {
        discipline: QueueDiscipline::Dwrr { weight: weight.try_into().unwrap() },
        wred: if is_marked { WredProfile::new(Bytes(1000), Bytes(9000), "50%".parse().unwrap()) } else { None },
        limit: limit.filter(|_| !is_lossless).map(|threshold| QueueLimit { threshold }),
        reserve: Cells(if is_lossless { 0 } else { reserve }),
    })
}

fn policy() -> impl Strategy<Value = HeadroomPolicy> {
    prop_oneof![Just(HeadroomPolicy::Independent), Just(HeadroomPolicy::SharedPool), Just(HeadroomPolicy::Dynamic)]
}

fn switch() -> impl Strategy<Value = SwitchSpec> {
    let sizes = ([20_u32..200, 0_u32..200], 0_u32..30, 1_u8..4);
    policy().prop_flat_map(move |policy| {
        let ports = prop::collection::vec((port_profile(policy), 0_usize..6), PORTS);
        (ports, queue(false), queue(true), sizes.clone()).prop_map(move |(ports, lossy, lossless, sizes)| {
            let ([lossy_shared, lossless_shared], headroom, lcores) = sizes;
            let port = |(index, (profile, kind)): (usize, (PortProfile, usize))| port(index, profile, kind, lcores);
            let queues = std::array::from_fn(|queue| if LOSSLESS >> queue & 1 == 1 { lossless } else { lossy });
            SwitchSpec {
                ports: ports.into_iter().enumerate().map(port).collect(),
                buffer: BufferPlan {
                    cell: Bytes(CELL),
                    total: Cells(2000),
                    reserves: Cells(0),
                    headroom: Cells(headroom),
                    policy,
                    lossless_shared: Cells(lossless_shared),
                    lossy_shared: Cells(lossy_shared),
                },
                classes: ClassMap::identity(),
                queues,
                fdb: FdbSpec { capacity: 64, ageing: Nanos(HZ * 1000), entries: vec![] },
                poll_gap: Nanos(20_000),
                lcores,
                floods_lossless: headroom % 2 == 0,
            }
        })
    })
}

fn port(index: usize, profile: PortProfile, kind: usize, lcores: u8) -> PortSpec {
    let mac = MacAddr::local(0, index as u16);
    let mut port = PortSpec::new(format!("p{index}"), mac, BitRate(10_000_000_000), profile.groups);
    port.buffer = profile;
    port.lcore = index as u8 % lcores;
    port.backlog_mark = (kind % 2 == 0).then_some(5);
    port.pfc = if kind == 5 { PfcMode::Off } else { PfcMode::Symmetric };
    let action = [WatchdogAction::Drop, WatchdogAction::Forward, WatchdogAction::Alert][kind % 3];
    let short = Nanos(400_000);
    port.watchdog = (kind < 3).then_some(WatchdogSpec { detection: short, restoration: short, action });
    port
}

fn event() -> impl Strategy<Value = Event> {
    let port = || 0..PORTS;
    let class = prop::sample::select(&TRAFFIC[..]);
    let bytes = prop_oneof![Just(60_usize), 60_usize..1515];
    prop_oneof![
        12 => (0_usize..3).prop_map(Event::Half),
        6 => (port(), 0..=PORTS, class, bytes, 1_usize..30).prop_map(|(a, b, class, len, n)| Event::Frames(a, b, class, len, n)),
        2 => (port(), any::<u8>(), prop_oneof![Just(0_u16), Just(0xffff), any::<u16>()]).prop_map(|(a, b, c)| Event::Pause(a, b, c)),
        1 => (port(), any::<bool>()).prop_map(|(port, up)| Event::Link(port, up)),
        1 => (port(), prop::option::of(0_usize..10)).prop_map(|(port, room)| Event::Room(port, room)),
        4 => prop_oneof![4 => 100_u64..5000, 1 => 5000_u64..500_000].prop_map(Event::Wait),
        1 => Just(Event::ClearWatermarks),
    ]
}

fn run(spec: &SwitchSpec, events: &[Event]) -> Check {
    let mut bed = Bed::new(spec);
    events.iter().try_for_each(|&event| bed.step(event))?;
    bed.drain()
}

#[test]
fn a_switch_without_a_fault_breaks_no_invariant() {
    let mut runner = TestRunner::new(Config { cases: 3000, ..Config::default() });
    let cases = (switch(), prop::collection::vec(event(), 1..200));
    let outcome = runner.run(&cases, |(spec, events)| {
        run(&spec, &events).map_err(|broken| TestCaseError::fail(format!("{}: {}", broken.invariant, broken.what)))
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Invariants that break when random switches have the fault, and how often in 300 runs.
fn hunt(mutant: Mutant) -> BTreeMap<&'static str, u32> {
    let mut runner = TestRunner::deterministic();
    let cases = (switch(), prop::collection::vec(event(), 1..200));
    let mut found = BTreeMap::new();
    for _ in 0..300 {
        let (spec, events) = cases.new_tree(&mut runner).expect("nothing is filtered").current();
        if let Err(broken) = mutant::with(mutant, || run(&spec, &events)) {
            *found.entry(broken.invariant).or_default() += 1;
        }
    }
    found
}

#[test]
fn a_group_that_goes_on_with_cells_in_its_headroom_is_found() {
    let found = hunt(Mutant::XonTooEarly);
    assert!(found.contains_key("xoff_while_headroom"), "{found:?}");
}

#[test]
fn a_group_with_more_headroom_than_its_own_is_found() {
    let found = hunt(Mutant::HeadroomShared);
    assert!(found.contains_key("headroom_limit"), "{found:?}");
}

#[test]
fn shared_cells_that_are_free_before_the_headroom_are_found() {
    let found = hunt(Mutant::ReleaseOrder);
    assert!(found.contains_key("release_order"), "{found:?}");
}

#[test]
fn a_release_that_is_told_before_the_frame_has_left_is_found() {
    let found = hunt(Mutant::TallyOrder);
    assert!(found.contains_key("never_underestimated"), "{found:?}");
}
