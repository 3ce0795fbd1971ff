//! Shares of ports in the Linux kernel's neighbours, where Linux answers for the router (`routing.linux`).
//!
//! Linux makes an entry for each host that it answers. The kernel has one table for each family, for all namespaces
//! (`gc_thresh3`), and refuses new entries of any port while it is full. So a frame that may make an entry reaches
//! Linux only if its sender has a place here; the router answers ARP and neighbour discovery of others.
//!
//! Seven eighths of a table are places of ports: half of them reserved in equal parts, the others for all, of which a
//! port may have as many as it leaves. The last eighth is for hosts that Linux asks for, and for other namespaces. A
//! place outlives the entry that the sender's last frame can have made or kept.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Router;
use super::frames::{self, Discovery};
use super::interface::is_link_local;
use super::neighbours::{Key, NO_PORT, PORT_LIMIT, State};
use super::respond::{Place, ends};
use crate::route::{GroupId, PuntCause};
use crate::sets::{MAX_PORTS, PortSet};
use crate::units::Nanos;
use crate::wire::parse::{ETHERTYPE_ARP, ETHERTYPE_IPV6};

/// Time for which the kernel may be unable to give up an entry after the last frame of its host: reachable for at most
/// 45 s, then in delay for 5 s, then asked for 3 s (`base_reachable_time_ms`, `delay_first_probe_time`,
/// `ucast_solicit`); an entry that has changed in the last 5 s stays too.
pub const HELD: Nanos = Nanos(60_000_000_000);

/// Default size of each of the kernel's tables.
const DEFAULT_LIMIT: usize = 1024;

/// Size of the kernel's tables that gives each port as many places as the router's own table has for it.
pub const WANTED_LIMIT: usize = 65_536;
const _: () = assert!(port_limit(WANTED_LIMIT, MAX_PORTS) >= PORT_LIMIT);

/// Most entries of the kernel's tables of neighbours; `None`: not known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct KernelLimits {
    /// IPv4: `net.ipv4.neigh.default.gc_thresh3`.
    pub ipv4: Option<usize>,
    /// IPv6: `net.ipv6.neigh.default.gc_thresh3`.
    pub ipv6: Option<usize>,
}

/// A limit of the kernel by which a port has fewer places than in the router's own table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The setting.
    pub key: String,
    /// Its value and the consequence.
    pub state: String,
    /// The remedy.
    pub remedy: String,
}

impl KernelLimits {
    /// The limits that are too low for `ports` ports.
    #[must_use]
    pub fn shortages(self, ports: usize) -> Vec<Shortage> {
        let short = |family: &str, limit: Option<usize>| {
            let key = format!("net.{family}.neigh.default.gc_thresh3");
            let value = match limit {
                Some(limit) => format!("is {limit}"),
                None => format!("cannot be read here and may be {DEFAULT_LIMIT}"),
            };
            let places = port_limit(limit.unwrap_or(DEFAULT_LIMIT), ports);
            let state = format!("{value}: Linux knows at most {places} hosts of a port, and the router {PORT_LIMIT}");
            let remedy = format!("`sysctl -w {key}={WANTED_LIMIT}` on the host, before the switch starts");
            (places < PORT_LIMIT).then_some(Shortage { key, state, remedy })
        };
        [short("ipv4", self.ipv4), short("ipv6", self.ipv6)].into_iter().flatten().collect()
    }
}

/// Places of ports in a table of `limit` entries.
const fn room(limit: usize) -> usize {
    limit - limit.div_ceil(8)
}

/// Places of each port in a table of `limit` entries that `ports` ports share, and places of all.
const fn split(limit: usize, ports: usize) -> (usize, usize) {
    let reserve = room(limit) / 2 / if ports == 0 { 1 } else { ports };
    (reserve, room(limit) - reserve * ports)
}

/// Most senders of one port that have a place in a table of `limit` entries, which `ports` ports share.
#[must_use]
pub const fn port_limit(limit: usize, ports: usize) -> usize {
    let (reserve, shared) = split(limit, ports);
    reserve + shared.div_ceil(2)
}

/// The entry of a sender.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// The port of its last frame, which pays for it; [`NO_PORT`]: Linux has asked for it.
    port: u8,
    /// Instant of its last frame.
    at: Nanos,
}

/// The places of one family.
#[derive(Debug)]
struct Family {
    /// Places that each port has for itself, and those that all share.
    reserve: usize,
    shared: usize,
    /// Places of hosts that Linux asks for.
    asked: usize,
    /// Shared places in use.
    shared_used: usize,
    held: BTreeMap<Key, Held>,
    by_time: BTreeSet<(Nanos, Key)>,
    by_port: [usize; NO_PORT as usize + 1],
}

impl Family {
    fn new(limit: usize, ports: usize) -> Self {
        let (reserve, shared) = split(limit, ports);
        Self {
            reserve,
            shared,
            asked: limit / 16,
            shared_used: 0,
            held: BTreeMap::new(),
            by_time: BTreeSet::new(),
            by_port: [0; NO_PORT as usize + 1],
        }
    }

    fn expire(&mut self, now: Nanos) {
        while let Some(&(at, oldest)) = self.by_time.first()
            && now.0 >= at.0 + HELD.0
        {
            self.remove(oldest);
        }
    }

    /// Gives `key` a place, because Linux asks for it.
    fn ask(&mut self, key: Key, now: Nanos) {
        self.expire(now);
        if !self.held.contains_key(&key) && self.by_port[usize::from(NO_PORT)] < self.asked {
            self.insert(key, Held { port: NO_PORT, at: now });
        }
    }

    /// Whether the sender `key` of a frame of `port` has a place, or gets one.
    fn admit(&mut self, key: Key, port: u8, now: Nanos) -> bool {
        self.expire(now);
        let used = self.by_port[usize::from(port)];
        let has_room = used < self.reserve || used - self.reserve < self.shared - self.shared_used;
        // Another port's sender is a new one here: no port keeps the places of others in use.
        let payer = match self.held.get(&key) {
            Some(held) if [port, NO_PORT].contains(&held.port) => held.port,
            _ if has_room => port,
            _ => return false,
        };
        self.remove(key);
        self.insert(key, Held { port: payer, at: now });
        true
    }

    /// Whether the sender `key` of a frame of `port` has a place, which it keeps.
    fn renew(&mut self, key: Key, port: u8, now: Nanos) -> bool {
        self.expire(now);
        self.held.contains_key(&key) && self.admit(key, port, now)
    }

    fn insert(&mut self, key: Key, held: Held) {
        let used = &mut self.by_port[usize::from(held.port)];
        *used += 1;
        self.shared_used += usize::from(held.port != NO_PORT && *used > self.reserve);
        self.held.insert(key, held);
        self.by_time.insert((held.at, key));
    }

    fn remove(&mut self, key: Key) {
        let Some(held) = self.held.remove(&key) else { return };
        let used = &mut self.by_port[usize::from(held.port)];
        self.shared_used -= usize::from(held.port != NO_PORT && *used > self.reserve);
        *used -= 1;
        self.by_time.remove(&(held.at, key));
    }
}

/// The places of both families.
#[derive(Debug)]
pub struct KernelShares {
    ipv4: Family,
    ipv6: Family,
}

impl KernelShares {
    /// Divides tables of these sizes between `ports` ports.
    pub fn new(limits: KernelLimits, ports: usize) -> Self {
        let family = |limit: Option<usize>| Family::new(limit.unwrap_or(DEFAULT_LIMIT), ports);
        Self { ipv4: family(limits.ipv4), ipv6: family(limits.ipv6) }
    }

    fn of(&mut self, key: Key) -> &mut Family {
        if key.1.is_ipv4() { &mut self.ipv4 } else { &mut self.ipv6 }
    }
}

/// The place that a frame needs to reach Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// None: it makes and keeps no entry.
    None,
    /// That of its sender: it may make an entry.
    Place(Key),
    /// One that its sender has: it changes an entry, and is of no use without one.
    Held(Key),
    /// It is not valid.
    Invalid,
}

impl Router {
    /// Lets the Linux kernel answer for the router's addresses, which it has too. The router still learns from all ARP
    /// and neighbour discovery, and sends ICMP errors about packets that it does not forward. Returns those of the
    /// kernel's `limits` that are too low. Call it after [`Router::set_bridge_ports`].
    pub fn leave_answers_to_kernel(&mut self, limits: KernelLimits) -> Vec<Shortage> {
        let ports = self.interfaces.iter().fold(PortSet::EMPTY, |all, interface| all | interface.ports);
        let links: PortSet = ports.iter().map(|port| usize::from(self.bridge_ports[port])).collect();
        self.kernel = Some(KernelShares::new(limits, links.len()));
        limits.shortages(links.len())
    }

    /// Whether Linux gets a punted frame that came by `place`. Withheld frames are counted.
    pub(super) fn is_for_kernel(&mut self, place: Place, cause: PuntCause, packet: &[u8], now: Nanos) -> bool {
        if self.kernel.is_none() {
            return false;
        }
        let need = match cause {
            PuntCause::Arp => self.need_of(place, frames::read_arp(packet), Need::Invalid),
            PuntCause::NeighbourDiscovery => {
                // Router solicitations and advertisements make entries of their source.
                let other = self.need_of_packet(place, packet);
                self.need_of(place, frames::read_discovery(packet), other)
            }
            PuntCause::Icmp | PuntCause::Bgp | PuntCause::Bfd | PuntCause::Local => self.need_of_packet(place, packet),
            PuntCause::Lldp => Need::None,
            PuntCause::Lacp
            | PuntCause::LoopProbe
            | PuntCause::Resolve
            | PuntCause::TimeExceeded
            | PuntCause::Unreachable
            | PuntCause::TooBig => return false,
        };
        let Some(shares) = &mut self.kernel else { return false };
        match need {
            Need::None => true,
            Need::Held(key) => shares.of(key).renew(key, place.port, now),
            Need::Invalid => false,
            Need::Place(key) => {
                let is_admitted = shares.of(key).admit(key, place.port, now);
                self.linux.withheld[usize::from(place.port)] += u64::from(!is_admitted);
                is_admitted
            }
        }
    }

    /// Takes note of a frame that Linux sends by an interface: the answer to a question must reach Linux.
    pub fn note_linux_frame(&mut self, interface: u16, frame: &[u8], now: Nanos) {
        let Some((_, packet)) = frame.split_at_checked(14).filter(|_| self.kernel.is_some()) else { return };
        let message = match u16::from_be_bytes([frame[12], frame[13]]) {
            ETHERTYPE_ARP => frames::read_arp(packet),
            ETHERTYPE_IPV6 => frames::read_discovery(packet),
            _ => None,
        };
        let question = message.filter(|message| message.is_request && !self.is_local(message.target));
        let key = question.map(|message| (interface, message.target));
        if let (Some(key), Some(shares)) = (key, &mut self.kernel) {
            shares.of(key).ask(key, now);
        }
    }

    fn is_local(&self, address: IpAddr) -> bool {
        self.route_to(address).is_some_and(|(_, group)| group == GroupId::LOCAL)
    }

    /// The need of ARP or neighbour discovery; `other` if it is neither a question nor an answer.
    fn need_of(&self, place: Place, message: Option<Discovery>, other: Need) -> Need {
        let Some(message) = message else { return other };
        let key = (place.interface, message.sender);
        match self.need_of_sender(key) {
            Need::Place(_) if !message.is_request || !self.is_local(message.target) => Need::Held(key),
            need => need,
        }
    }

    /// The need of a packet: Linux sends its answer to the next hop of its source.
    fn need_of_packet(&self, place: Place, packet: &[u8]) -> Need {
        let Some((source, _)) = ends(packet) else { return Need::Invalid };
        let by_route = || self.next_hop(source).first().copied().unwrap_or((place.interface, source));
        self.need_of_sender(if is_link_local(source) { (place.interface, source) } else { by_route() })
    }

    /// The need of a sender: next hops and static neighbours are bounded by routes and the configuration.
    fn need_of_sender(&self, key: Key) -> Need {
        let is_static = || self.neighbours.get(key).is_some_and(|neighbour| neighbour.state == State::Static);
        let is_fixed = key.1.is_unspecified() || self.is_next_hop(key) || is_static();
        if is_fixed { Need::None } else { Need::Place(key) }
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
