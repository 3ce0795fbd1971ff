//! Priority-based flow control in both directions: pausing the peer, and being paused by it. docs/pfc.md explains it.
//!
//! # Example
//!
//! ```
//! use holdfast_lossless::pfc::{PauseTimers, Generator};
//! use holdfast_base::sets::ClassSet;
//! use holdfast_base::units::{BitRate, Ticks};
//!
//! const HZ: u64 = 1_000_000_000;
//! let rate = BitRate(100_000_000_000);
//! let (mut generator, mut peer) = (Generator::new(rate, HZ), PauseTimers::new(rate, HZ));
//! generator.set_all(ClassSet::only(3));
//! let frame = generator.due(Ticks(0)).expect("XOFF is due at once");
//! generator.sent(&frame, Ticks(0));
//! peer.receive(&frame, Ticks(0));
//! assert_eq!(peer.paused(Ticks(100_000)), ClassSet::only(3));
//! assert!(generator.due(Ticks(168_000)).is_some(), "XOFF is refreshed at half its life of 335.5 us");
//! ```

mod generator;
mod held;
mod map;
mod obedience;
mod port_pfc;
mod timers;
mod watchdog;

pub use generator::Generator;
pub use map::PriorityMap;
pub use obedience::{
    Answers, ENOUGH, HORIZON, JudgedPoll, Obedience, Observed, RESPONSE_BOUNDS, RESPONSE_BUCKETS, Received,
};
pub use port_pfc::{PortPfc, PortPfcSpec};
pub use timers::PauseTimers;
pub use watchdog::{Watchdog, WatchdogEvents};

use crate::sets::ClassSet;
use crate::text::format::word_of;
use crate::units::{BitRate, Nanos};

/// The PFC mode of a port.
///
/// | mode | sends XOFF for | obeys | classic PAUSE (802.3 31B) |
/// |---|---|---|---|
/// | `off` | none | none | never obeyed |
/// | `software` ([`PfcMode::Symmetric`]) | lossless priorities | priorities of its lossless queues | never obeyed |
/// | `asymmetric` | lossless priorities | all eight | never obeyed |
/// | `nic` | lossless priorities | the NIC obeys, in hardware | never obeyed |
/// | `queue` | none: it stops polling the receive queues of lossless priorities | none | never obeyed |
///
/// The switch counts pauses that it does not obey, and their time. Classic PAUSE would stop the whole port with its
/// lossy classes, so the switch only counts it. IEEE 802.3 annexes 31B and 31D, in substance: where PFC is enabled,
/// PAUSE is disabled. `asymmetric` is SONiC's `pfc_asym`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfcMode {
    /// PFC is neither generated nor obeyed.
    Off,
    /// PFC is generated and obeyed for the lossless priorities.
    Symmetric,
    /// PFC is generated for the lossless priorities, and obeyed for all eight.
    Asymmetric,
    /// PFC is generated for the lossless priorities. The device consumes the peer's PFC frames and stops its transmit
    /// ring of a paused priority. The switch learns of a pause only from a ring that takes no more frames.
    Nic,
    /// A receive queue is polled only while the lossless priorities in it are XON. Its device keeps the frames, so that
    /// the sender waits. For peers that know no PFC: guests, memif, in-process links.
    Queue,
}

impl PfcMode {
    /// The words of the configuration for it.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("software", Self::Symmetric),
        ("asymmetric", Self::Asymmetric),
        ("nic", Self::Nic),
        ("queue", Self::Queue),
        ("off", Self::Off),
    ];

    /// The word of the configuration for it.
    #[must_use]
    pub fn label(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }
}

impl PfcMode {
    /// Whether XOFF stops the peer, by PFC frames or by its queues.
    #[must_use]
    pub fn is_on(self) -> bool {
        self != PfcMode::Off
    }

    /// Whether PFC frames are sent, and those of the peer are obeyed.
    #[must_use]
    pub fn sends_frames(self) -> bool {
        matches!(self, PfcMode::Symmetric | PfcMode::Asymmetric | PfcMode::Nic)
    }

    /// Whether the device obeys the peer, by a transmit ring for each priority.
    #[must_use]
    pub fn is_obeyed_by_device(self) -> bool {
        self == PfcMode::Nic
    }

    /// Returns the priorities whose pauses the port obeys, given its `lossless_queues`.
    #[must_use]
    pub fn obeyed(self, lossless_queues: ClassSet, map: &PriorityMap) -> ClassSet {
        match self {
            PfcMode::Off | PfcMode::Queue => ClassSet::EMPTY,
            PfcMode::Symmetric | PfcMode::Nic => map.priorities_of(lossless_queues),
            PfcMode::Asymmetric => ClassSet::ALL,
        }
    }

    /// Returns the priorities for which a port with the lossless groups `lossless_groups` stops its peer. A group is
    /// paused by the priority of its number.
    #[must_use]
    pub fn generated(self, lossless_groups: ClassSet) -> ClassSet {
        match self {
            PfcMode::Off => ClassSet::EMPTY,
            PfcMode::Symmetric | PfcMode::Asymmetric | PfcMode::Nic | PfcMode::Queue => lossless_groups,
        }
    }
}

/// The action of the watchdog on a queue in a storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchdogAction {
    /// Ignores the PFC of the priority, and discards queued frames, new frames for the queue and received frames of the
    /// priority.
    Drop,
    /// Ignores the PFC of the priority, so that the queue sends.
    Forward,
    /// Only counts and reports the storm.
    Alert,
}

impl WatchdogAction {
    /// The words of the configuration for it.
    pub const WORDS: [(&'static str, Self); 3] =
        [("drop", Self::Drop), ("forward", Self::Forward), ("alert", Self::Alert)];

    /// The word of the configuration for it.
    #[must_use]
    pub fn label(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }
}

/// The times and the action of the PFC watchdog (modelled on SONiC's pfcwd).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchdogSpec {
    /// A storm is detected when a queue with frames has sent none and was paused for more than 99 % of this time.
    /// [`Watchdog`] has the exact definition.
    pub detection: Nanos,
    /// A storm ends when its queue was not paused for this time.
    pub restoration: Nanos,
    /// Action during a storm.
    pub action: WatchdogAction,
}

/// Bit times in a quantum. IEEE 802.3 annex 31B.2, in substance: pause times count in quanta of 512 bit times of the
/// link's own speed.
const QUANTUM_BITS: u64 = 512;

/// Returns the wire time of a quantum at `rate` on a clock of `hz`, in parts of 2^16 of a tick.
fn quantum_ticks(rate: BitRate, hz: u64) -> u64 {
    let ticks = ((u128::from(QUANTUM_BITS) * u128::from(hz)) << 16) / u128::from(rate.0.max(1));
    // The product with 65535 quanta must fit a u64 too.
    u64::try_from(ticks).unwrap_or(u64::MAX).min(u64::MAX >> 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pfc_mode_selects_the_generated_and_obeyed_priorities() {
        let crossed = PriorityMap::new([0, 1, 2, 4, 3, 5, 6, 3]);
        for (mode, sent, straight, mapped) in [
            (PfcMode::Off, 0, 0, 0),
            (PfcMode::Symmetric, 0b1000, 0b1000, 0b1001_0000),
            (PfcMode::Asymmetric, 0b1000, 0xff, 0xff),
            (PfcMode::Nic, 0b1000, 0b1000, 0b1001_0000),
            (PfcMode::Queue, 0b1000, 0, 0),
        ] {
            let [sent, straight, mapped] = [sent, straight, mapped].map(ClassSet::from_bits);
            assert_eq!(mode.generated(ClassSet::only(3)), sent, "{mode:?}");
            assert_eq!(mode.obeyed(ClassSet::only(3), &PriorityMap::IDENTITY), straight, "{mode:?}");
            assert_eq!(mode.obeyed(ClassSet::only(3), &crossed), mapped, "{mode:?}, queue 3 is stopped by 4 and 7");
        }
    }
}
