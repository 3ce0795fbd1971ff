//! Everything one port is: plain memory of the lcore that owns it.

use super::queue::Queue;
use super::spec::{PortSpec, SwitchSpec};
use crate::mmu::Ledger;
use crate::mmu::headroom::PACING_SLACK;
use crate::packet::BURST;
use crate::pfc::{Generator, PauseTimers};
use crate::qos::shaper::WIRE_OVERHEAD;
use crate::qos::{CLASSES, MarkMap, Scheduler, Shaper, Trust};
use crate::units::{Nanos, Ticks};
use crate::wire::MacAddr;
use crate::wire::mac_control::PfcFrame;

/// One port of the switch.
#[derive(Debug)]
pub(super) struct Port {
    pub mac: MacAddr,
    pub mtu: u32,
    pub trust: Trust,
    pub port_class: u8,
    pub marks: MarkMap,
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
    /// Pauses received during the last poll, whose time is counted from the next one on: the instant of a poll is older
    /// than the frames that arrive while it runs, and a pause must not end early.
    pub arrived: PfcFrame,
    /// Bursts that a poll may take, and send: what can have arrived in the longest poll gap that headroom allows for.
    pub bursts: u32,
}

/// Bytes of an Ethernet header.
const ETHERNET_LEN: u64 = 14;
/// More would keep other ports waiting for longer than any headroom allows for.
const MAX_BURSTS: u64 = 16;

/// Bursts of frames of the MTU that arrive at `rate` in `poll_gap`.
fn bursts_per_poll(spec: &PortSpec, poll_gap: Nanos) -> u32 {
    let frame = u64::from(spec.mtu) + u64::from(WIRE_OVERHEAD) + ETHERNET_LEN;
    spec.rate.bytes_in(poll_gap).0.div_ceil(frame * BURST as u64).clamp(1, MAX_BURSTS) as u32
}

impl Port {
    pub fn new(spec: &PortSpec, switch: &SwitchSpec, hz: u64) -> Self {
        Self {
            mac: spec.mac,
            mtu: u32::from(spec.mtu),
            trust: spec.trust,
            port_class: spec.port_class,
            marks: spec.marks.clone(),
            pfc: spec.pfc.is_on(),
            lossless: spec.lossless_groups(),
            ledgers: spec.buffer.groups.map(Ledger::new),
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
            arrived: PfcFrame::default(),
            bursts: bursts_per_poll(spec, switch.poll_gap),
        }
    }

    /// Pauses that arrived during the last poll begin at `now`; until then they were obeyed already.
    #[inline]
    pub fn start_pauses(&mut self, now: Ticks) {
        if self.arrived.enabled != 0 {
            self.timers.receive(&self.arrived, now);
            self.arrived = PfcFrame::default();
        }
    }

    /// A PFC frame of lossless priorities has come: obeyed from now on, and counted from the next poll on.
    pub fn receive_pause(&mut self, frame: &PfcFrame, now: Ticks) {
        self.timers.receive(frame, now);
        self.arrived.enabled |= frame.enabled;
        for (priority, quanta) in frame.quanta.iter().enumerate() {
            if frame.enabled >> priority & 1 == 1 {
                self.arrived.quanta[priority] = *quanta;
            }
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
