//! PFC generation: the peers that an lcore has paused.

use super::counters::PortCounters;
use super::links::Links;
use super::port::Port;
use crate::mutant::{self, Mutant};
use crate::packet::{Burst, Ports};
use crate::qos::shaper::MIN_FRAME;
use crate::sets::{PortSet, indices};
use crate::units::Ticks;
use crate::wire::mac_control::PfcFrame;

/// The ports whose peers are paused.
#[derive(Debug, Default)]
pub(super) struct PauseState {
    /// Ports with groups at XOFF.
    pub xoff: PortSet,
    /// Ports whose receive backlog pauses their peers.
    pub backlogged: PortSet,
}

impl PauseState {
    /// Passes the XOFF state of a port (buffer and receive backlog) to its generator. Returns the groups that were not
    /// at XOFF before.
    #[inline]
    pub fn update(&mut self, number: usize, port: &mut Port) -> u8 {
        let xoff = port.ledger.xoff();
        self.xoff.set(number, xoff != 0);
        let announced = port.wants_xoff() & port.generated;
        let fresh = announced & !port.generator.xoff();
        port.generator.set_all(announced);
        fresh
    }

    /// Evaluates the frames `left` in the receive ring of a port after a poll; `None`: unknown. At least `enough`
    /// frames, or at least the port's mark, are a backlog: the lossless groups are then XOFF until the ring is drained.
    /// Returns whether this changed.
    pub fn judge_backlog(
        &mut self,
        (number, port): (usize, &mut Port),
        (left, enough): (Option<usize>, u32),
        counters: &PortCounters,
        now: Ticks,
    ) -> bool {
        let left = if mutant::is(Mutant::BacklogIgnored) { Some(0) } else { left };
        if let Some(left) = left {
            counters.backlog_frames.set(left as u64);
            counters.backlog_highest_frames.raise(left as u64);
        }
        let before = port.backlog.is_on();
        port.backlog.judge(left, enough, now);
        let is_changed = port.backlog.is_on() != before;
        if is_changed {
            counters.backlog_xoffs.add(u64::from(!before));
            self.backlogged.set(number, !before);
        }
        is_changed
    }
}

impl Links {
    /// Sends the PFC `frame` that is due at a port. A frame that the device does not take stays due.
    ///
    /// IEEE 802.3 annexes 31B and 31D, in substance: a pause stops data frames and no MAC control frames. So pauses of
    /// this port are not consulted here.
    #[inline]
    pub fn send_pfc<I: Ports>(
        &mut self,
        io: &mut I,
        (number, port): (usize, &mut Port),
        frame: &PfcFrame,
        counters: &PortCounters,
        now: Ticks,
    ) {
        // To a stuck port only frames that pause are offered: they show whether it moves again.
        if !self.up.contains(number) || port.progress.is_closed() && port.generator.xoff() == 0 {
            return;
        }
        // Without a buffer, or without room in the transmit ring below, the frame stays due, and the next poll tries
        // again.
        let Some(packet) = io.make(&frame.emit(port.mac)) else { return };
        let mut one = Burst::new();
        one.push(packet);
        io.tx(number, &mut one);
        if !one.is_empty() {
            io.free(&mut one);
            if port.progress.is_stuck() {
                self.note_refusal((number, port), counters, now);
            }
            return;
        }
        port.generator.sent(frame, now);
        // The frame bypassed pacing, but not the wire, so the next data frames wait for its time. Otherwise each PFC
        // frame would put the device ahead of the wire and delay the next PFC frame.
        port.shaper.charge(MIN_FRAME, now);
        counters.pfc_tx_frames.add(1);
        for priority in indices(frame.enabled) {
            let xoff = frame.quanta[priority].0 > 0;
            let side = if xoff { &counters.pfc_tx_xoff } else { &counters.pfc_tx_xon };
            side[priority].add(1);
        }
    }
}
