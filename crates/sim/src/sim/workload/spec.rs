//! A validated workload: its pattern, and the settings of its flows.

use super::sizes::SizeCdf;
use crate::sim::spec::FlowNode;
use crate::units::{Bytes, Nanos};

/// A workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadNode {
    /// Name in tables, unique among workloads.
    pub name: String,
    /// Pattern of its flows.
    pub pattern: Pattern,
    /// Time from which it starts flows.
    pub start: Nanos,
    /// Time from which it starts no more; `None`: with the scenario.
    pub stop: Option<Nanos>,
    /// Settings of the flows of each sender, in order of senders. Receiver, size and times are those of each flow.
    pub senders: Vec<FlowNode>,
}

impl WorkloadNode {
    /// Hosts that may receive its flows.
    #[must_use]
    pub fn receivers(&self) -> &[usize] {
        match &self.pattern {
            Pattern::Poisson(spec) => &spec.receivers,
            Pattern::Incast(spec) => &spec.receivers,
            Pattern::AllToAll(spec) => &spec.hosts,
            Pattern::AllReduce(spec) => &spec.hosts,
        }
    }

    /// Whether `host` may send or receive its flows.
    #[must_use]
    pub fn involves(&self, host: usize) -> bool {
        self.senders.binary_search_by_key(&host, |flow| flow.from).is_ok() || self.receivers().contains(&host)
    }

    /// Whether all its flows are lossless at their first switch.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        self.senders.iter().all(|flow| flow.lossless)
    }

    /// Returns the settings of the flows of host `from`.
    ///
    /// # Panics
    /// If the host is not a sender of this workload.
    #[must_use]
    pub fn sender(&self, from: usize) -> &FlowNode {
        let place = self.senders.binary_search_by_key(&from, |flow| flow.from).expect("a sender of the workload");
        &self.senders[place]
    }
}

/// A pattern of flows.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Independent flows that arrive at random.
    Poisson(Poisson),
    /// Several senders to one receiver at the same time.
    Incast(Incast),
    /// Each host to each other.
    AllToAll(AllToAll),
    /// A sum over all hosts, which each host gets.
    AllReduce(AllReduce),
}

/// Independent flows: each sender starts flows of random size to random receivers, after exponential times.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    /// Sizes of the flows.
    pub sizes: SizeCdf,
    /// Senders, with the mean time from one flow to the next in picoseconds.
    pub senders: Vec<(usize, u64)>,
    /// Receivers, in ascending order. A sender never sends to itself.
    pub receivers: Vec<usize>,
}

/// Incasts.
#[derive(Debug, Clone, PartialEq)]
pub struct Incast {
    /// Hosts from which the senders of each incast are drawn.
    pub senders: Vec<usize>,
    /// Number of senders.
    pub count: usize,
    /// Hosts from which the receiver of each incast is drawn.
    pub receivers: Vec<usize>,
    /// Size of each flow.
    pub bytes: Bytes,
    /// Mean time from one incast to the next, in picoseconds.
    pub every_ps: u64,
    /// Whether these times are drawn from an exponential distribution.
    pub poisson: bool,
    /// Number of incasts; `None`: no limit.
    pub times: Option<u64>,
}

/// Rounds in which each host sends to each other at once.
#[derive(Debug, Clone, PartialEq)]
pub struct AllToAll {
    /// The hosts.
    pub hosts: Vec<usize>,
    /// Size of each flow.
    pub bytes: Bytes,
    /// Time from one round to the next.
    pub every: Nanos,
    /// Number of rounds; `None`: no limit.
    pub times: Option<u64>,
}

/// All-reduces, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct AllReduce {
    /// Algorithm.
    pub shape: AllReduceShape,
    /// The hosts, in the order of the ring or of the tree.
    pub hosts: Vec<usize>,
    /// Bytes of the vector that each host has.
    pub bytes: Bytes,
    /// Time from the end of a round to the next, in which hosts compute.
    pub gap: Nanos,
    /// Number of rounds; `None`: no limit.
    pub times: Option<u64>,
}

/// Algorithms of an all-reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllReduceShape {
    /// Each host sends to the next one: a part of the vector in each of 2 (N - 1) steps.
    Ring,
    /// Hosts send the vector up a binary tree, then down.
    Tree,
}
