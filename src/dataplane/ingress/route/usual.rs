//! The usual burst of a router: all packets are untagged IPv4, UDP or TCP, for the router, and their sources need no
//! closer look.
//!
//! Its packets are read while they are parsed and sent in order, so that no packet needs its position.

use super::any::NOT_ROUTABLE;
use super::next_hop::{Limits, NextHops};
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::next_stage::NextStage;
use crate::dataplane::ingress::punt::Exception;
use crate::forward::fdb::{Station, StationPair};
use crate::io::Packet;
use crate::route::filter::SourceFilter;
use crate::route::{Adjacency, FoundGroup, RouteTable};
use crate::sets::{BURST, PortSet};
use crate::wire::ip::{self, Ipv4, Ipv4Header};

const IP: usize = 14;
const PORTS: usize = IP + 20;

/// The headers of Ethernet and IPv4, and the ports of UDP or TCP.
type Headers = [u8; PORTS + 4];

/// Reads the frames of a routed port while they are parsed.
#[derive(Debug)]
pub(crate) struct UsualReader<'a> {
    sources: &'a SourceFilter,
    /// The router's station on the port.
    station: Station,
    destinations: &'a mut [u32; BURST],
    /// Whether some frame is one that a usual burst does not have.
    is_odd: bool,
}

impl<'a> UsualReader<'a> {
    #[inline]
    pub fn new(table: &'a RouteTable, station: Station, destinations: &'a mut [u32; BURST]) -> Self {
        Self { sources: &table.sources, station, destinations, is_odd: false }
    }

    /// Notes the destination of the frame at `index`, if it has a usual one.
    #[inline(always)]
    fn note(&mut self, index: usize, destination: Option<u32>) {
        match destination {
            Some(destination) => self.destinations[index % BURST] = destination,
            None => self.is_odd = true,
        }
    }

    /// Whether the burst is usual, if all of its frames were seen.
    #[inline]
    pub fn is_usual(&self) -> bool {
        !self.is_odd
    }
}

impl NextStage for UsualReader<'_> {
    #[inline(always)]
    fn see_usual(&mut self, index: usize, bytes: &[u8], stations: StationPair) {
        let is_ours = stations.is_to(self.station);
        self.note(index, if is_ours { destination(self.sources, bytes) } else { None });
    }

    #[inline]
    fn see(&mut self, index: usize, bytes: &[u8], meta: &Meta) {
        let is_ours = meta.stations.is_to(self.station) && meta.class_bits.is_plain_untagged_ipv4();
        self.note(index, if is_ours { destination(self.sources, bytes) } else { None });
    }
}

/// The destination of a plain untagged IPv4 packet, if its checksum is right and its source needs no closer look.
#[inline(always)]
pub(super) fn destination(sources: &SourceFilter, bytes: &[u8]) -> Option<u32> {
    let headers: &Headers = bytes.first_chunk()?;
    let ip: &Ipv4Header = headers[IP..].first_chunk()?;
    let ipv4 = Ipv4::read(ip)?;
    (ip::has_right_checksum(ip) && !sources.suspects_v4(ipv4.src)).then_some(ipv4.dst)
}

/// Sends one packet by a next hop of `group`. Returns its egress port. Always inline, for the loop over a burst.
#[inline(always)]
pub(super) fn send(
    hops: &mut NextHops<'_, '_>,
    frame: &mut impl Packet,
    meta: &mut Meta,
    group: FoundGroup,
) -> Result<u8, Exception> {
    let headers: &mut Headers = frame.bytes_mut().first_chunk_mut().ok_or(NOT_ROUTABLE)?;
    let (hop, egress) = match hops.direct(group, headers[IP + 8]) {
        Some(hop) => (hop, hop.port),
        None => choose(hops, headers, meta, group)?,
    };
    ip::decrement_ttl(headers[IP..].first_chunk_mut().expect("the array is longer"));
    let addresses = headers.first_chunk_mut().expect("the array is longer");
    Ok(hops.send(addresses, meta, hop, egress))
}

/// The next hop and the egress port of a packet whose group has a choice, or whose next hop needs a closer look.
#[inline(always)]
fn choose<'a>(
    hops: &mut NextHops<'a, '_>,
    headers: &Headers,
    meta: &Meta,
    group: FoundGroup,
) -> Result<(&'a Adjacency, PortSet), Exception> {
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
