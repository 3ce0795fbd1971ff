//! The ring all-reduce: N - 1 steps sum the parts of the vector, N - 1 more distribute the sums.

use super::all_reduce::Step;

/// A round of `hosts` hosts. It has no state: the tag of a flow says which part it carries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    hosts: usize,
    part: u64,
}

impl Ring {
    /// Returns a round that sums a vector of `bytes`.
    pub fn new(hosts: usize, bytes: u64) -> Self {
        Self { hosts, part: bytes.div_ceil(hosts as u64).max(1) }
    }

    /// Number of flows in a round.
    pub fn flows(self) -> u64 {
        (self.hosts * self.steps()) as u64
    }

    /// Flows that depend on no other: step 0 of each host.
    pub fn first(self) -> Vec<Step> {
        (0..self.hosts).map(|host| self.step(host, 0)).collect()
    }

    /// Returns the flow that the receiver of the flow with `tag` starts: it passes on the part that it received.
    pub fn completed(self, tag: u64) -> Option<Step> {
        let (step, sender) = (tag as usize / self.hosts, tag as usize % self.hosts);
        (step + 1 < self.steps()).then(|| self.step((sender + 1) % self.hosts, step + 1))
    }

    fn steps(self) -> usize {
        2 * (self.hosts - 1)
    }

    fn step(self, host: usize, step: usize) -> Step {
        Step { from: host, to: (host + 1) % self.hosts, bytes: self.part, tag: (step * self.hosts + host) as u64 }
    }
}
