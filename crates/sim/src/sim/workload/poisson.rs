//! Independent flows with exponential times between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Arrival, Poisson};
use crate::sim::rng::Rng;

/// Senders by the time of their next flow.
#[derive(Debug)]
pub(super) struct PoissonFlows<'a> {
    spec: &'a Poisson,
    rng: Rng,
    /// Time of the next flow of each sender, by its place among the senders.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> PoissonFlows<'a> {
    pub fn new(spec: &'a Poisson, mut rng: Rng, start_ps: u64) -> Self {
        let first = |(place, (_, gap)): (usize, &(usize, u64))| {
            Reverse((start_ps.saturating_add(rng.exponential(*gap)), place))
        };
        let next = spec.senders.iter().enumerate().map(first).collect();
        Self { spec, rng, next }
    }

    pub fn next(&mut self) -> Option<Arrival> {
        let Reverse((at_ps, place)) = self.next.pop()?;
        let (from, gap) = self.spec.senders[place];
        let to = other(&self.spec.receivers, from, &mut self.rng);
        let bytes = self.spec.sizes.draw(&mut self.rng);
        self.next.push(Reverse((at_ps.saturating_add(self.rng.exponential(gap)), place)));
        Some(Arrival { at_ps, from, to, bytes, tag: 0 })
    }
}

/// Draws one of `hosts`, which are in ascending order, other than `than`.
fn other(hosts: &[usize], than: usize, rng: &mut Rng) -> usize {
    match hosts.binary_search(&than) {
        Err(_) => *rng.pick(hosts),
        Ok(own) => {
            let place = rng.below(hosts.len() as u64 - 1) as usize;
            hosts[place + usize::from(place >= own)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::workload::sizes::SizeCdf;
    use crate::units::Bytes;

    fn spec(senders: Vec<(usize, u64)>, receivers: Vec<usize>) -> Poisson {
        Poisson { sizes: SizeCdf::fixed(Bytes(1000)), senders, receivers }
    }

    #[test]
    fn flows_come_in_order_at_the_rate_of_each_sender() {
        let spec = spec(vec![(0, 1_000_000), (3, 4_000_000)], vec![0, 1, 2, 3]);
        let mut flows = PoissonFlows::new(&spec, Rng::new(1, 1), 500);
        let arrivals: Vec<Arrival> = std::iter::from_fn(|| flows.next()).take(50_000).collect();
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at_ps) && arrivals[0].at_ps >= 500);
        let of = |host| arrivals.iter().filter(|arrival| arrival.from == host).count();
        // Four of five flows are of host 0: 40,000 with a standard deviation of 89.
        assert!(of(0).abs_diff(40_000) < 450 && of(0) + of(3) == 50_000, "{}", of(0));
        let mean = arrivals[49_999].at_ps / 50_000;
        assert!(mean.abs_diff(800_000) < 18_000, "{mean}");
    }

    #[test]
    fn receivers_are_uniform_and_never_the_sender() {
        let spec = spec(vec![(2, 1000)], vec![1, 2, 5]);
        let mut flows = PoissonFlows::new(&spec, Rng::new(1, 1), 0);
        let receivers: Vec<usize> = std::iter::from_fn(|| flows.next()).take(10_000).map(|flow| flow.to).collect();
        let of = |host| receivers.iter().filter(|to| **to == host).count();
        assert!(of(1).abs_diff(5_000) < 250 && of(1) + of(5) == 10_000, "{}", of(1));
    }
}
