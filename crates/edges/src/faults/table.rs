//! The faults as lcores get them: with instants instead of times, and with the classes of ports.

use super::spec::Fault;
use crate::plan::{PortSpec, SwitchSpec};
use crate::qos::Trust;
use crate::sets::CLASSES;
use crate::units::{BitRate, Nanos, Ticks};
use crate::wire::RoceControl;

/// Longest time between two XOFF frames of a storm.
const LONGEST_STORM_GAP: Nanos = Nanos(100_000_000);
/// Bits of the longest pause, 65,535 quanta of 512 bit times. A storm repeats XOFF after a quarter of it.
const PAUSE_BITS: u128 = 65_535 * 512;
const STORM_PARTS: u128 = 4;

/// One fault with its time on the clock of the lcores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Number of the fault, which is never used again.
    pub id: u64,
    /// Index of its counters.
    pub slot: u8,
    /// The order.
    pub fault: Fault,
    /// First instant.
    pub from: Ticks,
    /// First instant after the fault.
    pub until: Ticks,
    /// Ticks that a hit frame is held, or between two XOFF frames of a storm.
    pub ticks: u64,
}

impl Entry {
    /// Whether the fault acts at `now`.
    #[must_use]
    pub fn is_active(&self, now: Ticks) -> bool {
        self.from <= now && now < self.until
    }
}

/// All faults, and the classes of the ports' marks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FaultTable {
    /// At most [`super::MOST_FAULTS`].
    pub entries: Vec<Entry>,
    /// By port.
    pub classes: Vec<ClassReader>,
}

/// The traffic class that a port gives to marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassReader {
    trust: Trust,
    port_class: u8,
    by_dscp: [u8; 64],
    by_pcp: [u8; CLASSES],
    roce: [Option<u8>; RoceControl::COUNT],
}

impl ClassReader {
    /// The classes of each port of `switch`.
    #[must_use]
    pub fn all(switch: &SwitchSpec) -> Vec<Self> {
        switch.ports.iter().map(Self::new).collect()
    }

    fn new(port: &PortSpec) -> Self {
        Self {
            trust: port.live.trust,
            port_class: port.live.port_class & 7,
            by_dscp: port.live.marks.dscp_to_tc,
            by_pcp: port.live.marks.pcp_to_tc,
            roce: [port.live.marks.roce.ack, port.live.marks.roce.cnp],
        }
    }

    /// The class of a frame with these marks.
    #[must_use]
    pub fn class(&self, dscp: Option<u8>, pcp: Option<u8>) -> u8 {
        let class = match self.trust {
            Trust::Dscp => dscp.map(|dscp| self.by_dscp[usize::from(dscp & 63)]),
            Trust::Pcp => pcp.map(|pcp| self.by_pcp[usize::from(pcp & 7)]),
            Trust::Port => None,
        };
        class.unwrap_or(self.port_class) & 7
    }

    /// The class of RoCEv2 packets of `kind`; `None`: their marks decide.
    #[must_use]
    pub fn of_roce(&self, kind: RoceControl) -> Option<u8> {
        self.roce[kind as usize].map(|class| class & 7)
    }
}

/// Converts `time` to ticks of a clock of `hz`, rounded up.
#[must_use]
pub fn to_ticks(time: Nanos, hz: u64) -> u64 {
    let ticks = (u128::from(time.0) * u128::from(hz)).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Time between two XOFF frames of a storm at a link of `rate`.
#[must_use]
pub fn storm_gap(rate: BitRate) -> Nanos {
    let nanos = PAUSE_BITS * 1_000_000_000 / STORM_PARTS / u128::from(rate.0.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX).clamp(1_000, LONGEST_STORM_GAP.0))
}
