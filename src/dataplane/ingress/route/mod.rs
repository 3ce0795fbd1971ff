//! Route: finds the next hop of each packet for the router, and rewrites its header.
//!
//! The forwarding database knows the router's address as a station behind [`ROUTER_PORT`]. A frame that leaves by that
//! port gets its real egress port here. Packets that are not routed go to [`super::punt`].
//!
//! Most bursts are usual ([`usual`]) and are routed as a whole. All others are routed packet by packet ([`any`]).

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
use self::usual::{HeaderNotes, UsualReader};
use super::forwarder::{Egresses, Forwarder, IngressContext};
use super::punt::{Exception, Punter, RouteContext};
use crate::dataplane::frame::lanes::Lanes;
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::spec::SwitchSpec;
use crate::forward::VlanTable;
use crate::forward::fdb::Station;
use crate::io::{Burst, Packet};
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
    /// Header fields of a burst that may be usual.
    notes: HeaderNotes,
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
            notes: HeaderNotes::new(),
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
                for (fitting, ingress) in router.fitting.iter_mut().zip(&spec.ports) {
                    fitting.set(port.into(), interface.mtu >= ingress.mtu);
                }
            }
        }
        Some(router)
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
    ) -> Egresses {
        let selected = self.select(from.port, metas, data);
        let ports = PortSet::only_if(!selected.is_empty(), ROUTER_PORT);
        let others = data - selected;
        if others.is_empty() {
            return Egresses { ports, are_single: true, are_in_lanes: false };
        }
        let forwarded = forwarder.forward_uncached(from, metas, others);
        Egresses { ports: forwarded.ports | ports, ..forwarded }
    }

    /// Selects the frames of `data` to the router's address on routed `port`.
    fn select(&self, port: usize, metas: &mut [Meta; BURST], data: FrameSet) -> FrameSet {
        let station = self.station(port);
        let mut selected = FrameSet::EMPTY;
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            if meta.stations.dst() == station {
                selected.insert(index);
                meta.set_forwarding(Forwarding::Send(ROUTER_PORT as u8));
            }
        }
        selected
    }

    /// The reader of a burst from routed `port`.
    #[inline]
    pub fn reader(&mut self, port: usize, vlans: &VlanTable) -> UsualReader<'_> {
        let (station, native) = (self.station(port), vlans.ingress(port, None).unwrap_or(0));
        UsualReader::new(&self.table, station, native, &mut self.notes)
    }

    /// Reads a burst from a port that bridges. Returns whether it is usual, and all of its frames are for the router.
    #[inline]
    pub fn read<P: Packet>(&mut self, burst: &Burst<P>, metas: &[Meta; BURST]) -> bool {
        let is_ours = |meta: &Meta| {
            meta.forwarding() == Forwarding::Send(ROUTER_PORT as u8) && meta.class_bits.is_plain_untagged_ipv4()
        };
        let mut frames = burst.iter().zip(metas).zip(&mut self.notes.destinations);
        frames.all(|((frame, meta), address)| {
            let destination = is_ours(meta).then(|| usual::destination(&self.table.sources, frame.bytes())).flatten();
            *address = destination.unwrap_or_default();
            destination.is_some()
        })
    }

    /// Routes all frames of a usual `burst`, which has been read, and puts their egress ports into `lanes`.
    #[inline]
    pub fn route_usual<P: Packet>(
        &mut self,
        (punter, from): (&mut Punter, RouteContext<'_>),
        burst: &mut Burst<P>,
        (metas, lanes): (&mut [Meta; BURST], &mut Lanes),
    ) -> RoutedBurst {
        let Self { table, bridged, fitting, notes, v4, .. } = self;
        let len = burst.len().min(BURST);
        table.fib.lookup_v4(&notes.destinations[..len], &mut v4.groups[..len]);
        let mut hops = NextHops::new(table, bridged, from, fitting[from.port % MAX_PORTS]);
        let mut exceptions: ArrayVec<(usize, Exception), BURST> = ArrayVec::new();
        for (index, ((frame, meta), &group)) in burst.iter_mut().zip(&mut *metas).zip(&v4.groups).enumerate() {
            match usual::send(&mut hops, frame, meta, group) {
                Ok(egress) => lanes.set(index, egress),
                Err(exception) => exceptions.push((index, exception)),
            }
        }
        let routed = hops.finish(len, exceptions.len());
        for &(index, exception) in &exceptions {
            punter.except(from, burst[index].bytes(), &mut metas[index % BURST], exception);
        }
        RoutedBurst { are_in_lanes: exceptions.is_empty(), ..routed }
    }

    /// Routes those frames of `data` that leave by the router's port.
    #[inline(never)]
    pub fn route_burst<P: Packet>(
        &mut self,
        (punter, from): (&mut Punter, RouteContext<'_>),
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        data: FrameSet,
    ) -> RoutedBurst {
        let none = Egresses { ports: PortSet::EMPTY, are_single: true, are_in_lanes: false };
        let (mut others, mut fragments) = (none, FrameSet::EMPTY);
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
            match any::read(&self.table, &burst[index], meta) {
                Ok(Destination::V4(address)) => self.v4.push(index, address),
                Ok(Destination::Fragment(address)) => {
                    fragments.insert(index);
                    self.v4.push(index, address);
                }
                Ok(Destination::V6(address)) => self.v6.push(index, address),
                Err(exception) => {
                    others.are_single = false;
                    punter.except(from, burst[index].bytes(), meta, exception);
                }
            }
        }
        let routed = self.send_batches((punter, from), burst, metas, fragments);
        RoutedBurst { ports: routed.ports | others.ports, are_single: routed.are_single & others.are_single, ..routed }
    }

    /// Routes the packets of both batches.
    #[inline]
    fn send_batches<P: Packet>(
        &mut self,
        (punter, from): (&mut Punter, RouteContext<'_>),
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        mut fragments: FrameSet,
    ) -> RoutedBurst {
        let Self { table, bridged, fitting, v4, v6, .. } = self;
        v4.look_up(|addresses, groups| table.fib.lookup_v4(addresses, groups));
        v6.look_up(|addresses, groups| table.fib.lookup_v6(addresses, groups));
        let mut hops = NextHops::new(table, bridged, from, fitting[from.port % MAX_PORTS]);
        let mut exceptions = 0;
        for (index, group) in v4.found().chain(v6.found()) {
            let (packet, meta) = (&mut burst[index], &mut metas[index]);
            if let Err(exception) = any::send(&mut hops, packet, meta, group) {
                exceptions += 1;
                fragments.remove(index);
                punter.except(from, packet.bytes(), meta, exception);
            }
        }
        if !fragments.is_empty() {
            from.counters.routed_fragments.add(fragments.len() as u64);
        }
        hops.finish(v4.len + v6.len, exceptions)
    }
}
