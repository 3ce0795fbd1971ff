//! Frames between the packet path and the router's control plane.
//!
//! A punted frame is a copy that an lcore gives to the control plane: it is for the switch itself, or it needs an
//! answer or a resolution. An injected frame is one that the control plane sends.

use crate::sets::CLASSES;

/// The reason why a frame is punted. Each has policers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PuntCause {
    /// ARP.
    Arp,
    /// IPv6 neighbour and router discovery.
    NeighbourDiscovery,
    /// ICMP or ICMPv6 to an own address.
    Icmp,
    /// BGP.
    Bgp,
    /// BFD.
    Bfd,
    /// LLDP.
    Lldp,
    /// LACP and its markers.
    Lacp,
    /// Own probe of the loop guard.
    LoopProbe,
    /// Any other packet to an own address or to a group of routers.
    Local,
    /// The MAC address of the next hop is not known. A lossy packet may wait for it.
    Resolve,
    /// The time to live ended here: the sender gets an ICMP error.
    TimeExceeded,
    /// No route leads to the destination: the sender gets an ICMP error.
    Unreachable,
    /// The packet is longer than the MTU: the sender gets an ICMP error.
    TooBig,
}

impl PuntCause {
    /// Number of causes.
    pub const COUNT: usize = Self::TABLE.len();

    /// Every cause with its label in metrics, and its rate in packets a second: of LLDP, LACP and probes at each port,
    /// else of each lcore.
    ///
    /// The rates follow SONiC's control plane policing in their order of magnitude (600 to 6,000 packets a second).
    /// Errors are rarer: RFC 4443 section 2.4 wants them limited, and each may trigger work in a host. An LLDP agent
    /// sends five frames at once and then one a second (802.1AB clause 9.2.5.17); a port may have eight agents. A slow
    /// protocol sends at most ten frames in a second (802.3 annex 57A). A segment with three own ports, whose trunks
    /// probe 16 VLANs a second, gives each port 32 probes a second.
    pub const TABLE: &[(PuntCause, &'static str, u32)] = &[
        (Self::Arp, "arp", 1_000),
        (Self::NeighbourDiscovery, "neighbour_discovery", 1_000),
        (Self::Icmp, "icmp", 1_000),
        (Self::Bgp, "bgp", 6_000),
        (Self::Bfd, "bfd", 6_000),
        (Self::Lldp, "lldp", 20),
        (Self::Lacp, "lacp", 20),
        (Self::LoopProbe, "loop_probe", 50),
        (Self::Local, "local", 600),
        (Self::Resolve, "resolve", 600),
        (Self::TimeExceeded, "time_exceeded", 500),
        (Self::Unreachable, "unreachable", 200),
        (Self::TooBig, "too_big", 500),
    ];

    /// Label in metrics and JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }
}

/// A copy of a received frame for the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PuntFrame {
    /// The frame as it was received.
    pub bytes: Vec<u8>,
    /// Ingress port.
    pub port: u8,
    /// VLAN of the frame inside the switch: it names the router interface.
    pub vlan: u16,
    /// Offset of the network header.
    pub l3_offset: u8,
    /// The reason.
    pub cause: PuntCause,
    /// Whether the frame may wait for its next hop's MAC address; never true for a lossless frame.
    pub may_wait: bool,
}

/// The way by which an injected frame leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectTo {
    /// A routed port.
    Port(u8),
    /// The link of a port: the frame leaves as it is, whatever the VLANs of the port.
    Link(u8),
    /// The ports of a bridged VLAN: the one that leads to the destination's station, or all.
    Vlan(u16),
}

/// A frame that the control plane sends. It has no VLAN tag; the egress port adds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectFrame {
    /// The frame from its destination address on.
    pub bytes: Vec<u8>,
    /// Its way.
    pub to: InjectTo,
    /// VLAN of the frame inside the switch.
    pub vlan: u16,
}

/// Classes in the order in which injected frames prefer them; the first lossy one is taken. Class 6 is that of network
/// control (DSCP CS6).
pub const INJECT_CLASSES: [u8; CLASSES] = [6, 7, 5, 4, 2, 1, 0, 3];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punt_cause_table_is_indexed_by_the_cause() {
        for (index, (cause, label, rate)) in PuntCause::TABLE.iter().enumerate() {
            assert_eq!((*cause as usize, cause.label()), (index, *label));
            assert!(*rate > 0);
        }
    }
}
