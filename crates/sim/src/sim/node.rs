//! A simulated switch: the pipeline of each lcore, and the devices that it polls.

use std::collections::VecDeque;
use std::sync::Arc;

use super::course::Course;
use super::device::{Device, End, World};
use super::frame::SimPacket;
use super::held::HeldPort;
use super::load::PS;
use super::own::Own;
use super::rest::Rest;
use super::rng::Rng;
use super::router::SimRouter;
use super::spec::{PollSpec, SwitchNode};
use super::wire::Wire;
use super::{EPOCH, HZ};
use crate::dataplane::{Division, LiveConfig, Pipeline, Scratch};
use crate::pfc::PriorityMap;
use crate::plan::{Counters, SwitchSpec};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{Nanos, Ticks};
use crate::verify::audit::{Auditor, Broken};
use crate::verify::record::{Recorder, Tape};

/// Stream of random numbers of the first switch; each further switch uses the next one.
const SWITCH_STREAM: u64 = 1 << 40;
/// A time shorter than half the life of a pause at any supported speed.
pub const SHORTEST_HALF_LIFE_PS: u64 = 20_000 * PS;

/// A simulated switch.
#[derive(Debug)]
pub struct Node {
    /// Specification of the switch, as it was given to its lcores.
    pub spec: SwitchSpec,
    /// Its way to other settings.
    pub course: Course,
    pub(super) poll: PollSpec,
    /// Time from a poll's first half to its second. `None`: half of a poll with several lcores, zero with one.
    pub sends_after_ps: Option<u64>,
    /// A poll after which the next one comes earlier than usual.
    pub hurry: Option<Hurry>,
    /// The pipelines of the lcores.
    pub fleet: Vec<Pipeline<SimPacket>>,
    scratch: Scratch<SimPacket>,
    /// State of each lcore.
    pub lcores: Vec<Lcore>,
    /// Index of the switch.
    number: usize,
    /// Devices of its ports.
    pub devices: Vec<Device>,
    /// Devices whose rings have frames.
    filled: PortSet,
    /// Whether a ring may have missed a lossless frame since the last check.
    pub has_missed: bool,
    /// Latest end of the pauses of all its ports.
    silent_until_ps: u64,
    /// Counters of the switch.
    pub counters: Arc<Counters>,
    /// Checker of the switch's invariants.
    pub auditor: Auditor,
    pub(super) rng: Rng,
    /// Rest of the switch; `None`: an event for its next poll is scheduled.
    pub(super) rest: Option<Rest>,
    /// Whether it may rest. Only of a switch with one lcore is it known that no other gives it work, and each poll that
    /// may be late must be examined.
    pub rests: bool,
    /// Whether a waiver exempts it from the rules of lossless service.
    pub is_waived: bool,
    /// Receive rings on the paths of lossless flows, in order of the flows.
    pub held: Vec<HeldPort>,
    /// Polls during rests.
    pub rested_polls: u64,
    /// Its router; `None`: it only bridges.
    pub router: Option<SimRouter>,
    /// Frames copied for flooding.
    pub copies: u64,
    /// Longest time between two polls that the headroom allows for.
    pub gap_allowed_ps: u64,
    /// Whether the gap was ever exceeded.
    pub was_late: bool,
    /// Longest time from the beginning of a poll until it sent.
    pub sent_late_ps: u64,
    /// Port and queue that sent frames although the peer had paused them.
    pub disobeyed: Option<(usize, usize)>,
    /// A new division of the buffer that has not ended.
    division: Option<Division>,
    /// A division that does not fit the buffer.
    pub misdivided: Option<Broken>,
    /// Recording of the frames that it received and sent, if requested.
    pub tape: Option<Tape>,
}

/// The first poll that begins at `from_ps` or later is followed by the next one after `gap_ps`.
#[derive(Debug, Clone, Copy)]
pub struct Hurry {
    /// Earliest beginning of the poll.
    pub from_ps: u64,
    /// Time from that poll to the next.
    pub gap_ps: u64,
}

/// State of an lcore.
#[derive(Debug, Default)]
pub struct Lcore {
    /// Beginning of the current poll.
    pub began_ps: u64,
    /// Frames that the first half of the current poll received, and sent between rounds.
    received: usize,
    /// Time that frames have taken since the poll began, in picoseconds.
    worked_for_ps: u64,
    /// End of a stall: the lcore does not poll before.
    pub stalled_until: u64,
    /// Beginning of the last completed poll.
    pub(super) heard_ps: u64,
    /// End of the last poll that had any work.
    worked_ps: u64,
    /// Links that changed since the last poll: port, up.
    pub(super) link_changes: Vec<(usize, bool)>,
    /// Settings to take at the next poll.
    pub(super) change: Option<Box<LiveConfig>>,
    /// The plan by which it runs until then.
    before: Option<Box<SwitchSpec>>,
    /// The settings taken last, while the buffer is divided anew.
    returned: Option<Box<LiveConfig>>,
    /// Longest time between two polls.
    pub gap_highest_ps: u64,
}

impl Node {
    /// Returns switch number `number`, whose ports have no cables yet.
    #[must_use]
    pub fn new(number: usize, switch: &SwitchNode, spec: SwitchSpec, seed: u64) -> Self {
        let counters = Arc::new(Counters::of(&spec));
        let (rng, switch_seed) = seeds(seed, number);
        let mut fleet = Pipeline::fleet(&spec, &counters, HZ, switch_seed);
        let device = |(port, device): (usize, &crate::config::PortDevice)| Device {
            wires: None,
            ring: VecDeque::new(),
            descriptors: device.rx_descriptors.into(),
            tx_descriptors: device.tx_descriptors.into(),
            missed: 0,
            missed_data: 0,
            missed_lossless: 0,
            first_missed: None,
            highest: 0,
            silent_until: [0; CLASSES],
            obeyed: obeyed(&spec, port),
            is_believed_up: true,
        };
        Self {
            poll: switch.poll,
            sends_after_ps: None,
            hurry: None,
            division: None,
            misdivided: None,
            router: spec.routing.as_ref().map(|routing| SimRouter::new(routing, &spec.lags, &mut fleet)),
            fleet,
            scratch: Scratch::default(),
            lcores: (0..spec.lcores).map(|_| Lcore::default()).collect(),
            devices: switch.config.devices.iter().enumerate().map(device).collect(),
            auditor: Auditor::new(&spec),
            gap_allowed_ps: spec.poll_gap.0 * PS,
            was_late: false,
            sent_late_ps: 0,
            disobeyed: None,
            tape: None,
            counters,
            rng,
            rest: None,
            rests: spec.lcores == 1 && is_in_time(switch.poll, spec.poll_gap),
            is_waived: false,
            held: Vec::new(),
            rested_polls: 0,
            copies: 0,
            course: Course::new(&spec, switch.config.switch.fdb.entries.len()),
            spec,
            number,
            silent_until_ps: 0,
            has_missed: false,
            filled: PortSet::EMPTY,
        }
    }

    /// Draws when an lcore begins to poll: the order of the lcores is random.
    pub fn first_poll(&mut self) -> u64 {
        self.rng.below(self.poll.every.0 * PS)
    }

    /// Reports the link state of `port` to every lcore, which reads it at its next poll.
    pub fn set_link(&mut self, port: usize, up: bool) {
        self.lcores.iter_mut().for_each(|lcore| lcore.link_changes.push((port, up)));
    }

    /// Shuts `port`, or takes it into use: each lcore takes the settings at its next poll.
    pub fn set_shut(&mut self, port: usize, is_shut: bool) {
        self.course.set_shut(port, is_shut);
        self.follow();
    }

    /// Gives the switch the settings of `wanted` that may change while it runs. Ports that are shut stay so.
    pub fn reload(&mut self, wanted: &SwitchSpec) {
        self.course.head_for(wanted);
        self.follow();
    }

    /// Gives the lcores the next plan of the course.
    fn follow(&mut self) {
        let (wanted, leaving) = self.course.next(&self.spec);
        self.division = Some(Division::new(wanted.buffer));
        for lcore in &mut self.lcores {
            // A change that it has not taken is part of this one.
            let before = lcore.before.get_or_insert_with(|| Box::new(self.spec.clone()));
            let change = LiveConfig::between(before, &wanted, HZ).expect("ports are out for what they take");
            lcore.change = Some(Box::new(change.leaving(leaving)));
            lcore.returned = None;
        }
        self.spec = wanted;
    }

    /// Goes a step of a new division of the buffer, as the control thread does. Returns whether it has ended.
    pub fn divide(&mut self) -> bool {
        let Some(division) = &mut self.division else { return true };
        let mut returned: Vec<_> = self.lcores.iter_mut().map(|lcore| lcore.returned.take()).collect();
        let is_done = division.step(&self.fleet[0].pools(), &mut returned).is_none();
        let are_back = returned.iter().all(Option::is_some);
        for (lcore, message) in self.lcores.iter_mut().zip(returned) {
            *(if are_back { &mut lcore.change } else { &mut lcore.returned }) = message;
        }
        if is_done {
            self.division = None;
            self.lcores.iter_mut().for_each(|lcore| lcore.change = None);
        }
        self.audit_division();
        let is_there = is_done && self.course.divided(&self.spec);
        if is_done && !is_there {
            self.follow();
        }
        is_there
    }

    /// Lets the auditor see the sizes that a step has changed.
    fn audit_division(&mut self) {
        if let Err(broken) = self.auditor.resized(&self.fleet) {
            self.misdivided.get_or_insert(broken);
        }
    }

    /// Stalls `lcore`, or every lcore if it is `None`, until `until`.
    pub fn stall(&mut self, lcore: Option<usize>, until: u64) {
        for (_, state) in self.lcores.iter_mut().enumerate().filter(|(number, _)| lcore.is_none_or(|of| of == *number))
        {
            state.stalled_until = state.stalled_until.max(until);
        }
    }

    /// Runs the first half of a poll of `lcore`. Returns when the second half is due: at once if a delay would make no
    /// difference.
    pub fn poll_in(&mut self, lcore: usize, now: u64, world: &mut World<'_>) -> u64 {
        let state = &mut self.lcores[lcore];
        if state.began_ps > 0 {
            state.gap_highest_ps = state.gap_highest_ps.max(now - state.began_ps);
        }
        state.began_ps = now;
        let pipeline = &mut self.fleet[lcore];
        for (port, up) in state.link_changes.drain(..) {
            pipeline.set_link(port, up, Ticks(EPOCH + now));
            if pipeline.owns(port) {
                self.devices[port].believe(up);
            }
        }
        for port in (world.arrivals.arrived(self.number, now) & pipeline.own()).iter() {
            self.devices[port].receive(now, world);
            self.filled.set(port, !self.devices[port].ring.is_empty());
            self.has_missed |= self.devices[port].first_missed.is_some();
        }
        let mut io = End {
            devices: &mut self.devices,
            filled: &mut self.filled,
            now,
            copies: &mut self.copies,
            silent_until_ps: &mut self.silent_until_ps,
            world,
            poll: self.poll,
            began_ps: now,
            worked_ps: 0,
        };
        let at = Ticks(EPOCH + now);
        let change = state.change.take();
        let is_changed = change.is_some();
        if let Some(mut change) = change {
            pipeline.resume_before_shut(&mut io, &change, at);
            pipeline.apply(&mut change);
            (state.returned, state.before) = (Some(change), None);
            self.auditor.tuned(lcore, &self.spec);
            if let Err(broken) = self.auditor.resized(&self.fleet) {
                self.misdivided.get_or_insert(broken);
            }
        }
        let pipeline = &mut self.fleet[lcore];
        if is_changed {
            pipeline.own().iter().for_each(|port| io.devices[port].obeyed = obeyed(&self.spec, port));
        }
        state.received = match &mut self.tape {
            None => pipeline.receive_half(&mut io, &mut self.scratch, at),
            Some(tape) => {
                let mut io = Recorder::new(&mut io, &mut *tape, || now / PS, at);
                let received = pipeline.receive_half(&mut io, &mut self.scratch, at);
                #[cfg(test)]
                tape.look(pipeline.digest(), at);
                received
            }
        };
        state.worked_for_ps = io.worked_ps;
        let half = match self.sends_after_ps {
            Some(half) => half.min(self.every_ps(lcore) - 1),
            None if self.lcores.len() == 1 => return now,
            None => self.poll.every.0 * PS / 2,
        };
        now + half + self.lcores[lcore].worked_for_ps
    }

    /// Returns the time from the beginning of the current poll of `lcore` to that of the next, if the poll moves no
    /// frames.
    fn every_ps(&self, lcore: usize) -> u64 {
        let began = self.lcores[lcore].began_ps;
        let hurry = self.hurry.filter(|hurry| began >= hurry.from_ps);
        hurry.map_or(self.poll.every.0 * PS, |hurry| hurry.gap_ps)
    }

    /// Runs the second half of a poll. The pipeline's time is that of the first half; its frames leave at `leaves`.
    /// Returns when the next poll is due, and whether the switch rests until a frame arrives.
    pub fn poll_out(&mut self, lcore: usize, leaves: u64, world: &mut World<'_>) -> (u64, bool) {
        let silent = self.silent(lcore, leaves, world);
        // Without a look at all ports, if a frame comes before the next poll.
        let is_free = self.is_free_to_rest(leaves)
            && world.arrivals.earliest_ps(self.number) > self.lcores[lcore].began_ps + self.poll.every.0 * PS;
        let state = &mut self.lcores[lcore];
        let has_work = state.received + self.fleet[lcore].held_frames() > 0;
        self.sent_late_ps = self.sent_late_ps.max(leaves - state.began_ps);
        let mut io = End {
            devices: &mut self.devices,
            filled: &mut self.filled,
            now: leaves,
            copies: &mut self.copies,
            silent_until_ps: &mut self.silent_until_ps,
            world,
            poll: self.poll,
            began_ps: state.began_ps,
            worked_ps: state.worked_for_ps,
        };
        let at = Ticks(EPOCH + state.began_ps);
        let moved = match &mut self.tape {
            None => self.fleet[lcore].send_half(&mut io, at, state.received),
            Some(tape) => {
                let mut io = Recorder::new(&mut io, tape, || leaves / PS, at);
                self.fleet[lcore].send_half(&mut io, at, state.received)
            }
        };
        let has_work = has_work || moved > 0;
        let may_rest = is_free && self.fleet[lcore].may_rest_when_settled(&mut io, at);
        let (sent, received) = (moved - self.lcores[lcore].received, self.lcores[lcore].worked_for_ps);
        self.disobeyed = self.disobeyed.or_else(|| self.broken_silence(&silent));
        let busy = self.every_ps(lcore) + received + self.poll.frame.0 * PS * sent as u64;
        let state = &mut self.lcores[lcore];
        state.heard_ps = state.began_ps;
        if has_work {
            state.worked_ps = leaves;
        }
        self.hurry = self.hurry.filter(|hurry| state.began_ps < hurry.from_ps);
        let late = if self.poll.jitter.0 == 0 { 0 } else { self.rng.between(0, self.poll.jitter.0 * PS) };
        let next = (state.began_ps + busy + late).max(leaves + 1).max(state.stalled_until);
        (next, may_rest)
    }

    /// Returns the queues that peers have paused beyond `leaves`, when the frames of this poll leave, of the ports by
    /// which the lcore sends. Each has the number of frames that it has sent. The owner of a joint port may tell the
    /// lcore of the end of a pause after its poll has begun.
    fn silent(&self, lcore: usize, leaves: u64, world: &World<'_>) -> Vec<(usize, usize, u64)> {
        let mut silent = Vec::new();
        if self.silent_until_ps <= leaves {
            return silent;
        }
        for (port, device) in self.devices.iter().enumerate() {
            // A few picoseconds may be rounding errors.
            let paused = (0..CLASSES).filter(|&priority| device.silent_until[priority] > leaves + PS);
            let paused: ClassSet = paused.collect();
            if paused.is_empty() || !self.fleet[lcore].sends_by(port) || !device.is_up(world) {
                continue;
            }
            let queues = PriorityMap::new(self.spec.classes.pfc_to_queue).queues(device.obeyed & paused);
            for queue in queues.iter() {
                silent.push((port, queue, self.tx_frames(port, queue)));
            }
        }
        silent
    }

    /// Returns one of these queues that has sent nevertheless, unless the watchdog makes it ignore pauses.
    fn broken_silence(&self, silent: &[(usize, usize, u64)]) -> Option<(usize, usize)> {
        let has_sent = |&&(port, queue, before): &&(usize, usize, u64)| {
            let is_ignored = self.fleet.iter().any(|part| part.owns(port) && part.ignoring(port).contains(queue));
            self.tx_frames(port, queue) != before && !is_ignored
        };
        silent.iter().find(has_sent).map(|&(port, queue, _)| (port, queue))
    }

    fn tx_frames(&self, port: usize, queue: usize) -> u64 {
        self.counters.sum(port, |counters| &counters.tx_frames[queue])
    }

    /// Moves every frame that has arrived by `now` into its receive ring, independent of polls.
    pub fn settle(&mut self, now: u64, world: &mut World<'_>) {
        for (port, device) in self.devices.iter_mut().enumerate() {
            device.receive(now, world);
            self.filled.set(port, !device.ring.is_empty());
        }
        self.has_missed = true;
    }

    /// Counts the frames in receive rings, in queues and in transit between lcores.
    #[must_use]
    pub fn held_frames(&self) -> usize {
        let rings: usize = self.devices.iter().map(|device| device.ring.len()).sum();
        rings + self.fleet.iter().map(Pipeline::held_frames).sum::<usize>() + Pipeline::crossing_frames(&self.fleet)
    }

    /// Passes number and depth in bytes of the queue of each port with a cable at `now` to `sample`.
    pub fn sample_queues(&self, now: u64, sample: &mut dyn FnMut(usize, u64)) {
        let at = Ticks(EPOCH + now);
        for (port, _) in self.devices.iter().enumerate().filter(|(_, device)| device.wires.is_some()) {
            let senders = self.fleet.iter().filter(|pipeline| pipeline.sends_by(port));
            sample(port, senders.map(|part| part.port_depth(port, at).0).sum());
        }
    }

    /// Returns a port whose depths at `now` are below what stands before a frame: its number, the picoseconds for which
    /// its wire is busy, and those that the switch knows of. The clock of a wire runs from the beginnings of polls, so
    /// it is late by as much as polls have sent late.
    pub(super) fn hidden_depth(&self, now: u64, wires: &Own<Wire>) -> Option<(usize, u64, u64)> {
        let known = |port: usize| {
            let owner = self.fleet.iter().find(|part| part.owns(port))?;
            let bytes = u128::from(owner.posted(port, Ticks(EPOCH + now)).0);
            Some((bytes * 8_000_000_000_000 / u128::from(self.spec.ports[port].rate.0.max(1))) as u64)
        };
        self.devices.iter().enumerate().find_map(|(port, device)| {
            let busy_ps = wires[device.wires?.0].free_at().saturating_sub(now);
            let known_ps = known(port)?;
            (busy_ps > known_ps + self.sent_late_ps + PS).then_some((port, busy_ps, known_ps))
        })
    }

    /// Counts discarded frames, whose buffers return at the end of the current poll.
    #[must_use]
    pub fn discarded_frames(&self) -> usize {
        self.fleet.iter().map(Pipeline::discarded_frames).sum()
    }

    /// Whether each lcore has had time to collect all releases. It has completed a poll that began after the last frame
    /// moved, and it is not stalled. Until then, cells rightly stay charged for departed frames.
    #[must_use]
    pub fn has_heard_all(&self, now: u64) -> bool {
        let last = self.lcores.iter().map(|lcore| lcore.worked_ps).max().unwrap_or(0);
        self.lcores.iter().all(|lcore| lcore.heard_ps > last && lcore.stalled_until <= now)
    }

    /// Whether the switch holds no frames, including transit between lcores, and has no group at XOFF.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.held_frames() == 0 && self.auditor.check_idle(&self.fleet).is_ok()
    }
}

/// Whether polls that move no frames are never late: for the headroom, which allows for `gap`, and for pauses.
pub fn is_in_time(poll: PollSpec, gap: Nanos) -> bool {
    let longest_ps = (poll.every.0 + poll.jitter.0).saturating_mul(PS);
    longest_ps <= SHORTEST_HALF_LIFE_PS.min(gap.0.saturating_mul(PS))
}

/// The priorities whose pauses `port` obeys by `plan`.
fn obeyed(plan: &SwitchSpec, port: usize) -> ClassSet {
    let spec = &plan.ports[port];
    spec.pfc.obeyed(plan.lossless_queues(spec), &PriorityMap::new(plan.classes.pfc_to_queue))
}

/// Returns the random numbers of switch `number`, and the seed of its pipeline's. The pipeline uses xorshift, for which
/// a seed of zero is invalid.
fn seeds(seed: u64, number: usize) -> (Rng, u32) {
    let mut rng = Rng::new(seed, SWITCH_STREAM + number as u64);
    let switch_seed = rng.next() as u32 | 1;
    (rng, switch_seed)
}

/// Returns when the first lcore of switch `number` begins to poll, if it polls every `every_ps`.
pub fn first_poll(seed: u64, number: usize, every_ps: u64) -> u64 {
    seeds(seed, number).0.below(every_ps)
}
