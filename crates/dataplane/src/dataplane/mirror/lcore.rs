//! The sessions as one lcore applies them. An event that no session wants costs a test on a path that is rare anyway. A
//! copy costs a memory copy of at most `bytes`. Rates bound their number, and [`POLL_BYTES`] their bytes in a poll.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::fair_policer::FairPolicer;
use super::sampler::Sampler;
use crate::dataplane::frame::desc::FrameDesc;
use crate::plan::counters::Counters;
use crate::plan::drops::DropReason;
use crate::plan::exception::ExceptionPort;
use crate::plan::mirror::{CopyCause, MAX_SESSIONS, MirrorSpec, ReasonSet, SessionSet};
use crate::plan::mirror::{CopyFrame, GroupState, QueueState};
use crate::sets::{BURST, CLASSES, PortSet};
use crate::units::Ticks;

/// Copies of a session that may follow each other at once.
const BURST_COPIES: u32 = 64;
/// Bytes that a poll copies, at most by one frame more: they take the time of a few frames. XOFF must not wait.
const POLL_BYTES: usize = 8192;
/// Rows of a session's policers: traffic classes, and frames without class.
const ROWS: usize = CLASSES + 1;
/// The policers of a session, by kind of event and row. A flood of one class must not hide the loss of another.
type Policers = [[FairPolicer; ROWS]; CopyCause::KINDS];

/// The last event of a kind and row of which no copy was made: in a flood, the next one is the same.
#[derive(Debug, Clone, Copy)]
struct Refused {
    at: Ticks,
    cause: CopyCause,
    ingress: u8,
    /// Sessions that wanted it.
    sessions: SessionSet,
}

impl Refused {
    const NONE: Self = Self { at: Ticks(u64::MAX), cause: CopyCause::Marked, ingress: 0, sessions: SessionSet::EMPTY };
}

/// A frame that meets an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MirrorEvent<'a> {
    pub bytes: &'a [u8],
    pub cause: CopyCause,
    pub ingress: u8,
    pub egress: Option<u8>,
    pub vlan: Option<u16>,
    pub class: Option<u8>,
    pub queue: Option<QueueState>,
}

/// A sampled frame whose egress port is not decided yet: its index in the burst, and its copy.
pub(crate) type StagedCopy = (u8, Box<CopyFrame>);

/// The copies of one lcore.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The channel to the thread that exports copies; `None`: nothing is copied.
    channel: Option<ExceptionPort<CopyFrame>>,
    spec: MirrorSpec,
    /// Reasons of the dropped frames that any session wants, and whether any wants marked ones.
    reasons: ReasonSet,
    wants_marked: bool,
    refused: Box<[[Refused; ROWS]; CopyCause::KINDS]>,
    /// Bytes that the poll at `budget_at` may copy.
    budget: usize,
    budget_at: Ticks,
    policers: Box<[Policers; MAX_SESSIONS]>,
    sampler: Sampler,
    /// Sampled frames of the present burst.
    pub staged: ArrayVec<StagedCopy, BURST>,
    counters: Arc<Counters>,
    lcore: usize,
    hz: u64,
}

impl Mirror {
    /// Creates the mirror of `lcore`, whose clock has `hz` ticks a second. It copies nothing without a channel.
    pub fn new(spec: &MirrorSpec, counters: Arc<Counters>, lcore: usize, hz: u64, seed: u32) -> Self {
        Self {
            channel: None,
            spec: spec.clone(),
            reasons: ReasonSet::EMPTY,
            wants_marked: false,
            refused: Box::new([[Refused::NONE; ROWS]; CopyCause::KINDS]),
            budget: 0,
            budget_at: Ticks(u64::MAX),
            policers: Box::new([[[FairPolicer::new(1, 1, hz); ROWS]; CopyCause::KINDS]; MAX_SESSIONS]),
            sampler: Sampler::new(seed),
            staged: ArrayVec::new(),
            counters,
            lcore,
            hz,
        }
    }

    /// Attaches the thread that exports copies. Returns the ports whose received frames are sampled.
    pub fn attach(&mut self, channel: ExceptionPort<CopyFrame>) -> PortSet {
        self.channel = Some(channel);
        let spec = self.spec.clone();
        self.set(&spec)
    }

    /// Replaces the sessions. Returns the ports whose received frames are sampled.
    pub fn set(&mut self, spec: &MirrorSpec) -> PortSet {
        self.spec.clone_from(spec);
        if self.channel.is_none() {
            return PortSet::EMPTY;
        }
        *self.refused = [[Refused::NONE; ROWS]; CopyCause::KINDS];
        let dropped = spec.sessions.iter().filter(|session| session.dropped);
        self.reasons = dropped.fold(ReasonSet::EMPTY, |all, session| all.union(session.reasons));
        self.wants_marked = spec.sessions.iter().any(|session| session.marked);
        for (policers, session) in self.policers.iter_mut().zip(&spec.sessions) {
            let policer = FairPolicer::new(session.rate, BURST_COPIES.min(session.rate), self.hz);
            *policers = [[policer; ROWS]; CopyCause::KINDS];
        }
        self.sampler.set(spec)
    }

    /// Whether any session wants frames that are dropped for `reason`.
    #[inline]
    pub fn wants_dropped(&self, reason: DropReason) -> bool {
        self.reasons.contains(reason)
    }

    /// Whether marked frames are copied.
    #[inline]
    pub fn wants_marked(&self) -> bool {
        self.wants_marked
    }

    /// The channel, if the thread of mirrors sends copies by ports.
    #[inline]
    pub fn sender(&mut self) -> Option<&mut ExceptionPort<CopyFrame>> {
        if self.spec.outputs.is_empty() { None } else { self.channel.as_mut() }
    }

    /// Whether `port` sends copies.
    pub fn is_output(&self, port: usize) -> bool {
        self.spec.outputs.contains(port)
    }

    /// Sessions that want a frame that meets `cause`, was received by `ingress` and has `class`, and whose rates allow
    /// a copy. Counts the others. A flood costs a comparison for each further frame of a poll.
    pub fn admit(&mut self, cause: CopyCause, ingress: u8, class: Option<u8>, now: Ticks) -> SessionSet {
        let row = row_of(class);
        let last = self.refused[cause.kind()][row];
        if (last.at, last.cause, last.ingress) == (now, cause, ingress) {
            self.count_policed(last.sessions, cause.kind(), 1);
            return SessionSet::EMPTY;
        }
        let wanting = self.wanting(cause, ingress, class);
        let passed = self.police(wanting, cause.kind(), row, ingress, now);
        if passed.is_empty() {
            self.refused[cause.kind()][row] = Refused { at: now, cause, ingress, sessions: wanting };
        }
        passed
    }

    /// Counts `frames` frames as beyond the rates of the sessions that want them.
    pub fn refuse(&mut self, cause: CopyCause, ingress: u8, class: Option<u8>, frames: u64) {
        self.count_policed(self.wanting(cause, ingress, class), cause.kind(), frames);
    }

    /// Copies a frame for `sessions`, which [`Mirror::admit`] has returned.
    pub fn copy(&mut self, sessions: SessionSet, event: MirrorEvent<'_>, group: Option<GroupState>, now: Ticks) {
        if let Some(mut frame) = self.fill(sessions, &event, now) {
            frame.group = group;
            self.give(frame);
        }
    }

    /// Copies a frame that was discarded in a queue of port `egress`.
    #[cold]
    pub fn copy_discarded(&mut self, bytes: &[u8], egress: usize, desc: FrameDesc, reason: DropReason, now: Ticks) {
        // No port has received an own frame. Copies are such, so that a lost copy causes no other one.
        if desc.is_own() {
            return;
        }
        let (cause, ingress, class) = (CopyCause::Dropped(reason), desc.ingress(), Some(desc.class()));
        let sessions = self.admit(cause, ingress, class, now);
        let queue = Some(QueueState { queue: desc.queue() as u8, depth: None, limit: None });
        let egress = Some(egress as u8);
        self.copy(sessions, MirrorEvent { bytes, cause, ingress, egress, vlan: None, class, queue }, None, now);
    }

    /// Copies the sampled frames among the `frames` next ones of `port`, for [`Mirror::give`] when their egress ports
    /// are decided. `event` describes a frame.
    #[inline]
    pub fn sample<'a>(&mut self, port: usize, frames: usize, now: Ticks, event: impl Fn(usize) -> MirrorEvent<'a>) {
        if self.sampler.is_due(port, frames) {
            self.stage(port, frames, now, event);
        }
    }

    #[cold]
    fn stage<'a>(&mut self, port: usize, frames: usize, now: Ticks, event: impl Fn(usize) -> MirrorEvent<'a>) {
        let chosen = self.sampler.choose(port, frames);
        for (index, mut sessions) in chosen.into_iter().enumerate().filter(|(_, sessions)| !sessions.is_empty()) {
            let event = event(index);
            sessions.retain(self.wanting(event.cause, event.ingress, event.class));
            let sessions = self.police(sessions, event.cause.kind(), row_of(event.class), event.ingress, now);
            if let Some(frame) = self.fill(sessions, &event, now)
                && let Err(full) = self.staged.try_push((index as u8, frame))
            {
                self.give(full.element().1);
            }
        }
    }

    /// Sessions that want a frame.
    fn wanting(&self, cause: CopyCause, ingress: u8, class: Option<u8>) -> SessionSet {
        let mut sessions = SessionSet::default();
        for (index, session) in self.spec.sessions.iter().enumerate() {
            if session.wants(cause, ingress.into(), class) {
                sessions.insert(index);
            }
        }
        sessions
    }

    /// The sessions among `sessions` whose rates allow a copy, if this poll may still copy. Counts the others.
    fn police(&mut self, sessions: SessionSet, kind: usize, row: usize, ingress: u8, now: Ticks) -> SessionSet {
        if self.budget_at != now {
            (self.budget, self.budget_at) = (POLL_BYTES, now);
        }
        let (mut passed, mut others) = (SessionSet::default(), SessionSet::default());
        for index in sessions.iter() {
            let passes = self.budget > 0 && self.policers[index][kind][row].passes(ingress, now);
            (if passes { &mut passed } else { &mut others }).insert(index);
        }
        self.count_policed(others, kind, 1);
        passed
    }

    /// Counts `frames` frames that `sessions` wanted and did not get.
    fn count_policed(&self, sessions: SessionSet, kind: usize, frames: u64) {
        let counters = &self.counters.lcores[self.lcore];
        counters.copies_policed[kind].add(frames * sessions.len());
        counters.sflow_lost[kind].add(frames * (sessions & self.spec.sflow).len());
    }

    /// Copies a frame for `sessions`. `None` if there are none, or there is no buffer for its port.
    fn fill(&mut self, sessions: SessionSet, event: &MirrorEvent<'_>, now: Ticks) -> Option<Box<CopyFrame>> {
        if sessions.is_empty() {
            return None;
        }
        let most = sessions.iter().map(|index| usize::from(self.spec.sessions[index].bytes)).max().unwrap_or(0);
        let bytes = &event.bytes[..event.bytes.len().min(most)];
        let Some(mut frame) = self.channel.as_mut()?.copy(bytes, event.ingress) else {
            let counters = &self.counters.lcores[self.lcore];
            counters.copies_full[event.cause.kind()].add(1);
            counters.sflow_lost[event.cause.kind()].add((sessions & self.spec.sflow).len());
            return None;
        };
        self.budget = self.budget.saturating_sub(bytes.len());
        frame.len = event.bytes.len().min(usize::from(u16::MAX)) as u16;
        (frame.cause, frame.sessions, frame.spec_id, frame.at) = (event.cause, sessions, self.spec.id, now);
        (frame.egress, frame.vlan) = (event.egress, event.vlan);
        (frame.class, frame.group, frame.queue) = (event.class, None, event.queue);
        Some(frame)
    }

    /// Gives a copy to the thread.
    pub fn give(&mut self, frame: Box<CopyFrame>) {
        let kind = frame.cause.kind();
        let Some(channel) = &mut self.channel else { return };
        let counters = &self.counters.lcores[self.lcore];
        (if channel.give(frame) { &counters.copies[kind] } else { &counters.copies_full[kind] }).add(1);
    }
}

/// The row of the policers for frames of `class`.
fn row_of(class: Option<u8>) -> usize {
    class.map_or(CLASSES, |class| usize::from(class & 7))
}
