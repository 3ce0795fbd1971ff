//! Route: finds the next hop of each packet for the router, and rewrites its header.
//!
//! The forwarding database knows the router's address as a station behind [`ROUTER_PORT`]. A frame that leaves by that
//! port gets its real egress port here. Packets that are not routed go to [`super::punt`].
//!
//! Most packets are usual ([`usual`]) and take the short way. It leaves the others to the long way ([`any`]).
//!
//! A packet that cannot be sent becomes an [`Exception`]: a drop with a reason, an answer to its sender, or a frame for
//! the control plane. A copy goes there by a ring with a fixed number of buffers, after the policers of its cause,
//! which keep a share for each port ([`super::port_policers`]).

mod any;
mod bridged;
mod next_hop;
mod source;
mod usual;

use std::sync::Arc;

use arrayvec::ArrayVec;

use self::any::Destination;
use self::bridged::BridgedPorts;
use self::next_hop::NextHops;
pub(crate) use self::next_hop::RoutedBurst;
use self::usual::ShortWay;
use super::forwarder::{Forwarder, IngressContext};
use super::punt::{Exception, Punter, RouteContext};
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::notes::{BurstNotes, IngressBurst};
use crate::dataplane::replacement::fitting;
use crate::forward::fdb::{Station, StationPair};
use crate::io::Packet;
use crate::plan::drops::DropReason;
use crate::plan::spec::SwitchSpec;
use crate::route::{Attachment, FoundGroup, ROUTER_PORT, RouteTable, SoftFib};
use crate::sets::{BURST, FrameSet, MAX_PORTS, PortSet};

/// The router of one lcore.
#[derive(Debug)]
pub(crate) struct Router {
    table: Arc<RouteTable>,
    /// Ports that bridge nothing.
    routed: PortSet,
    /// The router's station on each routed port.
    stations: Box<[Station; MAX_PORTS]>,
    /// By ingress port: the routed ports whose MTU is at least as large.
    fitting: Box<[PortSet; MAX_PORTS]>,
    bridged: BridgedPorts,
    /// Packets of the burst that is being routed.
    v4: Batch<u32>,
    v6: Batch<[u8; 16]>,
}

/// Destinations of a burst's packets of one family.
#[derive(Debug)]
struct Batch<A> {
    len: usize,
    addresses: [A; BURST],
    /// Positions of the packets in the burst.
    frames: [u8; BURST],
    groups: [FoundGroup; BURST],
}

impl<A: Copy> Batch<A> {
    fn new(empty: A) -> Self {
        Self { len: 0, addresses: [empty; BURST], frames: [0; BURST], groups: [FoundGroup::default(); BURST] }
    }

    #[inline]
    fn push(&mut self, frame: usize, address: A) {
        let at = self.len % BURST;
        (self.addresses[at], self.frames[at]) = (address, frame as u8);
        self.len += 1;
    }

    /// Finds the groups of the packets.
    #[inline]
    fn look_up(&mut self, find: impl FnOnce(&[A], &mut [FoundGroup])) {
        let len = self.len.min(BURST);
        if len > 0 {
            find(&self.addresses[..len], &mut self.groups[..len]);
        }
    }

    /// Positions and groups of the packets.
    #[inline]
    fn found(&self) -> impl Iterator<Item = (usize, FoundGroup)> {
        self.frames.iter().zip(&self.groups).take(self.len).map(|(&frame, &group)| (usize::from(frame) % BURST, group))
    }
}

impl Router {
    /// Creates the router of an lcore of `spec`, without routes. `None` if the switch only bridges.
    pub fn new(spec: &SwitchSpec) -> Option<Box<Self>> {
        let routing = spec.routing.as_ref()?;
        let mut router = Box::new(Self {
            table: Arc::new(RouteTable::empty(Arc::new(SoftFib::default()))),
            routed: PortSet::EMPTY,
            stations: Box::new([Station::default(); MAX_PORTS]),
            fitting: Box::new([PortSet::EMPTY; MAX_PORTS]),
            bridged: BridgedPorts::new(),
            v4: Batch::new(0),
            v6: Batch::new([0; 16]),
        });
        for interface in &routing.interfaces {
            if let Attachment::Port(port) = interface.attachment {
                // A group is routed as a whole.
                let group = spec.lags.group_of(port.into());
                for port in group.map_or(PortSet::only(port.into()), |group| group.ports).iter() {
                    router.routed.insert(port);
                    router.stations[port % MAX_PORTS] = Station::new(interface.vlan, interface.mac.to_number());
                }
            }
        }
        for ingress in 0..spec.ports.len() {
            router.set_fitting(ingress, fitting(spec, ingress));
        }
        Some(router)
    }

    /// Sets the routed ports whose MTU is at least that of port `ingress`.
    pub fn set_fitting(&mut self, ingress: usize, fitting: PortSet) {
        self.fitting[ingress % MAX_PORTS] = fitting;
    }

    /// Replaces the tables. The caller keeps the table before, so that no memory is freed here.
    pub fn set_table(&mut self, table: &Arc<RouteTable>) {
        self.table = table.clone();
        self.bridged.forget();
    }

    /// Ports that bridge nothing.
    pub fn routed(&self) -> PortSet {
        self.routed
    }

    /// The router's station on routed `port`.
    #[inline]
    pub fn station(&self, port: usize) -> Station {
        self.stations[port % MAX_PORTS]
    }

    /// Decides the forwarding of each frame of `data` from a routed port. Frames to the router need no look-up, and
    /// their sources are not learned: neighbours are known by ARP and neighbour discovery.
    pub fn forward(
        &self,
        forwarder: &mut Forwarder,
        from: IngressContext<'_>,
        metas: &mut [Meta; BURST],
        data: FrameSet,
    ) {
        let (station, mut others) = (self.station(from.port), FrameSet::EMPTY);
        let ours = if self.table.is_shut(station.vlan()) {
            Forwarding::Drop(DropReason::AdminDown)
        } else {
            Forwarding::Send(ROUTER_PORT as u8)
        };
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            if meta.stations.dst() == station {
                meta.set_forwarding(ours);
            } else {
                others.insert(index);
            }
        }
        if !others.is_empty() {
            forwarder.forward_uncached(from, metas, others);
        }
    }

    /// Routes the usual packets of a burst from a routed port; see [`Router::route_usual`].
    #[inline]
    pub fn route_usual_from_routed<P: Packet>(
        &mut self,
        punter: &mut Punter,
        from: RouteContext<'_>,
        burst: &mut IngressBurst<'_, P>,
    ) -> (RoutedBurst, FrameSet) {
        let station = self.station(from.port);
        // Untagged frames are in this VLAN: it is compared here, not for each.
        let is_other = from.forwarder.vlans.ingress(from.port, None) != Some(station.vlan());
        if is_other || self.table.is_shut(station.vlan()) {
            return (RoutedBurst::NONE, FrameSet::first(burst.frames.len()));
        }
        let ours = StationPair::new(station.vlan(), station.mac().to_number(), 0);
        self.route_usual(punter, from, burst, |meta| meta.stations.dst_difference(ours))
    }

    /// Drops the frames of `data` to the router by interfaces that are shut. Returns whether there are any.
    #[inline]
    pub fn refuse_shut(&self, metas: &mut [Meta; BURST], data: FrameSet) -> bool {
        !self.table.shut.is_empty() && self.drop_shut(metas, data)
    }

    #[cold]
    fn drop_shut(&self, metas: &mut [Meta; BURST], data: FrameSet) -> bool {
        let mut is_any = false;
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            let is_ours = meta.forwarding() == Forwarding::Send(ROUTER_PORT as u8);
            if is_ours && self.table.is_shut(meta.stations.dst().vlan()) {
                meta.set_forwarding(Forwarding::Drop(DropReason::AdminDown));
                is_any = true;
            }
        }
        is_any
    }

    /// Routes the usual packets of a burst from a port that bridges; see [`Router::route_usual`].
    #[inline]
    pub fn route_usual_from_bridged<P: Packet>(
        &mut self,
        punter: &mut Punter,
        from: RouteContext<'_>,
        burst: &mut IngressBurst<'_, P>,
    ) -> (RoutedBurst, FrameSet) {
        let ours = Forwarding::Send(ROUTER_PORT as u8);
        self.route_usual(punter, from, burst, |meta| (meta.forwarding() != ours).into())
    }

    /// Routes the usual packets of a burst, and puts their egress ports into `lanes`. Packets for the router have a
    /// `difference` of zero. Returns the frames that are left for [`Router::route_others`], too.
    #[inline(always)]
    fn route_usual<P: Packet>(
        &mut self,
        punter: &mut Punter,
        from: RouteContext<'_>,
        burst: &mut IngressBurst<'_, P>,
        difference: impl Fn(&Meta) -> u64,
    ) -> (RoutedBurst, FrameSet) {
        let (burst, BurstNotes { metas, lanes }) = (&mut *burst.frames, &mut *burst.notes);
        // A burst mostly has packets of one kind, perhaps with an odd one at one of its ends.
        let ends = [burst.len().saturating_sub(1), 0];
        if !ends.iter().any(|&end| metas[end % BURST].class_bits.is_plain_untagged_ipv4()) {
            return (RoutedBurst::NONE, FrameSet::first(burst.len()));
        }
        let Self { table, bridged, fitting, v4, .. } = self;
        let len = usual::read_destinations(burst, &mut v4.addresses);
        table.fib.lookup_v4(&v4.addresses[..len], &mut v4.groups[..len]);
        let mut hops = NextHops::new(table, bridged, from, fitting[from.port % MAX_PORTS]);
        let way = ShortWay { table, sources: &table.sources, hops: hops.direct };
        let (mut others, mut ports) = (FrameSet::EMPTY, PortSet::EMPTY);
        let mut exceptions: ArrayVec<(usize, Exception), BURST> = ArrayVec::new();
        for (index, ((frame, meta), &group)) in burst.iter_mut().zip(&mut *metas).zip(&v4.groups).enumerate() {
            let difference = difference(meta) | u64::from(!meta.class_bits.is_plain_untagged_ipv4());
            match way.send(&mut hops, frame, meta, difference, group) {
                Some(Ok(egress)) => {
                    ports |= egress.set;
                    lanes.egresses.set(index, egress.number);
                }
                Some(Err(exception)) => exceptions.push((index, exception)),
                None => others.insert(index),
            }
        }
        let routed = hops.finish(len - others.len() - exceptions.len(), ports);
        for &(index, exception) in &exceptions {
            punter.except(from, burst[index].bytes(), &mut metas[index % BURST], exception);
        }
        (RoutedBurst { are_single: exceptions.is_empty(), ..routed }, others)
    }

    /// Routes those frames of `data` that leave by the router's port, and puts the egress ports of all into `lanes`.
    #[inline(never)]
    pub fn route_others<P: Packet>(
        &mut self,
        punter: &mut Punter,
        from: RouteContext<'_>,
        burst: &mut IngressBurst<'_, P>,
        data: FrameSet,
    ) -> RoutedBurst {
        let routed = self.route_burst(punter, from, burst, data);
        let BurstNotes { metas, lanes } = &mut *burst.notes;
        for index in data.iter() {
            if let Forwarding::Send(egress) = metas[index].forwarding() {
                lanes.egresses.set(index, egress);
            }
        }
        routed
    }

    /// Does the work of [`Router::route_others`], but for the lanes.
    fn route_burst<P: Packet>(
        &mut self,
        punter: &mut Punter,
        from: RouteContext<'_>,
        burst: &mut IngressBurst<'_, P>,
        data: FrameSet,
    ) -> RoutedBurst {
        let (frames, metas) = (&*burst.frames, &mut burst.notes.metas);
        let (mut others, mut fragments) = (RoutedBurst::NONE, FrameSet::EMPTY);
        (self.v4.len, self.v6.len) = (0, 0);
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            match meta.forwarding() {
                Forwarding::Send(port) if usize::from(port) != ROUTER_PORT => {
                    others.ports.insert(usize::from(port) % MAX_PORTS);
                    continue;
                }
                Forwarding::Send(_) => {}
                _ => {
                    others.are_single = false;
                    continue;
                }
            }
            match any::read(&self.table, &frames[index], meta) {
                Ok(Destination::V4(address)) => self.v4.push(index, address),
                Ok(Destination::Fragment(address)) => {
                    fragments.insert(index);
                    self.v4.push(index, address);
                }
                Ok(Destination::V6(address)) => self.v6.push(index, address),
                Err(exception) => {
                    others.are_single = false;
                    punter.except(from, frames[index].bytes(), meta, exception);
                }
            }
        }
        others.and(self.send_batches(punter, from, burst, fragments))
    }

    /// Routes the packets of both batches.
    #[inline]
    fn send_batches<P: Packet>(
        &mut self,
        punter: &mut Punter,
        from: RouteContext<'_>,
        burst: &mut IngressBurst<'_, P>,
        mut fragments: FrameSet,
    ) -> RoutedBurst {
        let Self { table, bridged, fitting, v4, v6, .. } = self;
        let (frames, metas) = (&mut *burst.frames, &mut burst.notes.metas);
        v4.look_up(|addresses, groups| table.fib.lookup_v4(addresses, groups));
        v6.look_up(|addresses, groups| table.fib.lookup_v6(addresses, groups));
        let mut hops = NextHops::new(table, bridged, from, fitting[from.port % MAX_PORTS]);
        let (mut ports, mut exceptions) = (PortSet::EMPTY, 0);
        for (index, group) in v4.found().chain(v6.found()) {
            let (packet, meta) = (&mut frames[index], &mut metas[index]);
            match any::send(&mut hops, packet, meta, group) {
                Ok(egress) => ports |= egress.set,
                Err(exception) => {
                    exceptions += 1;
                    fragments.remove(index);
                    punter.except(from, packet.bytes(), meta, exception);
                }
            }
        }
        if !fragments.is_empty() {
            from.counters.routed_fragments.add(fragments.len() as u64);
        }
        let routed = hops.finish(v4.len + v6.len - exceptions, ports);
        RoutedBurst { are_single: exceptions == 0, ..routed }
    }
}
