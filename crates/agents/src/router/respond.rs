//! Punted frames: neighbours are learned from them, packets wait for their next hop, and senders get answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Router;
use super::frames::{self, Discovery, IcmpError};
use super::groups::Groups;
use super::neighbours::{Effect, Key, Message, MessageKind, NO_PORT, Unresolved};
use super::rib::Source;
use crate::route::{GroupId, PuntCause, PuntFrame};
use crate::sets::MAX_PORTS;
use crate::units::Nanos;
use crate::wire::ip::{self, Ipv4, Ipv6};

/// The place where a message arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub interface: u16,
    pub port: u8,
}

impl Router {
    /// Takes a punted frame, unless its interface is shut. Returns whether it is for the Linux kernel too.
    pub fn receive(&mut self, frame: &PuntFrame, now: Nanos) -> bool {
        let Some(index) = self.interface_of(frame.vlan).filter(|index| !self.is_shut(*index)) else { return false };
        let packet = frame.bytes.get(usize::from(frame.l3_offset)..).unwrap_or_default();
        let port = self.bridge_ports[usize::from(frame.port) % MAX_PORTS];
        let place = Place { interface: index, port };
        let is_for_kernel = self.is_for_kernel(place, frame.cause, packet, now);
        match frame.cause {
            PuntCause::Arp => self.discover(place, frames::read_arp(packet), !is_for_kernel, now),
            PuntCause::NeighbourDiscovery => self.discover(place, frames::read_discovery(packet), !is_for_kernel, now),
            PuntCause::Icmp | PuntCause::Bgp | PuntCause::Bfd | PuntCause::Local if self.kernel.is_none() => {
                self.take_local(place, packet, now);
            }
            PuntCause::Resolve => self.resolve(port, packet, frame.may_wait, now),
            PuntCause::TimeExceeded => self.answer(place, packet, IcmpError::TimeExceeded, now),
            PuntCause::Unreachable => self.answer(place, packet, IcmpError::NoRoute, now),
            PuntCause::TooBig => {
                if let Some(mtu) = self.mtu_towards(packet) {
                    self.answer(place, packet, IcmpError::TooBig(mtu), now);
                }
            }
            PuntCause::Icmp
            | PuntCause::Bgp
            | PuntCause::Bfd
            | PuntCause::Lldp
            | PuntCause::Lacp
            | PuntCause::LoopProbe
            | PuntCause::Local => {}
        }
        is_for_kernel
    }

    /// Learns from a message about a neighbour, and answers it if it asks for an own address and `may_answer`.
    fn discover(&mut self, place: Place, message: Option<Discovery>, may_answer: bool, now: Nanos) {
        let (Some(message), Place { interface: index, port }) = (message, place) else { return };
        let interface = &self.interfaces[usize::from(index)];
        let is_own = |address: IpAddr| interface.own().any(|own| own == address);
        if is_own(message.sender) && message.mac.is_some_and(|mac| mac != interface.mac) {
            self.counts.conflicts += 1;
            return;
        }
        // A host without an address may ask (RFC 5227 section 2.1.1, RFC 4862 section 5.4.3).
        if !message.sender.is_unspecified() && !interface.may_be_host(message.sender) {
            return;
        }
        let anycast = interface.is_anycast(message.target);
        let asks_here = message.is_request && (is_own(message.target) || anycast);
        let (own_mac, key) = (interface.mac, (index, message.sender));
        let known = self.neighbours.get(key).map(|neighbour| neighbour.mac).filter(|mac| !mac.is_zero());
        // RFC 826: an existing entry is updated by any message, a new one is made by a message to this host. RFC 4861
        // section 7.2.3: a solicitation for another host is discarded.
        let is_to_others = message.is_request && message.sender.is_ipv6() && !asks_here;
        if (asks_here || self.neighbours.is_known(key)) && !is_to_others && self.may_learn(key) {
            self.learn(key, &message, port, now);
        }
        if asks_here && may_answer {
            let bytes = match (message.target, message.sender, message.mac.or(known)) {
                (IpAddr::V4(own), IpAddr::V4(asker), Some(mac)) => frames::arp_reply((own_mac, own), (mac, asker)),
                // RFC 4861 section 7.2.4: the answer to a solicitation from the unspecified address goes to all nodes.
                (IpAddr::V6(own), IpAddr::V6(asker), mac) => {
                    let asker = mac.filter(|_| !asker.is_unspecified()).map(|mac| (mac, asker));
                    if anycast {
                        let source = self.interfaces[usize::from(index)].source_v6(own);
                        frames::anycast_advertisement((own_mac, own), asker, source)
                    } else {
                        frames::advertisement((own_mac, own), asker, own)
                    }
                }
                _ => return,
            };
            self.send(index, bytes);
        }
    }

    /// Whether an address that a host may have is a neighbour's.
    fn may_learn(&self, key: Key) -> bool {
        super::interface::is_link_local(key.1) || self.is_on_network(key) || self.is_next_hop(key)
    }

    /// Takes what a message says about its neighbour.
    fn learn(&mut self, key: Key, message: &Discovery, port: u8, now: Nanos) {
        let kind = match message.flags {
            Some(flags) => MessageKind::Advertisement(flags),
            None if message.sender.is_ipv6() => MessageKind::Solicitation,
            None => MessageKind::Arp,
        };
        let mut effect = Effect::default();
        self.neighbours.hear(key, Message { kind, mac: message.mac, port: Some(port) }, now, &mut effect);
        self.apply(effect, now);
    }

    /// Answers a packet that came by `place` with an ICMP error.
    fn answer(&mut self, place: Place, packet: &[u8], error: IcmpError, now: Nanos) {
        let index = place.interface;
        let Some((source, destination)) = ends(packet) else { return };
        let may_answer = match source {
            IpAddr::V4(_) => frames::may_answer_v4(packet) && !self.is_martian(destination),
            IpAddr::V6(_) => frames::may_answer_v6(packet, error),
        };
        // RFC 1812 section 4.3.2.4: the source is an address of the interface "over which the ICMP message is
        // transmitted". An interface without an address uses that of another, or of a loopback.
        let out = self.next_hop(source).first().map_or(index, |key| key.0);
        let interfaces = [usize::from(out), usize::from(index)].into_iter().chain(0..self.interfaces.len());
        let own = interfaces.filter_map(|index| self.interfaces[index].routable(source)).next();
        let loopback = || self.loopbacks.iter().copied().find(|own| own.is_ipv4() == source.is_ipv4());
        let own = own.or_else(loopback);
        let Some(own) = own.filter(|_| may_answer && self.is_single_host(source)) else { return };
        let bytes = match own {
            IpAddr::V4(own) => frames::icmp_error_v4(own, packet, error),
            IpAddr::V6(own) => frames::icmp_error_v6(own, packet, error),
        };
        self.counts.icmp_errors += 1;
        self.send_packet(place, source, bytes, now);
    }

    /// Answers a packet whose next hop does not answer.
    pub(super) fn answer_unreachable(&mut self, (index, _): Key, packet: &[u8], now: Nanos) {
        self.answer(Place { interface: index, port: NO_PORT }, packet, IcmpError::HostUnreachable, now);
    }

    /// The MTU of the interface by which a packet would leave.
    fn mtu_towards(&self, packet: &[u8]) -> Option<u16> {
        let (_, destination) = ends(packet)?;
        let key = self.next_hop(destination).into_iter().next()?;
        Some(self.interfaces.get(usize::from(key.0))?.mtu)
    }

    /// Asks for the next hop of a packet, which waits for it if it may.
    fn resolve(&mut self, port: u8, packet: &[u8], may_wait: bool, now: Nanos) {
        let Some((_, destination)) = ends(packet) else { return };
        let mut effect = Effect::default();
        let mut waiting = may_wait.then_some(packet);
        for key in self.next_hop(destination) {
            if self.interfaces[usize::from(key.0)].is_up {
                let of = Unresolved { packet: waiting.take(), port };
                self.neighbours.resolve(key, of, now, &mut effect);
            }
        }
        // Its route, or the link, has gone since the packet path looked.
        self.neighbours.counts.unresolved_packets += u64::from(waiting.is_some());
        self.neighbours.tick(now, &mut effect);
        self.apply(effect, now);
    }

    /// The neighbours that may be the next hop to `destination`.
    pub(super) fn next_hop(&self, destination: IpAddr) -> Vec<Key> {
        let Some(route) = self.rib.lookup(destination) else { return Vec::new() };
        if let Some(interface) = self.groups.gleaned(route.group) {
            return vec![(interface, destination)];
        }
        let hops = self.groups.set(route.group).map(|set| &set.hops[..]).unwrap_or_default();
        hops.iter().map(|hop| (hop.interface, hop.address)).collect()
    }

    /// Sends a packet that has waited for its next hop, as the packet path would.
    pub(super) fn send_waiting(&mut self, (index, neighbour): Key, mut packet: Vec<u8>) {
        let Some(mac) = self.neighbours.get((index, neighbour)).map(|neighbour| neighbour.mac) else { return };
        // The packet path punts before it decrements.
        let is_alive = match packet.first().map(|byte| byte >> 4) {
            Some(4) => packet.first_chunk_mut().is_some_and(|header| {
                let is_alive = header[8] > 1;
                if is_alive {
                    ip::decrement_ttl(header);
                }
                is_alive
            }),
            _ => packet.first_chunk_mut().is_some_and(|header: &mut ip::Ipv6Header| {
                let is_alive = header[7] > 1;
                if is_alive {
                    ip::decrement_hop_limit(header);
                }
                is_alive
            }),
        };
        if is_alive {
            let own = self.interfaces[usize::from(index)].mac;
            self.send(index, frames::ip_frame(mac, own, &packet));
        }
    }

    /// Sends a packet that the router made to `destination` because of one that came by `place`. A link-local
    /// destination is on its interface.
    pub(super) fn send_packet(&mut self, place: Place, destination: IpAddr, packet: Vec<u8>, now: Nanos) {
        let key = if super::interface::is_link_local(destination) {
            Some((place.interface, destination))
        } else {
            let keys = self.next_hop(destination);
            let usable = keys.iter().find(|key| self.neighbours.adjacency(**key).is_some());
            usable.or(keys.first()).copied()
        };
        let Some(key) = key else { return };
        match self.neighbours.get(key).filter(|neighbour| neighbour.adjacency.is_some()) {
            Some(neighbour) => {
                let frame = frames::ip_frame(neighbour.mac, self.interfaces[usize::from(key.0)].mac, &packet);
                self.send(key.0, frame);
            }
            None => self.wait(key, Unresolved { packet: Some(&packet), port: place.port }, now),
        }
    }

    /// Lets a packet of the router wait for its next hop. It is sent with one hop less, which nobody notices.
    fn wait(&mut self, key: Key, of: Unresolved<'_>, now: Nanos) {
        let mut effect = Effect::default();
        self.neighbours.resolve(key, of, now, &mut effect);
        self.neighbours.tick(now, &mut effect);
        // An error about the router's own packet would go to the router.
        effect.given_up.clear();
        self.apply(effect, now);
    }

    /// Whether packets to `address` have a route, and by which group; for tests and `show`.
    #[must_use]
    pub fn route_to(&self, address: IpAddr) -> Option<(Source, GroupId)> {
        self.rib.lookup(address).map(|route| (route.source, route.group))
    }

    /// Whether `address` is on a network whose hosts are their own next hops.
    #[must_use]
    pub fn is_connected(&self, address: IpAddr) -> bool {
        self.rib.lookup(address).is_some_and(|route| {
            (0..self.interfaces.len()).any(|interface| route.group == Groups::glean(interface as u16))
        })
    }
}

/// Source and destination of an IP packet.
pub(super) fn ends(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => Ipv4::read(packet).map(|ipv4| {
            let [source, destination] = [ipv4.src, ipv4.dst].map(Ipv4Addr::from_bits);
            (source.into(), destination.into())
        }),
        6 => Ipv6::read(packet).map(|ipv6| {
            let [source, destination] = [ipv6.src, ipv6.dst].map(Ipv6Addr::from);
            (source.into(), destination.into())
        }),
        _ => None,
    }
}
