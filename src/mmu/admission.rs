//! What becomes of a packet at the buffer's door.

/// Where a packet was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Within the group's guarantee.
    Reserve,
    /// Within the group's and the port's guarantees.
    PortReserve,
    /// In the shared pool, at least in part.
    Shared,
    /// In the headroom: the group, or with Dynamic and Shared Headroom its port, is XOFF.
    Headroom,
    /// Not admitted, for this reason.
    Refused(Refusal),
}

impl Admission {
    /// Whether guarantees alone hold the packet, so that nobody else's limit can have a say.
    #[inline]
    #[must_use]
    pub fn is_guaranteed(self) -> bool {
        matches!(self, Admission::Reserve | Admission::PortReserve)
    }
}

/// Which limit refused a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A lossless group's headroom is full, or its port's insurance: the peer did not stop in time, or eta is too small.
    HeadroomFull,
    /// The switch's headroom pool is empty, though the group's own cap would allow it: too much over-subscription.
    HeadroomPoolEmpty,
    /// The group's threshold.
    Threshold,
    /// The pool is empty, though the threshold would allow it.
    PoolEmpty,
}
