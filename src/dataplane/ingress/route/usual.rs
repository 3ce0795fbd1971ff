//! The usual burst of a router: all packets are untagged IPv4, UDP or TCP, for the router, and their sources need no
//! closer look.
//!
//! Its packets are read while they are parsed and sent in order, so that no packet needs its position.

use super::any::NOT_ROUTABLE;
use super::next_hop::{EgressPort, Limits, NextHops};
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::ingress::next_stage::NextStage;
use crate::dataplane::ingress::punt::Exception;
use crate::forward::fdb::{Station, StationPair};
use crate::forward::flow_cache::CachePlace;
use crate::io::Packet;
use crate::route::filter::SourceFilter;
use crate::route::{Adjacency, FoundGroup, RouteTable};
use crate::sets::BURST;
use crate::wire::ip::{self, Ipv4, Ipv4Header};

const IP: usize = 14;
const PORTS: usize = IP + 20;

/// The headers of Ethernet and IPv4, and the ports of UDP or TCP.
type Headers = [u8; PORTS + 4];

/// Reads the frames of a routed port while they are parsed.
#[derive(Debug)]
pub(crate) struct UsualReader<'a> {
    sources: &'a SourceFilter,
    /// The router's station on the port, as a destination.
    ours: StationPair,
    notes: &'a mut HeaderNotes,
    /// Not zero if some frame is one that a usual burst does not have.
    unusual: u64,
}

/// Header fields of the frames of a burst, side by side.
#[derive(Debug)]
pub(crate) struct HeaderNotes {
    /// Destination address of each frame.
    pub destinations: [u32; BURST],
    /// [`ip::header_sum`] of each frame.
    sums: [u64; BURST],
}

impl HeaderNotes {
    pub fn new() -> Self {
        Self { destinations: [0; BURST], sums: [0; BURST] }
    }
}

impl<'a> UsualReader<'a> {
    /// Creates the reader of a burst from a port whose untagged frames are in the VLAN `native`.
    #[inline]
    pub fn new(table: &'a RouteTable, station: Station, native: u16, notes: &'a mut HeaderNotes) -> Self {
        // The VLAN of usual frames is compared here, not for each.
        let ours = StationPair::new(station.vlan(), station.mac().to_number(), 0);
        Self { sources: &table.sources, ours, notes, unusual: (native != station.vlan()).into() }
    }

    /// Notes the frame at `index`. No branch: nearly all are usual.
    #[inline(always)]
    fn note(&mut self, index: usize, bytes: &[u8], unusual: u64) {
        let Some(ip) = header(bytes) else {
            self.unusual = 1;
            return;
        };
        let (src, dst) = ip::addresses(ip);
        self.unusual |= unusual | u64::from(self.sources.suspects_v4(src));
        self.notes.sums[index % BURST] = ip::header_sum(ip);
        self.notes.destinations[index % BURST] = dst;
    }

    /// Whether the burst is usual, if all of its frames were seen.
    #[inline]
    pub fn is_usual(&self) -> bool {
        self.unusual == 0
    }
}

impl NextStage for UsualReader<'_> {
    #[inline(always)]
    fn end(&mut self, frames: usize) {
        if self.unusual != 0 {
            return;
        }
        let sums = &self.notes.sums[..frames.min(BURST)];
        self.unusual = sums.iter().fold(0, |errors, &sum| errors | ip::checksum_error(sum));
    }

    #[inline(always)]
    fn see_usual(&mut self, index: usize, bytes: &[u8], stations: StationPair, _: &mut CachePlace) {
        self.note(index, bytes, stations.dst_difference(self.ours));
    }

    #[inline]
    fn see(&mut self, index: usize, bytes: &[u8], meta: &Meta, _: &mut CachePlace) {
        let is_ours = meta.stations.is_to_station_of(self.ours) && meta.class_bits.is_plain_untagged_ipv4();
        if is_ours { self.note(index, bytes, 0) } else { self.unusual = 1 }
    }
}

/// The IPv4 header of an untagged frame.
#[inline(always)]
fn header(bytes: &[u8]) -> Option<&Ipv4Header> {
    let headers: &Headers = bytes.first_chunk()?;
    headers[IP..].first_chunk()
}

/// The destination of a plain untagged IPv4 packet, if its checksum is right and its source needs no closer look.
#[inline(always)]
pub(super) fn destination(sources: &SourceFilter, bytes: &[u8]) -> Option<u32> {
    let ip = header(bytes)?;
    let (src, dst) = ip::addresses(ip);
    (ip::has_right_checksum(ip) && !sources.suspects_v4(src)).then_some(dst)
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
        Some(hop) => (hop, EgressPort::of(hop)),
        None => choose(hops, headers, meta, group)?,
    };
    ip::decrement_ttl(headers[IP..].first_chunk_mut().expect("the array is longer"));
    let addresses = headers.first_chunk_mut().expect("the array is longer");
    hops.send(addresses, meta, hop, egress);
    Ok(egress.number)
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
