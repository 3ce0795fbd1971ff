//! PFC storms: XOFF frames as of a host that repeats them.

use super::table::Entry;
use crate::sets::ClassSet;
use crate::units::{Quanta, Ticks};
use crate::wire::MacAddr;
use crate::wire::mac_control::{FRAME_LEN, PfcFrame};

/// Source of the frames: a locally administered address that no port has.
const SOURCE: MacAddr = MacAddr::local(0xfa, 0);

/// The PFC frame that stops `xoff` for the longest time and resumes `xon`.
pub fn frame(xoff: ClassSet, xon: ClassSet) -> [u8; FRAME_LEN] {
    let quanta = |priority| Quanta(if xoff.contains(priority) { u16::MAX } else { 0 });
    PfcFrame { enabled: xoff | xon, quanta: std::array::from_fn(quanta) }.emit(SOURCE)
}

/// The progress of a storm on the lcore of its port.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Storm {
    /// Whether XOFF was sent and XON was not.
    pub is_on: bool,
    next: Ticks,
}

impl Storm {
    /// Whether XOFF is due at `now`.
    pub fn is_due(&self, now: Ticks) -> bool {
        !self.is_on || now >= self.next
    }

    /// Records that XOFF was sent at `now`.
    pub fn sent(&mut self, entry: &Entry, now: Ticks) {
        (self.is_on, self.next) = (true, Ticks(now.0.saturating_add(entry.ticks)));
    }
}
