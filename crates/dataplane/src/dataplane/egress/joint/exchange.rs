//! The exchange of an lcore with the others about joint ports, at each poll.

use super::JointPorts;
use super::told::{Depth, Told};
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::mutant::{self, Mutant};
use crate::pfc::PortPfc;
use crate::plan::drops::DropReason;
use crate::sets::{CLASSES, ClassSet, PortSet};

impl<P> Pipeline<P> {
    /// Reads what the other lcores have told about joint ports since the poll before. Tells them which pauses of own
    /// ports have ended.
    #[inline]
    pub(crate) fn hear_joint(&mut self) {
        if self.joint.ports.is_empty() {
            return;
        }
        for port in (self.joint.ports & self.own).iter() {
            if self.ports[port].pfc.end_pauses(self.now) {
                self.tell_pauses(port);
            }
        }
        let standing = self.joint.told.standing_elsewhere(self.lcore) & self.joint.ports;
        let dropping = self.joint.told.dropping_ports() - self.own;
        let (standing, dropping) = (self.joint.standing.look(standing), self.joint.dropping.look(dropping));
        if !standing.is_empty() {
            self.hear_depths(standing);
        }
        if !dropping.is_empty() {
            self.hear_dropping(dropping);
        }
    }

    #[inline(never)]
    fn hear_depths(&mut self, ports: PortSet) {
        for port in ports.iter() {
            let Some(joint) = &mut self.ports[port].joint else { continue };
            joint.queues = ClassSet::EMPTY;
            for (queue, depth) in joint.elsewhere.iter_mut().enumerate() {
                *depth = joint.told.elsewhere(self.lcore, port, queue);
                joint.queues |= ClassSet::only_if(depth.bytes.0 > 0, queue);
            }
            self.joint.standing.keep(port, !joint.queues.is_empty());
        }
    }

    /// Applies storms of watchdogs of other lcores: the frames that wait here are discarded too.
    #[cold]
    fn hear_dropping(&mut self, ports: PortSet) {
        for port in ports.iter() {
            let state = &mut self.ports[port];
            let Some(joint) = &mut state.joint else { continue };
            let now = joint.told.dropping(port);
            let before = std::mem::replace(&mut joint.dropping, now);
            state.schedule_discard(now - before, DropReason::Watchdog);
            state.cancel_discard(before - now, DropReason::Watchdog);
            self.links.refusing.set(port, state.is_refusing());
            self.joint.dropping.keep(port, !now.is_empty());
        }
    }

    /// Tells the other lcores which frames wait here for joint ports.
    #[inline]
    pub(crate) fn tell_joint(&mut self) {
        let Self { joint, ports, lcore, .. } = self;
        if joint.ports.is_empty() {
            return;
        }
        let mut standing = PortSet::EMPTY;
        for port in joint.ports.iter() {
            let waits = ports[port].is_standing();
            standing |= PortSet::only_if(waits, port);
            if waits || joint.told_standing.contains(port) {
                tell_depths(&joint.told, *lcore, port, &ports[port]);
            }
        }
        if standing != joint.told_standing {
            joint.told.tell_standing(*lcore, standing);
            joint.told_standing = standing;
        }
    }

    /// Ends this lcore's part in joint ports, because it hears no pause any more.
    pub(crate) fn leave_joint(&self) {
        self.joint.leave(self.lcore, self.own);
    }

    /// Tells the other lcores the pauses and the storms of own port `port`, if it is a joint one.
    pub(crate) fn tell_pauses(&self, port: usize) {
        self.joint.tell_pauses(self.lcore, port, &self.ports[port].pfc);
    }
}

impl JointPorts {
    /// Tells the other lcores the pauses and the storms of port `number` of `lcore`, if it is a joint one.
    #[cold]
    pub(crate) fn tell_pauses(&self, lcore: usize, number: usize, pfc: &PortPfc) {
        if self.ports.contains(number) {
            // Frames of a storm leave by discard only. An lcore that has not heard of it must not send them.
            self.told.tell_dropping(lcore, number, pfc.dropping());
            self.told.tell_stopped(number, pfc.stopped_for_others() | pfc.dropping());
            self.told.note_obeyed(number, pfc.obeyed_queues());
        }
    }
}

/// Tells the depths of the queues of port `number`.
#[inline]
fn tell_depths(told: &Told, lcore: usize, number: usize, port: &Port) {
    for queue in 0..CLASSES {
        let depth = port.told_depth(queue);
        if mutant::is(Mutant::DepthStays) && depth == Depth::default() {
            continue;
        }
        told.tell_depth(lcore, number, queue, depth);
    }
}
