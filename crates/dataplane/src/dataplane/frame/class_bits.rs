//! The class and the headers of a frame in one word.

use crate::plan::counters::UNCLASSIFIED;
use crate::sets::ClassSet;
use crate::wire::parse::L3;

/// The class of a frame and its headers in one word. The table of the port's classifier holds most of it ready to copy.
///
/// From bit 0: traffic class or [`UNCLASSIFIED`] (8 bits); mask of its queue if its group is lossy, else zero (8); DSCP
/// and ECN as one byte, zero without IP (8); network layer (2); whether its transport header has a defect (1); whether
/// the frame is other than plain, see [`crate::wire::Plain`] (1); number of VLAN tags, 0 to 2 (3); whether the
/// outermost is a priority tag (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassBits(u32);

impl ClassBits {
    /// A frame without a class and without IP.
    pub const NONE: Self = Self(UNCLASSIFIED as u32);

    /// Creates the word of a frame of `class` without IP. `lossy` has its queue, or is empty if its group is lossless.
    pub const fn new(class: u8, lossy: ClassSet) -> Self {
        Self(class as u32 | (lossy.bits() as u32) << 8)
    }

    /// The network layer, DSCP and ECN of a frame whose class is to be merged by [`ClassBits::with`].
    #[inline]
    pub const fn of_ip(l3: L3, traffic_class: u8) -> Self {
        Self(0).with_ip(l3, traffic_class)
    }

    /// Merges two words that have no set field in common.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Replaces the class and the mask of its lossy queue by those of `other`.
    #[inline]
    pub const fn reclassified(self, other: Self) -> Self {
        const CLASSIFICATION: u32 = 0xffff;
        Self(self.0 & !CLASSIFICATION | other.0 & CLASSIFICATION)
    }

    /// Replaces the mask of its lossy queue.
    pub const fn with_lossy_queue(self, lossy: ClassSet) -> Self {
        Self(self.0 & !0xff00 | (lossy.bits() as u32) << 8)
    }

    /// Adds network layer and DSCP and ECN to a word without IP.
    #[inline]
    pub const fn with_ip(self, l3: L3, traffic_class: u8) -> Self {
        Self(self.0 | (traffic_class as u32) << 16 | (l3 as u32) << 24)
    }

    /// Adds the number of VLAN `tags`, and whether the outermost is a priority tag.
    #[inline]
    pub fn with_tags(self, tags: u8, is_priority: bool) -> Self {
        Self(self.0 | u32::from(tags) << 28 | u32::from(is_priority) << 31)
    }

    /// Marks a frame that is other than plain.
    #[inline]
    pub const fn with_oddity(self) -> Self {
        Self(self.0 | 1 << 27)
    }

    /// Adds whether the transport header has a defect ([`crate::wire::Headers::l4_error`]).
    #[inline]
    pub fn with_l4_error(self, has_error: bool) -> Self {
        Self(self.0 | u32::from(has_error) << 26)
    }

    /// Whether the transport header has a defect.
    #[inline]
    pub fn has_l4_error(self) -> bool {
        self.0 >> 26 & 1 == 1
    }

    /// Whether the frame is a plain one of IPv4, without tag.
    #[inline]
    pub fn is_plain_untagged_ipv4(self) -> bool {
        self.0 >> 24 == L3::V4 as u32
    }

    /// Whether the frame has a traffic class.
    #[inline]
    pub fn is_classified(self) -> bool {
        self.0 & UNCLASSIFIED as u32 == 0
    }

    /// Traffic class of the frame; 0 if it has none.
    #[inline]
    pub fn class(self) -> u8 {
        self.0 as u8 & 7
    }

    /// Queue of the frame if its group is lossy, else empty.
    #[inline]
    pub fn lossy_queue(self) -> ClassSet {
        ClassSet::from_bits((self.0 >> 8) as u8)
    }

    #[inline]
    pub fn dscp_ecn(self) -> u8 {
        (self.0 >> 16) as u8
    }

    pub fn l3(self) -> L3 {
        match self.0 >> 24 & 3 {
            1 => L3::V4,
            2 => L3::V6,
            _ => L3::Other,
        }
    }

    /// Number of VLAN tags.
    #[inline]
    pub fn tags(self) -> u8 {
        (self.0 >> 28) as u8 & 7
    }

    /// Whether the outermost tag is a priority tag: VLAN 0 (IEEE 802.1Q clause 9.6).
    #[inline]
    pub fn has_priority_tag(self) -> bool {
        self.0 >> 31 == 1
    }
}

const _: () = assert!(UNCLASSIFIED == 8, "a bit that no class has");
