//! Counters of faults. Each lcore writes a set of its own.

use super::MOST_FAULTS;
use super::spec::{FaultVerb, Toward};
use crate::plan::counters::Counter;
use crate::sets::CLASSES;

/// Row of MAC control frames.
pub const PFC_ROW: usize = CLASSES;
/// Rows: traffic classes, then MAC control frames.
pub const ROWS: usize = CLASSES + 1;

/// Frames that were hit, by row.
pub type Hits = [Counter; ROWS];

/// Counters of one fault on one lcore. They go on when another fault gets the slot.
#[derive(Debug, Default)]
pub struct SlotCounters {
    /// Frames that were hit.
    pub hits: Hits,
    /// Frames that were to be held or copied and passed, for lack of room.
    pub passed: Counter,
}

/// Counters of one port on one lcore, for all faults since the start.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Frames that were hit, by verb and direction.
    pub hits: [[Hits; 2]; FaultVerb::COUNT],
    /// Frames that were to be held or copied and passed, for lack of room.
    pub passed: Counter,
    /// Held frames that were lost when the switch ended, by row.
    pub ended: Hits,
}

/// The counters of one lcore.
#[derive(Debug)]
pub struct LcoreCounters {
    /// By slot.
    pub slots: Box<[SlotCounters]>,
    /// By port.
    pub ports: Box<[PortCounters]>,
    /// Frames that are held now.
    pub held: Counter,
}

/// The counters of all lcores.
#[derive(Debug)]
pub struct FaultCounters(Box<[LcoreCounters]>);

impl FaultCounters {
    /// Counters of a switch with `ports` ports and `lcores` lcores.
    #[must_use]
    pub fn new(ports: usize, lcores: usize) -> Self {
        let lcore = |_| LcoreCounters {
            slots: (0..MOST_FAULTS).map(|_| SlotCounters::default()).collect(),
            ports: (0..ports).map(|_| PortCounters::default()).collect(),
            held: Counter::default(),
        };
        Self((0..lcores).map(lcore).collect())
    }

    /// The counters of lcore `number`.
    #[must_use]
    pub fn lcore(&self, number: usize) -> &LcoreCounters {
        &self.0[number]
    }

    fn sum(&self, of: impl Fn(&LcoreCounters) -> u64) -> u64 {
        self.0.iter().map(of).sum()
    }

    /// Frames that the fault in `slot` hit, by row, with those of earlier faults in this slot.
    #[must_use]
    pub fn of_slot(&self, slot: usize) -> [u64; ROWS] {
        std::array::from_fn(|row| self.sum(|lcore| lcore.slots[slot].hits[row].get()))
    }

    /// Frames that the fault in `slot` let pass for lack of room.
    #[must_use]
    pub fn passed_of_slot(&self, slot: usize) -> u64 {
        self.sum(|lcore| lcore.slots[slot].passed.get())
    }

    /// Frames that faults of `verb` hit at `port`, by row.
    #[must_use]
    pub fn of_port(&self, port: usize, verb: FaultVerb, toward: Toward) -> [u64; ROWS] {
        let hits =
            |lcore: &LcoreCounters, row: usize| lcore.ports[port].hits[verb as usize][toward as usize][row].get();
        std::array::from_fn(|row| self.sum(|lcore| hits(lcore, row)))
    }

    /// Frames that faults at `port` let pass for lack of room.
    #[must_use]
    pub fn passed_of_port(&self, port: usize) -> u64 {
        self.sum(|lcore| lcore.ports[port].passed.get())
    }

    /// Held frames of `port` that were lost when the switch ended, by row.
    #[must_use]
    pub fn ended_of_port(&self, port: usize) -> [u64; ROWS] {
        std::array::from_fn(|row| self.sum(|lcore| lcore.ports[port].ended[row].get()))
    }

    /// Frames that are held now.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.sum(|lcore| lcore.held.get())
    }
}
