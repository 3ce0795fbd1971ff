//! Lossless bursts near a limit: some frame of the burst turns its group XOFF, or is refused. The burst is admitted in
//! parts, so that only the frames at the change are judged alone.

use crate::dataplane::frame::fast_path::{self, FastPath};
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::notes::IngressBurst;
use crate::dataplane::handoff::mesh::HandoffFrame;
use crate::dataplane::ingress::rewrite::BurstDemand;
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::telemetry::log::RefusedFrame;
use crate::io::{Packet, Ports};
use crate::plan::drops::DropReason;
use crate::sets::{BURST, CLASSES, ClassSet};
use crate::units::Cells;

/// Parts of a burst that may be tried in vain before each frame is judged alone. Two changes of state in a burst take
/// twelve: six halvings each.
const MOST_IN_VAIN: u32 = 12;

/// The reasons for which frames of a burst were refused.
type Reasons = [Option<DropReason>; BURST];

impl<P: Packet> Pipeline<P> {
    /// Sends a burst of lossless frames to ports of this lcore, whose queues have no reserve. The burst as a whole was
    /// not admitted. Queues must accept the frames that groups admit.
    #[inline(never)]
    pub(crate) fn send_lossless<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        burst: &mut IngressBurst<'_, P>,
        demand: &BurstDemand,
    ) {
        let Some(reasons) = self.admit_in_parts(burst) else {
            if burst.frames.len() > 1 {
                fast_path::hit(FastPath::Lossless);
            }
            return self.enqueue_burst(io, burst, demand);
        };
        fast_path::hit(FastPath::LosslessRefused);
        for ((packet, meta), refused) in burst.frames.drain(..).zip(&burst.notes.metas).zip(reasons) {
            match (meta.forwarding(), refused) {
                (_, Some(reason)) => self.drop_frame(io, packet, burst.port, meta.class(), reason),
                (Forwarding::Send(egress), None) => {
                    self.place_accepted(io, HandoffFrame::new(packet, meta, egress, true));
                }
                _ => unreachable!("every frame of the burst is sent"),
            }
        }
    }

    /// Admits the frames of `burst` in order, as many at once as possible: the result is that of
    /// [`Pipeline::admit`] for each. Returns why frames were refused; `None`: all are admitted.
    ///
    /// A part that is not admitted is halved. Its second half then holds the change of state, so the next part is half
    /// as long too. After the change, the rest of the burst is tried.
    fn admit_in_parts(&mut self, burst: &IngressBurst<'_, P>) -> Option<Reasons> {
        let (port, metas, frames) = (burst.port, &burst.notes.metas, burst.frames.len());
        let (mut reasons, mut is_whole) = ([None; BURST], true);
        let (mut at, mut len, mut in_vain) = (0, frames / 2, 1);
        while at < frames {
            len = len.clamp(1, frames - at);
            if len > 1 {
                if self.admit_part(port, &metas[at..at + len]) {
                    fast_path::hit(FastPath::InParts);
                    at += len;
                } else {
                    in_vain += 1;
                    if in_vain == MOST_IN_VAIN {
                        fast_path::hit(FastPath::InVain);
                    }
                }
                len = if in_vain < MOST_IN_VAIN { len / 2 } else { 1 };
                continue;
            }
            let (meta, before) = (&metas[at], self.ports[port].ledger.xoff());
            let Forwarding::Send(egress) = meta.forwarding() else { unreachable!("every frame of the burst is sent") };
            if let Err(reason) = self.admit(port, egress.into(), meta) {
                let frame = RefusedFrame::by_group(&meta.desc, egress.into());
                self.note_refused(port, burst.frames[at].bytes(), frame, reason);
                (reasons[at], is_whole) = (Some(reason), false);
            }
            at += 1;
            let is_changed = self.ports[port].ledger.xoff() != before;
            len = match in_vain {
                MOST_IN_VAIN.. => 1,
                _ if is_changed => frames,
                _ => 2,
            };
        }
        (!is_whole).then_some(reasons)
    }

    /// Admits the lossless frames `metas` of ingress `port` at once, if [`Pipeline::admit`] for each is sure to have
    /// the same result. Returns whether it did.
    #[inline(never)]
    fn admit_part(&mut self, port: usize, metas: &[Meta]) -> bool {
        if fast_path::is_off(FastPath::InParts) {
            return false;
        }
        let (mut cells, mut groups) = ([Cells(0); CLASSES], ClassSet::EMPTY);
        for meta in metas {
            let (_, group, of_frame) = meta.desc.charge();
            cells[group % CLASSES] += of_frame;
            groups.insert(group);
        }
        self.buffer.admit_groups::<P>(port, &mut self.ports[port], &cells, groups)
    }
}
