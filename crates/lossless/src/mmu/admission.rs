//! The result of buffer admission for one packet.

/// The part of the buffer that a packet was charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Within the group's reserve.
    Reserve,
    /// Within the reserves of the group and its port.
    PortReserve,
    /// In the shared pool, at least in part.
    Shared,
    /// In the headroom: the group is XOFF. With Dynamic and Shared Headroom its port is XOFF.
    Headroom,
    /// Not admitted, for this reason.
    Refused(Refusal),
}

impl Admission {
    /// Whether reserves alone hold the packet, so that no limit of another group can affect it.
    #[inline]
    #[must_use]
    pub fn is_guaranteed(self) -> bool {
        matches!(self, Admission::Reserve | Admission::PortReserve)
    }
}

/// The limit that refused a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A lossless group's headroom, or its port's insurance, is full: the peer did not stop in time, or eta is too
    /// small.
    HeadroomFull,
    /// The switch's headroom pool is empty, though the group's own cap would allow the packet: over-subscription is too
    /// high.
    HeadroomPoolEmpty,
    /// The group's share would exceed its threshold.
    Threshold,
    /// The pool is empty, though the threshold would allow the packet.
    PoolEmpty,
}
