//! Parse and classify: reads the headers of a burst, and finds traffic class, priority group and queue of each frame.

use super::forwarder::Forwarder;
use super::next_stage::NextStage;
use super::route::RoutedBurst;
use crate::dataplane::frame::class_bits::ClassBits;
use crate::dataplane::frame::desc::{BurstSum, FrameDesc};
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::port::Port;
use crate::dataplane::telemetry::counters::PortCounters;
use crate::dataplane::telemetry::drops::DropReason;
use crate::forward::fdb::Station;
use crate::io::{Burst, Packet};
use crate::sets::{BURST, CLASSES, FrameSet, PortSet};
use crate::units::CellSize;
use crate::wire::{Usual, mac_control, parse, parse_plain, parse_usual};

/// The frames of a burst, by the next stage that processes them. Frames in neither set are dropped.
pub(crate) struct Arrived {
    pub data: FrameSet,
    /// MAC control frames.
    pub control: FrameSet,
    /// Ports at which some frame of `data` would leave with other tags than it came with.
    pub retagged_at: PortSet,
    /// Sums of `data` by class.
    pub sums: [BurstSum; CLASSES],
}

impl Arrived {
    /// Notes the ports at which routed packets leave with other tags. If all frames were routed, only these count.
    pub fn retag(&mut self, routed: &RoutedBurst) {
        let others = if routed.frames == self.data.len() { PortSet::EMPTY } else { self.retagged_at };
        self.retagged_at = others | routed.retagged_at;
    }

    /// Counts the frames of `data` as received.
    #[inline]
    pub fn count(&self, counters: &PortCounters) {
        for (class, &sum) in self.sums.iter().enumerate().filter(|(_, sum)| sum.frames() > 0) {
            counters.rx_frames[class].add(sum.frames());
            counters.rx_bytes[class].add(sum.bytes().0);
        }
    }
}

/// Fills `metas` for the frames of `burst`, received by port `number`, and shows them to the `next` stage. Malformed
/// and oversized frames are to be dropped.
///
/// Each reference is a parameter of its own: the compiler then keeps the referenced values in registers over the loop.
#[inline(always)]
pub(crate) fn parse_burst<N: NextStage>(
    (number, port): (usize, &Port),
    forwarder: &Forwarder,
    cell: CellSize,
    burst: &Burst<impl Packet>,
    metas: &mut [Meta; BURST],
    next: &mut N,
) -> Arrived {
    let native = forwarder.vlans.ingress(number, None).unwrap_or(0);
    let classifier = port.classifier.of_untagged_ip();
    let longest = port.mtu.0 as usize + usize::from(Usual::L3_OFFSET);
    let (mut data, mut control, mut others, mut retagged_at) =
        (FrameSet::EMPTY, FrameSet::EMPTY, FrameSet::EMPTY, PortSet::EMPTY);
    let mut sums = [BurstSum::default(); CLASSES];
    for (index, (packet, meta)) in burst.iter().zip(metas).enumerate() {
        let bytes = packet.bytes();
        // No mbuf holds a longer frame. The length is clipped all the same; the check of the MTU drops such a frame.
        let len = bytes.len().min(usize::from(u16::MAX)) as u16;
        let desc = FrameDesc::new(len, cell.cells_of(len), number as u8, 0, 0);
        let mut take = |class_bits: ClassBits| {
            let is_taken = class_bits.is_classified();
            if is_taken {
                data.insert(index);
                sums[usize::from(class_bits.class())].add(desc);
            }
            is_taken
        };
        let (class_bits, dst, src) = match parse_usual(bytes) {
            Some(usual) if bytes.len() <= longest => {
                let classification = classifier.of(usual.traffic_class >> 2);
                *meta = Meta::usual(usual, desc, native, classification);
                let (dst, src) = (Station::new(native, usual.dst), Station::new(native, usual.src));
                if N::SEES_USUAL {
                    if take(classification.class_bits) {
                        next.see_usual(index, bytes, (dst, src));
                    }
                    continue;
                }
                (classification.class_bits, dst, src)
            }
            _ => {
                others.insert(index);
                match parse_other(port, forwarder, bytes, desc, meta) {
                    Some(retagged) => retagged_at |= retagged,
                    None => control.insert(index),
                }
                (meta.class_bits, meta.dst, meta.src)
            }
        };
        if take(class_bits) {
            next.see(index, bytes, meta, (dst, src));
        }
    }
    if !(data - others).is_empty() {
        retagged_at |= !forwarder.vlans.untagged_at(native);
    }
    Arrived { data, control, retagged_at, sums }
}

/// Parses a frame that is not untagged UDP over IPv4. Returns `None` for a MAC control frame, else the ports at which
/// the frame would leave with other tags than it came with.
#[inline(never)]
fn parse_other(port: &Port, forwarder: &Forwarder, bytes: &[u8], desc: FrameDesc, meta: &mut Meta) -> Option<PortSet> {
    match parse_plain(bytes) {
        Some(plain) if bytes.len() <= port.mtu.0 as usize + usize::from(plain.l3_offset) => {
            let vlan = forwarder.vlans.ingress(desc.ingress().into(), Some(plain.vlan)).unwrap_or(0);
            let dscp = plain.usual.traffic_class >> 2;
            let classification = port.classifier.of_ip(dscp, plain.is_tagged, plain.pcp);
            *meta = Meta::plain(&plain, desc, vlan, classification);
            Some(retagged_at(forwarder, meta))
        }
        _ => parse_any(port, forwarder, bytes, desc, meta),
    }
}

/// Parses any frame; the result is as for [`parse_other`].
#[inline(never)]
fn parse_any(port: &Port, forwarder: &Forwarder, bytes: &[u8], desc: FrameDesc, meta: &mut Meta) -> Option<PortSet> {
    let headers = match parse(bytes) {
        Ok(headers) => headers,
        Err(error) => {
            *meta = Meta::dropped(error.into());
            return Some(PortSet::EMPTY);
        }
    };
    if bytes.len() > port.mtu.0 as usize + usize::from(headers.l3_offset) {
        *meta = Meta::dropped(DropReason::Oversize);
        return Some(PortSet::EMPTY);
    }
    if headers.ethertype == mac_control::ETHERTYPE {
        *meta = Meta::control(headers.tags);
        return None;
    }
    let vlan = forwarder.vlans.ingress(desc.ingress().into(), headers.vlan()).unwrap_or(0);
    *meta = Meta::other(&headers, desc, vlan, port.classifier.of(headers.dscp(), headers.pcp()));
    Some(retagged_at(forwarder, meta))
}

/// Ports at which a frame would leave with other tags than it came with.
#[inline]
fn retagged_at(forwarder: &Forwarder, meta: &Meta) -> PortSet {
    let untagged = forwarder.vlans.untagged_at(meta.vlan());
    // A priority tag (VLAN 0) always changes.
    let always = if meta.class_bits.has_priority_tag() { PortSet::ALL } else { PortSet::EMPTY };
    (if meta.class_bits.tags() > 0 { untagged } else { !untagged }) | always
}
