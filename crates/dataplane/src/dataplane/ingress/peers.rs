//! Peers of routing protocols: those from which the router expects BGP and BFD. Packets of others have small policers
//! of their own, so that strangers delay no session.
//!
//! The daemons own the sessions, so this rule asks for no more than each session fulfils: a session that it misjudged
//! would still have the rate of strangers.

use crate::route::{Action, Adjacency, FoundGroup, RouteTable};
use crate::wire::ip::{self, Ipv4, Ipv6};
use crate::wire::parse::{L3, UDP};

/// BGP (RFC 4271).
pub(super) const BGP_PORT: u16 = 179;
/// BFD over one hop and its echo (RFC 5881), and over several (RFC 5883).
pub(super) const BFD_PORT: u16 = 3784;
pub(super) const BFD_ECHO_PORT: u16 = 3785;
pub(super) const BFD_MULTIHOP_PORT: u16 = 4784;

/// Sender of a packet, as far as the packet tells.
struct Sender {
    /// Group of the route to it; `None`: it has a link-local address, which only a host of the link can use.
    group: Option<FoundGroup>,
    /// Time to live or hop limit.
    hops: u8,
    /// Destination port if the packet is UDP, else 0.
    udp_port: u16,
}

impl Sender {
    /// Reads the sender of `packet`, and looks up its route.
    fn read(table: &RouteTable, packet: &[u8], l3: L3) -> Option<Self> {
        let mut groups = [FoundGroup::default()];
        let (group, hops, protocol, ports) = match l3 {
            L3::V4 => {
                let ipv4 = Ipv4::read(packet)?;
                table.fib.lookup_v4(&[ipv4.src], &mut groups);
                let group = (!ip::is_link_local_v4(ipv4.src)).then_some(groups[0]);
                (group, ipv4.ttl, ipv4.protocol, ipv4.ports(packet))
            }
            L3::V6 => {
                let ipv6 = Ipv6::read(packet)?;
                table.fib.lookup_v6(&[ipv6.src], &mut groups);
                let group = (!ip::is_link_local_v6(ipv6.src)).then_some(groups[0]);
                (group, ipv6.hop_limit, ipv6.next_header, ipv6.ports(packet))
            }
            L3::Other => return None,
        };
        Some(Self { group, hops, udp_port: if protocol == UDP { ports as u16 } else { 0 } })
    }

    /// Whether the packet has passed no router that its protocol forbids.
    fn is_near(&self) -> bool {
        match self.udp_port {
            // RFC 5881 section 5: "All received BFD Control packets that are demultiplexed to the session MUST be
            // discarded if the received TTL or Hop Limit is not equal to 255."
            BFD_PORT => self.hops == 255,
            // The peer has sent an echo back, as a router.
            BFD_ECHO_PORT => self.hops >= 254,
            _ => true,
        }
    }
}

/// Whether a packet of BGP or BFD, received in `vlan`, is of a peer: a route leads to its sender by a neighbour whose
/// MAC address is known, in this VLAN if BFD has one hop.
pub(super) fn is_peer(table: &RouteTable, packet: &[u8], l3: L3, vlan: u16) -> bool {
    let Some(sender) = Sender::read(table, packet, l3).filter(Sender::is_near) else { return false };
    let Some(group) = sender.group else { return true };
    let has_next_hop = table.groups.get(group.index()).is_some_and(|group| group.action == Action::Forward);
    let is_single_hop = matches!(sender.udp_port, BFD_PORT | BFD_ECHO_PORT);
    // A group of several next hops may lead to each of them.
    let direct = table.direct.get(group.index()).copied().unwrap_or(Adjacency::NONE);
    has_next_hop && (!is_single_hop || direct == Adjacency::NONE || direct.vlan == vlan)
}
