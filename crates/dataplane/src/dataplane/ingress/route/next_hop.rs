//! Next hops: from a packet's group to its egress port.

use super::bridged::BridgedPorts;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::forwarder::Egresses;
use crate::dataplane::ingress::punt::{Exception, RouteContext};
use crate::plan::counters::Counter;
use crate::plan::drops::DropReason;
use crate::route::{Action, Adjacency, FoundGroup, MAX_ADJACENCIES, PuntCause, RouteTable};
use crate::sets::PortSet;

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
    /// No packet was routed.
    pub const NONE: Self = Self { ports: PortSet::EMPTY, are_single: true, retagged_at: PortSet::EMPTY, frames: 0 };

    /// The result for other frames of the burst too.
    pub fn and(self, other: Self) -> Self {
        Self {
            ports: self.ports | other.ports,
            are_single: self.are_single & other.are_single,
            retagged_at: self.retagged_at | other.retagged_at,
            frames: self.frames + other.frames,
        }
    }

    /// The egress ports of the burst. Both ways put them into lanes.
    #[inline]
    pub fn egresses(self) -> Egresses {
        Egresses { ports: self.ports, are_single: self.are_single, are_in_lanes: true }
    }
}

/// Needed for most packets of a burst: a loop keeps it in registers.
#[derive(Clone, Copy)]
pub(super) struct DirectHops<'a, 'b> {
    /// [`RouteTable::direct`].
    adjacencies: &'a [Adjacency],
    /// Counters by adjacency.
    frames: &'b [Counter; MAX_ADJACENCIES],
    /// Routed ports with a link whose MTU is at least that of the ingress port: they send any packet that came.
    fitting: PortSet,
}

impl<'a> DirectHops<'a, '_> {
    /// The only adjacency of `group`, if it sends any packet with `ttl` hops left that came to this ingress port.
    #[inline]
    pub fn only(&self, group: FoundGroup, ttl: u8) -> Option<&'a Adjacency> {
        self.adjacencies.get(group.index()).filter(|adjacency| self.sends_any(adjacency, ttl))
    }

    /// Whether `adjacency` sends any packet with `ttl` hops left that came to this ingress port.
    #[inline]
    fn sends_any(&self, adjacency: &Adjacency, ttl: u8) -> bool {
        !(self.fitting & adjacency.port).is_empty() && ttl > 1
    }

    /// Gives a packet the addresses of its next hop, and the number of its `egress` port.
    #[inline]
    pub fn send(&self, addresses: &mut [u8; 12], meta: &mut Meta, adjacency: &Adjacency, egress: u8) {
        *addresses = adjacency.addresses;
        // The stages that follow read the VLAN only.
        meta.stations = meta.stations.in_vlan(adjacency.vlan);
        meta.send(egress);
        self.frames[usize::from(adjacency.id.0) % MAX_ADJACENCIES].add(1);
    }
}

/// The second half of the route stage, for the packets of one burst.
pub(super) struct NextHops<'a, 'b> {
    pub table: &'a RouteTable,
    pub direct: DirectHops<'a, 'b>,
    bridged: &'a mut BridgedPorts,
    from: RouteContext<'b>,
    /// Ports at which some packet leaves with other tags than it came with.
    retagged_at: PortSet,
}

/// The egress port of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct EgressPort {
    /// The set of this port alone.
    pub set: PortSet,
    pub number: u8,
}

impl EgressPort {
    /// Port `number`.
    #[inline]
    fn at(number: usize) -> Self {
        Self { set: PortSet::only(number), number: number as u8 }
    }

    /// The routed port of `adjacency`; no port if it has none.
    #[inline]
    pub fn of(adjacency: &Adjacency) -> Self {
        Self { set: adjacency.port, number: adjacency.port_number }
    }
}

/// The fields of a packet that can forbid to send it by a next hop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Time to live or hop limit.
    pub hops: u8,
    /// Whether routers must not fragment the packet.
    pub dont_fragment: bool,
}

impl<'a, 'b> NextHops<'a, 'b> {
    /// Begins a burst. `fitting` are the routed ports whose MTU is at least that of the ingress port.
    #[inline]
    pub fn new(table: &'a RouteTable, bridged: &'a mut BridgedPorts, from: RouteContext<'b>, fitting: PortSet) -> Self {
        let Ok(frames) = (&*from.counters.adjacency_frames).try_into() else {
            unreachable!("a switch that routes counts by adjacency")
        };
        let direct = DirectHops { adjacencies: &table.direct, frames, fitting: fitting & from.up };
        Self { table, direct, bridged, from, retagged_at: PortSet::EMPTY }
    }

    /// Ends a burst of which `frames` packets leave by `ports`. Counts them.
    #[inline]
    pub fn finish(self, frames: usize, ports: PortSet) -> RoutedBurst {
        self.from.counters.routed_frames.add(frames as u64);
        RoutedBurst { ports, are_single: true, retagged_at: self.retagged_at, frames }
    }

    /// The adjacency that `group` has for a packet with this `hash`, which is worked out only if there is a choice.
    #[inline]
    pub fn choose(&self, group: FoundGroup, hash: impl FnOnce() -> u32) -> Result<&'a Adjacency, Exception> {
        let Some(group) = self.table.groups.get(group.index()) else { return Err(Exception::without_route()) };
        if group.action != Action::Forward {
            return Err(Exception::of(group.action));
        }
        let id = if let Some(only) = group.only_adjacency() {
            only
        } else {
            let bucket = hash() & u32::from(group.mask);
            *self.table.buckets.get((group.first + bucket) as usize).ok_or(Exception::without_route())?
        };
        self.table.adjacencies.get(usize::from(id.0)).ok_or(Exception::without_route())
    }

    /// The port by which a packet leaves to the next hop of an adjacency.
    #[inline]
    pub fn egress(&mut self, hop: &Adjacency, meta: &Meta, limits: Limits) -> Result<EgressPort, Exception> {
        if self.direct.sends_any(hop, limits.hops) {
            Ok(EgressPort::of(hop))
        } else {
            self.checked_egress(hop, meta, limits)
        }
    }

    /// Does the work of [`NextHops::egress`] for a next hop in a bridged VLAN, and for a packet that may not be sent.
    #[inline(never)]
    fn checked_egress(&mut self, adjacency: &Adjacency, meta: &Meta, limits: Limits) -> Result<EgressPort, Exception> {
        let mut egress = EgressPort::of(adjacency);
        if egress.set.is_empty() {
            self.note_tags(adjacency.vlan, meta.class_bits.tags() > 0);
            egress = EgressPort::at(self.bridged.port(adjacency, self.from.forwarder).ok_or(Exception::Resolve)?);
        }
        if (self.from.up & egress.set).is_empty() {
            return Err(Exception::Drop(DropReason::EgressDown));
        }
        if limits.hops <= 1 {
            return Err(Exception::Answer(DropReason::TtlExpired, PuntCause::TimeExceeded));
        }
        if u32::from(meta.desc.frame_len()) > u32::from(adjacency.mtu) + u32::from(meta.desc.l3_offset()) {
            // RFC 792, RFC 1191 section 4: the message is for packets that must not be fragmented. All others a router
            // would fragment, and this one drops them.
            return Err(if limits.dont_fragment {
                Exception::Answer(DropReason::FragmentationNeeded, PuntCause::TooBig)
            } else {
                Exception::Drop(DropReason::FragmentationUnsupported)
            });
        }
        Ok(egress)
    }

    /// Notes the ports at which a frame in `vlan` gets a tag, or loses the one it has.
    #[inline]
    pub fn note_tags(&mut self, vlan: u16, is_tagged: bool) {
        let untagged = self.from.forwarder.vlans.untagged_at(vlan);
        self.retagged_at |= if is_tagged { untagged } else { !untagged };
    }
}
