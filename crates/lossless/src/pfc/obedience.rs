//! Whether a peer stops when it gets XOFF, measured by the frames that still come.
//!
//! # The law
//!
//! All instants are beginnings of polls. XOFF leaves in the poll that begins at `told`. It is surely with the driver
//! when the next poll begins, at `handed`. From there the peer has [`crate::headroom::reaction`], the time of the
//! headroom formula: PFC frame and data posted before it, cable, response time (IEEE 802.1Q annex on buffer
//! requirements of PFC; quanta by speed as in IEEE 802.3 annex 31B.3.7), its last frame, and a poll gap for the device:
//!
//! ```text
//! deadline = handed + reaction
//! late     = empty > deadline  and  next < sent + life  and  next < told + horizon
//! ```
//!
//! - `empty`: the last poll before the one that read the frame and that drained the receive ring. The frame arrived
//!   after that, so neither a long poll gap nor a full ring makes it late.
//! - `next`: the poll after the one that read the frame. It arrived before that.
//! - `sent`: the last XOFF or refresh. `life`: 15/16 of a pause, so a pause that may have run out excuses the peer. If
//!   it may have run out before its refresh, the deadline begins anew.
//! - `horizon`: 50 ms. Watchdogs of peers may ignore a longer pause; SONiC's least detection time is 100 ms.
//!
//! A pause is *late* if a late frame came before its next refresh or XON. It is *stopped* if frames came after XOFF,
//! none was late, and a poll after the deadline found none. A pause is not judged if the device refused frames: XOFF
//! may wait in its ring. A peer [`Observed::Disobeys`] if [`ENOUGH`] of its last 32 judged pauses were late, so
//! that a lost PFC frame accuses no peer. Otherwise it [`Observed::Obeys`] from as many stops on. A link that goes down
//! clears this evidence.

use super::QUANTUM_BITS;
use crate::mutant::{self, Mutant};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Nanos, Ticks};
use crate::wire::mac_control::PfcFrame;

/// Late pauses among the last 32 judged ones, and stops in time, from which a peer has its standing.
pub const ENOUGH: u32 = 3;
/// Time after XOFF for which frames are judged.
pub const HORIZON: Nanos = Nanos(50_000_000);
/// Bounds of the histogram of response times, in nanoseconds. A last bucket holds the longer ones.
pub const RESPONSE_BOUNDS: [u64; 9] =
    [1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000];
/// Buckets of that histogram.
pub const RESPONSE_BUCKETS: usize = RESPONSE_BOUNDS.len() + 1;

/// The answer of a peer to XOFF, since the link came up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// Too few pauses were judged.
    #[default]
    Unseen,
    /// It has stopped within its time, several times.
    Obeys,
    /// Its frames came too late, several times.
    Disobeys,
}

impl Observed {
    /// The standing of a peer after `late` late pauses and `stops` stops in time.
    #[must_use]
    pub fn from_pauses(late: u32, stops: u32) -> Self {
        match (late, stops) {
            (ENOUGH.., _) => Self::Disobeys,
            (_, ENOUGH..) => Self::Obeys,
            _ => Self::Unseen,
        }
    }

    /// The standing of this [`Observed::label`]; of any other word, `Unseen`.
    #[must_use]
    pub fn from_label(label: &str) -> Self {
        [Self::Obeys, Self::Disobeys].into_iter().find(|observed| observed.label() == label).unwrap_or_default()
    }

    /// The word for it in tables and JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Obeys => "obeys",
            Self::Disobeys => "disobeys",
        }
    }
}

/// Frames and bytes of a priority that a port has ever received.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Number of frames.
    pub frames: u64,
    /// Their bytes, without the frame check sequence.
    pub bytes: u64,
}

/// The state of the poll that is judged.
#[derive(Debug, Clone, Copy)]
pub struct JudgedPoll {
    /// Whether it drained the receive ring.
    pub is_drained: bool,
    /// Whether the device takes the frames that it is offered.
    pub takes_frames: bool,
}

/// Totals of the answers of one priority.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// Pauses for which the peer stopped in time.
    pub stops: u64,
    /// Pauses during which frames came too late.
    pub late_pauses: u64,
    /// These frames and their bytes.
    pub late: Received,
    /// Pauses by the time from XOFF to the last frame: see [`RESPONSE_BOUNDS`].
    pub times: [u64; RESPONSE_BUCKETS],
    /// Sum of these times in ticks.
    pub ticks: u64,
    /// The last judged pauses, one bit each: late ones are set.
    history: u32,
    /// Stops since the link came up.
    timely: u32,
}

impl Answers {
    /// The standing of the peer.
    #[must_use]
    pub fn observed(&self) -> Observed {
        Observed::from_pauses(self.history.count_ones(), self.timely)
    }

    fn note(&mut self, is_late: bool) {
        self.history = self.history << 1 | u32::from(is_late);
        self.timely = self.timely.saturating_add(u32::from(!is_late));
        let count = if is_late { &mut self.late_pauses } else { &mut self.stops };
        *count += 1;
    }
}

/// A pause that the peer was told of.
#[derive(Debug, Default, Clone, Copy)]
struct Pause {
    /// Beginnings of the polls in which XOFF left first, and last; the last one may not be confirmed yet.
    told: Ticks,
    sent: Ticks,
    resent: Ticks,
    deadline: Ticks,
    /// Frames of the priority at the last look.
    received: Received,
    /// The last poll that read frames after the one in which XOFF left.
    last: Option<Ticks>,
    /// Whether a late frame came since the last XOFF, and since the first one.
    is_late: bool,
    was_late: bool,
    /// Whether a poll after the deadline brought no frame.
    is_silent: bool,
    is_excused: bool,
}

/// The pauses of one port, and the answers of its peer.
#[derive(Debug, Clone)]
pub struct Obedience {
    reaction: u64,
    life: u64,
    horizon: u64,
    bounds: [u64; RESPONSE_BOUNDS.len()],
    /// Priorities at XOFF as far as the peer was told. Those of which the poll that runs told it first, or again.
    told: ClassSet,
    begun: ClassSet,
    refreshed: ClassSet,
    /// The poll that runs, and the last one before it that drained the ring.
    poll: Ticks,
    empty: Ticks,
    pauses: [Pause; CLASSES],
    answers: [Answers; CLASSES],
    is_changed: bool,
}

fn to_ticks(ns: u64, hz: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(hz) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Rounded up: a peer has its whole time.
fn reaction_ticks(reaction: Nanos, hz: u64) -> u64 {
    to_ticks(reaction.0, hz).saturating_add(1)
}

impl Obedience {
    /// Goes on with the answers of the peer that `before` has counted.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        self.answers.clone_from(&before.answers);
        self.is_changed = true;
    }

    /// Creates the state of a port of `rate` on a clock of `hz` ticks per second, whose peer has `reaction` to stop.
    #[must_use]
    pub fn new(rate: BitRate, reaction: Nanos, hz: u64) -> Self {
        let ticks = |ns: u64| to_ticks(ns, hz);
        let bits = u128::from(u16::MAX) * u128::from(QUANTUM_BITS);
        let life = bits * u128::from(hz) * 15 / 16 / u128::from(rate.0.max(1));
        Self {
            reaction: reaction_ticks(reaction, hz),
            life: u64::try_from(life).unwrap_or(u64::MAX),
            horizon: ticks(HORIZON.0),
            bounds: RESPONSE_BOUNDS.map(ticks),
            told: ClassSet::EMPTY,
            begun: ClassSet::EMPTY,
            refreshed: ClassSet::EMPTY,
            poll: Ticks(0),
            empty: Ticks(0),
            pauses: [Pause::default(); CLASSES],
            answers: [Answers::default(); CLASSES],
            is_changed: false,
        }
    }

    /// Gives the peer `reaction` to stop. Pauses that go on keep their deadlines.
    pub fn set_reaction(&mut self, reaction: Nanos, hz: u64) {
        self.reaction = reaction_ticks(reaction, hz);
    }

    /// Whether the peer was told of a pause that lasts, so that each poll must be judged.
    #[inline]
    #[must_use]
    pub fn is_watching(&self) -> bool {
        !self.told.is_empty()
    }

    /// The answers of the peer by priority.
    #[must_use]
    pub fn answers(&self) -> &[Answers; CLASSES] {
        &self.answers
    }

    /// Whether answers have changed since the last call.
    pub fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Records that `frame` left in the poll that began at `now`.
    pub fn sent(&mut self, frame: &PfcFrame, now: Ticks) {
        for priority in frame.enabled.iter() {
            if frame.quanta[priority].0 == 0 {
                self.end(priority);
            } else if self.told.contains(priority) {
                self.pauses[priority].resent = now;
                self.refreshed.insert(priority);
            } else {
                self.told.insert(priority);
                self.begun.insert(priority);
                self.pauses[priority] = Pause { told: now, sent: now, resent: now, ..Pause::default() };
            }
        }
    }

    /// Forgets all pauses and the evidence: the link went down, or the port sends no more.
    pub fn clear(&mut self) {
        (self.told, self.begun, self.refreshed) = Default::default();
        for answers in &mut self.answers {
            self.is_changed |= answers.timely != 0 || answers.history != 0;
            (answers.history, answers.timely) = (0, 0);
        }
    }

    /// Judges the last poll when the next one begins, at `now`. `received` returns the frames of a priority that the
    /// port has received until now.
    pub fn judge(&mut self, now: Ticks, poll: JudgedPoll, received: impl Fn(usize) -> Received) {
        // Mutants are faults for tests, constant false in the program.
        let reaction = if mutant::is(Mutant::ReactionForgotten) { 0 } else { self.reaction };
        for priority in self.told.iter() {
            let sum = received(priority);
            self.pauses[priority].is_excused |= !poll.takes_frames;
            if self.begun.contains(priority) {
                // Frames of this poll came before XOFF left, or after it.
                let pause = &mut self.pauses[priority];
                (pause.received, pause.deadline) = (sum, Ticks(now.0.saturating_add(reaction)));
                continue;
            }
            self.look(priority, sum, now);
            if self.refreshed.contains(priority) {
                self.refresh(priority, now);
            }
        }
        (self.begun, self.refreshed) = (ClassSet::EMPTY, ClassSet::EMPTY);
        if poll.is_drained {
            self.empty = self.poll;
        }
        self.poll = now;
    }

    /// Judges the frames of `priority` that the last poll read.
    #[inline]
    fn look(&mut self, priority: usize, sum: Received, now: Ticks) {
        let pause = &mut self.pauses[priority];
        let is_over = self.empty > pause.deadline;
        let frames = sum.frames.saturating_sub(pause.received.frames);
        if frames == 0 {
            pause.is_silent |= is_over;
            return;
        }
        let bytes = sum.bytes.saturating_sub(pause.received.bytes);
        (pause.received, pause.last) = (sum, Some(self.poll));
        let is_over = (is_over || mutant::is(Mutant::RingForgotten) && self.poll > pause.deadline)
            && !mutant::is(Mutant::LatenessIgnored);
        let is_held = now.since(pause.sent) < self.life && now.since(pause.told) < self.horizon;
        if is_over && is_held && !pause.is_excused {
            let late = &mut self.answers[priority].late;
            (late.frames, late.bytes) = (late.frames + frames, late.bytes + bytes);
            (pause.is_late, self.is_changed) = (true, true);
        }
    }

    /// Takes the refresh of `priority` that left in the last poll.
    fn refresh(&mut self, priority: usize, now: Ticks) {
        let pause = &mut self.pauses[priority];
        if now.since(pause.sent) >= self.life {
            pause.deadline = Ticks(now.0.saturating_add(self.reaction));
        }
        pause.sent = pause.resent;
        if std::mem::take(&mut pause.is_late) {
            pause.was_late = true;
            self.answers[priority].note(true);
        }
    }

    /// Ends the pause of `priority` by XON.
    fn end(&mut self, priority: usize) {
        if !self.told.contains(priority) {
            return;
        }
        let (pause, answers) = (self.pauses[priority], &mut self.answers[priority]);
        let is_begun = self.begun.contains(priority);
        self.told.remove(priority);
        self.begun.remove(priority);
        self.refreshed.remove(priority);
        let Some(last) = pause.last.filter(|_| !is_begun) else { return };
        let ticks = last.since(pause.told);
        answers.times[self.bounds.partition_point(|&bound| bound < ticks)] += 1;
        answers.ticks = answers.ticks.saturating_add(ticks);
        self.is_changed = true;
        if pause.is_late {
            answers.note(true);
        } else if pause.is_silent && !pause.was_late && !pause.is_excused {
            answers.note(false);
        }
    }
}

#[cfg(test)]
#[path = "obedience_tests.rs"]
mod tests;
