//! Classes of RoCEv2 packets that carry no data of applications: ACKs, NAKs and CNPs.
//!
//! A NIC may send them with the DSCP of its data. Only the opcode shows them then, which the parser does not read. So
//! they are moved to their classes after it, at ports where they have any. Elsewhere a burst costs one branch.

use super::parse::Arrived;
use super::port_classifier::PortClassifier;
use crate::dataplane::frame::notes::BurstNotes;
use crate::io::{Burst, Packet};
use crate::plan::counters::PortCounters;
use crate::sets::BURST;
use crate::wire::RoceControl;

impl Arrived {
    /// Moves the ACKs, NAKs and CNPs of `burst` to the classes of `classifier`. The frames are not changed.
    #[inline(never)]
    pub fn classify_roce<P: Packet>(
        &mut self,
        classifier: &PortClassifier,
        counters: &PortCounters,
        burst: &Burst<P>,
        notes: &mut BurstNotes,
    ) {
        for index in self.data.iter() {
            let meta = &mut notes.metas[index % BURST];
            let (l3, l3_offset) = (meta.class_bits.l3(), meta.desc.l3_offset());
            let Some(kind) = RoceControl::of(burst[index].bytes(), l3, l3_offset.into()) else { continue };
            let Some(classification) = classifier.of_roce(kind) else { continue };
            counters.roce_frames[kind as usize].add(1);
            self.sums[usize::from(meta.class_bits.class())].remove(meta.desc);
            meta.class_bits = meta.class_bits.reclassified(classification.class_bits);
            meta.desc = meta.desc.reclassified(classification.desc);
            self.sums[usize::from(meta.class_bits.class())].add(meta.desc);
            notes.lanes.queues.set(index, classification.queue);
        }
    }
}
