//! Input and output of a replay: frames, and the decision on each.

use crate::mmu::GroupState;
use crate::plan::drops::DropReason;
use crate::units::{Bytes, Cells};

/// A frame's ECN codepoint (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: WRED drops the frame if its class is lossy.
    NotEct,
    /// ECN-capable: WRED marks the frame.
    Ect0,
    /// ECN-capable, by the other codepoint.
    Ect1,
    /// Marked already: WRED changes nothing.
    Ce,
}

impl Ecn {
    /// Returns the spelling in traces and decisions.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }

    /// Whether WRED can mark a frame with this codepoint.
    #[must_use]
    pub fn is_ect(self) -> bool {
        matches!(self, Ecn::Ect0 | Ecn::Ect1)
    }
}

/// A frame in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Ingress port.
    pub port: usize,
    /// Traffic class.
    pub class: u8,
    /// Bytes in the buffer, without the frame check sequence.
    pub bytes: u16,
    /// Egress port.
    pub egress: usize,
    /// ECN codepoint: that of an arrival at its arrival, and that of a departure when it leaves, as far as marking is
    /// certain.
    pub ecn: Ecn,
}

/// The result for an event's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventResult {
    /// Admitted within the group's reserve.
    Reserve,
    /// Admitted within the group's and the port's reserves.
    PortReserve,
    /// Admitted to the shared pool, at least in part.
    Shared,
    /// Admitted to the headroom.
    Headroom,
    /// Refused by the buffer or by its queue.
    Dropped(DropReason),
    /// Departed: its cells are free.
    Released,
}

/// Cells by the part of the buffer that they belong to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// The group's reserve.
    pub reserve: Cells,
    /// The port's reserve.
    pub port_reserve: Cells,
    /// The shared pool.
    pub shared: Cells,
    /// The headroom, or with `dynamic` the port's insurance.
    pub headroom: Cells,
}

impl Split {
    /// Returns the cells that `more` holds beyond `less`.
    pub(crate) fn between(less: &Split, more: &Split) -> Split {
        let beyond = |part: fn(&Split) -> Cells| Cells(part(more).0.saturating_sub(part(less).0));
        Split {
            reserve: beyond(|split| split.reserve),
            port_reserve: beyond(|split| split.port_reserve),
            shared: beyond(|split| split.shared),
            headroom: beyond(|split| split.headroom),
        }
    }
}

impl From<GroupState> for Split {
    fn from(state: GroupState) -> Self {
        let GroupState { reserve, port_reserve, shared, headroom, .. } = state;
        Self { reserve, port_reserve, shared, headroom }
    }
}

/// The limits of a group: for an arrival those that decided it, for a departure those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The limit T on the group's share of its pool.
    pub threshold: Cells,
    /// More limits of a lossless group with [`crate::mmu::HeadroomPolicy::Dynamic`].
    pub dynamic: Option<DynamicLimits>,
}

/// Limits that Dynamic and Shared Headroom adds to the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicLimits {
    /// X_qoff: a group with a larger share is XOFF.
    pub group_xoff: Cells,
    /// X_poff: a frame that does not fit below it turns the port XOFF.
    pub port_xoff: Cells,
}

/// Cells that a port holds after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortUse {
    /// Cells of the port's reserve for groups of this kind, lossy or lossless.
    pub reserve: Cells,
    /// Cells of the pool in all groups of this kind.
    pub shared: Cells,
    /// Cells of the port's insurance.
    pub insurance: Cells,
    /// Whether the whole port is XOFF.
    pub is_xoff: bool,
}

/// Cells and bytes that a queue holds after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueUse {
    /// Cells that wait.
    pub cells: Cells,
    /// Bytes that wait.
    pub bytes: Bytes,
    /// Maximum number of cells that a lossy queue may hold: the limit that judged an arrival, or the current one if
    /// none did.
    pub threshold: Option<Cells>,
}

/// A change of a port's group to XOFF or XON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The port.
    pub port: usize,
    /// The priority group.
    pub group: usize,
    /// Whether the change is to XOFF; otherwise it is to XON.
    pub xoff: bool,
}

/// The decision on an event, and the state of the switch after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The frame that arrived or departed.
    pub frame: Frame,
    /// The result.
    pub outcome: EventResult,
    /// Number of cells of the frame.
    pub cells: Cells,
    /// Parts that the cells were charged to, or freed from at a departure; all zero for a drop.
    pub went: Split,
    /// Priority group at `frame.port`.
    pub group: usize,
    /// Queue at `frame.egress`.
    pub queue: usize,
    /// Whether the group, and so its pool, is lossless.
    pub lossless: bool,
    /// Limits that decided the event.
    pub limits: Limits,
    /// Cells that the group holds.
    pub held: Split,
    /// Whether the group is XOFF.
    pub is_xoff: bool,
    /// Cells that the ingress port holds.
    pub port: PortUse,
    /// Used cells of the group's pool.
    pub pool_used: Cells,
    /// Used cells of the headroom pool, if all lossless groups share one.
    pub headroom_pool_used: Option<Cells>,
    /// Cells and bytes in the queue.
    pub at_queue: QueueUse,
    /// Bytes that the wire of the egress port had yet to send. They are part of the depth for WRED.
    pub posted: Bytes,
    /// Probability, in parts of 2^32, that WRED marks the frame, if it can. For an arrival it uses the depth after it.
    /// For a departure it uses the depth including the departing frame, like the pipeline.
    pub marking: Option<u64>,
    /// Probability, in parts of 2^32, that WRED drops the frame, if WRED judged it: for an arrival that is not
    /// ECN-capable, by the depth before it.
    pub dropping: Option<u64>,
    /// Changes to XOFF and XON, in their order.
    pub transitions: Vec<Transition>,
}
