//! Rest of switches: polls that can change nothing are counted, and not simulated.
//!
//! A switch with one lcore, whose polls are never late, rests after a poll if no work is pending
//! ([`crate::dataplane::Pipeline::may_rest_when_settled`]). Its polls go on in time: each has its jitter, and counts as
//! an event, a check and a poll. The first collects the releases of the frames that have left. A frame that arrives
//! ends the rest, and the next poll comes when it would have come without. All outputs are those of a run without
//! rests, but for the number of events at which a run is given up.

use super::EPOCH;
use super::events::Event;
use super::load::PS;
use super::net::Net;
use super::node::{Lcore, Node};
use crate::units::Ticks;

/// The rest of a switch.
#[derive(Debug, Clone, Copy)]
pub struct Rest {
    /// Beginning of the next poll, unless the rest ends before.
    next_poll_ps: u64,
    /// Time at which the rest ends: a frame arrives. `u64::MAX`: none is under way.
    ends_ps: u64,
    /// Whether a poll of this rest has collected the releases.
    is_settled: bool,
}

impl Net<'_> {
    /// Begins a rest of `switch`, whose next poll would begin at `next_poll_ps`.
    pub(super) fn begin_rest(&mut self, switch: usize, next_poll_ps: u64) {
        self.nodes[switch].rest = Some(Rest { next_poll_ps, ends_ps: u64::MAX, is_settled: false });
        let next_ps = self.arrivals.earliest_ps(switch);
        if next_ps < u64::MAX {
            self.end_rest_at(switch, next_ps);
        }
    }

    /// Ends the rest of `switch` at `at_ps`, unless it ends before.
    pub(super) fn end_rest_at(&mut self, switch: usize, at_ps: u64) {
        if let Some(rest) = &mut self.nodes[switch].rest
            && at_ps < rest.ends_ps
        {
            rest.ends_ps = at_ps;
            self.events.at(at_ps, Event::RestEnd(switch as u32));
        }
    }

    /// Handles the end of a rest of `switch`.
    pub(super) fn rest_end(&mut self, switch: usize) {
        if self.nodes[switch].rest.is_some_and(|rest| rest.ends_ps == self.now) {
            self.wake_switch(switch);
        }
    }

    /// Ends the rest of `switch` now, if it rests: something other than a frame may give it work.
    pub(super) fn wake_switch(&mut self, switch: usize) {
        self.count_polls(switch);
        if let Some(rest) = self.nodes[switch].rest.take() {
            self.events.at(rest.next_poll_ps, Event::PollIn { switch: switch as u32, lcore: 0 });
        }
    }

    /// Counts the polls of resting switches until now.
    pub(super) fn count_all_polls(&mut self) {
        (0..self.nodes.len()).for_each(|switch| self.count_polls(switch));
    }

    /// Counts the polls of `switch` before now, if it rests.
    fn count_polls(&mut self, switch: usize) {
        let polls = self.nodes[switch].rest_until(self.now);
        self.handled += polls;
        self.steps.done += polls;
    }
}

impl Node {
    /// Whether nothing outside the dataplane gives the switch work, and nothing depends on each of its polls, at `now`.
    pub(super) fn is_free_to_rest(&self, now: u64) -> bool {
        let depends_on_polls = self.tape.is_some() || self.hurry.is_some() || self.sends_after_ps.is_some();
        let has_orders =
            |lcore: &Lcore| !lcore.link_changes.is_empty() || lcore.change.is_some() || lcore.stalled_until > now;
        self.rests && !depends_on_polls && !self.lcores.iter().any(has_orders)
    }

    /// Passes the polls before `now` of a switch that rests. Returns their number.
    fn rest_until(&mut self, now: u64) -> u64 {
        let Some(mut rest) = self.rest else { return 0 };
        let mut polls = 0;
        while rest.next_poll_ps < now {
            let began = rest.next_poll_ps;
            rest.next_poll_ps = began + self.pause_ps();
            let lcore = &mut self.lcores[0];
            lcore.gap_highest_ps = lcore.gap_highest_ps.max(began - lcore.began_ps);
            (lcore.began_ps, lcore.heard_ps) = (began, began);
            if !std::mem::replace(&mut rest.is_settled, true) {
                self.fleet[0].collect_for_rest(Ticks(EPOCH + began));
            }
            polls += 1;
        }
        self.rest = Some(rest);
        self.rested_polls += polls;
        polls
    }

    /// Draws the time from a poll without frames to the next one.
    fn pause_ps(&mut self) -> u64 {
        let poll = self.poll;
        let late = if poll.jitter.0 == 0 { 0 } else { self.rng.between(0, poll.jitter.0 * PS) };
        (poll.every.0 * PS + late).max(1)
    }
}
