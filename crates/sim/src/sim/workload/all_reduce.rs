//! Rounds of an all-reduce: the next one begins when each host has the result of the last.

use super::ring::Ring;
use super::tree::Tree;
use super::{AllReduce, AllReduceShape, Arrival};
use crate::sim::load::PS;

/// A flow within a round: sender and receiver by their place among the hosts, bytes, and tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
    pub tag: u64,
}

/// Rounds, in progress or to come.
#[derive(Debug)]
pub(super) struct AllReduces<'a> {
    spec: &'a AllReduce,
    round: Round,
    /// Flows with which the round begins and that have not started, the first one last, and their time.
    first: Vec<Step>,
    at_ps: u64,
    /// Flows of the round that are not complete.
    open: u64,
    /// Rounds that are complete.
    done: u64,
    steps: Vec<Step>,
}

/// The state of the round in progress.
#[derive(Debug)]
enum Round {
    Ring(Ring),
    Tree(Tree),
}

impl Round {
    fn begin(spec: &AllReduce) -> (Self, Vec<Step>, u64) {
        let (hosts, bytes) = (spec.hosts.len(), spec.bytes.0);
        let (round, mut first, flows) = match spec.shape {
            AllReduceShape::Ring => {
                let ring = Ring::new(hosts, bytes);
                (Self::Ring(ring), ring.first(), ring.flows())
            }
            AllReduceShape::Tree => {
                let tree = Tree::new(hosts, bytes);
                let (first, flows) = (tree.first(), tree.flows());
                (Self::Tree(tree), first, flows)
            }
        };
        first.reverse();
        (round, first, flows)
    }
}

impl<'a> AllReduces<'a> {
    pub fn new(spec: &'a AllReduce, start_ps: u64) -> Self {
        let (round, first, open) = Round::begin(spec);
        Self { spec, round, first, at_ps: start_ps, open, done: 0, steps: Vec::new() }
    }

    pub fn rounds(&self) -> u64 {
        self.done
    }

    pub fn next(&mut self) -> Option<Arrival> {
        let step = self.first.pop()?;
        Some(self.arrival(step, self.at_ps))
    }

    pub fn completed(&mut self, tag: u64, now_ps: u64, out: &mut Vec<Arrival>) {
        let mut steps = std::mem::take(&mut self.steps);
        match &mut self.round {
            Round::Ring(ring) => steps.extend(ring.completed(tag)),
            Round::Tree(tree) => tree.completed(tag, &mut steps),
        }
        out.extend(steps.drain(..).map(|step| self.arrival(step, now_ps)));
        self.steps = steps;
        self.open -= 1;
        if self.open == 0 {
            self.done += 1;
            if self.spec.times.is_none_or(|times| self.done < times) {
                (self.round, self.first, self.open) = Round::begin(self.spec);
                self.at_ps = now_ps + self.spec.gap.0 * PS;
            }
        }
    }

    fn arrival(&self, step: Step, at_ps: u64) -> Arrival {
        let [from, to] = [step.from, step.to].map(|place| self.spec.hosts[place]);
        Arrival { at_ps, from, to, bytes: step.bytes, tag: step.tag }
    }
}
