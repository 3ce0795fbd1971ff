//! What the stages know of a frame: half a cache line, which follows it through a burst.

use super::counters::UNCLASSIFIED;
use super::drops::DropReason;
use super::frame_desc::FrameDesc;
use super::port_classifier::Classification;
use crate::forward::fdb::Station;
use crate::sets::ClassSet;
use crate::wire::parse::L3;
use crate::wire::{Headers, Plain, Usual, ecn};

/// What is to become of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Out of one port.
    Send(u8),
    /// A copy out of each port of its VLAN but the one it came by.
    Flood,
    /// Nothing.
    Drop(DropReason),
    /// It was for the switch itself, which has acted on it.
    Consumed,
}

/// What kind of frame it is: one word, of which its classification has the most ready. From below: traffic class or [`UNCLASSIFIED`]
/// (8 bits), the queue it leaves by, as a mask, if its group is lossy, none otherwise (8), DSCP and ECN as one byte, zero
/// without IP (8), network layer (4), tags it came with, 0 to 2 (3), whether the outermost is a priority tag (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(u32);

impl Kind {
    /// Not classified, and no IP.
    pub const NONE: Self = Self(UNCLASSIFIED as u32);

    /// A frame of `class` without IP, which leaves by the queue in `lossy`, or by a lossless one.
    pub const fn new(class: u8, lossy: ClassSet) -> Self {
        Self(class as u32 | (lossy.bits() as u32) << 8)
    }

    /// The same, which had none, with headers of `l3`.
    #[inline]
    const fn with_ip(self, l3: L3, traffic_class: u8) -> Self {
        Self(self.0 | (traffic_class as u32) << 16 | (l3 as u32) << 24)
    }

    /// The same, which came with so many `tags`, the outermost a priority tag or not.
    #[inline]
    fn with_tags(self, tags: u8, is_priority: bool) -> Self {
        Self(self.0 | u32::from(tags) << 28 | u32::from(is_priority) << 31)
    }

    #[inline]
    pub fn is_classified(self) -> bool {
        self.0 & UNCLASSIFIED as u32 == 0
    }

    /// Traffic class; 0 if it has none.
    #[inline]
    pub fn class(self) -> u8 {
        self.0 as u8 & 7
    }

    #[inline]
    pub fn lossy_queue(self) -> ClassSet {
        ClassSet::from_bits((self.0 >> 8) as u8)
    }

    #[inline]
    fn traffic_class(self) -> u8 {
        (self.0 >> 16) as u8
    }

    pub fn l3(self) -> L3 {
        match self.0 >> 24 & 3 {
            1 => L3::V4,
            2 => L3::V6,
            _ => L3::Other,
        }
    }

    #[inline]
    pub fn tags(self) -> u8 {
        (self.0 >> 28) as u8 & 7
    }

    /// Whether it came with a tag that says no VLAN (IEEE 802.1Q clause 9.6).
    #[inline]
    pub fn has_priority_tag(self) -> bool {
        self.0 >> 31 == 1
    }
}

const _: () = assert!(UNCLASSIFIED == 8, "a bit that no class has");

/// What the stages know of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    /// Whom it is for and who sent it, in the VLAN that it belongs to; 0 is nobody's.
    pub dst: Station,
    pub src: Station,
    /// The frame as it is now, and as its queue will know it.
    pub desc: FrameDesc,
    pub kind: Kind,
    pub verdict: Verdict,
}

const _: () = assert!(size_of::<Meta>() == 32);

impl Meta {
    pub const EMPTY: Meta = Meta {
        dst: Station::new(0, 0),
        src: Station::new(0, 0),
        desc: FrameDesc::NONE,
        kind: Kind::NONE,
        verdict: Verdict::Consumed,
    };

    /// A usual frame in `vlan`. `desc` has its length, cells and ingress port; `classification` its class.
    #[inline]
    pub fn usual(usual: Usual, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        Self::ip(usual, desc.with(classification.desc), vlan, classification.kind, (L3::V4, Usual::L3_OFFSET))
    }

    /// A plain frame; arguments as for [`Meta::usual`].
    #[inline]
    pub fn plain(plain: &Plain, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        let kind = classification.kind.with_tags(plain.is_tagged.into(), plain.is_tagged & (plain.vlan == 0));
        Self::ip(plain.usual, desc.with(classification.desc), vlan, kind, (plain.l3, plain.l3_offset))
    }

    /// Any other frame; arguments as for [`Meta::usual`].
    pub fn other(headers: &Headers, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        let Headers { dst, src, l3, l3_offset, traffic_class, tags, .. } = *headers;
        let usual = Usual { dst: dst.to_number(), src: src.to_number(), traffic_class };
        Self::ip(
            usual,
            desc.with(classification.desc),
            vlan,
            classification.kind.with_tags(tags, headers.vlan() == Some(0)),
            (l3, l3_offset),
        )
    }

    #[inline]
    fn ip(usual: Usual, desc: FrameDesc, vlan: u16, kind: Kind, (l3, offset): (L3, u8)) -> Self {
        let Usual { dst, src, traffic_class } = usual;
        Self {
            dst: Station::new(vlan, dst),
            src: Station::new(vlan, src),
            desc: desc.with(FrameDesc::ip(l3, offset, is_ect(traffic_class))),
            kind: kind.with_ip(l3, traffic_class),
            verdict: Verdict::Consumed,
        }
    }

    /// An unclassified frame that is dropped.
    pub fn dropped(reason: DropReason) -> Self {
        Self { verdict: Verdict::Drop(reason), ..Self::EMPTY }
    }

    /// A MAC control frame with so many tags.
    pub fn control(tags: u8) -> Self {
        Self { kind: Kind::NONE.with_tags(tags, false), ..Self::EMPTY }
    }

    /// Traffic class; `None` before it is classified.
    #[inline]
    pub fn class(&self) -> Option<u8> {
        self.kind.is_classified().then_some(self.kind.class())
    }

    /// Whether its group is lossless.
    #[inline]
    pub fn is_lossless(&self) -> bool {
        self.kind.lossy_queue().is_empty()
    }

    /// VLAN of the frame.
    #[inline]
    pub fn vlan(&self) -> u16 {
        self.dst.vlan()
    }

    /// WRED drops it instead of marking it: an IP packet that is not ECN-capable.
    #[inline]
    pub fn is_droppable(&self) -> bool {
        (self.kind.l3() != L3::Other) & (self.kind.traffic_class() & 3 == ecn::NOT_ECT)
    }
}

/// ECT(0) or ECT(1): neither Not-ECT nor marked already.
#[inline]
fn is_ect(traffic_class: u8) -> bool {
    // The codepoints are 00, 01, 10 and 11: one more, those in the middle have the higher bit.
    ((traffic_class & 3) + 1) & 2 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ect_is_ect() {
        for (codepoint, expected) in [(ecn::NOT_ECT, false), (1, true), (2, true), (ecn::CE, false)] {
            assert_eq!((is_ect(codepoint), is_ect(codepoint | 26 << 2)), (expected, expected), "{codepoint}");
        }
    }
}
