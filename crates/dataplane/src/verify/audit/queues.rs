//! Rules on queues, which are walked frame by frame: their counts match their frames, and their frames match the
//! charges.

use super::{Auditor, Broken, Check, ensure};
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::plan::counters::{Counter, PerClass, PortCounters};
use crate::sets::CLASSES;
use crate::units::Bytes;

const QUEUES: &str = "queues_consistent";

/// Cells charged to a group, by port and group.
type Charges = Vec<[u64; CLASSES]>;

/// Returns the cells in the queues of an lcore, at the ports that its polls visit. Deep checks find frames elsewhere.
pub(crate) fn cells_queued<P: Packet>(part: &Pipeline<P>) -> u64 {
    let ports = part.egress.waiting.iter().map(|port| &part.ports[port]);
    let queues = ports.flat_map(|port| port.waiting.iter().map(|queue| &port.queues[queue]));
    queues.map(|queue| u64::from(queue.cells().0)).sum()
}

impl Auditor {
    /// Checks that the counts of every queue match its frames, and that its frames are charged to the groups in their
    /// descriptors.
    pub(crate) fn check_queues<P: Packet>(&self, fleet: &[Pipeline<P>]) -> Check {
        let mut queued: Charges = vec![[0; CLASSES]; self.ports.len()];
        for part in fleet {
            let mut frames = 0;
            for port in part.sends.iter() {
                for queue in 0..CLASSES {
                    frames += self.check_queue(part, port, queue, &mut queued)?;
                }
                let is_visited = part.ports[port].waiting.is_empty() || part.egress.waiting.contains(port);
                ensure(is_visited, QUEUES, || format!("{} has frames, and no poll sends them", self.ports[port].name))?;
            }
            let (lcore, held, posted) =
                (part.lcore, part.egress.slab.held(), part.egress.posted.len() + part.egress.charges.len());
            ensure((held, posted) == (frames, 0), QUEUES, || {
                format!(
                    "lcore {lcore}: {frames} frames in its queues, {held} in its slab, {posted} posted between polls"
                )
            })?;
            self.check_guarantees(part)?;
        }
        self.check_charges(fleet, &queued)
    }

    fn check_queue<P: Packet>(
        &self,
        part: &Pipeline<P>,
        port: usize,
        index: usize,
        queued: &mut Charges,
    ) -> Result<u32, Broken> {
        let (state, queue, name) = (&part.ports[port], &part.ports[port].queues[index], &self.ports[port].name);
        let (mut frames, mut cells, mut bytes, mut first) = (0, 0, 0, None);
        for desc in queue.descs(&part.egress.slab) {
            let (ingress, group, charge) = desc.charge();
            first = first.or(Some(Bytes(desc.frame_len().into())));
            (frames, cells, bytes) = (frames + 1, cells + charge.0, bytes + u64::from(desc.frame_len()));
            let is_own = desc.queue() == index && ingress < queued.len();
            ensure(is_own, QUEUES, || format!("{name} queue {index} holds a frame of {desc:?}"))?;
            queued[ingress][group] += u64::from(charge.0);
        }
        let (walked, counted) = ((frames, cells, bytes), (queue.frames(), queue.cells().0, queue.bytes().0));
        ensure(walked == counted && first.is_none_or(|len| len == queue.head_len(&part.egress.slab)), QUEUES, || {
            format!("{name} queue {index}: {walked:?} frames, cells and bytes are in it, and it counts {counted:?}")
        })?;
        ensure(state.waiting.contains(index) == (frames > 0), QUEUES, || {
            format!("{name} queue {index}: {frames} frames in it, which contradicts the mask of queues with frames")
        })?;
        let condemned = state.discard[index].0;
        let is_known = state.discarding.contains(index) == (condemned > 0);
        ensure(condemned <= frames && is_known, QUEUES, || {
            format!("{name} queue {index}: {condemned} of its {frames} frames are to be discarded")
        })?;
        Ok(frames)
    }

    /// Checks that the cells kept free for queues equal the unused parts of their reserves.
    fn check_guarantees<P: Packet>(&self, part: &Pipeline<P>) -> Check {
        let mut unused = 0;
        for port in part.own.iter() {
            for (index, queue) in
                part.ports[port].queues.iter().enumerate().filter(|(index, _)| self.reserves[*index] > 0)
            {
                let (depth, counted) = (queue.cells().0, part.buffer.reserves.depth(port, index).0);
                ensure(depth == counted, QUEUES, || {
                    let name = &self.ports[port].name;
                    format!("{name} queue {index}: {depth} cells, and {counted} are counted against its reserve")
                })?;
                unused += self.reserves[index] - depth.min(self.reserves[index]);
            }
        }
        let kept = part.buffer.reserves.unused_here().0;
        ensure(unused == kept, QUEUES, || {
            format!("lcore {}: {unused} cells of reserves are not used, and {kept} are kept free", part.lcore)
        })
    }

    /// Checks that every queued frame is charged. Charged cells that are in no queue belong to frames in a ring, whose
    /// content cannot be read. Each of these frames has at least one cell, and at most those of the longest frame.
    fn check_charges<P: Packet>(&self, fleet: &[Pipeline<P>], queued: &Charges) -> Check {
        for part in fleet {
            let mut crossing = 0;
            for (port, group) in part.own.iter().flat_map(|port| (0..CLASSES).map(move |group| (port, group))) {
                let made: u64 = fleet.iter().map(|other| other.buffer.releases.written(port, group)).sum();
                let (admitted, queued) = (part.ports[port].admitted[group], queued[port][group]);
                ensure(made + queued <= admitted, "never_underestimated", || {
                    let name = &self.ports[port].name;
                    format!("{name} group {group}: of {admitted} cells {made} are released and {queued} wait in queues")
                })?;
                crossing += admitted - made - queued;
            }
            let frames = part.frames_handed(fleet) as u64;
            ensure(frames <= crossing && crossing <= frames * u64::from(self.most), "never_underestimated", || {
                let lcore = part.lcore;
                format!(
                    "lcore {lcore}: {frames} frames from it are under way to other lcores, and {crossing} cells are \
                     charged for them"
                )
            })?;
        }
        Ok(())
    }

    /// Checks that the counters of ports never decrease.
    pub(crate) fn check_counters<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        for (index, audited) in self.ports.iter_mut().enumerate() {
            let counters = &fleet[audited.owner].telemetry.counters;
            let sum = |of: fn(&PortCounters) -> &PerClass| {
                counters.of_port(index).flat_map(of).map(Counter::get).sum::<u64>()
            };
            let drops = counters.of_port(index).flat_map(|port| port.drops.iter().flatten());
            let now = [
                sum(|port| &port.rx_frames),
                sum(|port| &port.rx_bytes),
                sum(|port| &port.tx_frames),
                sum(|port| &port.tx_bytes),
                drops.map(Counter::get).sum(),
            ];
            let before = std::mem::replace(&mut audited.counters, now);
            ensure(now.iter().zip(before).all(|(now, before)| *now >= before), "counters_monotonic", || {
                format!(
                    "{}: frames and bytes received and sent, and drops, were {before:?} and are {now:?}",
                    audited.name
                )
            })?;
        }
        Ok(())
    }
}
