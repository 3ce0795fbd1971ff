//! Priority-based flow control, both ways: pausing the peer, and being paused by it.

mod generator;
mod timers;

pub use generator::Generator;
pub use timers::PauseTimers;

use crate::units::BitRate;

/// Bit times in a quantum (IEEE 802.3 31B.2).
const QUANTUM_BITS: u64 = 512;

/// Wire time of a quantum at `rate` on a clock of `hz`, in parts of 2^16 of a tick.
fn quantum_ticks(rate: BitRate, hz: u64) -> u64 {
    let ticks = ((u128::from(QUANTUM_BITS) * u128::from(hz)) << 16) / u128::from(rate.0.max(1));
    // A pause of 65535 of them must fit a u64 too.
    u64::try_from(ticks).unwrap_or(u64::MAX).min(u64::MAX >> 17)
}
