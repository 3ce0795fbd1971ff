//! Incasts: several senders to one receiver at the same time.

use super::{Arrival, Incast};
use crate::sim::rng::Rng;

/// Incasts to come.
#[derive(Debug)]
pub(super) struct Incasts<'a> {
    spec: &'a Incast,
    rng: Rng,
    /// Time of the next incast, or of the one in progress.
    at_ps: u64,
    /// Number of incasts that have begun.
    begun: u64,
    /// Receiver of the incast in progress.
    to: usize,
    /// The hosts in an order whose first ones are the senders of the incast in progress.
    order: Vec<usize>,
    /// Number of its senders that have started.
    started: usize,
}

impl<'a> Incasts<'a> {
    pub fn new(spec: &'a Incast, mut rng: Rng, start_ps: u64) -> Self {
        let wait_ps = if spec.poisson { rng.exponential(spec.every_ps) } else { 0 };
        let at_ps = start_ps.saturating_add(wait_ps);
        Self { spec, rng, at_ps, begun: 0, to: 0, order: spec.senders.clone(), started: spec.count }
    }

    pub fn next(&mut self) -> Option<Arrival> {
        if self.started == self.spec.count {
            self.begin()?;
        }
        self.started += 1;
        let from = self.order[self.started - 1];
        Some(Arrival { at_ps: self.at_ps, from, to: self.to, bytes: self.spec.bytes.0, tag: 0 })
    }

    /// Begins the next incast: draws its receiver and its senders. Returns nothing if all have begun.
    fn begin(&mut self) -> Option<()> {
        if self.spec.times.is_some_and(|times| self.begun >= times) {
            return None;
        }
        if self.begun > 0 {
            let every = self.spec.every_ps;
            let gap = if self.spec.poisson { self.rng.exponential(every).max(1) } else { every };
            self.at_ps = self.at_ps.saturating_add(gap);
        }
        self.begun += 1;
        self.started = 0;
        self.to = *self.rng.pick(&self.spec.receivers);
        // The receiver cannot be a sender: it goes to the end, and the others are shuffled as far as needed.
        let mut others = self.order.len();
        if let Some(place) = self.order.iter().position(|host| *host == self.to) {
            others -= 1;
            self.order.swap(place, others);
        }
        for place in 0..self.spec.count {
            let chosen = place + self.rng.below((others - place) as u64) as usize;
            self.order.swap(place, chosen);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn spec() -> Incast {
        Incast {
            senders: vec![0, 1, 2, 3],
            count: 3,
            receivers: vec![3],
            bytes: Bytes(64_000),
            every_ps: 500,
            poisson: false,
            times: Some(2),
        }
    }

    fn all(spec: &Incast) -> Vec<Arrival> {
        let mut incasts = Incasts::new(spec, Rng::new(1, 1), 100);
        std::iter::from_fn(|| incasts.next()).take(100_000).collect()
    }

    #[test]
    fn all_senders_of_an_incast_start_together() {
        let arrivals = all(&spec());
        assert_eq!(arrivals.iter().map(|flow| flow.at_ps).collect::<Vec<_>>(), [100, 100, 100, 600, 600, 600]);
        for incast in arrivals.chunks(3) {
            let mut from: Vec<usize> = incast.iter().map(|flow| flow.from).collect();
            from.sort_unstable();
            assert_eq!(from, [0, 1, 2], "the receiver sends nothing");
            assert!(incast.iter().all(|flow| flow.to == 3 && flow.bytes == 64_000));
        }
    }

    #[test]
    fn senders_and_receivers_are_drawn_evenly() {
        let spec = Incast { count: 2, receivers: vec![0, 1, 2, 3], times: None, poisson: true, ..spec() };
        let arrivals = all(&spec);
        let pairs = arrivals.chunks(2);
        assert!(pairs.clone().all(|pair| pair[0].from != pair[1].from && pair.iter().all(|flow| flow.from != flow.to)));
        for host in 0..4 {
            let sent = arrivals.iter().filter(|flow| flow.from == host).count();
            let received = arrivals.iter().filter(|flow| flow.to == host).count();
            assert!(sent.abs_diff(25_000) < 700 && received.abs_diff(25_000) < 1_000, "{host}: {sent}, {received}");
        }
        let mean = arrivals.last().unwrap().at_ps / pairs.count() as u64;
        assert!(mean.abs_diff(500) < 15, "{mean}");
    }
}
