//! The ports that can send: their links, and those that refuse frames.

use super::counters::PortCounters;
use super::drops::DropReason;
use super::port::Port;
use crate::sets::PortSet;
use crate::units::Ticks;

/// The state of all ports' egress sides.
#[derive(Debug)]
pub(super) struct Links {
    /// Ports that have a link.
    pub up: PortSet,
    /// Own ports with queues that refuse frames: the watchdog discards them, or the port is stuck.
    pub refusing: PortSet,
    /// Own ports whose devices take no frames.
    pub stuck: PortSet,
}

impl Links {
    /// `ports` ports, all with a link.
    pub fn new(ports: usize) -> Self {
        Self { up: PortSet::first(ports), refusing: PortSet::EMPTY, stuck: PortSet::EMPTY }
    }

    /// Notes that the device of a port took none of the frames that it was offered at `now`. Schedules the discard of what
    /// waits for a stuck port.
    #[cold]
    pub fn note_refusal(&mut self, (number, port): (usize, &mut Port), counters: &PortCounters, now: Ticks) {
        if port.progress.refused(now, counters.taken_frames()) {
            self.stuck.insert(number);
            self.refusing.insert(number);
            counters.egress_stuck.set(1);
            counters.egress_stucks.add(1);
        }
        if port.progress.is_stuck() {
            port.schedule_discard(u8::MAX, DropReason::EgressStuck);
        }
    }

    /// Lets a stuck port send again if its device has taken a frame, and else lets a probe be offered: the next frame for the
    /// port, and a PFC frame, which leaves although no frame comes. Returns whether the port is no longer stuck.
    #[cold]
    pub fn look_at_stuck(&mut self, (number, port): (usize, &mut Port), counters: &PortCounters, now: Ticks) -> bool {
        if port.progress.has_moved(counters.taken_frames()) {
            return self.release_stuck((number, port), counters);
        }
        if port.progress.probe(now) {
            port.generator.repeat(port.generated);
        }
        false
    }

    /// Lets a port send again that was stuck. Returns whether it was.
    pub fn release_stuck(&mut self, (number, port): (usize, &mut Port), counters: &PortCounters) -> bool {
        if !self.stuck.contains(number) {
            return false;
        }
        port.progress.clear();
        port.cancel_discard(u8::MAX, DropReason::EgressStuck);
        self.stuck.remove(number);
        self.refusing.set(number, port.is_refusing());
        counters.egress_stuck.set(0);
        true
    }
}
