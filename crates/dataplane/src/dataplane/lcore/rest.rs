//! Checks whether any work is pending for the next poll of an lcore: if so, the lcore does not rest.
//!
//! The check runs only before a rest, so it costs the packet path nothing.

use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::io::{Packet, Ports};
use crate::plan::counters::Counter;
use crate::units::Ticks;

impl<P: Packet> Pipeline<P> {
    /// Whether nothing is held, paused or on its way here, so that a late poll delays only frames that have yet to
    /// come.
    pub(crate) fn may_rest<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        // `holding` covers frames that another lcore has yet to send: they are charged here, and their release may
        // cause XON.
        self.buffer.holding.is_empty() && self.may_rest_when_settled(io, now)
    }

    /// Whether other lcores have sent by own joint ports since the last look. A pause for these frames must not wait
    /// for the end of a rest.
    pub(crate) fn guests_send(&mut self) -> bool {
        let ports = (self.joint.ports & self.own).iter();
        let guests = ports.flat_map(|port| self.telemetry.counters.of_port(port).skip(1));
        let sent = guests.flat_map(|guest| &guest.tx_frames).map(Counter::get).sum();
        std::mem::replace(&mut self.joint.guests_sent, sent) != sent
    }
}

impl Port {
    /// Whether no timer runs here, for PFC or for the receive backlog, and no frame must be discarded. A PFC frame that
    /// is due counts on a link that is up and not stuck.
    pub(crate) fn is_at_rest(&self, is_up: bool, now: Ticks) -> bool {
        self.pfc.is_at_rest(is_up, now) && self.discarding.is_empty() && !self.backlog.is_watching()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dataplane::Scratch;
    use crate::io::memory::MemPorts;
    use crate::pfc::{WatchdogAction, WatchdogSpec};
    use crate::plan::Counters;
    use crate::sets::{CLASSES, ClassSet};
    use crate::units::{BitRate, Nanos, Quanta};
    use crate::wire::MacAddr;
    use crate::wire::mac_control::PfcFrame;

    #[test]
    fn owner_of_a_joint_port_does_not_rest_while_another_lcore_sends_by_it() {
        let mut spec = crate::config::embedded().switch;
        spec.lcores = 2;
        for (index, port) in spec.ports.iter_mut().enumerate() {
            (port.lcore, port.tx_queues) = (index as u8 % 2, 2);
        }
        let counters = Arc::new(Counters::of(&spec));
        let mut fleet = Pipeline::fleet(&spec, &counters, 1_000_000_000, 1);
        let (mut io, mut scratch, mut now) = (MemPorts::new(spec.ports.len()), Scratch::default(), 1_000_000_000);
        let mut poll = |fleet: &mut [Pipeline<_>], io: &mut MemPorts| {
            now += 1_000_000;
            fleet.iter_mut().for_each(|part| _ = part.poll(io, &mut scratch, Ticks(now)));
            fleet[1].may_rest(io, Ticks(now))
        };
        // The station behind port 1 is known, so that only the first lcore sends.
        fleet.iter_mut().for_each(|part| _ = part.learn(1, MacAddr([2, 0, 0, 0, 0, 1]), 1, Ticks(1_000_000_000)));
        let mut frame = [0; 60];
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9]);
        assert!((0..10).any(|_| poll(&mut fleet, &mut io)), "it rests");
        io.inject(0, &frame);
        assert!(!poll(&mut fleet, &mut io), "the first lcore has sent by port 1");
        assert_eq!(io.sent_all(1).len(), 1);
        assert!((0..10).any(|_| poll(&mut fleet, &mut io)), "it rests again");
    }

    /// A frame waits behind a pause of 1.245 ms, which ends shortly before the look that detects the storm. In a
    /// simulated switch a poll between them ends the alert of the port. Looks come each 0.25 ms.
    #[test]
    fn storm_at_a_port_without_alert_prevents_a_rest_until_it_ends() {
        let mut spec = crate::config::embedded().switch;
        // A quantum lasts one microsecond.
        spec.ports[1].rate = BitRate(512_000_000);
        let ms = Nanos(1_000_000);
        spec.ports[1].live.watchdog =
            Some(WatchdogSpec { detection: ms, restoration: ms, action: WatchdogAction::Drop });
        let counters = Arc::new(Counters::of(&spec));
        let mut switch = Pipeline::new(&spec, counters.clone(), 1_000_000_000, 1);
        let (mut io, mut scratch, start) = (MemPorts::new(spec.ports.len()), Scratch::default(), 1_000_000_000);
        let mut frame = [0; 60];
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9]);
        // IPv4 with DSCP 26, which is lossless.
        frame[12..18].copy_from_slice(&[8, 0, 0x45, 26 << 2, 0, 46]);
        _ = switch.learn(1, MacAddr([2, 0, 0, 0, 0, 1]), 1, Ticks(start));
        let pause = PfcFrame { enabled: ClassSet::only(3), quanta: [Quanta(1_245); CLASSES] };
        io.inject(1, &pause.emit(MacAddr([2, 0, 0, 0, 0, 1])));
        switch.poll(&mut io, &mut scratch, Ticks(start));
        io.inject(0, &frame);
        for us in [10, 250, 500, 750, 1_000] {
            switch.poll(&mut io, &mut scratch, Ticks(start + us * 1_000));
        }
        let (storms, restores) = (&counters.ports[1].watchdog_storms[3], &counters.ports[1].watchdog_restores[3]);
        assert_eq!((storms.get(), io.sent_all(1).len()), (0, 0), "the frame waits");
        switch.alert.remove(1);
        for us in (1_260..2_500).step_by(10) {
            switch.poll(&mut io, &mut scratch, Ticks(start + us * 1_000));
            assert_eq!((storms.get(), io.sent_all(1).len()), (1, 0), "the storm is detected, the frame discarded");
            let may_rest = switch.may_rest(&mut io, Ticks(start + us * 1_000));
            assert!(!may_rest || restores.get() == 1, "it rests at {us} us, during the storm");
        }
        assert_eq!(restores.get(), 1);
        assert!(switch.may_rest(&mut io, Ticks(start + 2_500_000)), "it rests after the storm");
    }
}
