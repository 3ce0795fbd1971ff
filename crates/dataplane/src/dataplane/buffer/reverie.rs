//! The buffer of a simulated switch that decides as Reverie: the departures that move the filters of lossless groups.

use std::sync::Arc;

use super::Buffer;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::port::Port;
use crate::mmu::ReverieGroups;
use crate::plan::spec::SwitchSpec;
use crate::sets::CLASSES;

/// The state that all ledgers share, and the frames that have left: tallies count cells only.
#[derive(Debug)]
pub(super) struct Reverie {
    groups: Arc<ReverieGroups>,
    /// Frames that have left since the ledger collected their cells, by ingress port and group.
    departed: Box<[[u32; CLASSES]]>,
}

impl Reverie {
    /// Creates the state for `spec`; `None`: it does not decide as Reverie.
    pub fn of(spec: &SwitchSpec) -> Option<Box<Self>> {
        let abm = spec.abm.filter(|_| spec.reverie)?;
        let departed = vec![[0; CLASSES]; spec.ports.len()].into();
        Some(Box::new(Self { groups: ReverieGroups::new(abm, spec.buffer.cell), departed }))
    }

    /// Takes the number of frames of `group` at `port` that have left.
    pub fn take(&mut self, port: usize, group: usize) -> u32 {
        std::mem::take(&mut self.departed[port][group])
    }
}

impl Buffer {
    /// Lets the ledgers of `ports` decide as Reverie if the switch does.
    pub fn emulate(&self, ports: &mut [Port]) {
        if let Some(reverie) = &self.reverie {
            ports.iter_mut().for_each(|port| port.ledger.follow_reverie(reverie.groups.clone()));
        }
    }

    /// Counts a queued frame that was sent or discarded, for the filter of its group.
    pub fn note_departure(&mut self, desc: FrameDesc) {
        if let Some(reverie) = &mut self.reverie {
            let (ingress, group, _) = desc.charge();
            reverie.departed[ingress][group] += 1;
        }
    }

    /// Tells the ledgers how many cells stay free for lossy queues below their reserve.
    pub(super) fn set_kept(&self) {
        if let Some(reverie) = &self.reverie {
            reverie.groups.set_kept(self.reserves.unused());
        }
    }

    /// Returns the state that all ledgers share.
    pub fn reverie_groups(&self) -> Option<&ReverieGroups> {
        self.reverie.as_ref().map(|reverie| &*reverie.groups)
    }
}
