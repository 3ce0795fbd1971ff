//! Reasons of dropped frames as sFlow numbers them ("sFlow Dropped Packet Notification Structures", sflow.org, whose
//! list is kept in `src/sflow_drop.h` of sflowtool).
//!
//! The list follows RFC 792, the traps of devlink (Documentation/networking/devlink/devlink-trap.rst of Linux) and the
//! reasons of Linux's own drops (include/net/dropreason-core.h). A record of devlink's trap has the exact reason.

use crate::plan::DropReason;

/// A reason of sFlow's list, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum DropCode {
    /// ICMP: fragmentation is needed, and the packet must not be fragmented.
    FragNeeded = 4,
    /// ICMP: no route.
    DstNetUnknown = 6,
    /// The time to live has ended.
    TtlExceeded = 257,
    /// Buffer is lacking: tail drop.
    NoBufferSpace = 259,
    /// Early drop.
    Red = 260,
    /// Beyond a rate.
    TrafficShaping = 261,
    /// Longer than the MTU.
    PktTooBig = 262,
    /// The source address is no station's.
    SrcMacIsMulticast = 263,
    /// The receiving port does not carry the VLAN.
    IngressVlanFilter = 265,
    /// The state of the receiving port.
    IngressSpanningTreeFilter = 266,
    /// No port to flood to.
    PortListIsEmpty = 267,
    /// The egress port is the ingress port.
    PortLoopbackFilter = 268,
    /// A route that drops.
    BlackholeRoute = 269,
    /// A packet to be routed that is not IP.
    NonIp = 270,
    /// An IP header that is corrupt.
    IpHeaderCorrupted = 275,
    /// The next hop has no known address.
    UnresolvedNeigh = 279,
    /// Another reason of bridging.
    UnknownL2 = 284,
    /// Another reason of routing.
    UnknownL3 = 285,
    /// Another reason of the buffer.
    UnknownBuffer = 287,
    /// Another reason of the transport header.
    UnknownL4 = 289,
    /// A destination that bridges do not relay.
    DmacIsReserved = 294,
    /// A destination that is not accepted.
    DmacFilter = 305,
    /// The IP header cannot be parsed.
    Ip1Parsing = 313,
    /// Too short.
    PktTooSmall = 324,
    /// A protocol that is not supported.
    UnhandledProto = 325,
    /// The device is not ready.
    DevReady = 331,
    /// The CPU cannot keep up.
    CpuBacklog = 368,
}

impl From<DropReason> for DropCode {
    fn from(reason: DropReason) -> Self {
        use DropReason as R;
        match reason {
            R::Truncated => Self::PktTooSmall,
            R::Oversize | R::EgressMtu | R::FragmentationUnsupported => Self::PktTooBig,
            R::Ipv4Truncated | R::Ipv4Malformed | R::Ipv6Truncated | R::Ipv6Malformed => Self::Ip1Parsing,
            R::L4Truncated | R::L4Malformed => Self::UnknownL4,
            R::MacControl | R::Bpdu => Self::UnhandledProto,
            R::SourceInvalid => Self::SrcMacIsMulticast,
            R::LinkLocal => Self::DmacIsReserved,
            R::VlanNotAllowed | R::MirrorOutput => Self::IngressVlanFilter,
            R::SamePort => Self::PortLoopbackFilter,
            R::NoMember => Self::PortListIsEmpty,
            R::LosslessUnknown | R::LosslessGroup => Self::UnknownL2,
            R::EgressDown | R::EgressStuck | R::Shutdown | R::LagInactive | R::AdminDown => Self::DevReady,
            R::HeadroomFull | R::HeadroomPoolEmpty | R::Threshold | R::PoolEmpty | R::QueueThreshold => {
                Self::NoBufferSpace
            }
            R::NoBuffer => Self::NoBufferSpace,
            R::Wred => Self::Red,
            R::Watchdog => Self::UnknownBuffer,
            R::PfcDestination => Self::DmacFilter,
            R::Shed => Self::CpuBacklog,
            R::PuntPoliced | R::StormBroadcast | R::StormMulticast | R::StormUnknown => Self::TrafficShaping,
            R::LoopBlocked => Self::IngressSpanningTreeFilter,
            R::Ipv4Checksum => Self::IpHeaderCorrupted,
            R::Ipv4Options | R::Martian | R::OwnSource => Self::UnknownL3,
            R::TtlExpired => Self::TtlExceeded,
            R::NoRoute => Self::DstNetUnknown,
            R::Blackhole => Self::BlackholeRoute,
            R::NeighbourIncomplete => Self::UnresolvedNeigh,
            R::FragmentationNeeded => Self::FragNeeded,
            R::NotRoutable => Self::NonIp,
        }
    }
}

/// The direction of a port whose counters have the frames of `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Received frames that are malformed.
    InErrors,
    /// Received frames that are well-formed.
    InDiscards,
    /// Frames that were to leave.
    OutDiscards,
}

impl From<DropReason> for Side {
    fn from(reason: DropReason) -> Self {
        use DropReason as R;
        match reason {
            R::Truncated | R::Oversize | R::Ipv4Truncated | R::Ipv4Malformed | R::Ipv6Truncated => Self::InErrors,
            R::Ipv6Malformed | R::L4Truncated | R::L4Malformed | R::Ipv4Checksum => Self::InErrors,
            R::EgressMtu | R::EgressDown | R::EgressStuck | R::Shutdown => Self::OutDiscards,
            R::QueueThreshold | R::Wred | R::Watchdog => Self::OutDiscards,
            R::MacControl | R::SourceInvalid | R::LinkLocal | R::VlanNotAllowed | R::SamePort => Self::InDiscards,
            R::NoMember | R::LosslessUnknown | R::LosslessGroup | R::PfcDestination => Self::InDiscards,
            R::HeadroomFull | R::HeadroomPoolEmpty | R::Threshold | R::PoolEmpty | R::NoBuffer => Self::InDiscards,
            R::Shed | R::PuntPoliced | R::StormBroadcast | R::StormMulticast | R::StormUnknown => Self::InDiscards,
            R::LoopBlocked | R::LagInactive | R::MirrorOutput | R::Bpdu | R::AdminDown => Self::InDiscards,
            R::Ipv4Options | R::TtlExpired | R::Martian | R::OwnSource | R::NoRoute | R::Blackhole => Self::InDiscards,
            R::NeighbourIncomplete | R::FragmentationNeeded | R::FragmentationUnsupported => Self::InDiscards,
            R::NotRoutable => Self::InDiscards,
        }
    }
}
