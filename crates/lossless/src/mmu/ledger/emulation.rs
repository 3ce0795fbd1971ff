//! The ledger of a simulated switch that decides by rules of another simulator.
//!
//! Packets of the product never come here: [`crate::io::Packet::EMULATES`] is false for them.

use super::hpcc::HpccState;
use super::reverie::Reverie;
use super::{Pools, PortLedger};
use crate::mmu::Admission;
use crate::units::Cells;

/// The rules of a ledger other than its own.
#[derive(Debug, Clone)]
pub(super) enum Emulation {
    /// Rules of HPCC's simulator.
    Hpcc(HpccState),
    /// Reverie.
    Reverie(Reverie),
}

impl PortLedger {
    /// Whether the ledger decides by rules of another simulator.
    #[inline]
    #[must_use]
    pub fn emulates(&self) -> bool {
        self.emulation.is_some()
    }

    /// Decides one packet of `cells` as [`PortLedger::admit`] does, but by the rules of the other simulator.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn admit_emulated(&mut self, group: usize, cells: Cells, pools: &mut Pools) -> Admission {
        match self.emulation.as_deref() {
            Some(Emulation::Hpcc(_)) => self.admit_as_hpcc(group, cells, pools),
            Some(Emulation::Reverie(_)) => self.admit_as_reverie(group, cells, pools),
            None => self.admit(group, cells, pools),
        }
    }

    /// Re-evaluates the paused groups by the rules of the other simulator. Returns true if [`PortLedger::xoff`]
    /// changed.
    pub(super) fn resume_emulated(&mut self, pools: &Pools) -> bool {
        match self.emulation.as_deref() {
            Some(Emulation::Hpcc(_)) => self.resume_as_hpcc(pools),
            Some(Emulation::Reverie(_)) => self.resume_as_reverie(pools),
            None => false,
        }
    }
}
