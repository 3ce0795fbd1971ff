//! Load shedding: a core with more frames than time drops lossy frames at the receive ring, so that lossless ones get
//! through.
//!
//! Lossy senders do not stop. A flood of small lossy frames keeps a receive ring full; the backlog rule would then hold
//! the lossless classes of its port for as long as the flood lasts. An lcore whose [`Patience`] with that is spent
//! therefore gives each port and lossy class an allowance of frames per poll. It drops the frames beyond it by the
//! bytes that decide their class. [`PollBudget`] computes the allowance anew for each poll, from the frames that will
//! come and the time that they take. A port or class that sends less than its allowance loses nothing, so floods get
//! equal shares of the remaining time.
//!
//! The unit is the receive ring. Queues without lossless frames bring no more frames than may pass. Further ones are
//! lost in the device and are not shed.

use super::backlog::Backlog;
use super::patience::Patience;
use super::poll_budget::{Expected, LOSSY_PART, PollBudget, QuickestPoll, fair_share};
use super::port_classifier::PortClassifier;
use super::shed_frames::{NETWORK, OTHERS, ROWS, SLOTS, Shed, choose_spent, row_of, usual_class};
use crate::dataplane::frame::class_bits::ClassBits;
use crate::io::{Burst, Packet};
use crate::mutant::{self, Mutant};
use crate::sets::{CLASSES, ClassSet, FrameSet, MAX_PORTS, PortSet};
use crate::units::Ticks;

/// Allowance without a limit, in parts of 2^8 of a frame.
const UNLIMITED: u32 = 1 << 24;
/// The part of the frames from which those that cannot be shed show that a peer which ignores XOFF overloads the lcore.
/// Shedding then costs rate and does not help.
const DEAF_PART: u32 = 8;
/// Bounds of the frames that a poll is expected to receive, as parts of 2^8 of those of the poll before: few polls in a
/// row differ by more, and frames may come in bursts.
const LEAST_GROWTH: u64 = 1 << 7;
const MOST_GROWTH: u64 = 8 << 8;
/// Frames of each network row that a port may always pass in a poll: ARP and neighbour discovery, and bridge protocols.
const NETWORK_ALLOWANCE: u16 = 4;
/// Polls in a row with a backlog that does not shrink, with its patience spent, after which the allowance is at its
/// minimum. [`LEAST_PASSED`] is the number of frames that then pass per poll at one port.
pub(crate) const SETTLING_POLLS: u64 = 4;
pub(crate) const LEAST_PASSED: u64 = CLASSES as u64 + 2 * NETWORK_ALLOWANCE as u64;
/// Polls in a row with a backlog of unknown size after which it counts as one that does not shrink: in that time, one
/// burst a poll drains a ring of 1,024 frames.
const STALLED_UNSEEN_POLLS: u8 = 32;
/// Poll gaps without a backlog after which the next one has nothing to do with the last.
const CALM_GAPS: u64 = 16;
/// The part of its time that a poll spends if its backlog shrinks: a stall is drained once, bursts come again.
const SHRINKING_PART: u64 = 4;
/// Rounds that a poll may have while it sheds, if no clock bounds it.
pub(crate) const MOST_ROUNDS: u64 = 256;

/// Frames of one poll that the shedder has inspected.
#[derive(Debug, Default, Clone, Copy)]
struct Looked {
    shed: u32,
    /// Frames that cannot be shed.
    others: u32,
    /// Whether lossy frames were left in receive queues of their own.
    is_cut: bool,
}

/// How far an lcore is behind: the backlogs of its ports.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Lateness {
    /// Whether the poll before left a backlog.
    is_late: bool,
    /// Frames that it left in all; `None`: some device cannot report them.
    left: Option<usize>,
    /// Whether a receive ring is about to overflow.
    is_full: bool,
    /// Ports whose peers ignore XOFF.
    deaf: PortSet,
}

/// The backlog of a port, in its receive rings that count.
pub(crate) struct PortBacklog<'a> {
    pub port: usize,
    pub backlog: &'a Backlog,
    pub rings: usize,
}

impl Lateness {
    pub fn from_backlogs<'a>(backlogs: impl Iterator<Item = PortBacklog<'a>>) -> Self {
        let mut sum = Self { left: Some(0), ..Self::default() };
        for PortBacklog { port, backlog, rings } in backlogs.filter(|backlog| backlog.backlog.is_late()) {
            sum.is_late = true;
            sum.left = sum.left.zip(backlog.left()).map(|(sum, left)| sum + left);
            sum.is_full |= backlog.is_full(rings);
            sum.deaf.set(port, backlog.is_deaf());
        }
        sum
    }
}

/// The course of the backlog of an lcore. After the lcore has been away, it shrinks at almost every poll.
#[derive(Debug, Default, Clone, Copy)]
struct Course {
    /// Polls in a row that left a backlog.
    late_polls: u8,
    /// The fewest frames that they left, and those that the last one left, if that is known.
    lowest: Option<usize>,
    last: Option<usize>,
}

impl Course {
    /// Whether a backlog is not below that of the poll before.
    fn is_growing(&self, lateness: Lateness) -> bool {
        self.late_polls > 0 && lateness.left >= self.last
    }

    /// Notes a poll. Returns whether its backlog is not below what it was.
    fn is_stalled(&mut self, lateness: Lateness) -> bool {
        self.last = lateness.left;
        if !lateness.is_late {
            self.late_polls = 0;
            return false;
        }
        self.late_polls = self.late_polls.saturating_add(1);
        let Some(left) = lateness.left else { return self.late_polls > STALLED_UNSEEN_POLLS };
        let is_stalled = self.lowest.is_none_or(|lowest| left >= lowest);
        self.lowest = Some(self.lowest.map_or(left, |lowest| lowest.min(left)));
        is_stalled
    }
}

/// The shedding state of one lcore.
#[derive(Debug)]
pub(crate) struct Shedder {
    is_on: bool,
    /// Whether the lcore has a clock and a poll gap, which then bound its polls; `None` before the first poll.
    is_timed: Option<bool>,
    budget: PollBudget,
    quickest: QuickestPoll,
    patience: Patience,
    /// Most ticks between two polls that count as time of the first one.
    longest_poll: u64,
    /// Frames that a poll of an lcore without a clock may forward at each port.
    untimed: u32,
    course: Course,
    /// Beginning of the last poll that was planned.
    planned: Ticks,
    /// Frames that a lossy class of a port may pass in one poll, in parts of 2^8 of a frame.
    level: u32,
    /// Lossy frames that the last poll might pass. The number grows gradually, since held senders have none on the way.
    passed: u64,
    /// Lossy frames that may still pass in this poll in all.
    lossy_left: u32,
    /// Until when the lcore does not shed, because it would not help, and the ticks of such a time.
    tolerates_until: Ticks,
    toleration: u64,
    /// Number of the poll, which varies how parts of frames are rounded.
    number: u8,
    /// Port with which the next poll begins, if the last one ended within a round.
    next: Option<usize>,
    /// Frames that the last poll received.
    received: u32,
    /// Ticks between the beginnings of this poll and of the one before.
    interval: u64,
    /// Frames that the last poll has looked at, and the ticks in which they had come.
    looked: Looked,
    looked_interval: u64,
    /// Frames among them, by port and by class, [`NETWORK`], [`BRIDGE`](super::shed_frames::BRIDGE) or [`OTHERS`].
    offered: Box<[[u32; SLOTS]; MAX_PORTS]>,
}

impl Shedder {
    /// Sets the frames that a poll receives at least of each port.
    pub fn set_least_frames(&mut self, least_frames: u32) {
        self.untimed = least_frames;
    }

    /// Creates the state of an lcore that does not shed. A poll of it receives at least `least_frames` of each port.
    /// `hz` are the ticks of a second.
    pub fn new(budget: PollBudget, least_frames: u32, hz: u64) -> Self {
        let longest_poll = budget.gap().max(hz / 100_000);
        Self {
            is_on: false,
            is_timed: None,
            budget,
            quickest: QuickestPoll::new(),
            patience: Patience::new((hz / 2_000).max(8 * longest_poll)),
            longest_poll,
            untimed: least_frames,
            course: Course::default(),
            planned: Ticks(0),
            level: UNLIMITED,
            passed: 0,
            lossy_left: u32::MAX,
            tolerates_until: Ticks(0),
            // 16 ms.
            toleration: hz / 64,
            number: 0,
            next: None,
            received: 0,
            looked: Looked::default(),
            looked_interval: 1,
            interval: 0,
            offered: Box::new([[0; SLOTS]; MAX_PORTS]),
        }
    }

    /// Whether shedding is on: lossy frames are counted, and dropped beyond their allowance.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether the lcore lets a backlog wait that does not shrink: its patience is not spent, or it would not help.
    pub fn is_patient(&self, now: Ticks) -> bool {
        !self.is_on && (!self.patience.is_spent() || now < self.tolerates_until)
    }

    /// Whether time bounds the polls, rather than a number of frames.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.is_timed == Some(true)
    }

    /// Begins a poll `interval` ticks after the one before.
    #[inline]
    pub fn begin(&mut self, interval: u64) {
        self.interval = interval;
        if !self.is_on {
            self.quickest.note(self.received, interval);
        }
    }

    /// Frames that the last poll shed.
    #[inline]
    pub fn shed_frames(&self) -> usize {
        self.looked.shed as usize
    }

    /// Frames that the poll has seen and cannot shed.
    pub fn other_frames(&self) -> usize {
        self.looked.others as usize
    }

    /// Whether a poll must be planned even if the poll before left no backlog.
    #[inline]
    pub fn must_plan(&self) -> bool {
        self.is_on || self.is_timed.is_none()
    }

    /// Plans the poll that has begun `now`, of the ports `own`. `has_clock` is whether time passes within a poll.
    #[cold]
    pub fn plan(&mut self, own: PortSet, has_clock: bool, lateness: Lateness, now: Ticks) {
        let was_next = now.since(self.planned) == self.interval;
        if *self.is_timed.get_or_insert(has_clock && self.budget.is_bounded()) {
            let shed = self.looked.shed;
            self.budget.learn(self.received.saturating_sub(shed), shed, self.interval, was_next);
        }
        // Polls that are not planned leave no backlog. An overload may drain the rings again and again, while senders
        // are held; an interruption does so once.
        if !self.is_on && now.since(self.planned) > CALM_GAPS * self.longest_poll.max(self.interval) {
            self.course = Course::default();
        }
        self.planned = now;
        let was_late = self.course.late_polls > 0;
        let is_growing = was_next && self.course.is_growing(lateness);
        let is_stalled = self.course.is_stalled(lateness);
        if self.is_on {
            let may_fit = self.looked.shed == 0 || self.is_timed() && self.quickest.fits(self.received, self.interval);
            if self.gives_up(lateness, now) || self.patience.allows_trial(now, may_fit) {
                (self.is_on, self.looked, self.course.lowest) = (false, Looked::default(), lateness.left);
            }
        } else if lateness.is_late {
            // A single poll of more than the gap shows only that the core was away.
            if was_late || self.interval <= self.longest_poll {
                let ticks = self.interval.min(self.longest_poll);
                self.patience.spend(if is_stalled { ticks } else { ticks / SHRINKING_PART }, now);
            }
            if is_stalled {
                self.quickest.forget();
                self.begin_if_needed(is_growing && lateness.is_full, now);
            }
        }
        if self.is_on {
            self.allow(own, lateness);
        }
    }

    /// Begins to shed if frames must not wait.
    fn begin_if_needed(&mut self, is_full: bool, now: Ticks) {
        let must = (self.patience.is_spent() || is_full) && now >= self.tolerates_until;
        if must && !mutant::is(Mutant::NeverSheds) {
            self.is_on = true;
            self.patience.exhaust(now);
        }
    }

    /// Whether shedding would not help: peers that ignore XOFF bring a notable part of the frames.
    fn gives_up(&mut self, lateness: Lateness, now: Ticks) -> bool {
        let deaf: u32 = lateness.deaf.iter().map(|port| self.offered[port][OTHERS]).sum();
        let gives_up = deaf > 0 && deaf >= self.received / DEAF_PART;
        if gives_up {
            self.tolerates_until = Ticks(now.0 + self.toleration);
        }
        gives_up
    }

    /// Computes how many lossy frames the poll may forward, from those that the poll before has seen.
    fn allow(&mut self, own: PortSet, lateness: Lateness) {
        self.number = self.number.wrapping_add(1);
        let expected = self.expected(own);
        let most = match (self.is_timed(), lateness.is_late) {
            (true, false) => self.budget.lossy(expected).min(self.passed + self.passed / 4 + 2),
            (true, true) => expected.others / LOSSY_PART,
            (false, _) => u64::MAX >> 16,
        };
        self.level = match self.is_timed() {
            true => self.fair_level(own, most),
            false if lateness.is_late => 1 << 8,
            false => self.untimed_level(own),
        };
        self.passed = most;
        self.lossy_left = (most + most / 4 + 8).min(u32::MAX.into()) as u32;
        (self.looked, self.looked_interval) = (Looked::default(), self.interval.max(1));
        own.iter().for_each(|port| self.offered[port] = [0; SLOTS]);
    }

    /// Growth of the arrivals since the poll before by the time in which they came, in parts of 2^8.
    fn growth(&self) -> u64 {
        ((self.interval << 8) / self.looked_interval.max(1)).clamp(LEAST_GROWTH, MOST_GROWTH)
    }

    /// Frames that the poll will receive.
    fn expected(&self, own: PortSet) -> Expected {
        let growth = self.growth();
        let lossy: u64 = self.rows(own).map(u64::from).sum();
        Expected { lossy: (lossy * growth) >> 8, others: (u64::from(self.looked.others) * growth) >> 8 }
    }

    /// Lossy frames that the ports `own` have received, by port and row.
    fn rows(&self, own: PortSet) -> impl Iterator<Item = u32> + Clone {
        own.iter().flat_map(|port| &self.offered[port][..ROWS]).copied()
    }

    /// The allowance of an lcore without a clock: at each port, lossy frames fill up three quarters of what a poll may
    /// forward there. A poll that forwards all of it leaves frames behind.
    fn untimed_level(&self, own: PortSet) -> u32 {
        let (most, least) = (self.untimed * 3 / 4, self.untimed / LOSSY_PART as u32);
        let level = |port: usize| {
            let left = most.saturating_sub(self.offered[port][OTHERS]).max(least);
            fair_share(self.rows(PortSet::only(port)), left.into())
        };
        own.iter().filter_map(level).min().unwrap_or(UNLIMITED)
    }

    /// The allowance with which `most` lossy frames pass in all.
    fn fair_level(&self, own: PortSet, most: u64) -> u32 {
        let growth = self.growth().max(1);
        match fair_share(self.rows(own), (most << 8) / growth) {
            Some(level) => ((u64::from(level) * growth) >> 8).min(UNLIMITED.into()) as u32,
            // It is not known how many frames are left in queues.
            None if self.looked.is_cut => (self.level + self.level / 4 + (1 << 8)).min(UNLIMITED),
            None => UNLIMITED,
        }
    }

    /// Frames that a lossy class of `port` may pass in this poll. Parts of frames are rounded up in so many polls that
    /// the average is exact, and at a different time for each port.
    fn allowance(&self, port: usize) -> u16 {
        let phase = self.number.wrapping_mul(159).wrapping_add((port as u8).wrapping_mul(97));
        ((self.level + u32::from(phase)) >> 8).min(u16::MAX.into()) as u16
    }

    /// Frames that may still pass in this poll at `port`, by row.
    #[inline]
    fn left(&self, port: usize) -> [u32; SLOTS] {
        let (offered, allowance) = (&self.offered[port % MAX_PORTS], self.allowance(port));
        std::array::from_fn(|row| {
            let most = if row < NETWORK { allowance } else { allowance.max(NETWORK_ALLOWANCE) };
            u32::from(most).saturating_sub(offered[row])
        })
    }

    /// Frames of queues without lossless groups that `port` may receive in this poll: a class's allowance, and network
    /// control.
    #[inline]
    pub fn most_passed(&self, port: usize) -> usize {
        (self.lossy_left as usize).min(self.allowance(port).into()) + 2 * usize::from(NETWORK_ALLOWANCE)
    }

    /// Records that frames of such queues may be left, because they brought [`Shedder::most_passed`].
    #[inline]
    pub fn leave(&mut self) {
        self.looked.is_cut = true;
    }

    /// Chooses the lossy frames of `burst`, received by `port`, beyond the allowance of their class in this poll.
    /// Returns them, and their sums by class.
    #[inline(never)]
    pub fn choose(
        &mut self,
        port: usize,
        classifier: &PortClassifier,
        burst: &Burst<impl Packet>,
    ) -> (FrameSet, [Shed; CLASSES]) {
        let mut left = self.left(port);
        let is_spent = |class: &usize| self.lossy_left == 0 || left[*class] == 0;
        let spent = classifier.lossy() & (0..CLASSES).filter(is_spent).collect::<ClassSet>();
        let (mut frames, mut sums) = choose_spent(spent, classifier, burst);
        let offered = &mut self.offered[port % MAX_PORTS];
        offered.iter_mut().zip(&sums).for_each(|(offered, sum)| *offered += sum.frames() as u32);
        let mut others = 0;
        for index in (FrameSet::first(burst.len()) - frames).iter() {
            let bytes = burst[index].bytes();
            let (class_bits, row) = match usual_class(classifier, bytes) {
                Some(class_bits) => (class_bits, usize::from(class_bits.class())),
                // MAC control counts as a frame that is not lossy.
                None => row_of(classifier, bytes).unwrap_or((ClassBits::NONE, 0)),
            };
            if class_bits.lossy_queue().is_empty() {
                others += 1;
                continue;
            }
            let left = &mut left[row % SLOTS];
            offered[row % SLOTS] += 1;
            if *left > 0 && (self.lossy_left > 0 || row >= NETWORK) {
                (*left, self.lossy_left) = (*left - 1, self.lossy_left.saturating_sub(1));
                continue;
            }
            frames.insert(index);
            sums[usize::from(class_bits.class())].add(bytes.len());
        }
        offered[OTHERS] += others;
        let shed = frames.len() as u32;
        self.looked.shed += shed;
        self.looked.others += others;
        (frames, sums)
    }

    /// Ticks in which `frames` received frames are sent.
    pub fn owed_ticks(&self, frames: usize) -> u64 {
        self.budget.owed_ticks(frames as u32)
    }

    /// Ends a poll within a round, or after one if `next` is `None`. The next poll begins with that port or the one
    /// behind it, so that polls take all ports in turn however few they reach.
    pub fn cut(&mut self, next: Option<usize>) {
        self.next = next;
    }

    /// Ports of `all` with which a round begins: those from the one with which the last poll ended. Polls that shed end
    /// within a round so often that the first port changes at each.
    pub fn first_ports(&mut self, all: PortSet) -> PortSet {
        let turn = usize::from(self.number) % all.len().max(1);
        let first = match self.next.take() {
            None if self.is_on => all.iter().nth(turn).unwrap_or(0),
            None => 0,
            Some(next) => next,
        };
        let first = all - PortSet::first(first);
        if first.is_empty() { all } else { first }
    }

    /// Whether a round may begin with another port than the first.
    #[inline]
    pub fn turns_rounds(&self) -> bool {
        self.is_on || self.next.is_some()
    }

    /// Ends the ingress half of a poll, which has received `received` frames.
    #[inline]
    pub fn end(&mut self, received: usize) {
        self.received = received as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backlog of `left` frames; `None`: of unknown size.
    fn late(left: Option<usize>) -> Lateness {
        Lateness { is_late: left != Some(0), left, ..Lateness::default() }
    }

    #[test]
    fn backlog_is_stalled_unless_it_shrinks() {
        let mut course = Course::default();
        for (left, is_stalled) in
            [(700, true), (650, false), (700, true), (651, true), (649, false), (0, false), (40, false), (40, true)]
        {
            assert_eq!(course.is_stalled(late(Some(left))), is_stalled, "{left}");
        }
    }

    #[test]
    fn backlog_of_unknown_size_is_stalled_after_a_ring_of_polls() {
        let mut course = Course::default();
        for poll in 1..=40 {
            assert_eq!(course.is_stalled(late(None)), poll > 32, "{poll}");
        }
        assert!(!course.is_stalled(late(Some(0))) && !course.is_stalled(late(None)));
    }
}
