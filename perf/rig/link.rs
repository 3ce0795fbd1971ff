//! One port's peer and the cable to it: what it sends by its schedule, and how it obeys PFC.

use std::collections::VecDeque;

use holdfast::mmu::headroom::standard_response;
use holdfast::qos::shaper::{MIN_FRAME, WIRE_OVERHEAD};
use holdfast::sets::CLASSES;
use holdfast::units::BitRate;
use holdfast::wire::mac_control::PfcFrame;

use super::frames::Arrival;

/// A PFC frame on the wire: 64 bytes with check sequence, preamble and gap.
const PFC_WIRE_BYTES: u64 = 84;

/// Frames of one class to one port.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// Its traffic class, and PFC priority.
    pub class: u8,
    /// The port it goes to.
    pub to: usize,
    /// Whether its frames may be marked.
    pub ecn: bool,
}

impl Flow {
    /// Of ECN-capable frames.
    pub fn new(class: u8, to: usize) -> Self {
        Self { class, to, ecn: true }
    }
}

/// A flow of single frames, now and then.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Its number in the link's flows.
    pub flow: u8,
    /// Mean time between two of its frames, in nanoseconds. The times are spread from half of it to one and a half, so that
    /// they fall into step with nothing.
    pub period_ns: u64,
}

/// A peer that says XOFF now and then for its own reasons.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// The priority.
    pub class: u8,
    /// Nanoseconds between two XOFFs, in the mean, and until XON.
    pub period_ns: u64,
    /// See above.
    pub held_ns: u64,
}

/// What a link is.
#[derive(Debug, Clone)]
pub struct LinkSpec {
    /// Its rate.
    pub rate: BitRate,
    /// Metres of cable.
    pub cable_m: u64,
    /// Bytes of each frame as the buffer has them.
    pub frame_len: usize,
    /// The part of the wire that the peer fills, in percent.
    pub load: u64,
    /// Its flows: those that `pattern` names are sent in this order whenever nothing else is due and they may.
    pub flows: Vec<Flow>,
    /// See above.
    pub pattern: Vec<u8>,
    /// Flows of single frames.
    pub probes: Vec<Probe>,
    /// What it says of itself.
    pub storm: Option<Storm>,
    /// Whether it obeys PFC.
    pub obeys: bool,
    /// There is a full burst whenever one is asked for: what a core can do, with no schedule.
    pub greedy: bool,
    /// Receive descriptors.
    pub ring: usize,
}

impl LinkSpec {
    /// A silent peer on 5 m of cable that obeys PFC.
    pub fn new(rate: BitRate, frame_len: usize) -> Self {
        Self {
            rate,
            cable_m: 5,
            frame_len,
            load: 100,
            flows: Vec::new(),
            pattern: Vec::new(),
            probes: Vec::new(),
            storm: None,
            obeys: true,
            greedy: false,
            ring: 4096,
        }
    }

    /// A peer that sends `flows` in turn.
    #[must_use]
    pub fn sending(self, flows: &[Flow]) -> Self {
        Self { flows: flows.to_vec(), pattern: (0..flows.len() as u8).collect(), ..self }
    }
}

/// Times in parts of 2^16 of a tick, so that rates are exact.
const PART: u32 = 16;

/// A link at work.
#[derive(Debug)]
pub struct Link {
    port: usize,
    spec: LinkSpec,
    /// When the peer's wire is free, in parts of a tick.
    free_at: u64,
    /// Time that a frame takes, with the gap that the load leaves; and on the wire alone.
    slot: u64,
    pub wire_ticks: u64,
    turn: usize,
    ring: VecDeque<Arrival>,
    /// Until when each class must not begin a frame, in ticks.
    paused_until: [u64; CLASSES],
    /// PFC frames that the peer is about to obey, and when.
    heard: VecDeque<(u64, PfcFrame)>,
    /// Ticks from a PFC frame's first bit to when the peer begins no frame more, cables and response included.
    obeys_after: u64,
    quantum: u64,
    hz: u64,
    due: Vec<u64>,
    storm_due: u64,
    storm_holds: bool,
    dice: u64,
    /// Frames that found the ring full.
    pub missed: u64,
    /// Most that ever waited in it.
    pub highest: usize,
    /// Ticks in which each class could not send, and since when it cannot.
    pub held: [u64; CLASSES],
    held_since: [u64; CLASSES],
}

impl Link {
    /// At `port`, by `spec`, from `now` on, on a clock of `hz`.
    pub fn new(port: usize, spec: LinkSpec, hz: u64, now: u64) -> Self {
        let wire = |bytes: u64| u128::from(bytes * 8) * (u128::from(hz) << PART) / u128::from(spec.rate.0);
        let frame = wire(u64::from((spec.frame_len as u32).max(MIN_FRAME) + WIRE_OVERHEAD));
        let response = wire(PFC_WIRE_BYTES) + wire(standard_response(spec.rate).0);
        let cables = 2 * spec.cable_m * 5 * hz / 1_000_000_000;
        let due = spec.probes.iter().map(|probe| now + probe.period_ns * hz / 1_000_000_000).collect();
        Self {
            free_at: now << PART,
            slot: (frame * 100 / u128::from(spec.load)) as u64,
            wire_ticks: (frame >> PART) as u64,
            turn: 0,
            ring: VecDeque::with_capacity(spec.ring),
            paused_until: [0; CLASSES],
            heard: VecDeque::with_capacity(64),
            obeys_after: (response >> PART) as u64 + cables,
            quantum: (wire(64) >> PART) as u64,
            hz,
            due,
            storm_due: now,
            storm_holds: false,
            dice: now | 1,
            missed: 0,
            highest: 0,
            held: [0; CLASSES],
            held_since: [0; CLASSES],
            port,
            spec,
        }
    }

    /// What it is.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Frames that wait to be received.
    #[inline]
    pub fn waiting(&self) -> usize {
        if self.spec.greedy { self.spec.ring } else { self.ring.len() }
    }

    /// The arrival of the frame that waits behind `ahead` others.
    pub fn waiting_behind(&self, ahead: usize) -> Option<Arrival> {
        self.ring.get(ahead).copied()
    }

    /// The next frame to be received.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<Arrival> {
        if self.spec.greedy {
            let flow = *self.spec.pattern.get(self.turn)?;
            self.turn = if self.turn + 1 == self.spec.pattern.len() { 0 } else { self.turn + 1 };
            return Some(Arrival::new(now, self.port, flow));
        }
        self.ring.pop_front()
    }

    /// The switch's PFC frame begins to leave it at `at`.
    #[cold]
    pub fn hear(&mut self, pfc: &PfcFrame, at: u64) {
        if self.spec.obeys {
            self.heard.push_back((at + self.obeys_after, *pfc));
        }
    }

    /// The peer stands still for `ticks`: its schedule and its pauses go on later.
    pub fn freeze(&mut self, ticks: u64) {
        self.free_at += ticks << PART;
        let times = self.paused_until.iter_mut().chain(&mut self.held_since).chain(&mut self.due);
        times.for_each(|time| *time += ticks);
        self.heard.iter_mut().for_each(|heard| heard.0 += ticks);
        self.storm_due += ticks;
    }

    /// Lets the peer send what is complete at the switch until `now`.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        if self.spec.greedy {
            return;
        }
        while self.free_at + self.slot <= now << PART {
            let start = self.free_at >> PART;
            while self.heard.front().is_some_and(|heard| heard.0 <= start) {
                self.obey();
            }
            if self.special(start) {
                continue;
            }
            match self.choose(start) {
                Some(flow) => self.send(Arrival::new((self.free_at + self.slot) >> PART, self.port, flow)),
                // Nothing may be sent before something ends that is known, or is heard after now.
                None => self.free_at = self.next_event(start).clamp(start + 1, now.max(start) + 1) << PART,
            }
        }
        self.highest = self.highest.max(self.ring.len());
    }

    #[inline]
    fn send(&mut self, arrival: Arrival) {
        self.free_at += self.slot;
        if self.ring.len() < self.spec.ring {
            self.ring.push_back(arrival);
        } else {
            self.missed += 1;
        }
    }

    /// The next flow in turn that may send.
    #[inline]
    fn choose(&mut self, start: u64) -> Option<u8> {
        for _ in 0..self.spec.pattern.len() {
            let flow = self.spec.pattern[self.turn];
            self.turn = if self.turn + 1 == self.spec.pattern.len() { 0 } else { self.turn + 1 };
            if self.paused_until[usize::from(self.spec.flows[usize::from(flow)].class)] <= start {
                return Some(flow);
            }
        }
        None
    }

    /// A probe or a PFC frame of the peer's own, if one is due.
    #[inline]
    fn special(&mut self, start: u64) -> bool {
        if self.spec.storm.is_some() && self.storm_due <= start {
            self.say(start);
            return true;
        }
        for index in 0..self.due.len() {
            let Probe { flow, period_ns } = self.spec.probes[index];
            let class = usize::from(self.spec.flows[usize::from(flow)].class);
            if self.due[index] <= start && self.paused_until[class] <= start {
                self.due[index] = start + self.around(period_ns);
                self.send(Arrival::new((self.free_at + self.slot) >> PART, self.port, flow));
                return true;
            }
        }
        false
    }

    #[cold]
    fn say(&mut self, start: u64) {
        let Some(storm) = self.spec.storm else { return };
        self.storm_holds = !self.storm_holds;
        let rest = if self.storm_holds { storm.held_ns } else { storm.period_ns.saturating_sub(storm.held_ns) };
        self.storm_due = start + self.around(rest);
        self.send(Arrival::pfc((self.free_at + self.slot) >> PART, self.port, self.storm_holds));
    }

    /// Ticks from half of `ns` to one and a half.
    fn around(&mut self, ns: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ticks = ns * self.hz / 1_000_000_000;
        ticks / 2 + (self.dice >> 33) % ticks.max(1)
    }

    #[cold]
    fn obey(&mut self) {
        let Some((at, pfc)) = self.heard.pop_front() else { return };
        for class in (0..CLASSES).filter(|class| pfc.enabled >> class & 1 == 1) {
            let (until, quanta) = (self.paused_until[class], u64::from(pfc.quanta[class].0));
            if until > at {
                self.held[class] += at - self.held_since[class];
            }
            self.held_since[class] = at;
            self.paused_until[class] = at + quanta * self.quantum;
        }
    }

    /// When something may change for a peer that may send nothing at `start`.
    #[cold]
    fn next_event(&self, start: u64) -> u64 {
        let flows = self.spec.pattern.iter().map(|&flow| self.spec.flows[usize::from(flow)].class);
        let resumes = flows.map(|class| self.paused_until[usize::from(class)]).filter(|&until| until > start);
        let storm = self.spec.storm.map(|_| self.storm_due);
        let heard = self.heard.front().map(|heard| heard.0);
        let probes = self.due.iter().copied().filter(|&due| due > start);
        resumes.chain(storm).chain(heard).chain(probes).min().unwrap_or(u64::MAX)
    }
}
