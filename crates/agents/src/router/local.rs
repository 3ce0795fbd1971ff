//! Packets to an own address that no other part takes: echo requests are answered, all others are counted by reason.

use std::net::IpAddr;

use super::Router;
use super::frames;
use super::interface::is_link_local;
use super::respond::{Place, ends};
use crate::route::GroupId;
use crate::units::Nanos;
use crate::wire::extensions::{self, Stop};
use crate::wire::ip::Ipv4;
use crate::wire::parse::{ICMP, ICMPV6};

/// The reason why a packet to an own address has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Unanswered {
    /// A fragment: the router puts none together.
    Fragment,
    /// An IPv6 extension header that must not be skipped, such as a routing header of type 0.
    ExtensionHeader,
    /// A length or checksum is wrong.
    Malformed,
    /// No part of the switch takes the protocol or the message.
    Protocol,
    /// No route leads to the sender.
    NoRoute,
}

impl Unanswered {
    /// Number of reasons.
    pub const COUNT: usize = Self::TABLE.len();
    /// Every reason with its label in metrics.
    pub const TABLE: [(Self, &'static str); 5] = [
        (Self::Fragment, "fragment"),
        (Self::ExtensionHeader, "extension_header"),
        (Self::Malformed, "malformed"),
        (Self::Protocol, "protocol"),
        (Self::NoRoute, "no_route"),
    ];
}

impl From<Stop> for Unanswered {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cut => Self::Malformed,
            Stop::Fragment => Self::Fragment,
            Stop::Header => Self::ExtensionHeader,
        }
    }
}

impl Router {
    /// Takes a packet that came by `place`. One to an own address is answered or counted; the others are to
    /// groups.
    pub(super) fn take_local(&mut self, place: Place, packet: &[u8], now: Nanos) {
        let Some((source, destination)) = ends(packet).filter(|ends| self.tables.is_own(ends.1)) else { return };
        match self.reply(place.interface, source, destination, packet) {
            Ok(reply) => {
                self.counts.echo_replies += 1;
                self.send_packet(place, source, reply, now);
            }
            Err(reason) => self.counts.unanswered[reason as usize] += 1,
        }
    }

    /// The answer to an echo request from `source`.
    fn reply(&self, index: u16, source: IpAddr, destination: IpAddr, packet: &[u8]) -> Result<Vec<u8>, Unanswered> {
        let reply = match destination {
            IpAddr::V4(_) => {
                let ipv4 = Ipv4::read(packet).ok_or(Unanswered::Malformed)?;
                match ipv4.protocol {
                    _ if ipv4.is_fragment() => return Err(Unanswered::Fragment),
                    ICMP => frames::echo_reply_v4(packet)?,
                    _ => return Err(Unanswered::Protocol),
                }
            }
            IpAddr::V6(own) => match extensions::upper(packet)? {
                (ICMPV6, message) => {
                    // RFC 4443 section 2.2 b: an answer for an anycast address comes from a unicast address.
                    let interface = self.interfaces.iter().find(|one| one.is_anycast(destination));
                    let from = interface.map_or(own, |interface| interface.source_v6(own));
                    frames::echo_reply_v6(packet, message, from)?
                }
                _ => return Err(Unanswered::Protocol),
            },
        };
        let has_way = is_link_local(source) || !self.next_hop(source).is_empty();
        if has_way && usize::from(index) < self.interfaces.len() { Ok(reply) } else { Err(Unanswered::NoRoute) }
    }

    /// Whether an ICMP error may go to `source`: it is none of the addresses that mean several hosts of a network, and
    /// none of the router.
    pub(super) fn is_single_host(&self, source: IpAddr) -> bool {
        !self.tables.is_own(source) && (is_link_local(source) || !self.is_martian(source))
    }

    /// Whether no packet may go to `address`, such as the broadcast address of a network of the router.
    pub(super) fn is_martian(&self, address: IpAddr) -> bool {
        self.rib.lookup(address).is_some_and(|route| route.group == GroupId::MARTIAN)
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
