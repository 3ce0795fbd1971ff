//! Punt: frames for the control plane. Packets that the router does not route are dropped, with an answer to their
//! sender if one is due, or they are for the switch itself. Frames of a link end at its port.

use std::sync::Arc;

use super::peers::{BFD_ECHO_PORT, BFD_MULTIHOP_PORT, BFD_PORT, BGP_PORT, is_peer};
use super::police::{PoliceAs, Policers};
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::ingress::forwarder::Forwarder;
use crate::plan::counters::LcoreCounters;
use crate::plan::drops::DropReason;
use crate::plan::exception::ExceptionPort;
use crate::plan::own_probes::OwnProbes;
use crate::plan::spec::SwitchSpec;
use crate::route::{Action, PuntCause, RouteTable};
use crate::sets::{MAX_PORTS, PortSet};
use crate::units::Ticks;
use crate::wire::ip::{self, Ipv4, Ipv6};
use crate::wire::link_protocol::LinkProtocol;
use crate::wire::loop_probe::LoopProbe;
use crate::wire::parse::{ETHERTYPE_ARP, ICMP, ICMPV6, L3, TCP, UDP};

/// The surroundings of a burst in the route stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteContext<'a> {
    /// Ingress port.
    pub port: usize,
    /// Ports that frames can be forwarded to ([`super::lags::Lags::up`]).
    pub up: PortSet,
    pub forwarder: &'a Forwarder,
    /// Counters of this lcore.
    pub counters: &'a LcoreCounters,
    pub now: Ticks,
}

/// The fate of a packet that the router does not route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exception {
    /// Dropped.
    Drop(DropReason),
    /// Dropped, and punted too: its sender gets an ICMP error.
    Answer(DropReason, PuntCause),
    /// For the switch itself.
    Local,
    /// The next hop is not known. A lossy packet may wait for it in the control plane; a lossless one is dropped, since
    /// it would hold its sender.
    Resolve,
}

impl Exception {
    /// The fate of a packet that no route covers.
    pub const fn without_route() -> Self {
        Self::Answer(DropReason::NoRoute, PuntCause::Unreachable)
    }

    /// The fate of packets of a group with this action.
    #[cold]
    pub fn of(action: Action) -> Self {
        match action {
            Action::NoRoute | Action::Forward => Self::without_route(),
            Action::Local => Self::Local,
            Action::Blackhole => Self::Drop(DropReason::Blackhole),
            Action::Martian => Self::Drop(DropReason::Martian),
            Action::Glean(_) | Action::Incomplete(_) => Self::Resolve,
        }
    }
}

/// The way of one lcore to the control plane.
#[derive(Debug)]
pub(crate) struct Punter {
    policers: Policers,
    /// The port whose share a frame uses, by ingress port: members of a group use that of its head.
    payers: [u8; MAX_PORTS],
    /// Ports that take slow protocols: members of negotiated groups.
    negotiating: PortSet,
    /// The own probes; `None`: the switch sends none.
    pub probes: Option<Arc<OwnProbes>>,
    /// `None`: no control plane is attached.
    pub port: Option<ExceptionPort>,
    /// The routes, which tell peers from strangers; `None`: the switch has none yet.
    pub routes: Option<Arc<RouteTable>>,
}

impl Punter {
    /// Creates the way of `lcore` of `spec`, whose clock has `hz` ticks a second.
    pub fn new(spec: &SwitchSpec, lcore: usize, hz: u64) -> Self {
        let payers: [u8; MAX_PORTS] = std::array::from_fn(|port| spec.lags.bridge_port(port) as u8);
        // A group is one link: its hosts choose the member of each frame.
        let ports = spec.ports.iter().zip(payers).filter(|(port, _)| usize::from(port.lcore) == lcore);
        let links: PortSet = ports.map(|(_, payer)| usize::from(payer)).collect();
        let groups = spec.lags.groups.iter().filter(|group| group.is_negotiated);
        let negotiating = groups.fold(PortSet::EMPTY, |all, group| all | group.ports);
        Self { policers: Policers::new(links.len(), hz), payers, negotiating, probes: None, port: None, routes: None }
    }

    /// Decides the forwarding of a packet that is not routed, and punts it if it must be.
    #[cold]
    pub fn except(&mut self, from: RouteContext<'_>, bytes: &[u8], meta: &mut Meta, mut exception: Exception) {
        if exception == Exception::Resolve {
            // A packet that is to be dropped all the same must not wait before.
            exception = unsendable(bytes, meta).unwrap_or(exception);
        }
        let forwarding = match exception {
            Exception::Drop(reason) => Forwarding::Drop(reason),
            Exception::Answer(reason, cause) => {
                self.punt(from, bytes, meta, cause);
                Forwarding::Drop(reason)
            }
            Exception::Local => match cause_of(bytes, meta) {
                None => Forwarding::Drop(DropReason::NotRoutable),
                Some(cause) => {
                    let police_as = self.police_as(bytes, meta, cause);
                    let is_punted = self.punt_as(from, bytes, meta, cause, police_as);
                    if is_punted { Forwarding::Consumed } else { Forwarding::Drop(DropReason::PuntPoliced) }
                }
            },
            Exception::Resolve => {
                let is_punted = self.punt(from, bytes, meta, PuntCause::Resolve);
                if is_punted && !meta.is_lossless() {
                    Forwarding::Consumed
                } else {
                    Forwarding::Drop(DropReason::NeighbourIncomplete)
                }
            }
        };
        meta.set_forwarding(forwarding);
    }

    /// Punts the copy of a flooded frame that the router gets as a member of the VLAN.
    ///
    /// # Errors
    /// The reason why the router does not get it: it has no use for the frame, or the frame is policed.
    #[cold]
    pub fn flooded(&mut self, from: RouteContext<'_>, bytes: &[u8], meta: &Meta) -> Result<(), DropReason> {
        let Some(cause) = cause_of(bytes, meta) else { return Err(DropReason::NoMember) };
        if self.punt(from, bytes, meta, cause) { Ok(()) } else { Err(DropReason::PuntPoliced) }
    }

    /// Punts a frame that belongs to the link of its port: LLDP or LACP.
    ///
    /// # Errors
    /// The reason why the control plane does not get it: there is none, it is another protocol, or it is policed.
    #[cold]
    pub fn of_link(&mut self, from: RouteContext<'_>, bytes: &[u8], meta: &Meta) -> Result<(), DropReason> {
        let cause = match LinkProtocol::of(bytes) {
            LinkProtocol::SpanningTree => return Err(DropReason::Bpdu),
            LinkProtocol::Lldp => Some(PuntCause::Lldp),
            LinkProtocol::Slow => self.negotiating.contains(from.port).then_some(PuntCause::Lacp),
            LinkProtocol::Other => None,
        };
        let Some(cause) = cause.filter(|_| self.port.is_some()) else { return Err(DropReason::LinkLocal) };
        if self.punt(from, bytes, meta, cause) { Ok(()) } else { Err(DropReason::PuntPoliced) }
    }

    /// Whether this run of the switch has sent `probe`.
    pub fn is_own_probe(&self, probe: &LoopProbe) -> bool {
        self.probes.as_ref().is_some_and(|own| own.has_sent(probe))
    }

    /// Punts an own probe that has come back.
    ///
    /// A probe can circulate for ever behind a port, and each round adds others. Probes of ended rounds are refused
    /// before the policer: otherwise they would use it up, and hardly any probe that counts would pass. The check costs
    /// a load and a comparison, so that a flood stays cheap. The seal is checked behind the policer, which bounds the
    /// hashes: forged probes of recent rounds use up the allowance of the port of their sender alone.
    ///
    /// # Errors
    /// The reason why the control plane does not get it: there is none, the probe is policed, or its round has ended.
    #[cold]
    pub fn own_probe(
        &mut self,
        from: RouteContext<'_>,
        bytes: &[u8],
        probe: &LoopProbe,
        meta: &Meta,
    ) -> Result<(), DropReason> {
        if !self.probes.as_ref().is_some_and(|own| own.is_recent(probe)) {
            from.counters.count_policed(PuntCause::LoopProbe, from.port);
            return Err(DropReason::PuntPoliced);
        }
        let is_punted = self.punt(from, bytes, meta, PuntCause::LoopProbe);
        if is_punted { Ok(()) } else { Err(DropReason::PuntPoliced) }
    }

    /// The policers for a frame of `cause` to the router's own MAC address.
    fn police_as(&self, bytes: &[u8], meta: &Meta, cause: PuntCause) -> PoliceAs {
        let packet = bytes.get(usize::from(meta.desc.l3_offset())..).unwrap_or_default();
        let is_peer = |table: &Arc<RouteTable>| is_peer(table, packet, meta.class_bits.l3(), meta.vlan());
        match cause {
            // An ARP reply, and a neighbour advertisement.
            PuntCause::Arp if packet.get(6..8) == Some(&[0, 2]) => PoliceAs::Answer,
            PuntCause::NeighbourDiscovery if packet.get(40) == Some(&136) => PoliceAs::Answer,
            PuntCause::Bgp | PuntCause::Bfd if !self.routes.as_ref().is_some_and(is_peer) => PoliceAs::Stranger,
            _ => PoliceAs::Cause,
        }
    }

    /// Gives the control plane a copy of a frame, as far as the policers of its cause allow.
    fn punt(&mut self, from: RouteContext<'_>, bytes: &[u8], meta: &Meta, cause: PuntCause) -> bool {
        self.punt_as(from, bytes, meta, cause, PoliceAs::Cause)
    }

    /// Gives the control plane a copy of a frame. Returns false if its policers refuse it, or there is no buffer for
    /// its port.
    fn punt_as(
        &mut self,
        from: RouteContext<'_>,
        bytes: &[u8],
        meta: &Meta,
        cause: PuntCause,
        police_as: PoliceAs,
    ) -> bool {
        let Some(port) = &mut self.port else { return false };
        let payer = match cause {
            // Each member has a link of its own.
            PuntCause::Lldp | PuntCause::Lacp | PuntCause::LoopProbe => from.port,
            _ => usize::from(self.payers[from.port % MAX_PORTS]),
        };
        if !self.policers.pass(cause, police_as, payer, from.now) {
            from.counters.count_policed(cause, from.port);
            return false;
        }
        let is_punted = port.punt(bytes, from.port as u8, |frame| {
            (frame.vlan, frame.cause) = (meta.vlan(), cause);
            frame.l3_offset = meta.desc.l3_offset();
            frame.may_wait = cause == PuntCause::Resolve && !meta.is_lossless();
        });
        (if is_punted { &from.counters.punted[cause as usize] } else { &from.counters.punt_full }).add(1);
        is_punted
    }
}

/// The fate of a packet that the router would not send even if it knew the next hop; `None` if it would.
fn unsendable(bytes: &[u8], meta: &Meta) -> Option<Exception> {
    let packet = bytes.get(usize::from(meta.desc.l3_offset())..)?;
    let (hops, is_link_local) = match meta.class_bits.l3() {
        L3::V4 => Ipv4::read(packet).map(|ipv4| (ipv4.ttl, ip::is_link_local_v4(ipv4.src)))?,
        _ => Ipv6::read(packet).map(|ipv6| (ipv6.hop_limit, ip::is_link_local_v6(ipv6.src)))?,
    };
    if hops <= 1 {
        return Some(Exception::Answer(DropReason::TtlExpired, PuntCause::TimeExceeded));
    }
    is_link_local.then_some(Exception::Drop(DropReason::Martian))
}

/// The cause for which a frame to the switch itself is punted; `None` if the router has no use for it.
fn cause_of(bytes: &[u8], meta: &Meta) -> Option<PuntCause> {
    let offset = usize::from(meta.desc.l3_offset());
    let packet = bytes.get(offset..)?;
    match meta.class_bits.l3() {
        L3::Other => {
            let ethertype = u16::from_be_bytes(*bytes.get(offset.checked_sub(2)?..)?.first_chunk()?);
            (ethertype == ETHERTYPE_ARP).then_some(PuntCause::Arp)
        }
        L3::V4 => {
            let ipv4 = Ipv4::read(packet)?;
            Some(cause_of_segment(ipv4.protocol, ipv4.ports(packet)))
        }
        L3::V6 => {
            let ipv6 = Ipv6::read(packet)?;
            if ipv6.next_header == ICMPV6 {
                // RFC 4861 section 4: router solicitation (133) to redirect (137). Section 7.1 discards those with
                // another hop limit, which a router may have sent on.
                let is_discovery = packet.get(40).is_some_and(|kind| (133..=137).contains(kind));
                let is_discovery = is_discovery && ipv6.hop_limit == 255;
                return Some(if is_discovery { PuntCause::NeighbourDiscovery } else { PuntCause::Icmp });
            }
            Some(cause_of_segment(ipv6.next_header, ipv6.ports(packet)))
        }
    }
}

fn cause_of_segment(protocol: u8, ports: u32) -> PuntCause {
    let (source, destination) = ((ports >> 16) as u16, ports as u16);
    match protocol {
        ICMP => PuntCause::Icmp,
        TCP if source == BGP_PORT || destination == BGP_PORT => PuntCause::Bgp,
        UDP if matches!(destination, BFD_PORT | BFD_ECHO_PORT | BFD_MULTIHOP_PORT) => PuntCause::Bfd,
        _ => PuntCause::Local,
    }
}
