//! Drop reasons: every place that drops frames has its own reason, counter and sentence.
//!
//! To add one: a line at the end of the list below, and the other steps of docs/extending.md.

use crate::mmu::{QueueRefusal, Refusal};
use crate::wire::ParseError;

macro_rules! drop_reasons {
    ($($variant:ident => $label:literal, $meaning:literal;)+) => {
        /// A reason to drop a frame.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason { $(#[doc = $meaning] $variant),+ }

        impl DropReason {
            /// Every reason with its label in metrics and JSON, and its meaning.
            pub const TABLE: &[(DropReason, &str, &str)] = &[$((DropReason::$variant, $label, $meaning)),+];
        }
    };
}

drop_reasons! {
    Truncated => "truncated", "the frame ends inside its Ethernet header or a VLAN tag";
    Oversize => "oversize", "the frame is longer than the port's MTU allows";
    Ipv4Truncated => "ipv4_truncated", "the frame ends inside the IPv4 header or before the packet's total length";
    Ipv4Malformed => "ipv4_malformed", "an invalid IPv4 version, header length or total length";
    Ipv6Truncated => "ipv6_truncated", "the frame ends inside the IPv6 header or before its payload length";
    Ipv6Malformed => "ipv6_malformed", "an invalid IPv6 version";
    L4Truncated => "l4_truncated", "the packet ends inside its UDP, TCP or IPv6 extension header; bridged packets with `filter` only";
    L4Malformed => "l4_malformed", "an invalid UDP length or TCP header length; bridged packets with `filter` only";
    MacControl => "mac_control", "a MAC control frame that is neither PFC nor PAUSE, or too short to be either";
    SourceInvalid => "source_invalid", "a source address that is zero or a group address";
    LinkLocal => "link_local", "a destination that bridges must not relay (01-80-C2-00-00-0x)";
    VlanNotAllowed => "vlan_not_allowed", "a VLAN that the receiving port does not carry";
    SamePort => "same_port", "the destination is behind the port the frame came from";
    NoMember => "no_member", "no other port in the VLAN to flood to";
    LosslessUnknown => "lossless_unknown", "a lossless frame to an address not in the forwarding database: never flooded";
    LosslessGroup => "lossless_group", "a lossless broadcast or multicast frame: never flooded";
    EgressMtu => "egress_mtu", "the frame is longer than the MTU of its egress port";
    EgressDown => "egress_down", "the egress port has no link";
    Shutdown => "shutdown", "the frame was still queued when the switch stopped";
    HeadroomFull => "headroom_full", "a lossless group's headroom is full: its peer did not stop in time, or eta is too small";
    HeadroomPoolEmpty => "headroom_pool_empty", "the shared headroom pool is empty: its over-subscription is too high";
    Threshold => "threshold", "the ingress group's threshold in the lossy pool";
    PoolEmpty => "pool_empty", "the lossy pool is empty";
    QueueThreshold => "queue_threshold", "the egress queue's threshold in the lossy pool";
    Wred => "wred", "early drop of a frame that is not ECN-capable";
    Watchdog => "watchdog", "the watchdog drops a priority that its peer has paused for too long";
    NoBuffer => "no_buffer", "no packet buffer for a flooded copy, or no room in front of the frame for a tag";
    EgressStuck => "egress_stuck", "the egress port is stuck: its device takes no frames";
    PfcDestination => "pfc_destination", "a PFC frame whose destination is not 01-80-C2-00-00-01: it is not obeyed";
    Shed => "shed", "a lossy frame dropped at the receive ring, because its lcore is overloaded";
    PuntPoliced => "punt_policed", "a frame for the switch itself beyond the rate of its protocol";
    StormBroadcast => "storm_broadcast", "a broadcast frame beyond the limit of its port (`storm_control`)";
    StormMulticast => "storm_multicast", "a multicast frame beyond the limit of its port (`storm_control`)";
    StormUnknown => "storm_unknown", "a frame to an unknown station beyond the limit of its port (`storm_control`)";
    LoopBlocked => "loop_blocked", "a frame from or to a port that the loop guard has blocked";
    LagInactive => "lag_inactive", "a frame received by a member of a link aggregation group that is not active";
    MirrorOutput => "mirror_output", "a frame received by a port that sends copies only (`mirrors`)";
    Bpdu => "bpdu", "a frame of spanning tree, which this switch does not have";
    Ipv4Checksum => "ipv4_checksum", "a packet to be routed whose IPv4 header checksum is wrong";
    Ipv4Options => "ipv4_options", "a packet to be routed with IPv4 options: no router here processes them";
    TtlExpired => "ttl_expired", "a packet to be routed whose time to live or hop limit ends here";
    Martian => "martian", "a packet to be routed with a source or destination that no host may have";
    OwnSource => "own_source", "a source address that belongs to the switch itself";
    NoRoute => "no_route", "no route covers the packet's destination";
    Blackhole => "blackhole", "a route that drops covers the packet's destination";
    NeighbourIncomplete => "neighbour_incomplete", "the MAC address or the port of the next hop is not known";
    FragmentationNeeded => "fragmentation_needed", "a packet that must not be fragmented is longer than the interface's MTU";
    FragmentationUnsupported => "fragmentation_unsupported", "a packet is longer than the interface's MTU: the switch fragments none";
    NotRoutable => "not_routable", "a frame to the router's address that is neither IP nor ARP";
    AdminDown => "admin_down", "received by a port or router interface that is shut, or for such a port";
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::TABLE.len();

    /// Label in metrics and JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// Whether the frame was lost for lack of buffer or time. A lossless class must never lose frames in this way.
    #[must_use]
    pub fn is_congestion(self) -> bool {
        matches!(
            self,
            Self::HeadroomFull
                | Self::HeadroomPoolEmpty
                | Self::Threshold
                | Self::PoolEmpty
                | Self::QueueThreshold
                | Self::Wred
                | Self::NoBuffer
                | Self::Shed
        )
    }

    /// Whether only a switch that routes drops frames for this reason.
    #[must_use]
    pub fn is_of_routing(self) -> bool {
        matches!(
            self,
            Self::Ipv4Checksum
                | Self::Ipv4Options
                | Self::TtlExpired
                | Self::Martian
                | Self::OwnSource
                | Self::NoRoute
                | Self::Blackhole
                | Self::NeighbourIncomplete
                | Self::FragmentationNeeded
                | Self::FragmentationUnsupported
                | Self::NotRoutable
        )
    }
}

/// One value for each drop reason, indexed by `reason as usize`. The standard library has defaults for at most 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerReason<T>(pub [T; DropReason::COUNT]);

impl<T: Default> Default for PerReason<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

impl<T> std::ops::Deref for PerReason<T> {
    type Target = [T; DropReason::COUNT];

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> std::ops::DerefMut for PerReason<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<'a, T> IntoIterator for &'a PerReason<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl From<Refusal> for DropReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::HeadroomFull => Self::HeadroomFull,
            Refusal::HeadroomPoolEmpty => Self::HeadroomPoolEmpty,
            Refusal::Threshold => Self::Threshold,
            Refusal::PoolEmpty => Self::PoolEmpty,
        }
    }
}

impl From<QueueRefusal> for DropReason {
    fn from(refusal: QueueRefusal) -> Self {
        match refusal {
            QueueRefusal::OverLimit => Self::QueueThreshold,
            QueueRefusal::Wred => Self::Wred,
        }
    }
}

impl From<ParseError> for DropReason {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Truncated => Self::Truncated,
            ParseError::Ipv4Truncated => Self::Ipv4Truncated,
            ParseError::Ipv4Malformed => Self::Ipv4Malformed,
            ParseError::Ipv6Truncated => Self::Ipv6Truncated,
            ParseError::Ipv6Malformed => Self::Ipv6Malformed,
            ParseError::L4Truncated => Self::L4Truncated,
            ParseError::L4Malformed => Self::L4Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_indexed_by_the_reason_and_labels_are_unique() {
        for (index, (reason, label, _)) in DropReason::TABLE.iter().enumerate() {
            assert_eq!(*reason as usize, index);
            assert_eq!(reason.label(), *label);
            assert_eq!(DropReason::TABLE.iter().filter(|row| row.1 == *label).count(), 1, "{label}");
        }
    }
}
