//! Everything one port is: plain memory of the lcore that owns it.

use arrayvec::ArrayVec;

use super::queue::{Queue, Tag};
use super::spec::{PortSpec, SwitchSpec};
use crate::mmu::Ledger;
use crate::mmu::headroom::PACING_SLACK;
use crate::packet::{BURST, Burst};
use crate::pfc::{Generator, PauseTimers};
use crate::qos::{CLASSES, Scheduler, Shaper, Trust};
use crate::wire::MacAddr;

/// One port of the switch.
#[derive(Debug)]
pub(super) struct Port<P> {
    pub mac: MacAddr,
    pub mtu: u32,
    pub trust: Trust,
    pub port_class: u8,
    /// PFC is generated and obeyed.
    pub pfc: bool,
    /// Priority groups, and so priorities, that are lossless here.
    pub lossless: u8,

    /// Ingress: the ledger of each priority group.
    pub ledgers: [Ledger; CLASSES],
    /// Cells ever admitted, by group.
    pub admitted: [u64; CLASSES],
    /// Of these, the cells whose release the ledger has seen.
    pub released: [u64; CLASSES],
    /// Groups that hold cells.
    pub holding: u8,
    /// Groups whose ledger is XOFF.
    pub xoff: u8,
    pub generator: Generator,

    /// Egress: the queues and what lets them send.
    pub queues: [Queue; CLASSES],
    /// Queues that are not empty.
    pub waiting: u8,
    pub scheduler: Scheduler,
    pub shaper: Shaper,
    pub timers: PauseTimers,
    /// Frames that left their queues and that the driver has not taken yet: still charged.
    pub posted: Burst<P>,
    /// What each of them is charged to.
    pub charges: ArrayVec<Tag, BURST>,
}

impl<P> Port<P> {
    pub fn new(spec: &PortSpec, switch: &SwitchSpec, hz: u64) -> Self {
        let mut lossless = 0;
        for (group, profile) in spec.groups.iter().enumerate() {
            lossless |= u8::from(profile.lossless) << group;
        }
        Self {
            mac: spec.mac,
            mtu: u32::from(spec.mtu),
            trust: spec.trust,
            port_class: spec.port_class,
            pfc: spec.pfc,
            lossless,
            ledgers: spec.groups.map(Ledger::new),
            admitted: [0; CLASSES],
            released: [0; CLASSES],
            holding: 0,
            xoff: 0,
            generator: Generator::new(spec.rate, hz),
            queues: Default::default(),
            waiting: 0,
            scheduler: Scheduler::new(switch.queues.map(|queue| queue.discipline)),
            shaper: Shaper::new(spec.rate, hz, PACING_SLACK),
            timers: PauseTimers::new(spec.rate, hz),
            posted: Burst::new(),
            charges: ArrayVec::new(),
        }
    }

    /// The ledger of `group` may have changed its mind: tell the generator.
    #[inline]
    pub fn follow_ledger(&mut self, group: usize) {
        let bit = 1 << group;
        let xoff = self.ledgers[group].is_xoff();
        if (self.xoff & bit != 0) != xoff {
            self.xoff ^= bit;
            if self.pfc {
                self.generator.set(group, xoff);
            }
        }
    }
}
