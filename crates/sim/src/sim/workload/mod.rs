//! Workloads: patterns that start flows while a run goes on, so that only flows in progress take memory.
//!
//! A [`Generator`] returns the flows of one workload in order of time. Each workload draws from its own random stream,
//! so that adding one changes no other.

mod all_reduce;
mod all_to_all;
mod completions;
mod incast;
mod poisson;
mod ring;
pub mod sizes;
mod spec;
mod tables;
mod tree;

pub use self::completions::{Completion, Completions, WorkloadOutcome};
pub use self::spec::{AllReduce, AllReduceShape, AllToAll, Incast, Pattern, Poisson, WorkloadNode};
pub use self::tables::Distribution;

use self::all_reduce::AllReduces;
use self::all_to_all::AllToAlls;
use self::incast::Incasts;
use self::poisson::PoissonFlows;
use super::rng::Rng;

/// Stream of random numbers of the first workload; each further workload uses the next one.
const STREAM: u64 = 1 << 44;

/// A flow that a workload starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Time of its start.
    pub at_ps: u64,
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Bytes that it carries, without headers.
    pub bytes: u64,
    /// Place of the flow in its pattern, for [`Generator::completed`].
    pub tag: u64,
}

/// Source of the flows of a workload.
#[derive(Debug)]
pub struct Generator<'a> {
    flows: Flows<'a>,
    end_ps: u64,
}

/// The state of a pattern.
#[derive(Debug)]
enum Flows<'a> {
    Poisson(PoissonFlows<'a>),
    Incast(Incasts<'a>),
    AllToAll(AllToAlls<'a>),
    AllReduce(AllReduces<'a>),
}

impl<'a> Generator<'a> {
    /// Returns the source of workload number `number` in a run with `seed`, which starts flows from `start_ps` until
    /// `end_ps`.
    #[must_use]
    pub fn new(pattern: &'a Pattern, number: usize, seed: u64, start_ps: u64, end_ps: u64) -> Self {
        let rng = Rng::new(seed, STREAM + number as u64);
        let flows = match pattern {
            Pattern::Poisson(spec) => Flows::Poisson(PoissonFlows::new(spec, rng, start_ps)),
            Pattern::Incast(spec) => Flows::Incast(Incasts::new(spec, rng, start_ps)),
            Pattern::AllToAll(spec) => Flows::AllToAll(AllToAlls::new(spec, start_ps)),
            Pattern::AllReduce(spec) => Flows::AllReduce(AllReduces::new(spec, start_ps)),
        };
        Self { flows, end_ps }
    }

    /// Returns the next flow, in order of time; `None` if there is none before the end, or before a flow completes.
    #[expect(clippy::should_implement_trait, reason = "after `None` a completion may bring more flows")]
    pub fn next(&mut self) -> Option<Arrival> {
        let arrival = match &mut self.flows {
            Flows::Poisson(flows) => flows.next(),
            Flows::Incast(flows) => flows.next(),
            Flows::AllToAll(flows) => flows.next(),
            Flows::AllReduce(flows) => flows.next(),
        };
        arrival.filter(|arrival| arrival.at_ps < self.end_ps)
    }

    /// Handles that the receiver of the flow with `tag` has all of it. Adds the flows that start at once.
    pub fn completed(&mut self, tag: u64, now_ps: u64, out: &mut Vec<Arrival>) {
        if let Flows::AllReduce(flows) = &mut self.flows {
            flows.completed(tag, now_ps, out);
        }
        if now_ps >= self.end_ps {
            out.clear();
        }
    }

    /// Rounds of a collective that are complete; `None` for other patterns.
    #[must_use]
    pub fn rounds(&self) -> Option<u64> {
        match &self.flows {
            Flows::AllReduce(flows) => Some(flows.rounds()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
