//! Link aggregation: the members by which frames to a group leave, and the groups that can carry any.
//!
//! Forwarding and routing know a group by its head ([`crate::forward::lag`]). [`Lags::resolve`] follows them: it gives
//! each frame to a group the member that its flow has. All later stages know ports of devices alone.

use super::forwarder::Egresses;
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::frame::notes::BurstNotes;
use crate::forward::lag::{BUCKETS, member_of};
use crate::forward::{LagState, LagsSpec};
use crate::io::{Burst, Packet};
use crate::plan::drops::DropReason;
use crate::plan::spec::SwitchSpec;
use crate::route::{ROUTER_PORT, hash::FlowHash};
use crate::sets::{MAX_PORTS, PortSet};
use crate::wire::ip::{Ipv4, Ipv6};
use crate::wire::parse::L3;

/// Distinguishes the hash from that of next hops. With one hash for both, the flows of a next hop would share few of
/// the members behind it.
const SALT: u64 = 0x1a6;

/// The groups as one lcore uses them.
#[derive(Debug)]
pub(crate) struct Lags {
    /// Ports that frames can be forwarded to: those with a link that are in no group, heads of groups with enough
    /// active members, and the router's.
    pub up: PortSet,
    /// Heads of groups.
    pub heads: PortSet,
    /// Ports that take no frames except those of their link: members that are not active, and outputs of mirrors.
    pub idle: PortSet,
    /// Outputs of mirrors. They are idle for ever.
    outputs: PortSet,
    spec: LagsSpec,
    hash: FlowHash,
    state: LagState,
    /// The port that stands for each port in bridging.
    bridge_ports: [u8; MAX_PORTS],
    /// The group of each head.
    group_of: [u8; MAX_PORTS],
    groups: Box<[Group]>,
}

#[derive(Debug)]
struct Group {
    /// Members that may send now, and the member of each bucket: of all members if there is none.
    active: PortSet,
    buckets: Box<[u8; BUCKETS]>,
}

impl Lags {
    /// Creates the groups of `spec` in their initial state, with all links up.
    pub fn new(switch: &SwitchSpec) -> Self {
        let spec = &switch.lags;
        let number = |port: usize| spec.bridge_port(port) as u8;
        let mut group_of = [0; MAX_PORTS];
        for (index, group) in spec.groups.iter().enumerate() {
            group_of[group.head()] = index as u8;
        }
        let group = |_| Group { active: PortSet::EMPTY, buckets: Box::new([0; BUCKETS]) };
        let mut lags = Self {
            up: PortSet::EMPTY,
            heads: spec.groups.iter().map(crate::forward::LagSpec::head).collect(),
            idle: PortSet::EMPTY,
            outputs: switch.mirror.outputs,
            hash: FlowHash::new(spec.hash_seed ^ SALT, spec.is_symmetric),
            state: LagState::initial(spec),
            bridge_ports: std::array::from_fn(number),
            group_of,
            groups: spec.groups.iter().map(group).collect(),
            spec: spec.clone(),
        };
        lags.update(PortSet::first(switch.ports.len()) | PortSet::only_if(switch.routing.is_some(), ROUTER_PORT));
        lags
    }

    /// The port that stands for `port` in bridging.
    #[inline]
    pub fn bridge_port(&self, port: usize) -> usize {
        usize::from(self.bridge_ports[port % MAX_PORTS])
    }

    /// Takes a state of the members, which [`Lags::update`] applies.
    pub fn set_state(&mut self, state: LagState) {
        self.state = state;
    }

    /// The reason for which a port that is idle drops frames.
    pub fn refusal(&self, port: usize) -> DropReason {
        if self.outputs.contains(port) { DropReason::MirrorOutput } else { DropReason::LagInactive }
    }

    /// Members that keep their frames for now.
    pub fn closed(&self) -> PortSet {
        self.state.closed
    }

    /// Applies the state of the members, and the links: the ports `up` have one. Returns the bridge ports that frames
    /// cannot be forwarded to any more.
    #[cold]
    pub fn update(&mut self, up: PortSet) -> PortSet {
        let before = self.up;
        self.up = self.spec.bridge_ports_up(up, self.state.distributing) - self.outputs;
        // A partner that hears of collecting sends at once, so that a member may take frames before its group is up.
        self.idle = (self.spec.members() - self.state.collecting) | self.outputs;
        for (spec, group) in self.spec.groups.iter().zip(&mut self.groups) {
            let active = spec.ports & up & self.state.distributing;
            if !spec.is_negotiated && !self.up.contains(spec.head()) {
                self.idle |= spec.ports;
            }
            if group.active == active {
                continue;
            }
            group.active = active;
            for (number, bucket) in group.buckets.iter_mut().enumerate() {
                *bucket = member_of(number, spec.ports, active).unwrap_or(0);
            }
        }
        before - self.up
    }

    /// All members of the groups of `ports`, and the other `ports`.
    pub fn whole(&self, ports: PortSet) -> PortSet {
        self.spec.groups.iter().fold(ports, |all, group| {
            let is_met = !(group.ports & ports).is_empty();
            all | if is_met { group.ports } else { PortSet::EMPTY }
        })
    }

    /// Gives each frame of `burst` that leaves by a group its member. `egresses` are the ports by which frames leave,
    /// before and after.
    #[inline(never)]
    pub fn resolve<P: Packet>(&self, burst: &Burst<P>, notes: &mut BurstNotes, mut egresses: Egresses) -> Egresses {
        let BurstNotes { metas, lanes } = notes;
        egresses.ports -= self.heads;
        for (index, (packet, meta)) in burst.iter().zip(metas).enumerate() {
            let Forwarding::Send(egress) = meta.forwarding() else { continue };
            if !self.heads.contains(egress.into()) {
                continue;
            }
            match self.member(egress.into(), packet, meta) {
                Some(member) => {
                    egresses.ports.insert(member);
                    lanes.egresses.set(index, member as u8);
                    meta.send(member as u8);
                }
                None => {
                    (egresses.are_single, egresses.are_in_lanes) = (false, false);
                    meta.set_forwarding(Forwarding::Drop(DropReason::EgressDown));
                }
            }
        }
        egresses
    }

    /// The port by which a frame to bridge port `egress` leaves: the member that its flow has, or the port itself.
    /// `None`: no member is active.
    #[inline]
    pub fn member(&self, egress: usize, packet: &impl Packet, meta: &Meta) -> Option<usize> {
        if !self.heads.contains(egress) {
            return Some(egress);
        }
        let group = &self.groups[usize::from(self.group_of[egress % MAX_PORTS])];
        // The product scales the hash to a bucket.
        let bucket = (u64::from(flow_hash(self.hash, packet.bytes(), meta)) * BUCKETS as u64) >> 32;
        (!group.active.is_empty()).then(|| usize::from(group.buckets[bucket as usize % BUCKETS]))
    }

    /// The port by which a frame of the switch itself to bridge port `egress` leaves. All take one member, so that they
    /// keep their order.
    pub fn first_member(&self, egress: usize) -> Option<usize> {
        if !self.heads.contains(egress) {
            return Some(egress);
        }
        self.groups[usize::from(self.group_of[egress % MAX_PORTS])].active.lowest()
    }
}

/// Hash of the flow of a frame, by the fields that select its next hop ([`crate::route::hash`]); of its stations if it
/// is no IP packet.
#[inline]
fn flow_hash(hash: FlowHash, bytes: &[u8], meta: &Meta) -> u32 {
    let packet = bytes.get(usize::from(meta.desc.l3_offset())..).unwrap_or_default();
    let of_ip = match meta.class_bits.l3() {
        L3::V4 => Ipv4::read(packet).map(|ip| hash.v4(ip.src, ip.dst, ip.protocol, ip.ports(packet))),
        L3::V6 => Ipv6::read(packet).map(|ip| hash.v6(ip.src, ip.dst, ip.next_header, ip.ports(packet), ip.label)),
        L3::Other => None,
    };
    of_ip.unwrap_or_else(|| {
        let (src, dst) = (meta.stations.src().mac(), meta.stations.dst().mac());
        hash.stations(src.to_number(), dst.to_number(), meta.vlan())
    })
}
