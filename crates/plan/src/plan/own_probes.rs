//! Own probes of the loop guard, as lcores recognize them.

use crate::sync::{AtomicU64, Ordering};
use crate::wire::loop_probe::{LoopProbe, RecentRounds};

/// Properties of own probes that the control plane shares with the lcores.
#[derive(Debug)]
pub struct OwnProbes {
    identity: u64,
    /// [`RecentRounds`] as one word, so that both numbers are of one instant.
    rounds: AtomicU64,
}

impl OwnProbes {
    /// The probes of the run `identity`, of which those of `rounds` count.
    #[must_use]
    pub fn new(identity: u64, rounds: RecentRounds) -> Self {
        Self { identity, rounds: AtomicU64::new(rounds.to_bits()) }
    }

    /// Sets the rounds whose probes count. Probes of a new round must be sent after this.
    pub fn set_rounds(&self, rounds: RecentRounds) {
        self.rounds.store(rounds.to_bits(), Ordering::Release);
    }

    /// Whether this run of the switch has sent `probe`.
    pub fn has_sent(&self, probe: &LoopProbe) -> bool {
        self.identity == probe.identity
    }

    /// Whether `probe` is of a round that counts.
    pub fn is_recent(&self, probe: &LoopProbe) -> bool {
        RecentRounds::from_bits(self.rounds.load(Ordering::Acquire)).contains(probe.sequence)
    }
}
