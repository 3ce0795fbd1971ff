//! What the stages know of a frame: half a cache line, which follows it through a burst.

use super::counters::UNCLASSIFIED;
use super::drops::DropReason;
use super::port::Lane;
use super::queue::Tag;
use crate::forward::fdb::Station;
use crate::wire::parse::L3;
use crate::wire::{Headers, Usual, ecn};

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
    pub tag: Tag,
    pub verdict: Verdict,
    /// [`UNCLASSIFIED`] until it has one.
    pub class: u8,
    /// The queue it leaves by, as a mask, if its group is lossy; none otherwise.
    pub lossy: u8,
    /// DSCP and ECN as one byte; zero without IP.
    traffic_class: u8,
    pub l3: L3,
    /// Tags it came with: 0 to 2.
    pub tags: u8,
}

const _: () = assert!(size_of::<Meta>() == 32);

impl Meta {
    pub const EMPTY: Meta = Meta {
        dst: Station::new(0, 0),
        src: Station::new(0, 0),
        tag: Tag::NONE,
        verdict: Verdict::Consumed,
        class: UNCLASSIFIED as u8,
        lossy: 0,
        traffic_class: 0,
        l3: L3::Other,
        tags: 0,
    };

    /// Of a usual frame in `vlan`, of which `tag` says the length, the cells and the port, and that goes by `lane`.
    #[inline]
    pub fn usual(usual: Usual, tag: Tag, vlan: u16, lane: Lane) -> Self {
        let Lane { class, group, queue, lossy } = lane;
        let Usual { dst, src, traffic_class } = usual;
        Self {
            dst: Station::new(vlan, dst),
            src: Station::new(vlan, src),
            tag: tag.classified(class, group, queue).with_ip(L3::V4, Usual::L3_OFFSET, is_ect(traffic_class)),
            class,
            lossy,
            traffic_class,
            l3: L3::V4,
            ..Self::EMPTY
        }
    }

    /// Of any other frame, likewise.
    pub fn other(headers: &Headers, tag: Tag, vlan: u16, lane: Lane) -> Self {
        let Headers { dst, src, l3, l3_offset, traffic_class, tags, .. } = *headers;
        let usual = Usual { dst: dst.to_number(), src: src.to_number(), traffic_class };
        let meta = Self::usual(usual, tag, vlan, lane);
        Self { tag: meta.tag.with_ip(l3, l3_offset, is_ect(traffic_class)), l3, tags, ..meta }
    }

    /// Of a frame that ends here, unclassified.
    pub fn dropped(reason: DropReason) -> Self {
        Self { verdict: Verdict::Drop(reason), ..Self::EMPTY }
    }

    /// Of a frame for the switch itself, which came with so many tags.
    pub fn control(tags: u8) -> Self {
        Self { tags, ..Self::EMPTY }
    }

    /// Its traffic class, if it has one.
    #[inline]
    pub fn class(&self) -> Option<u8> {
        (self.class != UNCLASSIFIED as u8).then_some(self.class)
    }

    /// Whether its group is lossless.
    #[inline]
    pub fn is_lossless(&self) -> bool {
        self.lossy == 0
    }

    /// Its VLAN.
    #[inline]
    pub fn vlan(&self) -> u16 {
        self.dst.vlan()
    }

    /// The frame has `len` bytes in `cells` cells now, and its network header begins at `l3_offset`.
    pub fn reshaped(&mut self, len: u16, cells: u16, l3_offset: u8) {
        let tag = self.tag.reshaped(len, cells);
        self.tag = tag.with_ip(self.l3, l3_offset, is_ect(self.traffic_class));
    }

    /// An IP packet that cannot be marked, which WRED drops in its place.
    #[inline]
    pub fn is_droppable(&self) -> bool {
        (self.l3 != L3::Other) & (self.traffic_class & 3 == ecn::NOT_ECT)
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
