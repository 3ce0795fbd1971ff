//! Priority-based flow control, both ways: pausing the peer, and being paused by it. docs/pfc.md tells it in prose.

mod generator;
mod held;
mod map;
mod timers;
mod watchdog;

pub use generator::Generator;
pub use map::PriorityMap;
pub use timers::PauseTimers;
pub use watchdog::{Watchdog, WatchdogEvents};

use crate::units::{BitRate, Nanos};

/// What a port does of PFC.
///
/// | mode | sends XOFF for | obeys | classic PAUSE (802.3 31B) |
/// |---|---|---|---|
/// | `off` | none | none | never obeyed |
/// | `software` ([`PfcMode::Symmetric`]) | lossless priorities | priorities whose queue is lossless here | never obeyed |
/// | `asymmetric` | lossless priorities | all eight | never obeyed |
///
/// A priority that is not obeyed is counted and its time too. Classic PAUSE would stop the whole port, lossy classes and
/// all, and IEEE 802.1Q excludes it where PFC is on; it is counted. `asymmetric` is SONiC's `pfc_asym`.
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

    /// Priorities whose pauses stop their queue at a port where the queues `lossless_queues` are lossless.
    #[must_use]
    pub fn obeyed(self, lossless_queues: u8, map: &PriorityMap) -> u8 {
        match self {
            PfcMode::Off => 0,
            PfcMode::Symmetric => map.priorities_of(lossless_queues),
            PfcMode::Asymmetric => 0xff,
        }
    }

    /// Priorities for which pauses are sent by a port where the groups `lossless_groups` are lossless: a group is paused
    /// by the priority of its number.
    #[must_use]
    pub fn generated(self, lossless_groups: u8) -> u8 {
        match self {
            PfcMode::Off => 0,
            PfcMode::Symmetric | PfcMode::Asymmetric => lossless_groups,
        }
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
    /// A queue with frames that has sent none and was paused for more than 99 % of this time is in a storm; what counts
    /// precisely stands at [`Watchdog`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_sends_and_obeys_what_the_table_says() {
        let crossed = PriorityMap::new([0, 1, 2, 4, 3, 5, 6, 3]);
        for (mode, sent, straight, mapped) in [
            (PfcMode::Off, 0, 0, 0),
            (PfcMode::Symmetric, 0b1000, 0b1000, 0b1001_0000),
            (PfcMode::Asymmetric, 0b1000, 0xff, 0xff),
        ] {
            assert_eq!(mode.generated(0b1000), sent, "{mode:?}");
            assert_eq!(mode.obeyed(0b1000, &PriorityMap::IDENTITY), straight, "{mode:?}");
            assert_eq!(mode.obeyed(0b1000, &crossed), mapped, "{mode:?}, queue 3 is stopped by 4 and 7");
        }
    }
}
