//! Frames between stations that the database knows. Most frames that the flow cache does not hold are such, so they
//! have a short loop of their own.

use crate::dataplane::frame::notes::BurstNotes;
use crate::dataplane::ingress::forwarder::{Forwarder, IngressContext};
use crate::forward::flow_cache::CacheLookup;
use crate::sets::{BURST, FrameSet, PortSet};

impl Forwarder {
    /// Forwards those of `frames` for which [`Forwarder::known_egress`] has an answer, and caches the answers. Returns
    /// their egress ports, and the other frames. The result for each is that of [`Forwarder::decide`], as long as no
    /// earlier frame of the burst changes the database.
    ///
    /// Not inlined: the loop needs the registers that its caller would keep.
    #[inline(never)]
    pub(super) fn forward_known(
        &mut self,
        from: IngressContext<'_>,
        notes: &mut BurstNotes,
        frames: FrameSet,
        lookup: Option<CacheLookup>,
    ) -> (PortSet, FrameSet) {
        let (mut egresses, mut unknown) = (PortSet::EMPTY, FrameSet::EMPTY);
        for index in frames.iter() {
            let meta = &mut notes.metas[index % BURST];
            let Some(egress) = self.known_egress(from, meta) else {
                unknown.insert(index);
                continue;
            };
            // Frames of one pair come in trains, and only the first is new to the cache.
            if let Some(lookup) = lookup.filter(|&lookup| self.cache.find(lookup, meta.stations).is_none()) {
                self.cache.insert(lookup, meta.stations, egress);
                self.cache.count_miss();
            }
            egresses.insert(egress);
            notes.lanes.egresses.set(index, egress as u8);
            meta.send(egress as u8);
        }
        (egresses, unknown)
    }
}
