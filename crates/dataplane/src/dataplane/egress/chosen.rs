//! The frames chosen for one burst: how many, and to which priority groups they are charged.

use arrayvec::ArrayVec;

use crate::dataplane::buffer::Buffer;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::run::{BurstSum, Run};
use crate::plan::counters::PortCounters;
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet};
use crate::units::{Bytes, Cells};

/// Consecutive frames of a burst that are charged to one priority group.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChargedRun {
    /// A frame of the run, for its ingress port and group.
    pub desc: FrameDesc,
    pub cells: Cells,
}

/// The frames chosen for one burst.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The frames that met congestion, by their index in the burst.
    pub congested: FrameSet,
    /// Their number by queue.
    pub marked: [u32; CLASSES],
    /// Queues of the chosen frames.
    pub queues: ClassSet,
    /// Bytes that the wire has to send before these frames, and before the next one.
    pub posted: Bytes,
    pub ahead: Bytes,
    /// Sums of the chosen frames by queue.
    pub sums: [BurstSum; CLASSES],
    /// The charges of the chosen frames, in their order.
    pub runs: ArrayVec<ChargedRun, BURST>,
}

impl Chosen {
    /// Begins a burst before which the wire has to send `posted`.
    #[inline]
    pub fn begin(&mut self, posted: Bytes) {
        (self.posted, self.ahead) = (posted, posted);
    }

    /// Adds `run` of `queue`.
    #[inline]
    pub fn add(&mut self, queue: usize, run: Run) {
        self.sums[queue].add_run(run);
        self.ahead += run.bytes();
        self.queues.insert(queue);
    }

    /// Adds the charges of the frames `descs`, which are `run`.
    #[inline]
    pub fn charge(&mut self, descs: &[FrameDesc], run: Run, is_one_charge: bool) {
        match descs.first() {
            Some(&desc) if is_one_charge => self.runs.push(ChargedRun { desc, cells: run.cells() }),
            _ => self.charge_each(descs),
        }
    }

    /// Adds the charges of frames in runs of one group: consecutive stores to one address would each wait for the one
    /// before.
    #[inline(never)]
    fn charge_each(&mut self, descs: &[FrameDesc]) {
        for run in descs.chunk_by(|one, next| one.is_charged_like(*next)) {
            self.runs.push(ChargedRun { desc: run[0], cells: run.iter().map(|desc| desc.cells()).sum() });
        }
    }

    /// Releases the cells of all chosen frames.
    #[inline]
    pub fn release(&self, buffer: &mut Buffer) {
        for charged in &self.runs {
            let (ingress, group, _) = charged.desc.charge();
            buffer.releases.release(ingress, group, charged.cells);
        }
    }

    /// Counts the frames that met congestion as marked.
    #[inline]
    pub fn count_marked(&self, counters: &PortCounters) {
        for queue in self.queues.iter() {
            counters.ecn_marked[queue].add(self.marked[queue].into());
        }
    }

    /// Counts the chosen frames as sent.
    #[inline]
    pub fn count(&self, counters: &PortCounters) {
        for queue in self.queues.iter() {
            counters.tx_frames[queue].add(self.sums[queue].frames());
            counters.tx_bytes[queue].add(self.sums[queue].bytes().0);
        }
    }
}
