//! MAC control: PFC and PAUSE frames end here and are never forwarded (IEEE 802.3 annexes 31A, 31B and 31D).

use crate::dataplane::frame::meta::Forwarding;
use crate::dataplane::frame::notes::IngressBurst;
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::port::Port;
use crate::io::Packet;
use crate::plan::counters::PortCounters;
use crate::plan::drops::DropReason;
use crate::sets::FrameSet;
use crate::units::Ticks;
use crate::wire::mac_control::{self, MacControl, PfcFrame};

impl<P: Packet> Pipeline<P> {
    /// Obeys or refuses the MAC control frames of a burst; `dispatch` frees them.
    #[cold]
    pub(crate) fn control(&mut self, burst: &mut IngressBurst<'_, P>, control: FrameSet) {
        let port = burst.port;
        let (state, counters) = (&mut self.ports[port], &self.telemetry.counters.ports[port]);
        for index in control.iter() {
            let (meta, is_up) = (&mut burst.notes.metas[index], self.links.linked.contains(port));
            let (bytes, tags) = (burst.frames[index].bytes(), meta.class_bits.tags());
            meta.set_forwarding(state.receive_control(bytes, tags, is_up, counters, self.now));
        }
    }
}

impl Port {
    /// Obeys or drops a MAC control frame. `bytes` is the frame and `tags` its number of VLAN tags; `is_up` is the link
    /// state.
    #[cold]
    pub fn receive_control(
        &mut self,
        bytes: &[u8],
        tags: u8,
        is_up: bool,
        counters: &PortCounters,
        now: Ticks,
    ) -> Forwarding {
        match mac_control::parse(bytes) {
            // IEEE 802.3 annex 31D, in substance: the destination is 01-80-C2-00-00-01.
            Some(MacControl::Pfc(_)) if tags == 0 && !mac_control::is_to_link_peer(bytes) => {
                Forwarding::Drop(DropReason::PfcDestination)
            }
            // A tagged frame is no PFC frame: PFC frames are always untagged.
            Some(MacControl::Pfc(pfc)) if tags == 0 => {
                self.count_pfc(&pfc, counters);
                // A pause of a priority that is not obeyed is counted, with its time; `PortPfc::stopped_queues` masks
                // it. A frame that was in the ring when the link went down has no effect either.
                if is_up {
                    self.pfc.receive_pause(&pfc, now);
                }
                Forwarding::Consumed
            }
            // IEEE 802.3 annexes 31B and 31D, in substance: where PFC is enabled, PAUSE is disabled. This switch obeys
            // it nowhere.
            Some(MacControl::Pause(_)) if tags == 0 => {
                counters.pause_rx_frames.add(1);
                Forwarding::Consumed
            }
            _ => Forwarding::Drop(DropReason::MacControl),
        }
    }

    fn count_pfc(&self, pfc: &PfcFrame, counters: &PortCounters) {
        counters.pfc_rx_frames.add(1);
        for priority in pfc.enabled.iter() {
            let xoff = pfc.quanta[priority].0 > 0;
            (if xoff { &counters.pfc_rx_xoff } else { &counters.pfc_rx_xon })[priority].add(1);
        }
        for priority in self.pfc.ignored(pfc).iter() {
            counters.pfc_rx_ignored[priority].add(1);
        }
    }
}
