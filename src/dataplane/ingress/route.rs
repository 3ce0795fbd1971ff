//! Route: finds the next hop of each packet for the router, and rewrites its header.
//!
//! The forwarding database knows the router's address as a station behind [`ROUTER_PORT`]. A frame that leaves by that
//! port gets its real egress port here. Packets that are not routed go to [`super::punt`].

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::forwarder::{Egresses, Forwarder, IngressContext};
use super::punt::{Exception, Punter, RouteContext};
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::spec::SwitchSpec;
use crate::dataplane::telemetry::drops::DropReason;
use crate::forward::fdb::Station;
use crate::io::{Burst, Packet};
use crate::route::table::AddressFilter;
use crate::route::{
    Action, Adjacency, AdjacencyId, Attachment, Egress, GroupId, MAX_ADJACENCIES, PuntCause, ROUTER_PORT, RouteTable,
    SoftFib,
};
use crate::sets::{BURST, FrameSet, MAX_PORTS, PortSet};
use crate::wire::ip::{self, Ipv4, Ipv6};
use crate::wire::parse::L3;
use crate::wire::vlan_tag;

/// The router of one lcore.
#[derive(Debug)]
pub(crate) struct Router {
    table: Arc<RouteTable>,
    /// Ports that bridge nothing.
    routed: PortSet,
    /// The router's station on each routed port.
    stations: Box<[Station; MAX_PORTS]>,
    bridged: BridgedPorts,
    /// Packets of the burst that is being routed.
    v4: Batch<u32>,
    v6: Batch<[u8; 16]>,
    /// IPv4 packets of the burst that are fragments.
    fragments: FrameSet,
    pub punter: Punter,
}

/// Destinations of a burst's packets of one family.
#[derive(Debug)]
struct Batch<A> {
    len: usize,
    addresses: [A; BURST],
    /// Positions of the packets in the burst.
    frames: [u8; BURST],
    groups: [GroupId; BURST],
}

impl<A: Copy> Batch<A> {
    fn new(empty: A) -> Self {
        Self { len: 0, addresses: [empty; BURST], frames: [0; BURST], groups: [GroupId::NO_ROUTE; BURST] }
    }

    #[inline]
    fn push(&mut self, frame: usize, address: A) {
        let at = self.len % BURST;
        (self.addresses[at], self.frames[at]) = (address, frame as u8);
        self.len += 1;
    }

    /// Positions and groups of the packets.
    #[inline]
    fn found(&self) -> impl Iterator<Item = (usize, GroupId)> {
        self.frames.iter().zip(&self.groups).take(self.len).map(|(&frame, &group)| (usize::from(frame) % BURST, group))
    }
}

/// The ports of next hops in bridged VLANs, by adjacency: cached answers of the forwarding database.
#[derive(Debug)]
struct BridgedPorts(Box<[CachedPort]>);

#[derive(Debug, Clone, Copy)]
struct CachedPort {
    /// Version of the database that gave the answer.
    version: u64,
    port: u8,
}

impl BridgedPorts {
    const EMPTY: CachedPort = CachedPort { version: u64::MAX, port: 0 };

    /// The port that leads to the station of `adjacency`; `None` if the database does not know it. The router never
    /// floods: a lossless packet would fill queues of unrelated ports.
    #[inline]
    fn port(&mut self, id: AdjacencyId, adjacency: &Adjacency, forwarder: &Forwarder) -> Option<usize> {
        let cached = &mut self.0[usize::from(id.0) % MAX_ADJACENCIES];
        let version = forwarder.fdb.version();
        if cached.version == version {
            return Some(usize::from(cached.port));
        }
        // A static entry may name a port outside of the VLAN.
        let members = forwarder.vlans.members(adjacency.station.vlan()) - PortSet::only(ROUTER_PORT);
        let port = forwarder.fdb.lookup(adjacency.station).filter(|&port| members.contains(port))?;
        *cached = CachedPort { version, port: port as u8 };
        Some(port)
    }
}

/// The result of the route stage for a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutedBurst {
    /// Egress ports of the burst.
    pub egresses: Egresses,
    /// Ports at which some routed packet leaves with other tags than it came with.
    pub retagged_at: PortSet,
    /// Whether every frame of the burst was routed.
    pub is_whole: bool,
    frames: u64,
}

impl Router {
    /// Creates the router of an lcore of `spec`, on a clock of `hz` ticks a second, without routes. `None` if the
    /// switch only bridges.
    pub fn new(spec: &SwitchSpec, hz: u64) -> Option<Box<Self>> {
        let routing = spec.routing.as_ref()?;
        let mut router = Box::new(Self {
            table: Arc::new(RouteTable::empty(Arc::new(SoftFib::default()))),
            routed: PortSet::EMPTY,
            stations: Box::new([Station::default(); MAX_PORTS]),
            bridged: BridgedPorts(vec![BridgedPorts::EMPTY; MAX_ADJACENCIES].into()),
            v4: Batch::new(0),
            v6: Batch::new([0; 16]),
            fragments: FrameSet::EMPTY,
            punter: Punter::new(hz),
        });
        for interface in &routing.interfaces {
            if let Attachment::Port(port) = interface.attachment {
                router.routed.insert(port.into());
                router.stations[usize::from(port) % MAX_PORTS] =
                    Station::new(interface.vlan, interface.mac.to_number());
            }
        }
        Some(router)
    }

    /// Replaces the tables. The caller keeps the table before, so that no memory is freed here.
    pub fn set_table(&mut self, table: &Arc<RouteTable>) {
        self.table = table.clone();
        // An adjacency may have another station now.
        self.bridged.0.fill(BridgedPorts::EMPTY);
    }

    /// Whether `port` bridges nothing.
    #[inline]
    pub fn is_routed(&self, port: usize) -> bool {
        self.routed.contains(port)
    }

    /// Decides the forwarding of each frame of `data` from a routed port. Frames to the router need no look-up, and
    /// their sources are not learned: neighbours are known by ARP and neighbour discovery.
    #[inline]
    pub fn forward(
        &self,
        forwarder: &mut Forwarder,
        from: IngressContext<'_>,
        metas: &mut [Meta; BURST],
        (frames, data): (usize, FrameSet),
    ) -> Egresses {
        let selected = self.select(from.port, metas, data);
        let ports = PortSet::only_if(!selected.is_empty(), ROUTER_PORT);
        let others = data - selected;
        if others.is_empty() {
            return Egresses { ports, are_single: true };
        }
        let forwarded = forwarder.forward(from, metas, (frames, others), None);
        Egresses { ports: forwarded.ports | ports, ..forwarded }
    }

    /// Selects the frames of `data` to the router's address on routed `port`.
    #[inline]
    fn select(&self, port: usize, metas: &mut [Meta; BURST], data: FrameSet) -> FrameSet {
        let station = self.stations[port % MAX_PORTS];
        let mut selected = FrameSet::EMPTY;
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            if meta.dst == station {
                selected.insert(index);
                meta.forwarding = Forwarding::Send(ROUTER_PORT as u8);
            }
        }
        selected
    }

    /// Routes those frames of `data` that leave by the router's port.
    #[inline(never)]
    pub fn route_burst<P: Packet>(
        &mut self,
        from: RouteContext<'_>,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        data: FrameSet,
    ) -> RoutedBurst {
        let egresses = Egresses { ports: PortSet::EMPTY, are_single: true };
        let mut routed = RoutedBurst { egresses, retagged_at: PortSet::EMPTY, is_whole: true, frames: 0 };
        (self.v4.len, self.v6.len, self.fragments) = (0, 0, FrameSet::EMPTY);
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            if meta.forwarding != Forwarding::Send(ROUTER_PORT as u8) {
                routed.keep(meta.forwarding);
            } else if let Err(exception) = self.read(&burst[index], meta, index) {
                self.fragments.remove(index);
                routed.except();
                self.punter.except(from, burst[index].bytes(), meta, exception);
            }
        }
        let Self { table, bridged, v4, v6, fragments, punter, .. } = self;
        let mut hop = NextHops { table, bridged, from, routed: &mut routed };
        if v4.len > 0 {
            let len = v4.len.min(BURST);
            table.fib.lookup_v4(&v4.addresses[..len], &mut v4.groups[..len]);
            for (index, group) in v4.found() {
                let (packet, meta) = (&mut burst[index], &mut metas[index]);
                if let Err(exception) = hop.send_v4(packet, meta, group) {
                    fragments.remove(index);
                    hop.routed.except();
                    punter.except(from, packet.bytes(), meta, exception);
                }
            }
        }
        if v6.len > 0 {
            let len = v6.len.min(BURST);
            table.fib.lookup_v6(&v6.addresses[..len], &mut v6.groups[..len]);
            for (index, group) in v6.found() {
                let (packet, meta) = (&mut burst[index], &mut metas[index]);
                if let Err(exception) = hop.send_v6(packet, meta, group) {
                    hop.routed.except();
                    punter.except(from, packet.bytes(), meta, exception);
                }
            }
        }
        from.counters.routed_frames.add(routed.frames);
        if !fragments.is_empty() {
            from.counters.routed_fragments.add(fragments.len() as u64);
        }
        routed
    }

    /// Checks the header of the packet at `index`, and notes its destination.
    #[inline]
    fn read(&mut self, frame: &impl Packet, meta: &Meta, index: usize) -> Result<(), Exception> {
        let packet = frame.bytes().get(usize::from(meta.desc.l3_offset())..).unwrap_or_default();
        // No place of a second tag is known to the rewrite stage.
        if meta.class_bits.tags() > 1 {
            return Err(Exception::Drop(DropReason::NotRoutable));
        }
        match meta.class_bits.l3() {
            L3::V4 => {
                let Some(header) = packet.first_chunk() else { return Err(Exception::Drop(DropReason::NotRoutable)) };
                let Some(ipv4) = Ipv4::read(packet) else { return Err(Exception::Drop(DropReason::NotRoutable)) };
                if ipv4.has_options() | ipv4.is_fragment() {
                    self.read_unusual(ipv4, index)?;
                }
                if !ip::has_right_checksum(header) {
                    return Err(Exception::Drop(DropReason::Ipv4Checksum));
                }
                if is_odd_v4(ipv4.src) || self.table.own_filter.may_contain(ipv4.src.into()) {
                    self.check_source_v4(ipv4.src)?;
                }
                self.v4.push(index, ipv4.dst);
            }
            L3::V6 => {
                let Some(ipv6) = Ipv6::read(packet) else { return Err(Exception::Drop(DropReason::NotRoutable)) };
                if is_odd_v6(ipv6.src) || self.table.own_filter.may_contain(AddressFilter::key_v6(ipv6.src)) {
                    self.check_source_v6(ipv6)?;
                }
                self.v6.push(index, ipv6.dst);
            }
            L3::Other => return Err(Exception::Local),
        }
        Ok(())
    }

    /// Notes fragments, and refuses options.
    ///
    /// RFC 7126 section 1: "routers, security gateways, and firewalls" often drop packets with options, which cost far
    /// more than others. This router drops all of them.
    #[cold]
    fn read_unusual(&mut self, ipv4: Ipv4, index: usize) -> Result<(), Exception> {
        if ipv4.has_options() {
            return Err(Exception::Drop(DropReason::Ipv4Options));
        }
        self.fragments.insert(index);
        Ok(())
    }

    #[cold]
    fn check_source_v4(&self, src: u32) -> Result<(), Exception> {
        let address = Ipv4Addr::from_bits(src);
        // RFC 1812 section 5.3.7: "A router SHOULD NOT forward [...] any packet that has an invalid IP source address".
        if address.is_loopback() || address.is_multicast() || matches!(address.octets()[0], 0 | 240..) {
            return Err(Exception::Drop(DropReason::Martian));
        }
        if self.table.is_own(address.into()) {
            return Err(Exception::Drop(DropReason::OwnSource));
        }
        Ok(())
    }

    #[cold]
    fn check_source_v6(&self, ipv6: Ipv6) -> Result<(), Exception> {
        let address = Ipv6Addr::from(ipv6.src);
        // RFC 4291 section 2.5: the unspecified, the loopback and multicast addresses are no sources on a wire.
        if address.is_loopback() || address.is_multicast() || address.is_unspecified() {
            return Err(Exception::Drop(DropReason::Martian));
        }
        if self.table.is_own(address.into()) {
            return Err(Exception::Drop(DropReason::OwnSource));
        }
        Ok(())
    }
}

/// Whether a source address needs a closer look: networks 0, 127, 169.254, and 224 and above.
#[inline]
fn is_odd_v4(src: u32) -> bool {
    let network = src >> 24;
    (network.wrapping_sub(1) >= 223) | (network == 127) | ip::is_link_local_v4(src)
}

/// Whether a source address needs a closer look: multicast, link-local, and all that begin with 64 zero bits.
#[inline]
fn is_odd_v6(src: [u8; 16]) -> bool {
    (src[0] == 0xff) | ip::is_link_local_v6(src) | (src[..8] == [0; 8])
}

impl RoutedBurst {
    /// Adds a frame that is not for the router.
    fn keep(&mut self, forwarding: Forwarding) {
        self.is_whole = false;
        match forwarding {
            Forwarding::Send(egress) => self.egresses.ports.insert(usize::from(egress) % MAX_PORTS),
            _ => self.egresses.are_single = false,
        }
    }

    /// Adds a packet that is not routed.
    fn except(&mut self) {
        (self.is_whole, self.egresses.are_single) = (false, false);
    }
}

/// The second half of the route stage: from a packet's group to its egress port.
struct NextHops<'a, 'b> {
    table: &'a RouteTable,
    bridged: &'a mut BridgedPorts,
    from: RouteContext<'b>,
    routed: &'a mut RoutedBurst,
}

impl NextHops<'_, '_> {
    #[inline]
    fn send_v4(&mut self, frame: &mut impl Packet, meta: &mut Meta, group: GroupId) -> Result<(), Exception> {
        let offset = usize::from(meta.desc.l3_offset());
        let bytes = frame.bytes();
        let packet = bytes.get(offset..).unwrap_or_default();
        let hash = || {
            let ipv4 = Ipv4::read(packet).unwrap_or_default();
            self.table.hash.v4(ipv4.src, ipv4.dst, ipv4.protocol, ipv4.ports(packet))
        };
        let (id, adjacency) = choose(self.table, group, hash)?;
        let egress = self.egress(id, adjacency)?;
        // Without options, as `read` has checked.
        let [_, _, _, _, _, _, flags, _, ttl, _, _, _, source, source_low, ..] = *packet else {
            return Err(Exception::Drop(DropReason::NotRoutable));
        };
        if ttl <= 1 {
            return Err(Exception::Answer(DropReason::TtlExpired, PuntCause::TimeExceeded));
        }
        if usize::from(meta.desc.frame_len()) > usize::from(adjacency.mtu) + offset {
            // RFC 791 section 3.1: bit 1 of the flags is "Don't Fragment".
            let reason =
                if flags & 0x40 != 0 { DropReason::FragmentationNeeded } else { DropReason::FragmentationUnsupported };
            return Err(Exception::Answer(reason, PuntCause::TooBig));
        }
        // RFC 3927 section 2.6.2: a router "MUST NOT forward" packets with a link-local source.
        if ip::is_link_local_v4(u32::from_be_bytes([source, source_low, 0, 0])) {
            return Err(Exception::Drop(DropReason::Martian));
        }
        self.rewrite(frame, meta, adjacency, egress);
        if let Some(header) = frame.bytes_mut().get_mut(offset..).and_then(|packet| packet.first_chunk_mut()) {
            ip::decrement_ttl(header);
        }
        self.count(id);
        Ok(())
    }

    #[inline]
    fn send_v6(&mut self, frame: &mut impl Packet, meta: &mut Meta, group: GroupId) -> Result<(), Exception> {
        let offset = usize::from(meta.desc.l3_offset());
        let packet = frame.bytes().get(offset..).unwrap_or_default();
        let Some(ipv6) = Ipv6::read(packet) else { return Err(Exception::Drop(DropReason::NotRoutable)) };
        let hash = || self.table.hash.v6(ipv6.src, ipv6.dst, ipv6.next_header, ipv6.ports(packet), ipv6.label);
        let (id, adjacency) = choose(self.table, group, hash)?;
        let egress = self.egress(id, adjacency)?;
        if ipv6.hop_limit <= 1 {
            return Err(Exception::Answer(DropReason::TtlExpired, PuntCause::TimeExceeded));
        }
        if usize::from(meta.desc.frame_len()) > usize::from(adjacency.mtu) + offset {
            return Err(Exception::Answer(DropReason::FragmentationNeeded, PuntCause::TooBig));
        }
        // RFC 4291 section 2.5.6: "Routers must not forward any packets with Link-Local source or destination addresses
        // to other links."
        if ip::is_link_local_v6(ipv6.src) {
            return Err(Exception::Drop(DropReason::Martian));
        }
        self.rewrite(frame, meta, adjacency, egress);
        if let Some(header) = frame.bytes_mut().get_mut(offset..).and_then(|packet| packet.first_chunk_mut()) {
            ip::decrement_hop_limit(header);
        }
        self.count(id);
        Ok(())
    }

    /// The port by which the frames of `adjacency` leave.
    #[inline]
    fn egress(&mut self, id: AdjacencyId, adjacency: &Adjacency) -> Result<usize, Exception> {
        let egress = match adjacency.egress {
            Egress::Port(port) => usize::from(port) % MAX_PORTS,
            Egress::Bridged => {
                self.bridged.port(id, adjacency, self.from.forwarder).ok_or(Exception::Resolve)? % MAX_PORTS
            }
        };
        if !self.from.up.contains(egress) {
            return Err(Exception::Drop(DropReason::EgressDown));
        }
        Ok(egress)
    }

    /// Gives a frame the addresses and the egress port of its next hop.
    #[inline]
    fn rewrite(&mut self, frame: &mut impl Packet, meta: &mut Meta, adjacency: &Adjacency, egress: usize) {
        if let Some(addresses) = frame.bytes_mut().first_chunk_mut() {
            *addresses = adjacency.addresses;
        }
        meta.dst = adjacency.station;
        meta.forwarding = Forwarding::Send(egress as u8);
        if (meta.class_bits.tags() > 0) | (adjacency.egress == Egress::Bridged) {
            self.retag(frame, meta);
        }
        self.routed.egresses.ports.insert(egress);
    }

    /// Notes the ports at which a tag comes or goes, and replaces a tag that stays: the new one is a customer tag with
    /// the class of the packet as its PCP. TPID, PCP and DEI that came are those of another network.
    #[inline]
    fn retag(&mut self, frame: &mut impl Packet, meta: &Meta) {
        let untagged = self.from.forwarder.vlans.untagged_at(meta.vlan());
        if meta.class_bits.tags() > 0 {
            vlan_tag::replace(frame, u16::from(meta.class_bits.class()) << 13 | meta.vlan());
            self.routed.retagged_at |= untagged;
        } else {
            self.routed.retagged_at |= !untagged;
        }
    }

    #[inline]
    fn count(&mut self, id: AdjacencyId) {
        self.routed.frames += 1;
        if let Some(frames) = self.from.counters.adjacency_frames.get(usize::from(id.0)) {
            frames.add(1);
        }
    }
}

/// The adjacency that `group` has for a packet with this `hash`, which is worked out only if there is a choice.
#[inline]
fn choose(
    table: &RouteTable,
    group: GroupId,
    hash: impl FnOnce() -> u32,
) -> Result<(AdjacencyId, &Adjacency), Exception> {
    let Some(group) = table.groups.get(group.0 as usize) else { return Err(Exception::without_route()) };
    if group.action != Action::Forward {
        return Err(Exception::of(group.action));
    }
    let bucket = if group.mask == 0 { 0 } else { hash() & u32::from(group.mask) };
    let found = table.buckets.get((group.first + bucket) as usize);
    let found = found.and_then(|&id| Some((id, table.adjacencies.get(usize::from(id.0))?)));
    found.ok_or(Exception::without_route())
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
