//! Flood limits: how many frames to be flooded a port may receive, by kind. Their configuration is `storm_control`.

use crate::units::PacketRate;

/// Kinds of frames that are flooded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloodKind {
    /// Frames to ff-ff-ff-ff-ff-ff.
    Broadcast,
    /// Frames to other group addresses.
    Multicast,
    /// Frames to stations that the forwarding database does not know.
    Unknown,
}

impl FloodKind {
    /// Number of kinds.
    pub const COUNT: usize = Self::TABLE.len();
    /// Every kind with its key in the configuration, which is also its label in metrics.
    pub const TABLE: [(Self, &'static str); 3] =
        [(Self::Broadcast, "broadcast"), (Self::Multicast, "multicast"), (Self::Unknown, "unknown")];
}

/// The most frames a second that a port may receive to be flooded, by [`FloodKind`]; `None`: any number.
pub type FloodLimits = [Option<PacketRate>; FloodKind::COUNT];
