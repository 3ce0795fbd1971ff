//! What an observer between two polls may ask of an lcore: the simulator's samples.

use super::pipeline::Pipeline;
use crate::mmu::Lease;
use crate::packet::Packet;
use crate::units::{Cells, Ticks};

/// One class of a port: the egress queue and the ingress priority group of that number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ClassView {
    /// Bytes that wait in the queue.
    pub queue_bytes: u64,
    /// Cells that wait in it.
    pub queue_cells: u32,
    /// Frames that wait in it.
    pub queue_frames: u32,
    /// Cells of the group in the shared pool.
    pub shared: Cells,
    /// Cells of the group in the reserves and in the shared pool.
    pub used: Cells,
    /// Cells of the group in headroom, or with dynamic headroom in the port's insurance.
    pub headroom: Cells,
    /// T: what the group may hold of its pool now.
    pub threshold: Cells,
    /// The group's senders are to stop, by the ledger or by the receive backlog; whether PFC tells them is the port's mode.
    pub is_xoff: bool,
}

impl<P: Packet> Pipeline<P> {
    /// Whether `port` is one of this lcore's.
    #[must_use]
    pub fn owns(&self, port: usize) -> bool {
        self.own.contains(port)
    }

    /// How queue `class` and group `class` of `port`, one of its own, stand.
    ///
    /// # Panics
    /// If there is no such port or class.
    #[must_use]
    pub fn view(&self, port: usize, class: usize) -> ClassView {
        debug_assert!(self.owns(port), "of another lcore's port this one knows nothing");
        let state = &self.ports[port];
        let (queue, group) = (&state.queues[class], state.ledger.group(class));
        ClassView {
            queue_bytes: queue.bytes(),
            queue_cells: queue.cells(),
            queue_frames: queue.frames(),
            shared: group.shared,
            used: group.used(),
            headroom: group.headroom,
            threshold: state.ledger.threshold(class, &self.buffer.pools),
            is_xoff: state.wants_xoff() >> class & 1 == 1,
        }
    }

    /// Cells in use of the shared pools of a whole switch, lossy and lossless, by the ledgers of all its lcores: exact.
    #[must_use]
    pub fn pool_used(fleet: &[Self]) -> [Cells; 2] {
        [0, 1].map(|kind| Cells(fleet.iter().map(|part| part.buffer.pools.shared[kind].used().0).sum()))
    }

    /// Frames on their way from one lcore of a switch to another.
    #[must_use]
    pub fn crossing_frames(fleet: &[Self]) -> usize {
        super::audit::frames_in_rings(fleet)
    }

    /// Most cells of the shared pools that were ever in use when this lcore took some: lossy, lossless.
    #[must_use]
    pub fn pool_used_highest(&self) -> [Cells; 2] {
        self.buffer.pools.shared.each_ref().map(Lease::used_highest)
    }

    /// Queues of `port`, one of its own, that may not send at `now`: paused by its peer, and not ignored by the watchdog.
    #[must_use]
    pub fn stopped_queues(&self, port: usize, now: Ticks) -> u8 {
        self.ports[port].stopped_queues_at(now)
    }

    /// Queues of `port`, one of its own, whose pauses the watchdog has made it ignore.
    #[must_use]
    pub fn ignoring(&self, port: usize) -> u8 {
        self.ports[port].ignoring()
    }

    /// Priorities that `port`, one of its own, tells its peer not to send; a frame with the last change may still be due.
    #[must_use]
    pub fn generated_xoff(&self, port: usize) -> u8 {
        self.ports[port].generator.xoff()
    }
}
