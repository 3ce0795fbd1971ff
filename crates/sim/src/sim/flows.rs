//! The flows of a run. A flow takes memory while it lives: from its start until nothing of it is under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Index, IndexMut};

use super::flow::Flow;
use super::launch::Origin;
use super::load::{Demand, PS};
use super::outcome::{BacklogHold, FlowOutcome};
use super::path::Paths;
use super::spec::{FlowNode, Scenario};

/// All flows, by number: those that the scenario lists, then those of workloads. The numbers of the latter are reused.
#[derive(Debug)]
pub struct Flows<'a> {
    scenario: &'a Scenario,
    paths: Paths<'a>,
    slots: Vec<Slot>,
    /// Numbers of flows of workloads that have ended, the least first: whichever ended first.
    free: BinaryHeap<Reverse<usize>>,
    /// Flows that have ever been added.
    added: u64,
    /// Whether flows live from the beginning to the end of the run, as samples need them.
    keeps_all: bool,
}

/// A flow, by its age.
#[derive(Debug)]
enum Slot {
    /// It has not begun, or its number is free.
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
        let (paths, keeps_all) = (Paths::new(scenario), scenario.sample.0 > 0);
        let mut flows = Self { scenario, paths, slots, free: BinaryHeap::new(), added: 0, keeps_all };
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

    /// Keeps only the results of flow `number`, of which no frame is under way, if it never sends again. Returns a flow
    /// of a workload that has ended: its number is free.
    #[inline]
    pub fn end(&mut self, number: usize, now: u64) -> Option<Box<Flow>> {
        let Slot::Live(flow) = &mut self.slots[number] else { return None };
        if !flow.has_ended(now) {
            return None;
        }
        if flow.origin.is_some() {
            self.free.push(Reverse(number));
            let Slot::Live(flow) = std::mem::replace(&mut self.slots[number], Slot::Waiting) else { return None };
            return Some(flow);
        }
        if flow.has_lost_nothing() {
            if self.keeps_all {
                flow.stop_timers();
            } else {
                self.slots[number] = Slot::Ended(Box::new(flow.finish()));
            }
        }
        None
    }

    /// Adds a flow of a workload, which lives from now on. Returns its number.
    pub fn add(&mut self, spec: FlowNode, origin: Origin) -> usize {
        let number = self.free.pop().map_or(self.slots.len(), |Reverse(number)| number);
        if number == self.slots.len() {
            self.slots.push(Slot::Waiting);
        }
        let serial = self.scenario.flows.len() as u64 + self.added;
        self.added += 1;
        let mut flow = Flow::of(spec, number, serial, self.scenario, &mut self.paths);
        flow.origin = Some(origin);
        self.slots[number] = Slot::Live(Box::new(flow));
        number
    }

    /// Removes all flows of workloads.
    pub fn take_added(&mut self) -> Vec<Flow> {
        let added = self.slots.drain(self.scenario.flows.len()..);
        added.filter_map(|slot| if let Slot::Live(flow) = slot { Some(*flow) } else { None }).collect()
    }

    /// Number of flows of workloads that live.
    #[must_use]
    pub fn count_added(&self) -> usize {
        self.slots.len() - self.scenario.flows.len() - self.free.len()
    }

    /// Numbers of flows of workloads, free ones too.
    pub fn numbers_added(&self) -> std::ops::Range<usize> {
        self.scenario.flows.len()..self.slots.len()
    }

    /// Most flows of workloads that have lived at once.
    #[must_use]
    pub fn most_added(&self) -> usize {
        // A new number is used only if none is free.
        self.slots.len() - self.scenario.flows.len()
    }

    /// Returns the paths of the scenario.
    pub fn paths(&mut self) -> &mut Paths<'a> {
        &mut self.paths
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
        self.slots.iter().enumerate().all(|(number, slot)| match slot {
            Slot::Ended(_) => true,
            Slot::Live(flow) => flow.is_settled() || is_cut_off(&flow.spec),
            Slot::Waiting => {
                self.scenario.flows.get(number).is_none_or(|node| !self.owes_messages(node) || is_cut_off(node))
            }
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
