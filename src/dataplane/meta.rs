//! What the stages know of a frame: half a cache line, which follows it through a burst.

use super::class_bits::ClassBits;
use super::drops::DropReason;
use super::frame_desc::FrameDesc;
use super::port_classifier::Classification;
use crate::forward::fdb::Station;
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

/// What the stages know of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    /// Whom it is for and who sent it, in the VLAN that it belongs to; 0 is nobody's.
    pub dst: Station,
    pub src: Station,
    /// The frame as it is now, and as its queue will know it.
    pub desc: FrameDesc,
    pub class_bits: ClassBits,
    pub verdict: Verdict,
}

const _: () = assert!(size_of::<Meta>() == 32);

impl Meta {
    pub const EMPTY: Meta = Meta {
        dst: Station::new(0, 0),
        src: Station::new(0, 0),
        desc: FrameDesc::NONE,
        class_bits: ClassBits::NONE,
        verdict: Verdict::Consumed,
    };

    /// A usual frame in `vlan`. `desc` has its length, cells and ingress port; `classification` its class.
    #[inline]
    pub fn usual(usual: Usual, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        Self::ip(usual, desc.with(classification.desc), vlan, classification.class_bits, (L3::V4, Usual::L3_OFFSET))
    }

    /// A plain frame; arguments as for [`Meta::usual`].
    #[inline]
    pub fn plain(plain: &Plain, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        let class_bits =
            classification.class_bits.with_tags(plain.is_tagged.into(), plain.is_tagged & (plain.vlan == 0));
        Self::ip(plain.usual, desc.with(classification.desc), vlan, class_bits, (plain.l3, plain.l3_offset))
    }

    /// Any other frame; arguments as for [`Meta::usual`].
    pub fn other(headers: &Headers, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        let Headers { dst, src, l3, l3_offset, traffic_class, tags, .. } = *headers;
        let usual = Usual { dst: dst.to_number(), src: src.to_number(), traffic_class };
        Self::ip(
            usual,
            desc.with(classification.desc),
            vlan,
            classification.class_bits.with_tags(tags, headers.vlan() == Some(0)),
            (l3, l3_offset),
        )
    }

    #[inline]
    fn ip(usual: Usual, desc: FrameDesc, vlan: u16, class_bits: ClassBits, (l3, offset): (L3, u8)) -> Self {
        let Usual { dst, src, traffic_class } = usual;
        Self {
            dst: Station::new(vlan, dst),
            src: Station::new(vlan, src),
            desc: desc.with(FrameDesc::ip(l3, offset, is_ect(traffic_class))),
            class_bits: class_bits.with_ip(l3, traffic_class),
            verdict: Verdict::Consumed,
        }
    }

    /// An unclassified frame that is dropped.
    pub fn dropped(reason: DropReason) -> Self {
        Self { verdict: Verdict::Drop(reason), ..Self::EMPTY }
    }

    /// A MAC control frame with so many tags.
    pub fn control(tags: u8) -> Self {
        Self { class_bits: ClassBits::NONE.with_tags(tags, false), ..Self::EMPTY }
    }

    /// Traffic class; `None` before it is classified.
    #[inline]
    pub fn class(&self) -> Option<u8> {
        self.class_bits.is_classified().then_some(self.class_bits.class())
    }

    /// Whether its group is lossless.
    #[inline]
    pub fn is_lossless(&self) -> bool {
        self.class_bits.lossy_queue().is_empty()
    }

    /// VLAN of the frame.
    #[inline]
    pub fn vlan(&self) -> u16 {
        self.dst.vlan()
    }

    /// WRED drops it instead of marking it: an IP packet that is not ECN-capable.
    #[inline]
    pub fn is_droppable(&self) -> bool {
        (self.class_bits.l3() != L3::Other) & (self.class_bits.traffic_class() & 3 == ecn::NOT_ECT)
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
