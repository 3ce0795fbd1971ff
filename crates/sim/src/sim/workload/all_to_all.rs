//! Rounds in which each host sends to each other.

use super::{AllToAll, Arrival};
use crate::sim::load::PS;

/// Rounds to come.
#[derive(Debug)]
pub(super) struct AllToAlls<'a> {
    spec: &'a AllToAll,
    start_ps: u64,
    /// Number of the flow that starts next, counted over all rounds.
    flow: u64,
}

impl<'a> AllToAlls<'a> {
    pub fn new(spec: &'a AllToAll, start_ps: u64) -> Self {
        Self { spec, start_ps, flow: 0 }
    }

    /// Returns the next flow. In a round all hosts first send to the next one, then to the one behind it, so that no
    /// receiver is first for all.
    pub fn next(&mut self) -> Option<Arrival> {
        let hosts = self.spec.hosts.len() as u64;
        let pairs = hosts * (hosts - 1);
        let (round, pair) = (self.flow / pairs, self.flow % pairs);
        if self.spec.times.is_some_and(|times| round >= times) {
            return None;
        }
        self.flow += 1;
        let (distance, sender) = (1 + pair / hosts, pair % hosts);
        let host = |place: u64| self.spec.hosts[(place % hosts) as usize];
        Some(Arrival {
            at_ps: self.start_ps.saturating_add(round.saturating_mul(self.spec.every.0 * PS)),
            from: host(sender),
            to: host(sender + distance),
            bytes: self.spec.bytes.0,
            tag: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Nanos};

    #[test]
    fn each_host_sends_to_each_other_once_a_round() {
        let spec = AllToAll { hosts: vec![4, 7, 9], bytes: Bytes(10), every: Nanos(3), times: Some(2) };
        let mut flows = AllToAlls::new(&spec, 1_000);
        let arrivals: Vec<(u64, usize, usize)> =
            std::iter::from_fn(|| flows.next()).map(|flow| (flow.at_ps, flow.from, flow.to)).collect();
        let round = |at| [(4, 7), (7, 9), (9, 4), (4, 9), (7, 4), (9, 7)].map(|(from, to)| (at, from, to));
        assert_eq!(arrivals, [round(1_000), round(4_000)].concat());
    }
}
