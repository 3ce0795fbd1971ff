//! Samples of frames: flow samples and discarded packets.

use super::reasons::{DropCode, Side};
use super::xdr::Xdr;
use crate::plan::DropReason;
use crate::plan::mirror::CopyFrame;
use crate::units::Bytes;

/// Formats of samples: sFlow version 5, section 5, and sFlow Dropped Packet Notification Structures.
const FLOW_SAMPLE: u32 = 1;
const DISCARDED_PACKET: u32 = 5;

/// Formats of records about a frame: sFlow version 5, and sFlow Transit Delay, Discard and Timestamp Structures.
const SAMPLED_HEADER: u32 = 1;
const EXTENDED_SWITCH: u32 = 1001;
const EXTENDED_EGRESS_QUEUE: u32 = 1036;
const EXTENDED_QUEUE_DEPTH: u32 = 1040;
const EXTENDED_HW_TRAP: u32 = 1041;
const EXTENDED_TIMESTAMP: u32 = 1043;

/// Protocol of the header: Ethernet.
const ETHERNET: u32 = 1;
/// Bytes of the frame check sequence, which no copy has.
const FCS: u32 = 4;
/// The most bytes of a frame in a sample, so that a datagram has room for it.
const MOST_HEADER: usize = 1024;
/// The group of traps to which reasons belong, for collectors that show those of devlink.
const TRAP_GROUP: &[u8] = b"holdfast";

/// Classes of data sources (sFlow version 5, section 5).
pub const IF_INDEX: u32 = 0;
/// See [`IF_INDEX`].
pub const LOGICAL_ENTITY: u32 = 3;

/// The index of an interface, by that of its port. Collectors take zero for unknown.
#[must_use]
pub fn if_index(port: usize) -> u32 {
    port as u32 + 1
}

/// A data source, its numbers, and the copy that it made.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Class and index.
    pub id: (u32, u32),
    /// Number of the sample.
    pub sequence: u32,
    /// Samples that were lost.
    pub drops: u64,
    /// The copy.
    pub copy: &'a CopyFrame,
    /// Bytes of it that the session has.
    pub bytes: &'a [u8],
    /// Time of the event, in nanoseconds since 1970 in UTC.
    pub at: u64,
    /// Size of a cell.
    pub cell: Bytes,
}

/// Appends a flow sample, of one in `rate` of `pool` frames.
pub fn flow(into: &mut Vec<u8>, source: &Source<'_>, rate: u32, pool: u64) {
    let (class, index) = source.id;
    Xdr(into).record(FLOW_SAMPLE, |sample| {
        sample.u32(source.sequence).u32(class << 24 | index).u32(rate).count(pool).count(source.drops);
        sample.u32(if_index(source.copy.ingress.into()));
        sample.u32(source.copy.egress.map_or(0, |port| if_index(port.into())));
        records(sample, source, None);
    });
}

/// Appends a discarded packet.
pub fn discard(into: &mut Vec<u8>, source: &Source<'_>, reason: DropReason) {
    let copy = source.copy;
    // The interface of the structure is that of "egress drops", and zero otherwise.
    let is_egress = copy.queue.is_some() || Side::from(reason) == Side::OutDiscards;
    let egress = copy.egress.filter(|_| is_egress);
    Xdr(into).record(DISCARDED_PACKET, |sample| {
        sample.u32(source.sequence).u32(source.id.0).u32(source.id.1).count(source.drops);
        sample.u32(if_index(copy.ingress.into()));
        sample.u32(egress.map_or(0, |port| if_index(port.into())));
        sample.u32(DropCode::from(reason) as u32);
        records(sample, source, Some(reason));
    });
}

/// Writes the records about the frame.
fn records(sample: &mut Xdr<'_>, source: &Source<'_>, reason: Option<DropReason>) {
    let copy = source.copy;
    let depth = copy.queue.and_then(|queue| queue.depth);
    let optional = [copy.vlan.is_some(), copy.queue.is_some(), depth.is_some(), reason.is_some()];
    sample.u32(2 + optional.into_iter().filter(|is_there| *is_there).count() as u32);
    sample.record(SAMPLED_HEADER, |header| {
        let bytes = &source.bytes[..source.bytes.len().min(MOST_HEADER)];
        let len = u32::from(copy.len).max(bytes.len() as u32);
        header.u32(ETHERNET).u32(len + FCS).u32(FCS).opaque(bytes);
    });
    if let Some(vlan) = copy.vlan.map(u32::from) {
        let priority = priority(source.bytes);
        sample.record(EXTENDED_SWITCH, |switch| {
            switch.u32(vlan).u32(priority).u32(vlan).u32(priority);
        });
    }
    if let Some(queue) = copy.queue {
        sample.record(EXTENDED_EGRESS_QUEUE, |record| {
            record.u32(queue.queue.into());
        });
    }
    if let Some(depth) = depth {
        sample.record(EXTENDED_QUEUE_DEPTH, |record| {
            record.u32(depth.to_bytes(source.cell).0.min(u32::MAX.into()) as u32);
        });
    }
    if let Some(reason) = reason {
        sample.record(EXTENDED_HW_TRAP, |record| {
            record.opaque(TRAP_GROUP).opaque(reason.label().as_bytes());
        });
    }
    sample.record(EXTENDED_TIMESTAMP, |record| {
        record.u64(source.at);
    });
}

/// The priority in the frame's outer VLAN tag; zero without one.
fn priority(bytes: &[u8]) -> u32 {
    match bytes.get(12..15) {
        Some([0x81, 0x00, tag] | [0x88, 0xa8, tag]) => u32::from(tag >> 5),
        _ => 0,
    }
}
