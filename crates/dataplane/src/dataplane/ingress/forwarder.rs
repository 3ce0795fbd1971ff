//! The forwarder: finds the egress port of each frame by VLAN and forwarding database, and learns the ports of
//! stations.
//!
//! Each lcore has its own database. Lcores send each other updates on new stations through rings, so all databases
//! agree.

use super::flood_control::FloodControl;
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::notes::BurstNotes;
use crate::forward::fdb::{Admission, Evicted, Learned, Station, StationPair};
use crate::forward::flow_cache::CacheLookup;
use crate::forward::{Fdb, FlowCache, VlanTable};
use crate::plan::counters::LcoreCounters;
use crate::plan::drops::DropReason;
use crate::plan::ring::{Consumer, Producer, lcore_pairs, ring};
use crate::plan::spec::SwitchSpec;
use crate::qos::FloodKind;
use crate::route::{Attachment, ROUTER_PORT};
use crate::sets::{BURST, FrameSet, MAX_PORTS, PortSet};
use crate::units::Ticks;
use crate::wire::MacAddr;

/// Updates that a ring holds. An update that finds no room is sent again with the station's next frame.
const UPDATES: usize = 1024;

/// The forwarding state of one lcore.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub vlans: VlanTable,
    pub fdb: Fdb,
    /// Cached answers of the database, by pair of stations.
    pub cache: FlowCache,
    /// The router's stations in bridged VLANs. No other station may use their addresses.
    own: Box<[Station]>,
    /// The router's port; none if the switch only bridges, since a device may have its number then.
    router: PortSet,
    /// Whether lossless frames may be flooded; for simulation only.
    floods_lossless: bool,
    pub flood_control: FloodControl,
    /// Ports that the operator has shut.
    pub shut: PortSet,
    /// Ports that forward nothing because of a loop.
    blocked: PortSet,
    /// Bridge ports of loops: stations learned there may be elsewhere once a block changes.
    looped: PortSet,
    /// Rings of updates to and from the other lcores.
    updates: Vec<UpdateLink>,
}

/// A station that one lcore has seen, or that gave way there.
#[derive(Debug, Clone, Copy)]
struct FdbUpdate {
    station: Station,
    port: u8,
    is_gone: bool,
}

/// This lcore's ends of the rings of updates to and from one other lcore.
struct UpdateLink {
    sent: Producer<FdbUpdate>,
    received: Consumer<FdbUpdate>,
}

impl std::fmt::Debug for UpdateLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpdateLink").finish_non_exhaustive()
    }
}

/// The VLANs of `spec`. The router is a member of the VLANs of its interfaces.
pub(crate) fn vlans(spec: &SwitchSpec) -> VlanTable {
    let mut vlans = VlanTable::new(spec.ports.iter().map(|port| &port.vlan));
    for interface in spec.routing.iter().flat_map(|routing| &routing.interfaces) {
        vlans.add_router(interface.vlan, ROUTER_PORT);
    }
    vlans
}

/// The forwarding database of `spec`, with the router's stations.
fn fdb(spec: &SwitchSpec, hz: u64) -> Fdb {
    Fdb::new(&spec.whole_fdb(), hz).limited(spec.ports.iter().map(|port| port.fdb_limit))
}

fn own_stations(spec: &SwitchSpec) -> Box<[Station]> {
    let interfaces = spec.routing.iter().flat_map(|routing| &routing.interfaces);
    let bridged = interfaces.filter(|interface| interface.attachment == Attachment::Vlan);
    bridged.map(|interface| Station::new(interface.vlan, interface.mac.to_number())).collect()
}

/// The ingress side of a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IngressContext<'a> {
    pub port: usize,
    /// The port that stands for it in bridging: the head of its link aggregation group, or itself.
    pub bridge_port: usize,
    /// Reason for which an idle port drops frames; `None`: the port takes them.
    pub refusal: Option<DropReason>,
    /// Ports that frames can be forwarded to ([`super::lags::Lags::up`]).
    pub up: PortSet,
    /// Counters of this lcore.
    pub counters: &'a LcoreCounters,
    pub now: Ticks,
}

/// The egress ports of a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Egresses {
    /// Ports by which frames leave. It may contain extra ports when learning invalidated look-ups within the burst;
    /// these only cost the fast path.
    pub ports: PortSet,
    /// Whether each frame leaves by exactly one port.
    pub are_single: bool,
    /// Whether the egress port of each frame is in its lane too.
    pub are_in_lanes: bool,
}

impl Forwarder {
    /// Creates the forwarders of all lcores of `spec`, on a clock of `hz` ticks a second, with only the static entries.
    pub fn fleet(spec: &SwitchSpec, hz: u64) -> Vec<Self> {
        let lcores = usize::from(spec.lcores);
        let mut links: Vec<Vec<UpdateLink>> = (0..lcores).map(|_| Vec::new()).collect();
        for (one, other) in lcore_pairs(lcores) {
            let ((sent, there), (back, received)) = (ring(UPDATES), ring(UPDATES));
            links[one].push(UpdateLink { sent, received });
            links[other].push(UpdateLink { sent: back, received: there });
        }
        let forwarder = |updates| Self {
            vlans: vlans(spec),
            fdb: fdb(spec, hz),
            own: own_stations(spec),
            router: PortSet::only_if(spec.routing.is_some(), ROUTER_PORT),
            cache: FlowCache::default(),
            floods_lossless: spec.floods_lossless,
            flood_control: FloodControl::new(spec, hz),
            shut: PortSet::EMPTY,
            blocked: PortSet::EMPTY,
            looped: PortSet::EMPTY,
            updates,
        };
        links.into_iter().map(forwarder).collect()
    }

    /// Begins the look-ups of a burst of `frames` from bridge port `port`; `None` while the flow cache is bypassed.
    #[inline]
    pub fn begin(&mut self, port: usize, frames: usize) -> Option<CacheLookup> {
        self.cache.begin(port, frames, &self.fdb)
    }

    /// Prefetches the entries of the database for a frame.
    #[inline]
    fn prefetch(&self, stations: StationPair) {
        self.fdb.prefetch(stations.dst());
        self.fdb.prefetch(stations.src());
    }

    /// Decides the forwarding of each frame of `data`, a subset of a burst of `frames` frames, and learns its source.
    #[inline]
    pub fn forward(
        &mut self,
        from: IngressContext<'_>,
        notes: &mut BurstNotes,
        frames: usize,
        data: FrameSet,
        lookup: Option<CacheLookup>,
    ) -> Egresses {
        let (mut hits, mut misses, is_all) = (PortSet::EMPTY, data, data == FrameSet::first(frames));
        if let Some(lookup) = lookup {
            (hits, misses) = if is_all {
                self.forward_all_hits(lookup, notes, frames)
            } else {
                self.forward_hits(lookup, notes, data)
            };
        }
        if misses.is_empty() {
            return Egresses { ports: hits, are_single: true, are_in_lanes: is_all };
        }
        misses.iter().for_each(|index| self.prefetch(notes.metas[index % BURST].stations));
        let (known, misses) = self.forward_known(from, notes, misses, lookup);
        let ports = hits | known;
        if misses.is_empty() {
            return Egresses { ports, are_single: true, are_in_lanes: is_all };
        }
        let missed = self.forward_misses(from, &mut notes.metas, data, misses, lookup);
        Egresses { ports: ports | missed.ports, ..missed }
    }

    /// Does the work of [`Forwarder::forward`] without the flow cache.
    pub fn forward_uncached(
        &mut self,
        from: IngressContext<'_>,
        metas: &mut [Meta; BURST],
        data: FrameSet,
    ) -> Egresses {
        self.forward_misses(from, metas, data, data, None)
    }

    /// Forwards those of the first `frames` frames whose pair of stations is in the cache. Returns their egress ports,
    /// and the cache misses.
    ///
    /// Not inlined: the loop needs the registers that its caller would keep.
    #[inline(never)]
    fn forward_all_hits(&self, lookup: CacheLookup, notes: &mut BurstNotes, frames: usize) -> (PortSet, FrameSet) {
        let BurstNotes { metas, lanes } = notes;
        let mut egresses = PortSet::EMPTY;
        for (index, (meta, &place)) in metas[..frames].iter_mut().zip(&lanes.places).enumerate() {
            let answer = self.cache.get(lookup, place, meta.stations);
            egresses.insert(answer.port());
            // No port if it is a miss: the caller then forwards the frame by the database.
            let egress = answer.egress_or_miss();
            lanes.egresses.set(index, egress);
            meta.send_or_miss(egress);
        }
        let misses = FrameSet::first(frames) - lanes.egresses.below_64();
        if misses.is_empty() {
            return (egresses, FrameSet::EMPTY);
        }
        let hits = FrameSet::first(frames) - misses;
        (hits.iter().map(|index| lanes.egresses.get(index).into()).collect(), misses)
    }

    /// Does the work of [`Forwarder::forward_all_hits`] for the frames `data`.
    #[inline(never)]
    fn forward_hits(&self, lookup: CacheLookup, notes: &mut BurstNotes, data: FrameSet) -> (PortSet, FrameSet) {
        let BurstNotes { metas, lanes } = notes;
        let (mut egresses, mut misses) = (PortSet::EMPTY, FrameSet::EMPTY);
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            match self.cache.get(lookup, lanes.places[index % BURST], meta.stations).hit() {
                Some(egress) => {
                    egresses.insert(egress);
                    meta.send(egress as u8);
                }
                None => misses.insert(index),
            }
        }
        (egresses, misses)
    }

    /// Forwards the `misses` among `data`, and learns. A frame that changes the database invalidates all answers, so
    /// every later frame is a miss.
    #[inline(never)]
    fn forward_misses(
        &mut self,
        from: IngressContext<'_>,
        metas: &mut [Meta; BURST],
        data: FrameSet,
        mut misses: FrameSet,
        mut lookup: Option<CacheLookup>,
    ) -> Egresses {
        let none = Egresses { ports: PortSet::EMPTY, are_single: true, are_in_lanes: false };
        let (mut egresses, mut is_first, mut version) = (none, true, self.fdb.version());
        while let Some(index) = misses.pop_lowest() {
            let meta = &mut metas[index % BURST];
            // Frames of one pair come in trains: an earlier miss may have cached this pair.
            let cached = lookup.filter(|_| !std::mem::take(&mut is_first));
            if let Some(egress) = cached.and_then(|lookup| self.cache.find(lookup, meta.stations)) {
                meta.send(egress as u8);
                egresses.ports.insert(egress);
                continue;
            }
            let forwarding = self.look_up(from, meta, lookup);
            meta.set_forwarding(forwarding);
            match forwarding {
                Forwarding::Send(egress) => egresses.ports.insert(usize::from(egress) % MAX_PORTS),
                _ => egresses.are_single = false,
            }
            if lookup.is_some() {
                self.cache.count_miss();
            }
            if self.fdb.version() != version {
                // The epoch of the cache has ended too. A new one for each such frame would empty a part of the cache
                // each time, so the rest of the burst does without.
                (version, lookup) = (self.fdb.version(), None);
                misses = data - FrameSet::first(index + 1);
            }
        }
        egresses
    }

    /// Forwards a frame by [`Forwarder::known_egress`], else by [`Forwarder::decide`]. Caches the answer of the first.
    #[inline]
    fn look_up(&mut self, from: IngressContext<'_>, meta: &Meta, lookup: Option<CacheLookup>) -> Forwarding {
        let Some(egress) = self.known_egress(from, meta) else { return self.decide(from, meta) };
        if let Some(lookup) = lookup {
            self.cache.insert(lookup, meta.stations, egress);
        }
        Forwarding::Send(egress as u8)
    }

    /// The egress port of a frame whose source is known at its port, and whose destination is known behind another port
    /// of its VLAN: the short path of [`Forwarder::decide`].
    #[inline(always)]
    pub(super) fn known_egress(&self, from: IngressContext<'_>, meta: &Meta) -> Option<usize> {
        let others = from.up - PortSet::only(from.bridge_port);
        let (is_up, allowed) = (from.up.contains(from.bridge_port), self.vlans.members(meta.vlan()) & others);
        // No entry exists for a group address or for VLAN 0.
        let egress = self.fdb.lookup(meta.stations.dst())?;
        let is_known = is_up & allowed.contains(egress)
            && self.fdb.is_known(meta.stations.src(), self.fdb.just_seen(from.bridge_port))
            && !self.own.contains(&meta.stations.src());
        is_known.then_some(egress)
    }

    /// Forwards any frame, and learns its source (IEEE 802.1Q clause 8).
    #[inline(never)]
    fn decide(&mut self, from: IngressContext<'_>, meta: &Meta) -> Forwarding {
        let (src, dst) = (meta.stations.src().mac(), meta.stations.dst().mac());
        // IEEE 802.1Q clause 8, in substance: only individual addresses are learned.
        if src.is_group() || src.is_zero() {
            return Forwarding::Drop(DropReason::SourceInvalid);
        }
        // IEEE 802.1Q clause 8.6.3: frames to reserved addresses, such as LLDP and LACP, belong to a link and to no
        // VLAN. They are not relayed, filtered or learned from.
        // Probes of the loop guard are read first: those of this switch end here, at blocked ports too.
        if dst.is_link_local() || dst == MacAddr::LOOPBACK_ASSISTANCE {
            return Forwarding::Link;
        }
        self.bridge(from, meta)
    }

    /// Forwards a frame that does not belong to the link of its port, and learns its source.
    pub fn bridge(&mut self, from: IngressContext<'_>, meta: &Meta) -> Forwarding {
        let (dst, vlan) = (meta.stations.dst().mac(), meta.vlan());
        // IEEE 802.1Q clause 8.6.2: ingress filtering, always enabled here.
        if vlan == 0 {
            return Forwarding::Drop(match () {
                () if self.blocked.contains(from.port) => DropReason::LoopBlocked,
                () => from.refusal.unwrap_or(DropReason::VlanNotAllowed),
            });
        }
        if self.own.contains(&meta.stations.src()) {
            return Forwarding::Drop(DropReason::OwnSource);
        }
        // A port that went down may still have frames in its ring. Their sources are not learned, because they are
        // unreachable.
        if from.up.contains(from.bridge_port) {
            match self.learn(meta.stations.src(), from.bridge_port) {
                Learned::Known | Learned::Refreshed => {}
                Learned::New => from.counters.fdb_learned.add(1),
                Learned::Full => from.counters.fdb_full.add(1),
                Learned::Limited => from.counters.fdb_refused[from.bridge_port].add(1),
            }
        }
        if dst.is_group() {
            let kind = if dst == MacAddr::BROADCAST { FloodKind::Broadcast } else { FloodKind::Multicast };
            return self.flood(from, meta, kind);
        }
        match self.fdb.lookup(meta.stations.dst()) {
            Some(egress) if egress == from.bridge_port => Forwarding::Drop(DropReason::SamePort),
            Some(egress) if !from.up.contains(egress) => {
                let is_shut = self.shut.contains(egress);
                Forwarding::Drop(if is_shut { DropReason::AdminDown } else { DropReason::EgressDown })
            }
            Some(egress) if !self.vlans.members(vlan).contains(egress) => self.left_vlan(from, meta, egress),
            Some(egress) => Forwarding::Send(egress as u8),
            None => self.flood(from, meta, FloodKind::Unknown),
        }
    }

    /// Forwards a frame whose destination has an entry at a port outside of the frame's VLAN. A learned station is
    /// where the port was a member once, so it is unknown now. A static entry stays.
    #[cold]
    fn left_vlan(&mut self, from: IngressContext<'_>, meta: &Meta, egress: usize) -> Forwarding {
        if self.blocked.contains(egress) {
            return Forwarding::Drop(DropReason::LoopBlocked);
        }
        if !self.fdb.forget(meta.stations.dst()) {
            return Forwarding::Drop(DropReason::VlanNotAllowed);
        }
        self.flood(from, meta, FloodKind::Unknown)
    }

    /// Removes void stations of one bucket of the database, and those of VLANs that their ports have left.
    pub fn sweep(&mut self) {
        let Self { fdb, vlans, .. } = self;
        fdb.sweep(|station, port| vlans.reaches(port, station.vlan()));
    }

    /// Takes other VLANs of the ports, and leaves those before in `vlans`. Blocked ports stay blocked. Stations of a
    /// VLAN that their port leaves get no more frames, and [`Forwarder::sweep`] removes them.
    pub fn swap_vlans(&mut self, vlans: &mut VlanTable) {
        std::mem::swap(&mut self.vlans, vlans);
        for port in self.blocked.iter() {
            self.vlans.set_member(port, false);
        }
        self.fdb.change();
    }

    /// Floods a frame of `kind`, unless it is lossless or beyond the limit of its port.
    ///
    /// Flooded lossless frames wait in queues of unrelated ports and can deadlock a fabric (Guo et al., SIGCOMM 2016).
    ///
    /// IEEE 802.1Q clause 8, in substance: a frame without an entry goes to all other ports of its VLAN. The drop of
    /// lossless frames deviates from it.
    #[cold]
    fn flood(&mut self, from: IngressContext<'_>, meta: &Meta, kind: FloodKind) -> Forwarding {
        if meta.is_lossless() && !self.floods_lossless {
            return Forwarding::Drop(match kind {
                FloodKind::Unknown => DropReason::LosslessUnknown,
                FloodKind::Broadcast | FloodKind::Multicast => DropReason::LosslessGroup,
            });
        }
        if self.flooded_to(from.bridge_port, meta, from.up).is_empty() {
            return Forwarding::Drop(DropReason::NoMember);
        }
        self.flood_control.refuse(from.port, kind, from.now).map_or(Forwarding::Flood, Forwarding::Drop)
    }

    /// The ports to which a frame from bridge port `port` is flooded: those of its VLAN in `up`, except `port`. The
    /// router gets frames to groups, but none to unknown stations, because its own stations are known.
    pub fn flooded_to(&self, port: usize, meta: &Meta, up: PortSet) -> PortSet {
        let router = if meta.stations.dst().mac().is_group() { PortSet::EMPTY } else { self.router };
        self.vlans.members(meta.vlan()) & (up - PortSet::only(port) - router)
    }

    /// Sets the ports that forward nothing: they are in no VLAN. `looped` are the bridge ports of the loops for which
    /// ports are blocked.
    ///
    /// A change forgets the stations behind ports whose block has changed, and behind ports that come to a loop or
    /// leave one. Circulating frames come in by these alone, and teach wrong stations there. The end of a block can
    /// move stations from any port of its loop. Stations behind other ports stay, also those of other loops, so that no
    /// lossless frame to them is dropped.
    pub fn set_blocked(&mut self, blocked: PortSet, looped: PortSet) {
        if (self.blocked, self.looped) == (blocked, looped) {
            return;
        }
        let changed = blocked ^ self.blocked;
        for port in changed.iter() {
            self.vlans.set_member(port, !blocked.contains(port));
        }
        for port in (changed | (self.looped ^ looped)).iter() {
            self.fdb.forget_port(port);
        }
        (self.blocked, self.looped) = (blocked, looped);
    }

    /// Learns that `station` is at `port`, and sends the other lcores an update if they need one.
    pub fn learn(&mut self, station: Station, port: usize) -> Learned {
        debug_assert!(!station.mac().is_group() && !station.mac().is_zero(), "no station has such an address");
        let mut learned = self.fdb.learn(station, port);
        if matches!(learned, Learned::Limited | Learned::Full) && self.can_send_updates() {
            let admission = self.fdb.learn_in_room(station, port);
            self.send_gone(&admission);
            learned = admission.learned;
        }
        if matches!(learned, Learned::New | Learned::Refreshed) && !self.updates.is_empty() {
            self.send_update(FdbUpdate { station, port: port as u8, is_gone: false });
        }
        learned
    }

    /// Whether the other lcores can be told that two stations gave way, and that another is there. Without that,
    /// stations do not give way, since the databases would differ until the station ages.
    #[cold]
    fn can_send_updates(&mut self) -> bool {
        self.updates.iter_mut().all(|link| link.sent.room() >= 3)
    }

    fn send_gone(&mut self, admission: &Admission) {
        if self.updates.is_empty() {
            return;
        }
        for Evicted { station, port } in admission.evicted.into_iter().flatten() {
            self.send_update(FdbUpdate { station, port: port as u8, is_gone: true });
        }
    }

    #[cold]
    fn send_update(&mut self, update: FdbUpdate) {
        let mut is_sent = true;
        for link in &mut self.updates {
            is_sent &= link.sent.push(update).is_ok();
            link.sent.publish();
        }
        if !is_sent && !update.is_gone {
            self.fdb.readvertise(update.station);
        }
    }

    /// Learns the stations that other lcores have seen.
    #[inline]
    pub fn apply_fdb_updates(&mut self, counters: &LcoreCounters) {
        for index in 0..self.updates.len() {
            if self.updates[index].received.refresh() == 0 {
                continue;
            }
            while let Some(update) = self.updates[index].received.pop() {
                self.apply_fdb_update(update, counters);
            }
            self.updates[index].received.release();
        }
    }

    fn apply_fdb_update(&mut self, update: FdbUpdate, counters: &LcoreCounters) {
        let FdbUpdate { station, port, is_gone } = update;
        let port = usize::from(port);
        if is_gone {
            self.fdb.remove(Evicted { station, port });
            return;
        }
        // Learned by another lcore before it knew that the port is blocked.
        if self.blocked.contains(port) {
            return;
        }
        // The link state of the port is checked when a frame is forwarded to it.
        let mut learned = self.fdb.learn_remote(station, port);
        if learned == Learned::Full && self.can_send_updates() {
            let admission = self.fdb.learn_remote_in_room(station, port);
            self.send_gone(&admission);
            learned = admission.learned;
        }
        if learned == Learned::Full {
            counters.fdb_full.add(1);
        }
    }
}
