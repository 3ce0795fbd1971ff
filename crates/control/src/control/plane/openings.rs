//! Openings: a member that becomes active takes flows over from others, and sends none of their frames before the
//! others have sent the older ones. So no flow is reordered.
//!
//! The lcores already choose the new member, which is *closed*: its frames wait in its queues, and PFC holds lossless
//! senders if they become too many. It opens in four steps:
//!
//! 1. Each lcore has polled three times. It knows the new member.
//! 2. The lcores note the frames that the other members of the group hold, once none is on its way between lcores.
//! 3. These have left.
//! 4. A moment passes, in which devices send them and peers take them.
//!
//! Each group has its own opening. A member that becomes active during one waits for its end: its flows could come from
//! members that are closed themselves. A member that others hold up for a second, as by pauses, opens all the same, and
//! is counted.

use crate::forward::LagsSpec;
use crate::plan::{Counters, LcoreControl};
use crate::sets::PortSet;
use crate::units::Nanos;

/// Polls of each lcore after which it knows new members.
const POLLS: u64 = 3;
/// Time for frames in devices and on cables: longer than the coalescing of interrupts by usual NICs.
const MOMENT: u64 = 2_000_000;
/// Longest time for which a member is closed.
const LONGEST: u64 = 1_000_000_000;

/// A step of an opening. Counts and times begin one look after their cause, which is published by then.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The lcores get to know the members.
    Begin,
    /// Waits until each lcore has polled; the numbers of polls at the begin.
    Polls(Vec<u64>),
    /// Waits until the lcores take a request.
    Ask,
    /// Waits until the frames that were noted for this request have left.
    Drain(u64),
    /// They have left.
    Drained,
    /// Waits until this instant.
    Moment(Nanos),
}

/// An opening that is underway.
#[derive(Debug)]
struct Opening {
    closed: PortSet,
    step: Step,
    since: Nanos,
}

/// A group.
#[derive(Debug)]
struct Group {
    ports: PortSet,
    /// Members that the lcores use and that are not closed.
    open: PortSet,
    opening: Option<Opening>,
}

/// The lcores as an opening sees them: it asks them to note frames, and reads their polls.
#[derive(Debug, Clone, Copy)]
pub(super) struct LcoreAccess<'a> {
    pub control: &'a LcoreControl,
    pub counters: &'a Counters,
}

/// The members that the lcores use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    /// Members that take flows.
    pub distributing: PortSet,
    /// Those of them that keep their frames.
    pub closed: PortSet,
}

/// The openings of all groups.
#[derive(Debug)]
pub(super) struct Openings {
    groups: Vec<Group>,
    /// Members that opened before the older frames had left.
    early: u64,
}

impl Openings {
    /// The openings of the groups of `spec`.
    pub fn new(spec: &LagsSpec) -> Self {
        let group = |ports| Group { ports, open: PortSet::EMPTY, opening: None };
        Self { groups: spec.groups.iter().map(|spec| group(spec.ports)).collect(), early: 0 }
    }

    /// Whether a member is closed.
    pub fn is_underway(&self) -> bool {
        self.groups.iter().any(|group| group.opening.is_some())
    }

    /// Members that opened early.
    pub fn early(&self) -> u64 {
        self.early
    }

    /// Takes note that the link of a member was down for a moment: its flows have moved.
    pub fn forget(&mut self, port: usize) {
        self.groups.iter_mut().for_each(|group| group.open.remove(port));
    }

    /// Takes the members that may be `active` now. Returns those that the lcores use.
    pub fn look(&mut self, active: PortSet, lcores: LcoreAccess<'_>, now: Nanos) -> Used {
        let mut used = Used { distributing: PortSet::EMPTY, closed: PortSet::EMPTY };
        for group in &mut self.groups {
            self.early += group.look(active, lcores, now);
            let closed = group.opening.as_ref().map_or(PortSet::EMPTY, |opening| opening.closed);
            used.distributing |= group.open | closed;
            used.closed |= closed;
        }
        used
    }
}

impl Group {
    /// Takes the members that may be active. Returns the number of those that open early.
    fn look(&mut self, active: PortSet, lcores: LcoreAccess<'_>, now: Nanos) -> u64 {
        let active = self.ports & active;
        self.open &= active;
        let mut early = 0;
        if let Some(opening) = &mut self.opening {
            opening.closed &= active;
            opening.advance(self.open, lcores, now);
            let is_late = now.0 >= opening.since.0 + LONGEST;
            let is_over = matches!(opening.step, Step::Moment(end) if now >= end);
            // Without others there are no older frames.
            if is_over || is_late || opening.closed.is_empty() || self.open.is_empty() {
                early = if is_late && !is_over { opening.closed.len() as u64 } else { 0 };
                self.open |= opening.closed;
                self.opening = None;
            }
        } else {
            let fresh = active - self.open;
            // The first members of a group take no flows over.
            if self.open.is_empty() {
                self.open = fresh;
            } else if !fresh.is_empty() {
                self.opening = Some(Opening { closed: fresh, step: Step::Begin, since: now });
            }
        }
        early
    }
}

impl Opening {
    /// Goes on by one step, if it may. `open` are the other members.
    fn advance(&mut self, open: PortSet, lcores: LcoreAccess<'_>, now: Nanos) {
        let next = match &self.step {
            Step::Begin => Some(Step::Polls(polls(lcores.counters))),
            Step::Polls(before) => {
                let has_polled = |(now, before): (u64, &u64)| now - before >= POLLS;
                polls(lcores.counters).into_iter().zip(before).all(has_polled).then_some(Step::Ask)
            }
            Step::Ask => lcores.control.request_drain(open).map(Step::Drain),
            Step::Drain(number) => lcores.control.is_drained(*number, open).then_some(Step::Drained),
            Step::Drained => Some(Step::Moment(Nanos(now.0 + MOMENT))),
            Step::Moment(_) => None,
        };
        if let Some(next) = next {
            self.step = next;
        }
    }
}

/// The polls of each lcore.
fn polls(counters: &Counters) -> Vec<u64> {
    counters.lcores.iter().map(|lcore| lcore.polls.get()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::LagSpec;

    const MS: u64 = 1_000_000;

    struct Bed {
        openings: Openings,
        control: LcoreControl,
        counters: Counters,
        now: u64,
    }

    impl Bed {
        fn new() -> Self {
            let group = |bits| LagSpec {
                name: String::new(),
                ports: PortSet::from_bits(bits),
                min_links: 1,
                is_negotiated: true,
            };
            let spec = LagsSpec { groups: vec![group(0b00111), group(0b11000)], ..LagsSpec::default() };
            let counters = Counters::new(5, 2);
            Self { openings: Openings::new(&spec), control: LcoreControl::new(2), counters, now: MS }
        }

        /// Members that are used, and those that are closed.
        fn look(&mut self, active: u64, ms: u64) -> (u64, u64) {
            self.now += ms * MS;
            let lcores = LcoreAccess { control: &self.control, counters: &self.counters };
            let used = self.openings.look(PortSet::from_bits(active), lcores, Nanos(self.now));
            (used.distributing.bits(), used.closed.bits())
        }

        fn poll(&self, polls: u64) {
            self.counters.lcores.iter().for_each(|lcore| lcore.polls.add(polls));
        }

        fn answer(&self, lcore: usize, number: u64, pending: u64) {
            self.control.answer_drain(lcore, number, PortSet::from_bits(pending));
        }
    }

    #[test]
    fn first_members_are_open_and_later_ones_wait_for_the_lcores() {
        let mut bed = Bed::new();
        assert_eq!(bed.look(0b00011, 0), (0b00011, 0), "they take no flows over");
        assert_eq!(bed.look(0b01111, 0), (0b01111, 0b00100), "the first member of another group is open");
        bed.look(0b01111, 0);
        bed.poll(2);
        bed.look(0b01111, 5);
        bed.poll(1);
        for _ in 0..3 {
            bed.look(0b01111, 1);
        }
        assert_eq!(bed.look(0b01111, 5), (0b01111, 0b00100), "the lcores have not answered");
        bed.answer(0, 1, 0);
        bed.answer(1, 1, 0b00010);
        assert_eq!(bed.look(0b01111, 5), (0b01111, 0b00100), "a frame waits at another member");
        bed.answer(1, 1, 0b01000);
        for _ in 0..2 {
            bed.look(0b01111, 1);
        }
        assert_eq!(bed.look(0b01111, 0), (0b01111, 0b00100), "frames are in devices; the other group does not count");
        assert_eq!((bed.look(0b01111, 2), bed.openings.early()), ((0b01111, 0), 0));
        assert!(!bed.openings.is_underway());
    }

    #[test]
    fn member_that_joins_during_an_opening_waits_for_its_end() {
        let mut bed = Bed::new();
        bed.look(0b001, 0);
        assert_eq!(bed.look(0b011, 1), (0b011, 0b010));
        assert_eq!(bed.look(0b111, 1), (0b011, 0b010), "its flows may be in the closed member");
        assert_eq!(bed.look(0b111, 999), (0b011, 0), "the second does not put off the first");
        assert_eq!(bed.look(0b111, 1), (0b111, 0b100));
    }

    #[test]
    fn member_that_is_held_up_opens_after_a_second_and_is_counted() {
        let mut bed = Bed::new();
        bed.look(0b01001, 0);
        bed.look(0b01011, 0);
        assert_eq!(bed.look(0b11011, 999), (0b11011, 0b10010), "each group has its own time");
        assert_eq!((bed.look(0b11011, 1), bed.openings.early()), ((0b11011, 0b10000), 1));
    }

    #[test]
    fn member_that_is_lost_is_closed_no_more() {
        let mut bed = Bed::new();
        bed.look(0b0001, 0);
        assert_eq!(bed.look(0b0011, 1), (0b0011, 0b0010));
        assert_eq!(bed.look(0b0001, 1), (0b0001, 0));
        assert!(!bed.openings.is_underway());
        bed.look(0b0011, 1);
        assert_eq!(bed.look(0b0010, 1), (0b0010, 0), "frames of the lost member are lost");
        assert_eq!(bed.openings.early(), 0);
    }
}
