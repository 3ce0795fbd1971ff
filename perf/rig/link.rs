//! The peer of a port and the cable to it: the peer sends by a schedule and obeys PFC.

use std::collections::VecDeque;

use holdfast::headroom::standard_response;
use holdfast::qos::shaper::MIN_FRAME;
use holdfast::sets::CLASSES;
use holdfast::units::{BitRate, WIRE_OVERHEAD};
use holdfast::wire::mac_control::PfcFrame;

use super::arrival::Arrival;

/// Bytes of a PFC frame on the wire: 64 with check sequence, plus preamble and gap.
const PFC_WIRE_BYTES: u64 = 84;

/// Frames of one class to one port.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// Traffic class and PFC priority.
    pub class: u8,
    /// The egress port.
    pub to: usize,
    /// Whether the frames are ECN-capable.
    pub ecn: bool,
}

impl Flow {
    /// A flow of ECN-capable frames.
    pub fn new(class: u8, to: usize) -> Self {
        Self { class, to, ecn: true }
    }
}

/// A flow of single frames at random intervals.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Index in the link's flows.
    pub flow: u8,
    /// Mean time between two frames, in nanoseconds. The intervals vary from half of it to one and a half, so that they
    /// do not synchronize with any other period.
    pub period_ns: u64,
}

/// A peer that sends XOFF from time to time, independently of its load.
#[derive(Debug, Clone, Copy)]
pub struct PeriodicPause {
    /// The priority.
    pub class: u8,
    /// Mean time between two XOFFs, in nanoseconds.
    pub period_ns: u64,
    /// Mean time from XOFF to XON, in nanoseconds.
    pub held_ns: u64,
}

/// The settings of a link.
#[derive(Debug, Clone)]
pub struct LinkSpec {
    /// Rate of the link.
    pub rate: BitRate,
    /// Metres of cable.
    pub cable_m: u64,
    /// Bytes of each frame, as the buffer counts them.
    pub frame_len: usize,
    /// The share of the wire that the peer fills, in percent.
    pub load: u64,
    /// The flows of the link.
    pub flows: Vec<Flow>,
    /// Indexes of the flows that are sent in turn whenever no other frame is due. A flow whose class is paused is
    /// skipped.
    pub pattern: Vec<u8>,
    /// Flows of single frames.
    pub probes: Vec<Probe>,
    /// Pauses that the peer sends on its own.
    pub pause: Option<PeriodicPause>,
    /// Whether the peer obeys PFC.
    pub obeys: bool,
    /// Whether a full burst is always ready, without a schedule: measures the limit of a core.
    pub greedy: bool,
    /// Number of receive descriptors.
    pub ring: usize,
}

impl LinkSpec {
    /// A peer on 5 m of cable that sends no frame and obeys PFC.
    pub fn new(rate: BitRate, frame_len: usize) -> Self {
        Self {
            rate,
            cable_m: 5,
            frame_len,
            load: 100,
            flows: Vec::new(),
            pattern: Vec::new(),
            probes: Vec::new(),
            pause: None,
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

/// Fraction bits of a time: times are in parts of 2^-16 tick, so that rates are exact.
const PART: u32 = 16;

/// The state of a link.
#[derive(Debug)]
pub struct Link {
    port: usize,
    spec: LinkSpec,
    /// The time at which the peer's wire is free, in parts of a tick.
    free_at: u64,
    /// Time per frame including the gap that the load leaves, in parts of a tick. `wire_ticks` is the time on the wire
    /// alone, in ticks.
    slot: u64,
    pub wire_ticks: u64,
    turn: usize,
    ring: VecDeque<Arrival>,
    /// The time before which each class must not begin a frame, in ticks.
    paused_until: [u64; CLASSES],
    /// PFC frames that the peer will obey, with the times in ticks.
    heard: VecDeque<(u64, PfcFrame)>,
    /// Ticks from the first bit of a PFC frame until the peer begins no further frame, including cables and response.
    obeys_after: u64,
    /// Time of a quantum of 512 bits, in parts of a tick: on quick links it lasts few ticks.
    quantum: u64,
    hz: u64,
    due: Vec<u64>,
    pause_due: u64,
    is_pausing: bool,
    rng: u64,
    /// Frames lost because the ring was full.
    pub missed: u64,
    /// Most frames that ever waited in the ring.
    pub highest: usize,
    /// Ticks for which each class was paused, and (`held_since`) the beginning of its pause.
    pub held: [u64; CLASSES],
    held_since: [u64; CLASSES],
}

impl Link {
    /// Creates a link at `port` that begins to send at `now`, on a clock of `hz`.
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
            quantum: wire(64) as u64,
            hz,
            due,
            pause_due: now,
            is_pausing: false,
            rng: now | 1,
            missed: 0,
            highest: 0,
            held: [0; CLASSES],
            held_since: [0; CLASSES],
            port,
            spec,
        }
    }

    /// The settings of the link.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Number of frames that wait to be received.
    #[inline]
    pub fn waiting(&self) -> usize {
        if self.spec.greedy { self.spec.ring } else { self.ring.len() }
    }

    /// The arrival of the frame that waits behind `ahead` others.
    pub fn waiting_behind(&self, ahead: usize) -> Option<Arrival> {
        self.ring.get(ahead).copied()
    }

    /// Takes the next frame from the ring.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<Arrival> {
        if self.spec.greedy {
            let flow = *self.spec.pattern.get(self.turn)?;
            self.turn = if self.turn + 1 == self.spec.pattern.len() { 0 } else { self.turn + 1 };
            return Some(Arrival::new(now, self.port, flow));
        }
        self.ring.pop_front()
    }

    /// Receives a PFC frame that begins to leave the switch at `at`.
    #[cold]
    pub fn hear(&mut self, pfc: &PfcFrame, at: u64) {
        if self.spec.obeys {
            self.heard.push_back((at + self.obeys_after, *pfc));
        }
    }

    /// Delays the peer's schedule and pauses by `ticks`.
    pub fn freeze(&mut self, ticks: u64) {
        self.free_at += ticks << PART;
        let times = self.paused_until.iter_mut().chain(&mut self.held_since).chain(&mut self.due);
        times.for_each(|time| *time += ticks);
        self.heard.iter_mut().for_each(|heard| heard.0 += ticks);
        self.pause_due += ticks;
    }

    /// Lets the peer send all frames that are complete at the switch by `now`.
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
                // No frame may be sent before the next known event, or before a PFC frame that arrives after `now`.
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

    /// The next flow in turn whose class is not paused.
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

    /// Sends a probe or a PFC frame of the peer's own, if one is due. Returns whether it did.
    #[inline]
    fn special(&mut self, start: u64) -> bool {
        if self.spec.pause.is_some() && self.pause_due <= start {
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
        let Some(pause) = self.spec.pause else { return };
        self.is_pausing = !self.is_pausing;
        let phase = if self.is_pausing { pause.held_ns } else { pause.period_ns.saturating_sub(pause.held_ns) };
        self.pause_due = start + self.around(phase);
        self.send(Arrival::pfc((self.free_at + self.slot) >> PART, self.port, self.is_pausing));
    }

    /// A random number of ticks from half of `ns` to one and a half.
    fn around(&mut self, ns: u64) -> u64 {
        self.rng = self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ticks = ns * self.hz / 1_000_000_000;
        ticks / 2 + (self.rng >> 33) % ticks.max(1)
    }

    #[cold]
    fn obey(&mut self) {
        let Some((at, pfc)) = self.heard.pop_front() else { return };
        for class in pfc.enabled.iter() {
            let (until, quanta) = (self.paused_until[class], u64::from(pfc.quanta[class].0));
            if until > at {
                self.held[class] += at - self.held_since[class];
            }
            self.held_since[class] = at;
            self.paused_until[class] = at + ((quanta * self.quantum) >> PART);
        }
    }

    /// The next time at which a peer that may not send at `start` may be able to send.
    #[cold]
    fn next_event(&self, start: u64) -> u64 {
        let flows = self.spec.pattern.iter().map(|&flow| self.spec.flows[usize::from(flow)].class);
        let resumes = flows.map(|class| self.paused_until[usize::from(class)]).filter(|&until| until > start);
        let pause = self.spec.pause.map(|_| self.pause_due);
        let heard = self.heard.front().map(|heard| heard.0);
        let probes = self.due.iter().copied().filter(|&due| due > start);
        resumes.chain(pause).chain(heard).chain(probes).min().unwrap_or(u64::MAX)
    }
}
