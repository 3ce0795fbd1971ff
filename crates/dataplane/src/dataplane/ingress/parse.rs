//! Parse and classify: reads the headers of a burst, and finds traffic class, priority group and queue of each frame.

use super::forwarder::Forwarder;
use super::route::RoutedBurst;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::fast_path::{FastPath, hit, is_off};
use crate::dataplane::frame::lens::BurstLens;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::frame::notes::BurstNotes;
use crate::dataplane::frame::run::{BurstSum, one_frame};
use crate::dataplane::port::Port;
use crate::forward::fdb::StationPair;
use crate::forward::flow_cache::{CachePlace, CacheSets};
use crate::io::{Burst, Packet};
use crate::isa::Isa;
use crate::plan::counters::PortCounters;
use crate::plan::drops::DropReason;
use crate::qos::shaper::MIN_FRAME;
use crate::sets::{BURST, CLASSES, FrameSet, PortSet};
use crate::units::CellSize;
use crate::wire::usual::{StatedLens, UsualHeaders, read_usual};
#[cfg(target_arch = "x86_64")]
use crate::wire::{KindFields, PlainKind, plain_vector::parse_kind_sse41, usual_vector::read_usual_sse41};
use crate::wire::{Plain, Usual, mac_control, parse, parse_plain};

/// The frames of a burst, by the next stage that processes them. Frames in neither set are dropped.
pub(crate) struct Arrived {
    pub data: FrameSet,
    /// MAC control frames.
    pub control: FrameSet,
    /// Ports at which some frame of `data` would leave with other tags than it came with.
    pub retagged_at: PortSet,
    /// Sums of `data` by class.
    pub sums: [BurstSum; CLASSES],
    /// Whether some frame is shorter than the wire's shortest.
    pub has_padded: bool,
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

/// The frames of a burst that are not usual.
#[derive(Default)]
struct Others {
    /// Frames that are no data.
    not_data: FrameSet,
    /// MAC control frames.
    control: FrameSet,
    retagged_at: PortSet,
    has_padded: bool,
}

/// The state of an ingress port and of the switch that the parser reads.
#[derive(Clone, Copy)]
pub(crate) struct ParseContext<'a> {
    pub number: usize,
    pub port: &'a Port,
    pub forwarder: &'a Forwarder,
    pub cell: CellSize,
    /// The flow cache, if the frames will be looked up there.
    pub cache: Option<CacheSets<'a>>,
    /// Instruction sets of the form that runs.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is one form"))]
    pub isa: Isa,
}

impl ParseContext<'_> {
    /// Prefetches the entries of the flow cache that will be read for a frame between `stations`. Notes their `place`.
    ///
    /// A branch in the loop, since the ports that do not use the cache are worth no loop of their own.
    #[inline(always)]
    fn prefetch(&self, stations: StationPair, place: &mut CachePlace) {
        if let Some(cache) = self.cache {
            *place = cache.prefetch(stations);
        }
    }
}

/// Fills metadata, and the lanes of queues and cache places, for the frames of `burst`. Malformed and oversized frames
/// are to be dropped.
#[inline]
pub(crate) fn parse_burst<P: Packet>(from: ParseContext<'_>, burst: &Burst<P>, notes: &mut BurstNotes) -> Arrived {
    #[allow(unsafe_code)]
    #[cfg(target_arch = "x86_64")]
    if from.isa.has_avx2() {
        // SAFETY: the processor has the instruction sets of the form.
        return unsafe { parse_avx2(from, burst, notes) };
    } else if from.isa.has_sse41() {
        // SAFETY: as above.
        return unsafe { parse_sse41(from, burst, notes) };
    }
    parse_words(from, burst, notes)
}

/// [`parse_burst`] without vectors. Servers have SSE4.1 (DPDK needs it), so this form has no loops for kinds, and all
/// callers share it.
#[inline(never)]
fn parse_words<P: Packet>(from: ParseContext<'_>, burst: &Burst<P>, notes: &mut BurstNotes) -> Arrived {
    parse_frames(from, burst, notes, read_usual)
}

/// Defines a form of [`parse_burst`] that is compiled for further instruction sets. Of the instructions of a packet
/// from port to port, AVX2 saves 2 to 5 % of those with SSE4.1, and SSE4.1 17 to 31 % of those with words.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_form {
    ($name:ident, $features:literal) => {
        #[target_feature(enable = $features)]
        fn $name<P: Packet>(from: ParseContext<'_>, burst: &Burst<P>, notes: &mut BurstNotes) -> Arrived {
            let read = |headers: &UsualHeaders| read_usual_sse41(headers);
            let read_kind = |kind, bytes: &[u8]| parse_kind_sse41(kind, bytes);
            // A burst mostly goes on as it begins.
            let first = burst.first().and_then(|packet| PlainKind::of(packet.bytes()));
            // A loop for each kind: the compiler then knows the places of its headers. One loop that takes the kind as
            // a value needs 13 to 15 % more instructions a packet, and none at all 72 to 100 %.
            match first.filter(|_| !is_off(FastPath::OfKind)) {
                Some(PlainKind::TaggedIpv4) => parse_plain_frames(from, burst, notes, PlainKind::TaggedIpv4, read_kind),
                Some(PlainKind::Ipv6) => parse_plain_frames(from, burst, notes, PlainKind::Ipv6, read_kind),
                Some(PlainKind::TaggedIpv6) => parse_plain_frames(from, burst, notes, PlainKind::TaggedIpv6, read_kind),
                None => parse_frames(from, burst, notes, read),
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector_form!(parse_sse41, "sse4.1");
#[cfg(target_arch = "x86_64")]
vector_form!(parse_avx2, "avx2,bmi1,bmi2,movbe,popcnt");

/// [`parse_burst`] for a burst of which most frames are plain and not usual. Always inline: each form compiles it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn parse_plain_frames<P: Packet>(
    from: ParseContext<'_>,
    burst: &Burst<P>,
    notes: &mut BurstNotes,
    kind: PlainKind,
    read: impl Fn(PlainKind, &[u8]) -> Option<KindFields>,
) -> Arrived {
    hit(FastPath::OfKind);
    let ParseContext { number, port, forwarder, cell, .. } = from;
    let native = forwarder.vlans.ingress(number, None).unwrap_or(0);
    let (classifier, tags) = (port.classifier.of_kind(kind), u8::from(kind.is_tagged()));
    let longest = (port.mtu.0 as usize + usize::from(kind.l3_offset())).min(usize::from(u16::MAX));
    // One comparison for both limits. No frame fits a port whose MTU is too small for the shortest one.
    let (shortest, range) = match longest.checked_sub(MIN_FRAME as usize) {
        Some(range) => (MIN_FRAME as usize, range),
        None => (usize::MAX, 0),
    };
    let (mut unread, mut retagged_at) = (FrameSet::EMPTY, PortSet::EMPTY);
    let mut sums = [BurstSum::default(); CLASSES];
    for (index, (packet, meta)) in burst.iter().zip(&mut notes.metas).enumerate() {
        let bytes = packet.bytes();
        if bytes.len().wrapping_sub(shortest) <= range
            && let Some(KindFields { usual, tci }) = read(kind, bytes)
        {
            let len = bytes.len() as u16;
            // The classification has the ingress port.
            let desc = FrameDesc::new(len, cell.cells_of(len), 0, 0, 0);
            let vlan = match tags {
                0 => native,
                _ => forwarder.vlans.ingress(number, Some(tci & 0xfff)).unwrap_or(0),
            };
            let classification = classifier.of(usual.traffic_class, (tci >> 13) as u8);
            sums[usize::from(classification.class_bits.class())].add(desc);
            *meta = Meta::usual(StationPair::from_words(vlan, usual.dst, usual.src), desc, classification);
            if kind.is_tagged() {
                retagged_at |= retagged_from(forwarder, vlan, tags);
            }
            notes.lanes.queues.set(index, classification.queue);
            from.prefetch(meta.stations, &mut notes.lanes.places[index % BURST]);
        } else {
            unread.insert(index);
        }
    }
    let mut others = Others::parse(from, burst, unread, notes, &mut sums);
    others.retagged_at |= retagged_at;
    // Untagged frames are all in one VLAN.
    if !kind.is_tagged() && unread != FrameSet::first(burst.len()) {
        others.retagged_at |= retagged_from(forwarder, native, tags);
    }
    others.arrived(burst.len(), sums)
}

/// [`parse_burst`] for a burst of which most frames are usual. Always inline: each form compiles it.
#[inline(always)]
fn parse_frames<P: Packet>(
    from: ParseContext<'_>,
    burst: &Burst<P>,
    notes: &mut BurstNotes,
    read: impl Fn(&UsualHeaders) -> Option<(StatedLens, Usual)>,
) -> Arrived {
    let ParseContext { number, port, forwarder, cell, .. } = from;
    let native = forwarder.vlans.ingress(number, None).unwrap_or(0);
    let classifier = port.classifier.of_usual();
    let longest = (port.mtu.0 as usize + usize::from(Usual::L3_OFFSET)).min(usize::from(u16::MAX));
    let (mut unread, mut lens) = (FrameSet::EMPTY, BurstLens::default());
    let (mut sums, one) = ([BurstSum::default(); CLASSES], one_frame());
    for (index, (packet, meta)) in burst.iter().zip(&mut notes.metas).enumerate() {
        let bytes = packet.bytes();
        if bytes.len() >= MIN_FRAME as usize
            && bytes.len() <= longest
            && let Some((stated, usual)) = bytes.first_chunk().and_then(&read)
            && !is_off(FastPath::Usual)
        {
            let len = bytes.len() as u16;
            let classification = classifier[usize::from(usual.traffic_class)];
            // The classification has the ingress port.
            let desc = FrameDesc::new(len, cell.cells_of(len), 0, 0, 0);
            sums[usize::from(classification.class_bits.class())].add_counted(desc, one);
            lens.set(index, len, stated);
            let stations = StationPair::from_words(native, usual.dst, usual.src);
            *meta = Meta::usual(stations, desc, classification);
            notes.lanes.queues.set(index, classification.queue);
            from.prefetch(stations, &mut notes.lanes.places[index % BURST]);
        } else {
            unread.insert(index);
        }
    }
    // Frames that looked usual, but are too short for their packets or segments.
    let truncated = lens.truncated(burst.len());
    for index in truncated.iter() {
        hit(FastPath::Truncated);
        let meta = &notes.metas[index];
        sums[usize::from(meta.class_bits.class())].remove(meta.desc);
    }
    unread |= truncated;
    let mut others = Others::parse(from, burst, unread, notes, &mut sums);
    if unread != FrameSet::first(burst.len()) {
        hit(FastPath::Usual);
        others.retagged_at |= !forwarder.vlans.untagged_at(native);
    }
    others.arrived(burst.len(), sums)
}

impl Others {
    /// The frames of a burst of `frames` frames. `sums` are those of its data.
    #[inline]
    fn arrived(self, frames: usize, sums: [BurstSum; CLASSES]) -> Arrived {
        let Self { not_data, control, retagged_at, has_padded } = self;
        Arrived { data: FrameSet::first(frames) - not_data, control, retagged_at, sums, has_padded }
    }

    /// Parses the `frames` of `burst`. Out of line: the loops over the other frames need the registers.
    #[inline(never)]
    fn parse<P: Packet>(
        from: ParseContext<'_>,
        burst: &Burst<P>,
        frames: FrameSet,
        notes: &mut BurstNotes,
        sums: &mut [BurstSum; CLASSES],
    ) -> Self {
        let mut others = Self::default();
        for index in frames.iter() {
            let (bytes, meta) = (burst[index].bytes(), &mut notes.metas[index % BURST]);
            others.parse_frame(from, index, bytes, meta, sums);
            notes.lanes.queues.set(index, meta.desc.queue() as u8);
            if !others.not_data.contains(index) {
                from.prefetch(meta.stations, &mut notes.lanes.places[index % BURST]);
            }
        }
        others
    }

    /// Parses the frame at `index`.
    #[inline]
    fn parse_frame(
        &mut self,
        from: ParseContext<'_>,
        index: usize,
        bytes: &[u8],
        meta: &mut Meta,
        sums: &mut [BurstSum; CLASSES],
    ) {
        let ParseContext { number, port, forwarder, cell, .. } = from;
        // No mbuf holds a longer frame. The length is clipped all the same; the check of the MTU drops such a frame.
        let len = bytes.len().min(usize::from(u16::MAX)) as u16;
        let desc = FrameDesc::new(len, cell.cells_of(len), number as u8, 0, 0);
        match parse_other(port, forwarder, bytes, desc, meta) {
            Some(retagged_at) => self.retagged_at |= retagged_at,
            None => self.control.insert(index),
        }
        if meta.class_bits.is_classified() {
            self.has_padded |= desc.is_padded();
            sums[usize::from(meta.class_bits.class())].add(desc);
        } else {
            self.not_data.insert(index);
        }
    }
}

/// Parses a frame that is not usual. Returns `None` for a MAC control frame, else the ports at which
/// the frame would leave with other tags than it came with.
#[inline]
fn parse_other(port: &Port, forwarder: &Forwarder, bytes: &[u8], desc: FrameDesc, meta: &mut Meta) -> Option<PortSet> {
    match parse_plain(bytes) {
        Some(plain) if !is_too_long(port, bytes, plain.l3_offset) => {
            Some(read_plain(port, forwarder, &plain, desc, meta))
        }
        _ => parse_any(port, forwarder, bytes, desc, meta),
    }
}

/// Whether a frame is longer than the MTU of its ingress port permits.
#[inline]
fn is_too_long(port: &Port, bytes: &[u8], l3_offset: u8) -> bool {
    bytes.len() > port.mtu.0 as usize + usize::from(l3_offset)
}

/// Fills the metadata of a plain frame. Returns the ports at which it would leave with other tags than it came with.
#[inline(always)]
fn read_plain(port: &Port, forwarder: &Forwarder, plain: &Plain, desc: FrameDesc, meta: &mut Meta) -> PortSet {
    let vlan = forwarder.vlans.ingress(desc.ingress().into(), Some(plain.vlan)).unwrap_or(0);
    let classification = port.classifier.of_ip(plain.usual.traffic_class >> 2, plain.is_tagged, plain.pcp);
    *meta = Meta::plain(plain, desc, vlan, classification);
    retagged_at(forwarder, meta)
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
    if let Some(error) = headers.l4_error.filter(|_| port.checks_l4) {
        *meta = Meta::dropped(error.into());
        return Some(PortSet::EMPTY);
    }
    if is_too_long(port, bytes, headers.l3_offset) {
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
    // A priority tag (VLAN 0) always changes.
    let always = if meta.class_bits.has_priority_tag() { PortSet::ALL } else { PortSet::EMPTY };
    retagged_from(forwarder, meta.vlan(), meta.class_bits.tags()) | always
}

/// Ports at which a frame of `vlan` that came with `tags` tags, none of them a priority tag, would leave with others.
#[inline]
fn retagged_from(forwarder: &Forwarder, vlan: u16, tags: u8) -> PortSet {
    let untagged = forwarder.vlans.untagged_at(vlan);
    if tags > 0 { untagged } else { !untagged }
}
