//! Priority-based flow control, both ways: pausing the peer, and being paused by it.

mod generator;
mod timers;

pub use generator::Generator;
pub use timers::PauseTimers;

use crate::units::{BitRate, Nanos};

/// What a port does of PFC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfcMode {
    /// Neither generated nor obeyed.
    Off,
    /// Generated for the lossless priorities, and obeyed for them.
    Symmetric,
    /// Generated for the lossless priorities, and obeyed for all eight.
    Asymmetric,
}

impl PfcMode {
    /// Whether it does anything.
    #[must_use]
    pub fn is_on(self) -> bool {
        self != PfcMode::Off
    }
}

/// What the watchdog does with a queue that a storm holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchdogAction {
    /// Discards what waits and what comes for the queue, and what comes in of the priority, and ignores its PFC.
    Drop,
    /// Ignores the PFC of the priority: the queue sends.
    Forward,
    /// Only counts and tells.
    Alert,
}

/// When a pause is a storm, and what then (SONiC's pfcwd).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchdogSpec {
    /// A queue with frames that has sent none and was paused for more than 99 % of this time is in a storm.
    pub detection: Nanos,
    /// A storm is over when its priority was not paused for this time.
    pub restoration: Nanos,
    /// What happens meanwhile.
    pub action: WatchdogAction,
}

/// Bit times in a quantum (IEEE 802.3 31B.2).
const QUANTUM_BITS: u64 = 512;

/// Wire time of a quantum at `rate` on a clock of `hz`, in parts of 2^16 of a tick.
fn quantum_ticks(rate: BitRate, hz: u64) -> u64 {
    let ticks = ((u128::from(QUANTUM_BITS) * u128::from(hz)) << 16) / u128::from(rate.0.max(1));
    // A pause of 65535 of them must fit a u64 too.
    u64::try_from(ticks).unwrap_or(u64::MAX).min(u64::MAX >> 17)
}
