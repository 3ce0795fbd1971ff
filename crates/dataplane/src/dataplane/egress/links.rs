//! The ports that can send: link state, ports that refuse frames, and PFC frames, which bypass the queues.

use crate::dataplane::port::Port;
use crate::io::{Burst, Ports};
use crate::plan::counters::PortCounters;
use crate::plan::drops::DropReason;
use crate::route::ROUTER_PORT;
use crate::sets::{ClassSet, PortSet};
use crate::units::Ticks;
use crate::wire::mac_control::PfcFrame;

/// The state of all ports' egress sides.
#[derive(Debug)]
pub(crate) struct Links {
    /// Ports that have a link and are not shut.
    pub up: PortSet,
    /// Ports that have a link.
    pub linked: PortSet,
    /// Ports that the operator has shut.
    pub shut: PortSet,
    /// Ports with queues of this lcore that refuse frames: the watchdog discards their frames, or the port is stuck.
    pub refusing: PortSet,
    /// Ports whose devices take no frames of this lcore.
    pub stuck: PortSet,
}

/// The state of a stuck port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StuckLook {
    /// Its device has taken a frame: it is no longer stuck.
    Moves,
    /// A probe is due now.
    Probe,
    Waits,
}

impl Links {
    /// Creates the state of `ports` ports, all with a link. The router's port, if the switch `routes`, is always up.
    pub fn new(ports: usize, routes: bool) -> Self {
        let up = PortSet::first(ports) | PortSet::only_if(routes, ROUTER_PORT);
        Self { up, linked: up, shut: PortSet::EMPTY, refusing: PortSet::EMPTY, stuck: PortSet::EMPTY }
    }

    /// The reason for which frames for `port` are dropped while it is down; `None`: it is up.
    #[inline]
    pub fn drops_for(&self, port: usize) -> Option<DropReason> {
        let reason = if self.shut.contains(port) { DropReason::AdminDown } else { DropReason::EgressDown };
        (!self.up.contains(port)).then_some(reason)
    }

    /// Records that the device of a port took none of the frames that it was offered at `now`. If the port is stuck,
    /// schedules the discard of all frames that wait for it.
    #[cold]
    pub fn note_refusal(&mut self, number: usize, port: &mut Port, counters: &PortCounters, now: Ticks) {
        if port.progress.refused(now, counters.taken_frames()) {
            self.stuck.insert(number);
            self.refusing.insert(number);
            counters.egress_stuck.set(1);
            counters.egress_stucks.add(1);
        }
        if port.progress.is_stuck() {
            port.schedule_discard(ClassSet::ALL, DropReason::EgressStuck);
        }
    }

    /// Lets a stuck port send again if its device has taken a frame. Otherwise it permits a probe if one is due: the
    /// next frame for the port, and a PFC frame, which the caller sends even if no frame comes.
    #[cold]
    pub fn look_at_stuck(&mut self, number: usize, port: &mut Port, counters: &PortCounters, now: Ticks) -> StuckLook {
        if port.progress.has_moved(counters.taken_frames()) {
            self.release_stuck(number, port, counters);
            return StuckLook::Moves;
        }
        if port.progress.probe(now) { StuckLook::Probe } else { StuckLook::Waits }
    }

    /// Ends the stuck state of a port, so that it sends again. Returns whether the port was stuck.
    pub fn release_stuck(&mut self, number: usize, port: &mut Port, counters: &PortCounters) -> bool {
        if !self.stuck.contains(number) {
            return false;
        }
        port.progress.clear();
        port.cancel_discard(ClassSet::ALL, DropReason::EgressStuck);
        self.stuck.remove(number);
        self.refusing.set(number, port.is_refusing());
        counters.egress_stuck.set(0);
        true
    }

    /// Sends the PFC `frame` that is due at a port. A frame that the device does not take stays due.
    ///
    /// IEEE 802.3 annexes 31B and 31D, in substance: a pause stops data frames and no MAC control frames. So pauses of
    /// this port are not consulted here.
    #[inline]
    pub fn send_pfc<I: Ports>(
        &mut self,
        io: &mut I,
        number: usize,
        port: &mut Port,
        frame: &PfcFrame,
        counters: &PortCounters,
        now: Ticks,
    ) {
        if !port.pfc.sends_frames() {
            // The queues that stay unpolled tell the peer.
            port.pfc.sent(frame, now);
            return;
        }
        // To a stuck port only frames that pause are offered: they show whether it moves again.
        if !self.up.contains(number) || port.progress.is_closed() && port.pfc.xoff().is_empty() {
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
                self.note_refusal(number, port, counters, now);
            }
            return;
        }
        port.pfc.sent(frame, now);
        // The frame bypassed pacing, but not the wire, so the next data frames wait for its time. Otherwise each PFC
        // frame would put the device ahead of the wire and delay the next PFC frame.
        port.charge_pfc(now);
        counters.pfc_tx_frames.add(1);
        for priority in frame.enabled.iter() {
            let xoff = frame.quanta[priority].0 > 0;
            let side = if xoff { &counters.pfc_tx_xoff } else { &counters.pfc_tx_xon };
            side[priority].add(1);
        }
    }
}
