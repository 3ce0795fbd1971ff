//! What goes into a replay and what comes out: frames, and what was decided of each.

use crate::dataplane::drops::DropReason;
use crate::mmu::GroupState;
use crate::units::{Bytes, Cells};

/// A frame's ECN codepoint (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// Not capable: WRED drops it, where its class may lose.
    NotEct,
    /// Capable: WRED marks it.
    Ect0,
    /// Capable, by the other codepoint.
    Ect1,
    /// Marked: WRED has nothing to add.
    Ce,
}

impl Ecn {
    /// As traces and decisions spell it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }

    /// Whether WRED can mark it.
    #[must_use]
    pub fn is_ect(self) -> bool {
        matches!(self, Ecn::Ect0 | Ecn::Ect1)
    }
}

/// A frame, as a trace knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Port it came in by.
    pub port: usize,
    /// Its traffic class.
    pub class: u8,
    /// Its bytes in the buffer, without the frame check sequence.
    pub bytes: u16,
    /// Port it leaves by.
    pub egress: usize,
    /// Its codepoint: of an arrival as it came, of a departure as it leaves, as far as that is certain.
    pub ecn: Ecn,
}

/// What became of an event's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Admitted within the group's guarantee.
    Reserve,
    /// Admitted within the group's and the port's guarantees.
    PortReserve,
    /// Admitted to the shared pool, at least in part.
    Shared,
    /// Admitted to the headroom.
    Headroom,
    /// Not admitted, or refused by its queue.
    Dropped(DropReason),
    /// Departed: its cells are free.
    Released,
}

/// Cells by what they are of.
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
    /// What `more` holds beyond `less`.
    pub(super) fn between(less: &Split, more: &Split) -> Split {
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

/// The limits that go with a group: those that an arrival was judged by, those there are after a departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// T: on the group's share of its pool.
    pub threshold: Cells,
    /// Of a lossless group with [`crate::mmu::HeadroomPolicy::Dynamic`].
    pub dynamic: Option<DynamicLimits>,
}

/// What Dynamic and Shared Headroom adds to the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicLimits {
    /// X_qoff: beyond this share the group is XOFF.
    pub group_xoff: Cells,
    /// X_poff: what does not fit below it turns the port XOFF.
    pub port_xoff: Cells,
}

/// What a port holds, after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortUse {
    /// Cells of the port's reserve for groups of this kind, lossy or lossless.
    pub reserve: Cells,
    /// Cells of the pool in all groups of this kind.
    pub shared: Cells,
    /// Cells of the port's insurance.
    pub insurance: Cells,
    /// The whole port is XOFF.
    pub is_xoff: bool,
}

/// What a queue holds, after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueUse {
    /// Cells that wait.
    pub cells: Cells,
    /// Bytes that wait.
    pub bytes: Bytes,
    /// For a lossy queue: the most cells it may hold, as an arrival was judged by, or as it is now if none was.
    pub threshold: Option<Cells>,
}

/// A group of a port whose sender was told to stop, or to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The port.
    pub port: usize,
    /// Its priority group.
    pub group: usize,
    /// XOFF; otherwise XON.
    pub xoff: bool,
}

/// An event decided, and what the switch looks like after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The frame that came, or the one that left.
    pub frame: Frame,
    /// What became of it.
    pub outcome: Outcome,
    /// Cells it takes.
    pub cells: Cells,
    /// Where they went, or for a departure where as many were freed; nothing for a drop.
    pub went: Split,
    /// Its priority group at `frame.port`.
    pub group: usize,
    /// Its queue at `frame.egress`.
    pub queue: usize,
    /// Whether the group is lossless, and so its pool.
    pub lossless: bool,
    /// What it was judged by.
    pub limits: Limits,
    /// What the group holds.
    pub held: Split,
    /// Whether the group's sender is to stop.
    pub is_xoff: bool,
    /// What its port holds.
    pub port: PortUse,
    /// Cells in use of the group's pool.
    pub pool_used: Cells,
    /// Cells in use of the headroom that all lossless groups share, if they do.
    pub headroom_pool_used: Option<Cells>,
    /// What its queue holds.
    pub at_queue: QueueUse,
    /// Probability in parts of 2^32 that WRED marks the frame, if it can: for an arrival by the depth after it, for a
    /// departure by the depth with the frame that leaves, which is how the pipeline marks.
    pub marking: Option<u64>,
    /// Probability in parts of 2^32 that WRED drops the frame, if it was judged by it: of an arrival that is not
    /// ECN-capable, by the depth before it.
    pub dropping: Option<u64>,
    /// Who was told to stop or to go on, in this order.
    pub transitions: Vec<Transition>,
}
