//! The short way of a router's usual packets: plain, untagged IPv4 with a good source and a next hop that takes them.
//!
//! A burst is routed in order, so that no packet needs its position. The long way ([`super::any`]) takes what is left.

use super::next_hop::{DirectHops, EgressPort, Limits, NextHops};
use super::source;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::punt::Exception;
use crate::io::{Burst, Packet};
use crate::route::filter::SourceFilter;
use crate::route::{Adjacency, FoundGroup, RouteTable};
use crate::sets::BURST;
use crate::wire::ip::{self, Ipv4, Ipv4Header};

const IP: usize = 14;
const PORTS: usize = IP + 20;

/// The headers of Ethernet and IPv4, and the ports of UDP or TCP.
type Headers = [u8; PORTS + 4];

/// Reads the destinations of the frames of `burst`; that of a frame without an IPv4 header means nothing. Returns the
/// number of frames.
#[inline]
pub(super) fn read_destinations<P: Packet>(burst: &Burst<P>, destinations: &mut [u32; BURST]) -> usize {
    for (frame, destination) in burst.iter().zip(destinations) {
        let bytes = frame.bytes();
        *destination = if let Some(headers) = bytes.first_chunk() { ip::addresses(ipv4(headers)).1 } else { 0 };
    }
    burst.len().min(BURST)
}

fn ipv4(headers: &Headers) -> &Ipv4Header {
    headers[IP..].first_chunk().expect("the array is longer")
}

/// Needed by the loop over a burst for most packets.
#[derive(Clone, Copy)]
pub(super) struct ShortWay<'a, 'b> {
    pub table: &'a RouteTable,
    /// Those of the table, as a reference: one load nearer.
    pub sources: &'a SourceFilter,
    pub hops: DirectHops<'a, 'b>,
}

impl ShortWay<'_, '_> {
    /// Sends one packet by a next hop of `group`, if it is usual, and for the router: `difference` is zero. Returns its
    /// egress port, or why it has none. `None` leaves the packet to the long way.
    #[inline(always)]
    pub fn send(
        self,
        hops: &mut NextHops<'_, '_>,
        frame: &mut impl Packet,
        meta: &mut Meta,
        difference: u64,
        group: FoundGroup,
    ) -> Option<Result<EgressPort, Exception>> {
        let headers: &mut Headers = frame.bytes_mut().first_chunk_mut()?;
        if !is_usual(self.table, self.sources, headers, difference) {
            return None;
        }
        let (hop, egress) = match self.hops.only(group, headers[IP + 8]) {
            Some(hop) => (hop, EgressPort::of(hop)),
            None => match choose(hops, headers, meta, group) {
                Ok(chosen) => chosen,
                Err(exception) => return Some(Err(exception)),
            },
        };
        ip::decrement_ttl(headers[IP..].first_chunk_mut().expect("the array is longer"));
        let addresses = headers.first_chunk_mut().expect("the array is longer");
        self.hops.send(addresses, meta, hop, egress.number);
        Some(Ok(egress))
    }
}

/// Whether a packet takes the short way. `difference` is zero if it is for the router.
#[inline(always)]
fn is_usual(table: &RouteTable, sources: &SourceFilter, headers: &Headers, difference: u64) -> bool {
    let (src, _) = ip::addresses(ipv4(headers));
    // Few branches: nearly all packets are for the router, and have no defect.
    let oddity = difference | u64::from(sources.suspects_v4(src));
    oddity == 0 && ip::has_right_checksum(ipv4(headers)) || is_usual_despite(table, headers, difference)
}

/// Whether a packet that looked odd takes the short way all the same. The filter suspects good sources, too: one of 70
/// if the router has ten networks.
#[inline(never)]
fn is_usual_despite(table: &RouteTable, headers: &Headers, difference: u64) -> bool {
    let ipv4 = ipv4(headers);
    difference == 0 && ip::has_right_checksum(ipv4) && source::is_good_v4(table, ip::addresses(ipv4).0)
}

/// The next hop and the egress port of a packet whose group has a choice, or whose next hop needs a closer look.
#[inline(always)]
fn choose<'a>(
    hops: &mut NextHops<'a, '_>,
    headers: &Headers,
    meta: &Meta,
    group: FoundGroup,
) -> Result<(&'a Adjacency, EgressPort), Exception> {
    let hash = || {
        let ipv4 = Ipv4::read(&headers[IP..]).unwrap_or_default();
        let ports = headers.last_chunk().map_or(0, |&ports| u32::from_be_bytes(ports));
        hops.table.hash.v4(ipv4.src, ipv4.dst, ipv4.protocol, ports)
    };
    let hop = hops.choose(group, hash)?;
    let limits = Limits { hops: headers[IP + 8], dont_fragment: headers[IP + 6] & ip::DONT_FRAGMENT_BIT != 0 };
    let egress = hops.egress(hop, meta, limits)?;
    Ok((hop, egress))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::*;
    use crate::route::SoftFib;
    use crate::route::single_host::broadcasts;

    /// The tables of a router with four networks.
    fn table() -> RouteTable {
        let mut table = RouteTable::empty(Arc::new(SoftFib::default()));
        let networks: Vec<ipnet::Ipv4Net> =
            (0..4).map(|n| format!("10.{n}.0.1/16").parse().expect("a prefix")).collect();
        table.set_own(networks.iter().map(|network| IpAddr::from(network.addr())));
        table.set_broadcasts(networks.iter().flat_map(|&network| broadcasts(network)).map(IpAddr::from));
        table
    }

    fn headers(source: [u8; 4]) -> Headers {
        let mut frame = Vec::new();
        let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]);
        builder.ipv4(source, [10, 3, 0, 9], 64).udp(1, 2).write(&mut frame, &[0; 18]).expect("a frame");
        *frame.first_chunk().expect("headers")
    }

    #[test]
    fn good_sources_that_the_filter_suspects_take_the_short_way() {
        let table = table();
        let number = |source: &[u8; 4]| u32::from_be_bytes(*source);
        let hosts = (0x0a00_0009_u32..).map(u32::to_be_bytes);
        let suspects = hosts.filter(|source| table.sources.suspects_v4(number(source)));
        let good = suspects.filter(|source| source::is_good_v4(&table, number(source))).take(100);
        // Legal hosts beside the link-local network, too.
        for source in good.chain([[169, 1, 2, 3], [10, 0, 0, 9]]) {
            assert!(is_usual(&table, &table.sources, &headers(source), 0), "{source:?}");
            assert!(!is_usual(&table, &table.sources, &headers(source), 1), "{source:?} to another station");
            let mut wrong = headers(source);
            wrong[IP + 1] ^= 4;
            assert!(!is_usual(&table, &table.sources, &wrong, 0), "{source:?} with a wrong checksum");
        }
    }

    #[test]
    fn packet_of_a_bad_source_leaves_the_fast_path() {
        let table = table();
        for bad in [[10, 2, 0, 1], [10, 1, 255, 255], [10, 3, 0, 0], [127, 0, 0, 1], [169, 254, 0, 7], [224, 0, 0, 1]] {
            assert!(!is_usual(&table, &table.sources, &headers(bad), 0), "{bad:?}");
        }
    }
}
