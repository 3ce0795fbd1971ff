//! Ports whose device obeys PFC by itself (`pfc: nic`): each queue has a transmit ring, which the device stops.
//!
//! A stopped ring fills up and takes no more frames. Its queue waits then until the next poll, and the others go on.

use arrayvec::ArrayVec;

use super::Egress;
use super::slots::Descs;
use crate::dataplane::port::Port;
use crate::io::{Burst, Packet, Ports};
use crate::sets::{BURST, ClassSet};
use crate::units::Ticks;

impl<P: Packet> Egress<P> {
    /// Offers the posted frames to the rings of their queues. Returns whether only full rings of lossless queues have
    /// left some of them: their peer may have paused them. The frames that are left stay posted, in order of their
    /// queues, and their descriptors are last.
    #[inline(never)]
    pub(super) fn offer_by_queue<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        number: usize,
        port: &mut Port,
        now: Ticks,
    ) -> bool {
        let frames: ArrayVec<_, BURST> = self.posted.drain(..).zip(self.charges.drain(..)).collect();
        let mut parts: [(Burst<P>, Descs); 8] = Default::default();
        for (packet, desc) in frames {
            let (packets, descs) = &mut parts[desc.queue()];
            packets.push(packet);
            descs.push(desc);
        }
        let (mut taken, mut refused, mut left) = (ClassSet::EMPTY, ClassSet::EMPTY, Descs::new());
        let mut unfinished = ClassSet::EMPTY;
        for (queue, (packets, descs)) in parts.iter_mut().enumerate().filter(|(_, part)| !part.1.is_empty()) {
            io.tx_queue(number, queue, packets);
            let sent = descs.len() - packets.len();
            self.charges.extend(descs.drain(..sent));
            left.extend(descs.drain(..));
            // A ring that takes some frames is no paused one.
            match (packets.is_empty(), sent) {
                (true, _) => taken.insert(queue),
                (false, 0) => refused.insert(queue),
                (false, _) => {}
            }
            if !packets.is_empty() {
                unfinished.insert(queue);
            }
            self.posted.extend(packets.drain(..));
        }
        self.charges.extend(left);
        port.pfc.note_rings(taken, refused, now);
        (unfinished - port.pfc.obeyed_queues()).is_empty()
    }
}
