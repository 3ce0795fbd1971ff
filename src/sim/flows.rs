//! The flows of a run. A flow takes memory while it lives: from its start until nothing of it is under way.

use std::ops::{Index, IndexMut};

use super::flow::Flow;
use super::load::{Demand, PS};
use super::outcome::{BacklogHold, FlowOutcome};
use super::path::Paths;
use super::spec::{FlowNode, Scenario};

/// All flows, by number.
#[derive(Debug)]
pub struct Flows<'a> {
    scenario: &'a Scenario,
    paths: Paths<'a>,
    slots: Vec<Slot>,
    /// Whether flows live from the beginning to the end of the run, as samples need them.
    keeps_all: bool,
}

/// A flow, by its age.
#[derive(Debug)]
enum Slot {
    /// It has not begun.
    Waiting,
    Live(Box<Flow>),
    /// Nothing of it is under way, and it never sends again.
    Ended(Box<FlowOutcome>),
}

impl<'a> Flows<'a> {
    /// Returns the flows of `scenario`. They begin when the run begins if it takes samples, else by
    /// [`Flows::begin`].
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let slots = scenario.flows.iter().map(|_| Slot::Waiting).collect();
        let mut flows = Self { scenario, paths: Paths::new(scenario), slots, keeps_all: scenario.sample.0 > 0 };
        if flows.keeps_all {
            (0..flows.slots.len()).for_each(|number| flows.begin(number));
        }
        flows
    }

    /// Returns the beginning and the end of the sending period of `flow`, in picoseconds.
    #[must_use]
    pub fn span(flow: &FlowNode, scenario: &Scenario) -> (u64, u64) {
        let duration = scenario.duration.0 * PS;
        let end = flow.stop.map_or(duration, |stop| duration.min(stop.0 * PS));
        ((flow.start.0 * PS).min(end), end)
    }

    /// Begins flow `number`, unless it has begun.
    pub fn begin(&mut self, number: usize) {
        if matches!(self.slots[number], Slot::Waiting) {
            self.slots[number] = Slot::Live(Box::new(Flow::new(number, self.scenario, &mut self.paths)));
        }
    }

    /// Keeps only the results of flow `number`, if it never sends again and nothing of it is under way at `now`.
    #[inline]
    pub fn end(&mut self, number: usize, now: u64) {
        if let Slot::Live(flow) = &self.slots[number]
            && !self.keeps_all
            && flow.has_ended(now)
        {
            self.slots[number] = Slot::Ended(Box::new(flow.finish()));
        }
    }

    /// Returns flow `number`, if it lives.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Flow> {
        match &mut self.slots[number] {
            Slot::Live(flow) => Some(flow),
            Slot::Waiting | Slot::Ended(_) => None,
        }
    }

    /// Returns the flows that live, in order of their numbers.
    pub fn live(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Live(flow) => Some(&**flow),
            Slot::Waiting | Slot::Ended(_) => None,
        })
    }

    /// Returns the flows that live, as [`Flows::live`].
    pub fn live_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Live(flow) => Some(&mut **flow),
            Slot::Waiting | Slot::Ended(_) => None,
        })
    }

    /// Returns the counters of the flows that have begun.
    pub fn counts(&self) -> impl Iterator<Item = &FlowOutcome> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Waiting => None,
            Slot::Live(flow) => Some(&flow.outcome),
            Slot::Ended(outcome) => Some(&**outcome),
        })
    }

    /// Records the receive backlog that held flow `number` longest.
    pub fn set_backlog(&mut self, number: usize, backlog: Option<BacklogHold>) {
        match &mut self.slots[number] {
            Slot::Waiting => {
                self.begin(number);
                self.set_backlog(number, backlog);
            }
            Slot::Live(flow) => flow.outcome.backlog = backlog,
            Slot::Ended(outcome) => outcome.backlog = backlog,
        }
    }

    /// Whether no flow has anything under way or to be sent, but for those that `is_cut_off` says of.
    pub fn are_settled(&self, is_cut_off: impl Fn(&FlowNode) -> bool) -> bool {
        self.slots.iter().zip(&self.scenario.flows).all(|(slot, node)| match slot {
            Slot::Ended(_) => true,
            Slot::Live(flow) => flow.is_settled() || is_cut_off(node),
            Slot::Waiting => !self.owes_messages(node) || is_cut_off(node),
        })
    }

    /// Whether a reliable flow that has not begun has messages to send all the same: its host had no link.
    fn owes_messages(&self, flow: &FlowNode) -> bool {
        let (start, stop) = Self::span(flow, self.scenario);
        flow.transport.is_some() && Demand::new(flow.load, start, stop).is_due()
    }

    /// Returns the results of all flows.
    #[must_use]
    pub fn finish(mut self) -> Vec<FlowOutcome> {
        // A flow that never began has results too: its rate, and the length of its period.
        (0..self.slots.len()).for_each(|number| self.begin(number));
        let finish = |slot| match slot {
            Slot::Live(flow) => flow.finish(),
            Slot::Ended(outcome) => *outcome,
            Slot::Waiting => unreachable!("every flow has begun"),
        };
        self.slots.into_iter().map(finish).collect()
    }
}

impl Index<usize> for Flows<'_> {
    type Output = Flow;

    /// Returns flow `number`, whose frame or reply is at hand, so it lives.
    #[inline]
    fn index(&self, number: usize) -> &Flow {
        match &self.slots[number] {
            Slot::Live(flow) => flow,
            Slot::Waiting | Slot::Ended(_) => unreachable!("flow {number} does not live"),
        }
    }
}

impl IndexMut<usize> for Flows<'_> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Flow {
        match &mut self.slots[number] {
            Slot::Live(flow) => flow,
            Slot::Waiting | Slot::Ended(_) => unreachable!("flow {number} does not live"),
        }
    }
}
