//! Chooses sampled frames: one of so many at random, as section 4.2.1 of sFlow version 5 wants it: the number of frames
//! between two samples is random, and its mean is the rate.

use crate::plan::mirror::{MAX_SESSIONS, MirrorSpec, SessionSet};
use crate::qos::wred::XorShift;
use crate::sets::{BURST, MAX_PORTS, PortSet};

/// Highest number of frames of which one is sampled.
pub const MOST_SKIPPED: u32 = 1 << 30;

/// The frames until the next samples of one port.
#[derive(Debug, Clone, Copy, Default)]
struct Skips {
    /// Frames until the next sample of any session, and that number at the last choice.
    next: u32,
    chosen: u32,
    /// Frames until the next sample of each session, counted from the last choice. The last of them is the sample.
    left: [u32; MAX_SESSIONS],
}

/// Chooses the sampled frames of the ports of one lcore.
#[derive(Debug)]
pub(crate) struct Sampler {
    rng: XorShift,
    /// By session; zero: it samples none.
    one_in: [u32; MAX_SESSIONS],
    ports: [PortSet; MAX_SESSIONS],
    skips: Box<[Skips; MAX_PORTS]>,
}

impl Sampler {
    pub fn new(seed: u32) -> Self {
        Self {
            rng: XorShift::new(seed),
            one_in: [0; MAX_SESSIONS],
            ports: [PortSet::EMPTY; MAX_SESSIONS],
            skips: Box::new([Skips::default(); MAX_PORTS]),
        }
    }

    /// Takes the sessions of `spec`. Returns the ports that have samples.
    pub fn set(&mut self, spec: &MirrorSpec) -> PortSet {
        let mut sampled = PortSet::EMPTY;
        for (index, (one_in, ports)) in self.one_in.iter_mut().zip(&mut self.ports).enumerate() {
            let session = spec.sessions.get(index).filter(|session| session.sample > 0);
            *one_in = session.map_or(0, |session| session.sample.min(MOST_SKIPPED));
            *ports = session.map_or(PortSet::EMPTY, |session| session.ports);
            sampled |= *ports;
        }
        for port in sampled.iter() {
            for session in 0..MAX_SESSIONS {
                self.skips[port].left[session] = self.skip(session, port);
            }
            self.skips[port].restart();
        }
        sampled
    }

    /// Frames of `port` until the next sample of `session`: at random from 1 to twice the mean less one.
    fn skip(&mut self, session: usize, port: usize) -> u32 {
        match self.one_in[session] {
            one_in if one_in > 0 && self.ports[session].contains(port) => 1 + self.rng.roll() % (2 * one_in - 1),
            _ => u32::MAX,
        }
    }

    /// Whether a sample is among the next `frames` frames of `port`. If so, [`Sampler::choose`] must follow.
    #[inline]
    pub fn is_due(&mut self, port: usize, frames: usize) -> bool {
        let next = &mut self.skips[port % MAX_PORTS].next;
        let is_due = *next <= frames as u32;
        *next -= if is_due { 0 } else { frames as u32 };
        is_due
    }

    /// The sessions that sample each of the next `frames` frames of `port`.
    #[cold]
    pub fn choose(&mut self, port: usize, frames: usize) -> [SessionSet; BURST] {
        let mut chosen = [SessionSet::default(); BURST];
        let passed = self.skips[port].chosen - self.skips[port].next;
        for session in 0..MAX_SESSIONS {
            if !self.ports[session].contains(port) {
                continue;
            }
            let mut left = self.skips[port].left[session] - passed;
            while left <= frames as u32 {
                chosen[left as usize - 1].insert(session);
                left += self.skip(session, port);
            }
            self.skips[port].left[session] = left - frames as u32;
        }
        self.skips[port].restart();
        chosen
    }
}

impl Skips {
    /// Begins to count towards the next sample of any session.
    fn restart(&mut self) {
        self.chosen = self.left.iter().copied().min().unwrap_or(u32::MAX);
        self.next = self.chosen;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::mirror::MirrorSession;

    fn spec(rates: &[u32]) -> MirrorSpec {
        let sessions = rates.iter().map(|&sample| MirrorSession { sample, ..MirrorSession::default() });
        MirrorSpec { sessions: sessions.collect(), ..MirrorSpec::default() }
    }

    /// Samples of each session among `frames` frames that come in bursts of the sizes `bursts`.
    fn samples(sampler: &mut Sampler, frames: usize, bursts: &[usize]) -> [usize; MAX_SESSIONS] {
        let (mut counts, mut seen) = ([0; MAX_SESSIONS], 0);
        for &burst in bursts.iter().cycle() {
            if seen >= frames {
                break;
            }
            seen += burst;
            if !sampler.is_due(1, burst) {
                continue;
            }
            for (at, chosen) in sampler.choose(1, burst).into_iter().enumerate() {
                assert!(at < burst || chosen.is_empty(), "a frame beyond the burst");
                (0..MAX_SESSIONS).for_each(|session| counts[session] += usize::from(chosen.contains(session)));
            }
        }
        counts
    }

    #[test]
    fn every_frame_is_sampled_one_in_one() {
        let mut sampler = Sampler::new(7);
        assert_eq!(sampler.set(&spec(&[1, 0])), PortSet::ALL);
        assert_eq!(samples(&mut sampler, 1_000, &[1, 32, 7])[..2], [1_000, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn share_of_samples_is_that_of_the_session(seed: u32, burst in 1_usize..=BURST, one_in in 2_u32..50) {
            let mut sampler = Sampler::new(seed);
            sampler.set(&spec(&[one_in, 3 * one_in]));
            let counts = samples(&mut sampler, 100_000, &[burst, 1]);
            for (count, one_in) in counts.into_iter().zip([one_in, 3 * one_in]) {
                let expected = 100_000.0 / f64::from(one_in);
                // The distance of two samples is uniform, so that the count of samples has a deviation below that of
                // a Poisson process. Six deviations: one failure in a billion runs.
                let difference = (count as f64 - expected).abs();
                prop_assert!(difference < 6.0 * expected.sqrt() + 2.0, "{count} samples, expected {expected}");
            }
        }
    }
}
