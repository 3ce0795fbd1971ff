//! A copy of a frame, as an lcore gives it to the thread that exports copies.

use super::spec::{CopyCause, SessionSet};
use crate::plan::exception::{Buffered, UNUSED};
use crate::units::{Cells, Ticks};

/// State of the priority group to which a frame is charged, before the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupState {
    /// The group, at the ingress port.
    pub group: u8,
    /// Cells that it holds: reserve, shared and headroom.
    pub held: Cells,
    /// Those of them in the shared pool: its share.
    pub shared: Cells,
    /// Limit of its share of the shared pool.
    pub limit: Cells,
    /// Free cells of the pool.
    pub pool_free: Cells,
    /// Free headroom of a lossless group; zero for a lossy one.
    pub headroom_left: Cells,
}

/// State of an egress queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// Number of the queue at the egress port.
    pub queue: u8,
    /// Its depth, with the frame if it was queued or was refused by the queue; `None`: another lcore owns the queue.
    pub depth: Option<Cells>,
    /// Limit of the depth that refused the frame; `None`: there is none, or it was not consulted.
    pub limit: Option<Cells>,
}

/// A copy of a frame, with the state of the switch at the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFrame {
    /// The first bytes of the frame, from its destination address on. A sampled frame is as it was received. A dropped
    /// or marked one is as it was then: rewritten for its egress port, if it had come so far.
    pub bytes: Vec<u8>,
    /// Length of the frame.
    pub len: u16,
    /// The event.
    pub cause: CopyCause,
    /// Sessions that want the copy.
    pub sessions: SessionSet,
    /// [`super::spec::MirrorSpec::id`] of these sessions.
    pub spec_id: u32,
    /// Beginning of the poll, by the lcore's clock.
    pub at: Ticks,
    /// Port that received the frame.
    pub ingress: u8,
    /// Port that it was to leave by; `None`: it has not been decided, or several.
    pub egress: Option<u8>,
    /// VLAN inside the switch; `None`: not known any more.
    pub vlan: Option<u16>,
    /// Traffic class; `None`: the frame has none, as it is malformed.
    pub class: Option<u8>,
    /// State of its priority group; `None`: not consulted, or another lcore owns it.
    pub group: Option<GroupState>,
    /// State of its queue; `None`: the frame never reached one.
    pub queue: Option<QueueState>,
}

impl Buffered for CopyFrame {
    fn with_room(longest: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(longest),
            len: 0,
            cause: CopyCause::Sampled,
            sessions: SessionSet::default(),
            spec_id: 0,
            at: Ticks(0),
            ingress: UNUSED,
            egress: None,
            vlan: None,
            class: None,
            group: None,
            queue: None,
        }
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn ingress_mut(&mut self) -> &mut u8 {
        &mut self.ingress
    }
}
