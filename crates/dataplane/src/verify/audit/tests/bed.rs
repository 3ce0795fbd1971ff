//! A switch whose every half poll is audited.

use crate::dataplane::Scratch;
use std::sync::Arc;

use crate::dataplane::{Division, LiveConfig, Pipeline};
use crate::io::memory::{MemPacket, MemPorts};
use crate::mmu::{BufferPlan, GroupProfile, QueueLimit, Threshold};
use crate::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use crate::plan::SwitchSpec;
use crate::plan::counters::Counters;
use crate::qos::{QueueDiscipline, WredProfile};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{BitRate, Bytes, Cells, Nanos, Quanta, Ticks};
use crate::verify::audit::{Auditor, Check};
use crate::wire::MacAddr;
use crate::wire::mac_control::PfcFrame;

pub const PORTS: usize = 4;
/// A tick is a nanosecond.
pub const HZ: u64 = 1_000_000_000;
pub const CELL: u64 = 208;
/// A step in the life of a switch.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// Half a poll of an lcore.
    Half(usize),
    /// Frames arrive: ingress port, egress port, class, bytes, count. The egress after the last port is an unknown
    /// station.
    Frames(usize, usize, u8, usize, usize),
    /// The peer of a port pauses these priorities for these quanta.
    Pause(usize, ClassSet, u16),
    Link(usize, bool),
    /// A port's driver accepts this many frames.
    Room(usize, Option<usize>),
    Wait(u64),
    ClearWatermarks,
    /// A step of a new division of the buffer.
    Divide,
    /// New settings for a port's lossless groups, and for all queues and watchdogs. Each lcore applies them at its next
    /// poll.
    Tune(usize, Tuned),
    /// A port is taken out and put in again: with a rate in Gb/s, with PFC or without.
    Replace(usize, u64, bool),
    /// These of the classes 3 and 4 are lossless from now on, the others lossy.
    Kinds(ClassSet),
}

/// Settings that may change while a switch runs.
#[derive(Debug, Clone, Copy)]
pub struct Tuned {
    pub threshold: Threshold,
    pub xon_offset: u32,
    pub xon_floor: u32,
    pub weight: u8,
    pub is_marked: bool,
    pub limit: Option<Threshold>,
    pub watchdog: Option<WatchdogAction>,
    /// Headroom and reserves of the port take so many halves of what they were at the start, and the pools the rest.
    pub halves: u32,
}

impl Tuned {
    fn apply(self, spec: &mut SwitchSpec, port: usize) {
        let port = &mut spec.ports[port];
        for group in port.buffer.groups.iter_mut().filter(|group| group.lossless) {
            group.threshold = self.threshold;
            (group.xon_offset, group.xon_floor) = (Cells(self.xon_offset), Cells(self.xon_floor));
        }
        let short = Nanos(400_000);
        port.live.watchdog = self.watchdog.map(|action| WatchdogSpec { detection: short, restoration: short, action });
        for queue in &mut spec.queues {
            queue.discipline = QueueDiscipline::Dwrr { weight: self.weight };
            queue.wred =
                if self.is_marked { WredProfile::new(Bytes(1000), Bytes(9000), "50%".parse().unwrap()) } else { None };
            queue.limit = self.limit.map(QueueLimit::from).filter(|_| queue.limit.is_some());
        }
    }
}

/// Divides the buffer anew: the parts of `port` become so many halves of those of `first`, and the pools get the rest.
/// A division that does not fit is none.
fn divide(spec: &mut SwitchSpec, first: &SwitchSpec, port: usize, halves: u32) {
    let before = spec.clone();
    let part = |cells: Cells| Cells(cells.0 * halves / 2);
    let (now, first_port) = (&mut spec.ports[port].buffer, &first.ports[port].buffer);
    for (group, first) in now.groups.iter_mut().zip(&first_port.groups) {
        group.reserve = part(first.reserve);
        group.headroom = if group.lossless { part(first.headroom) } else { Cells(0) };
    }
    (now.reserve, now.insurance) = (first_port.reserve.map(part), part(first_port.insurance));
    let own: u64 = spec.ports.iter().map(|port| port.buffer.own_cells()).sum();
    let plan = &mut spec.buffer;
    plan.headroom = part(first.buffer.headroom);
    let promised = PORTS as u32 * spec.queues.iter().map(|queue| queue.reserve.0).sum::<u32>();
    let left =
        plan.total.checked_sub(Cells(own as u32 + plan.headroom.0)).filter(|left| left.0 / (halves + 1) >= promised);
    match left {
        Some(left) => {
            plan.lossy_shared = Cells(left.0 / (halves + 1));
            plan.lossless_shared = left - plan.lossy_shared;
        }
        None => {
            spec.buffer = before.buffer;
            spec.ports[port].buffer = before.ports[port].buffer;
        }
    }
}

/// Makes `classes` of the lossless ones of `first` lossless, and the others of them lossy. Returns whether that fits.
fn set_lossless(spec: &mut SwitchSpec, first: &SwitchSpec, classes: ClassSet) -> bool {
    for class in first.lossless_groups().iter() {
        let is_lossless = classes.contains(class);
        for (port, first) in spec.ports.iter_mut().zip(&first.ports) {
            let (group, first) = (&mut port.buffer.groups[class], &first.buffer.groups[class]);
            let headroom = if is_lossless { first.headroom } else { Cells(0) };
            *group = GroupProfile { lossless: is_lossless, headroom, ..*first };
        }
        spec.queues[class].limit = first.queues[1].limit.filter(|_| !is_lossless);
    }
    divide(spec, first, 0, 2);
    let own: u64 = spec.ports.iter().map(|port| port.buffer.own_cells()).sum();
    let BufferPlan { total, headroom, lossless_shared, lossy_shared, .. } = spec.buffer;
    own + u64::from(headroom.0 + lossless_shared.0 + lossy_shared.0) <= u64::from(total.0)
}

pub struct Bed {
    pub fleet: Vec<Pipeline<MemPacket>>,
    pub io: MemPorts,
    scratch: Scratch<MemPacket>,
    /// Frames received in the first half of each lcore's poll, and its instant, until its second half.
    received: Vec<Option<(usize, Ticks)>>,
    pub auditor: Auditor,
    pub now: u64,
    /// The running settings, or those that will run when all lcores have applied the pending ones.
    spec: SwitchSpec,
    given: Vec<Option<(LiveConfig, SwitchSpec)>>,
    /// The plan at the start.
    first: SwitchSpec,
    /// A new division of the buffer, and the messages that the lcores have applied.
    division: Option<(Division, Vec<Option<LiveConfig>>)>,
    /// The port that is being taken out and put in again.
    out: Option<Out>,
    /// Ports that have been.
    pub replaced: u64,
    /// Groups with frames that have become lossy and lossless.
    pub turned: [u64; 2],
}

/// A port on its way out and in again, with the settings that it gets.
#[derive(Debug, Clone, Copy)]
struct Out {
    port: usize,
    rate: BitRate,
    pfc: PfcMode,
    /// Whether it has been empty and has them.
    has_settings: bool,
}

impl Bed {
    pub fn new(spec: &SwitchSpec) -> Self {
        let counters = Arc::new(Counters::of(spec));
        let mut fleet = Pipeline::fleet(spec, &counters, HZ, 1);
        for part in &mut fleet {
            for port in 0..spec.ports.len() {
                part.learn(1, mac(port), port, Ticks(HZ));
            }
        }
        let received = vec![None; fleet.len()];
        let given = vec![None; fleet.len()];
        let (io, auditor, spec) = (MemPorts::new(spec.ports.len()), Auditor::new(spec), spec.clone());
        let (first, scratch) = (spec.clone(), Scratch::default());
        let (division, out, replaced, turned) = (None, None, 0, [0; 2]);
        Self { fleet, io, scratch, received, auditor, now: HZ, spec, given, first, division, out, replaced, turned }
    }

    pub fn half(&mut self, lcore: usize) -> Check {
        let now = Ticks(self.now);
        let part = &mut self.fleet[lcore];
        if self.received[lcore].is_none()
            && let Some((mut live_config, spec)) = self.given[lcore].take()
        {
            let kinds = |part: &Pipeline<MemPacket>| {
                let of = |port: usize| (part.ports[port].ledger.lossless(), part.ports[port].holding);
                std::array::from_fn::<_, PORTS, _>(of)
            };
            let before = kinds(part);
            part.apply(&mut live_config);
            for ((before, _), (now, holding)) in before.into_iter().zip(kinds(part)) {
                self.turned[0] += ((before - now) & holding).len() as u64;
                self.turned[1] += ((now - before) & holding).len() as u64;
            }
            self.auditor.tuned(lcore, &spec);
            if let Some((_, returned)) = &mut self.division {
                returned[lcore] = Some(live_config);
            }
            self.auditor.resized(&self.fleet)?;
        }
        let part = &mut self.fleet[lcore];
        match self.received[lcore].take() {
            None => self.received[lcore] = Some((part.poll_in(&mut self.io, &mut self.scratch, now), now)),
            Some((received, began)) => _ = part.poll_out(&mut self.io, began, received),
        }
        self.auditor.check(&self.fleet)
    }

    /// Goes a step of a new division, as the control thread does between two polls.
    fn divide(&mut self) -> Check {
        let Some((division, returned)) = &mut self.division else { return Ok(()) };
        if division.step(&self.fleet[0].pools(), returned).is_none() {
            self.division = None;
            self.go_on();
        } else if returned.iter().all(Option::is_some) {
            let messages = returned.iter_mut().map(|message| Some((message.take()?, self.spec.clone())));
            self.given = messages.collect();
        }
        self.auditor.resized(&self.fleet)
    }

    /// Gives the lcores the change to `wanted`, at the end of which `leaving` are empty.
    fn change(&mut self, wanted: SwitchSpec, leaving: PortSet) {
        let live_config = LiveConfig::between(&self.spec, &wanted, HZ).expect("nothing else has changed");
        self.spec = wanted;
        self.given.fill(Some((live_config.leaving(leaving), self.spec.clone())));
        self.division = Some((Division::new(self.spec.buffer), vec![None; self.fleet.len()]));
    }

    /// Goes on with the port that is out, after the last change has been applied.
    fn go_on(&mut self) {
        let (Some(out), mut wanted) = (self.out, self.spec.clone()) else { return };
        let port = &mut wanted.ports[out.port];
        if out.has_settings {
            port.live.is_enabled = true;
            (self.out, self.replaced) = (None, self.replaced + 1);
        } else {
            (port.rate, port.pfc) = (out.rate, out.pfc);
            self.out = Some(Out { has_settings: true, ..out });
        }
        self.change(wanted, PortSet::EMPTY);
    }

    /// Whether the buffer is divided as the last settings want it.
    pub fn is_divided(&self) -> bool {
        self.division.is_none()
    }

    /// Polls each lcore once, in halves.
    pub fn poll(&mut self) -> Check {
        (0..self.fleet.len()).try_for_each(|lcore| self.half(lcore).and_then(|()| self.half(lcore)))
    }

    pub fn pause(&mut self, port: usize, priorities: ClassSet, quanta: u16) {
        let pfc = PfcFrame { enabled: priorities, quanta: [Quanta(quanta); CLASSES] };
        self.io.inject(port, &pfc.emit(mac(port)));
    }

    pub fn frames(&mut self, from: usize, to: usize, class: u8, bytes: usize, count: usize) {
        (0..count).for_each(|_| self.io.inject(from, &frame(from, to, class, bytes)));
    }

    pub fn step(&mut self, event: Event) -> Check {
        match event {
            Event::Half(lcore) => return self.half(lcore % self.fleet.len()),
            Event::Frames(from, to, class, bytes, count) => self.frames(from, to, class, bytes, count),
            Event::Pause(port, priorities, quanta) => self.pause(port, priorities, quanta),
            Event::Link(port, up) => self.fleet.iter_mut().for_each(|part| part.set_link(port, up, Ticks(self.now))),
            Event::Room(port, room) => self.io.set_room(port, room),
            Event::Wait(ns) => self.now += ns,
            // One order at a time.
            Event::Tune(..) | Event::Replace(..) | Event::Kinds(_) if self.out.is_some() => {}
            Event::Kinds(classes) => {
                let mut wanted = self.spec.clone();
                if set_lossless(&mut wanted, &self.first, classes) {
                    self.change(wanted, PortSet::EMPTY);
                }
            }
            Event::Tune(port, tuned) => {
                let mut wanted = self.spec.clone();
                tuned.apply(&mut wanted, port);
                divide(&mut wanted, &self.first, port, tuned.halves);
                self.change(wanted, PortSet::EMPTY);
            }
            Event::Replace(port, _, _) if self.spec.obstacle(port).is_some() => {}
            Event::Replace(port, gigabits, has_pfc) => {
                let pfc = if has_pfc { PfcMode::Symmetric } else { PfcMode::Off };
                let rate = BitRate(gigabits * 1_000_000_000);
                self.out = Some(Out { port, rate, pfc, has_settings: false });
                let mut wanted = self.spec.clone();
                wanted.ports[port].live.is_enabled = false;
                self.change(wanted, PortSet::only(port));
            }
            Event::Divide => return self.divide(),
            Event::ClearWatermarks => self.fleet.iter_mut().for_each(Pipeline::clear_watermarks),
        }
        Ok(())
    }

    /// Ends all pauses and polls until all frames have left.
    pub fn drain(&mut self) -> Check {
        for port in 0..PORTS {
            self.step(Event::Link(port, true))?;
            self.step(Event::Room(port, None))?;
            self.pause(port, ClassSet::ALL, 0);
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
        for _ in 0..30 {
            self.poll()?;
            self.divide()?;
        }
        assert!(self.is_divided(), "an idle switch gives up all cells at once");
        self.auditor.check_idle(&self.fleet)
    }
}

fn mac(port: usize) -> MacAddr {
    MacAddr::local(1, port as u16)
}

/// Builds an ECN-capable IPv4 packet whose class selector is the class.
fn frame(from: usize, to: usize, class: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..6].copy_from_slice(&mac(to).0);
    bytes[6..12].copy_from_slice(&mac(from).0);
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, class << 5 | 2]);
    bytes[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 253]);
    bytes
}
