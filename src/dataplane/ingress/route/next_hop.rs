//! Next hops: from a packet's group to its egress port.

use super::bridged::BridgedPorts;
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::ingress::forwarder::Egresses;
use crate::dataplane::ingress::punt::{Exception, RouteContext};
use crate::dataplane::telemetry::drops::DropReason;
use crate::route::{Action, Adjacency, AdjacencyId, Egress, GroupId, PuntCause, RouteTable};
use crate::sets::{MAX_PORTS, PortSet};

/// The result of the route stage for a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutedBurst {
    /// Egress ports of the burst.
    pub ports: PortSet,
    /// Whether each frame leaves by exactly one port.
    pub are_single: bool,
    /// Ports at which some routed packet leaves with other tags than it came with.
    pub retagged_at: PortSet,
    /// Number of routed packets.
    pub frames: usize,
}

impl RoutedBurst {
    /// The egress ports of the burst.
    #[inline]
    pub fn egresses(self) -> Egresses {
        Egresses { ports: self.ports, are_single: self.are_single }
    }
}

/// The second half of the route stage, for the packets of one burst.
pub(super) struct NextHops<'a, 'b> {
    pub table: &'a RouteTable,
    bridged: &'a mut BridgedPorts,
    from: RouteContext<'b>,
    /// Routed ports with a link whose MTU is at least that of the ingress port: they send any packet that came.
    fitting: PortSet,
    /// Egress ports of the packets.
    egresses: PortSet,
    /// Ports at which some packet leaves with other tags than it came with.
    retagged_at: PortSet,
}

/// The fields of a packet that can forbid to send it by a next hop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Time to live or hop limit.
    pub hops: u8,
    /// Whether routers must not fragment the packet.
    pub is_whole: bool,
}

impl<'a, 'b> NextHops<'a, 'b> {
    /// Begins a burst. `fitting` are the routed ports whose MTU is at least that of the ingress port.
    #[inline]
    pub fn new(table: &'a RouteTable, bridged: &'a mut BridgedPorts, from: RouteContext<'b>, fitting: PortSet) -> Self {
        let (egresses, retagged_at) = (PortSet::EMPTY, PortSet::EMPTY);
        Self { table, bridged, from, fitting: fitting & from.up, egresses, retagged_at }
    }

    /// Ends a burst of `frames` packets, of which `exceptions` were not routed. Counts the others.
    #[inline]
    pub fn finish(self, frames: usize, exceptions: usize) -> RoutedBurst {
        let (are_single, frames) = (exceptions == 0, frames - exceptions);
        self.from.counters.routed_frames.add(frames as u64);
        RoutedBurst { ports: self.egresses, are_single, retagged_at: self.retagged_at, frames }
    }

    /// The adjacency that `group` has for a packet with this `hash`, which is worked out only if there is a choice.
    #[inline]
    pub fn choose(
        &self,
        group: GroupId,
        hash: impl FnOnce() -> u32,
    ) -> Result<(AdjacencyId, &'a Adjacency), Exception> {
        let Some(group) = self.table.groups.get(group.0 as usize) else { return Err(Exception::without_route()) };
        if group.action != Action::Forward {
            return Err(Exception::of(group.action));
        }
        let id = if group.mask == 0 {
            group.only_adjacency()
        } else {
            let bucket = hash() & u32::from(group.mask);
            *self.table.buckets.get((group.first + bucket) as usize).ok_or(Exception::without_route())?
        };
        let found = self.table.adjacencies.get(usize::from(id.0)).map(|adjacency| (id, adjacency));
        found.ok_or(Exception::without_route())
    }

    /// The port by which a packet leaves to the next hop of an adjacency.
    #[inline]
    pub fn egress(&mut self, hop: (AdjacencyId, &Adjacency), meta: &Meta, limits: Limits) -> Result<usize, Exception> {
        let port = usize::from(hop.1.port) % MAX_PORTS;
        if self.fitting.contains(port) && limits.hops > 1 { Ok(port) } else { self.checked_egress(hop, meta, limits) }
    }

    /// Does the work of [`NextHops::egress`] for a next hop in a bridged VLAN, and for a packet that may not be sent.
    #[inline(never)]
    fn checked_egress(
        &mut self,
        (id, adjacency): (AdjacencyId, &Adjacency),
        meta: &Meta,
        limits: Limits,
    ) -> Result<usize, Exception> {
        let egress = match adjacency.egress {
            Egress::Port(port) => usize::from(port) % MAX_PORTS,
            Egress::Bridged => {
                self.note_tags(adjacency.station.vlan(), meta.class_bits.tags() > 0);
                self.bridged.port(id, adjacency, self.from.forwarder).ok_or(Exception::Resolve)? % MAX_PORTS
            }
        };
        if !self.from.up.contains(egress) {
            return Err(Exception::Drop(DropReason::EgressDown));
        }
        if limits.hops <= 1 {
            return Err(Exception::Answer(DropReason::TtlExpired, PuntCause::TimeExceeded));
        }
        if u32::from(meta.desc.frame_len()) > u32::from(adjacency.mtu) + u32::from(meta.desc.l3_offset()) {
            let reason =
                if limits.is_whole { DropReason::FragmentationNeeded } else { DropReason::FragmentationUnsupported };
            return Err(Exception::Answer(reason, PuntCause::TooBig));
        }
        Ok(egress)
    }

    /// Notes the ports at which a frame in `vlan` gets a tag, or loses the one it has.
    #[inline]
    pub fn note_tags(&mut self, vlan: u16, is_tagged: bool) {
        let untagged = self.from.forwarder.vlans.untagged_at(vlan);
        self.retagged_at |= if is_tagged { untagged } else { !untagged };
    }

    /// Gives a packet the addresses and the egress port of its next hop.
    #[inline]
    pub fn send(
        &mut self,
        addresses: &mut [u8; 12],
        meta: &mut Meta,
        (id, adjacency): (AdjacencyId, &Adjacency),
        egress: usize,
    ) {
        *addresses = adjacency.addresses;
        meta.dst = adjacency.station;
        meta.forwarding = Forwarding::Send(egress as u8);
        self.egresses.insert(egress);
        if let Some(frames) = self.from.counters.adjacency_frames.get(usize::from(id.0)) {
            frames.add(1);
        }
    }
}
