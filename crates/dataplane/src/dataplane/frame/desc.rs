//! The descriptor that accompanies a frame into its queue. It is one word and moves in a register.

use crate::plan::spec::MAX_CELLS;
use crate::qos::shaper::MIN_FRAME;
use crate::units::Cells;
use crate::wire::parse::L3;

/// Descriptor of a frame: everything that egress needs to know about it.
///
/// It is one word. A struct of fields was stored in narrow pieces and loaded as a wide word, and the loads waited for
/// the stores. From the lowest bit: cells (16 bits), network header (8), own frame (1), 3 free, length (16), ingress
/// port (6), priority group (3), queue (3), traffic class (3). [`Queue`](crate::dataplane::egress::queue::Queue) adds
/// up cells and length in these positions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameDesc(pub(super) u64);

/// Lowest bit of the bytes in a sum of descriptors. The cells are below: a buffer has fewer than 2^28 cells and 2^36
/// bytes.
pub(crate) const SUM_BYTES: u32 = MAX_CELLS.ilog2();
const SUM_MASK: u64 = 0xffff << SUM_BYTES | 0xffff;
const IP: u32 = 16;
const OWN: u64 = 1 << 24;
const INGRESS: u32 = 44;
const GROUP: u32 = 50;
/// Ingress port and priority group.
pub(super) const CHARGE: u64 = 0x1ff << INGRESS;
const QUEUE: u32 = 53;
const CLASS: u32 = 56;

impl FrameDesc {
    /// Empty descriptor, without a frame.
    pub const NONE: Self = Self(0);

    /// Creates the descriptor of a frame of `len` bytes in `cells` cells of (`ingress`, `group`) that leaves by
    /// `queue`. The frame is not markable.
    #[inline]
    #[must_use]
    pub const fn new(len: u16, cells: Cells, ingress: u8, group: u8, queue: u8) -> Self {
        debug_assert!(cells.0 <= u16::MAX as u32, "a cell has at least one byte");
        Self(cells.0 as u64 | (len as u64) << SUM_BYTES | ((ingress & 63) as u64) << INGRESS)
            .classified(0, group, queue)
    }

    /// Adds the class of an unclassified frame, its priority group and its queue.
    #[inline]
    #[must_use]
    pub const fn classified(self, class: u8, group: u8, queue: u8) -> Self {
        debug_assert!(self.0 >> GROUP == 0, "a frame has one class");
        let (class, group, queue) = ((class & 7) as u64, (group & 7) as u64, (queue & 7) as u64);
        Self(self.0 | group << GROUP | queue << QUEUE | class << CLASS)
    }

    /// Replaces class, priority group and queue by those of `other`.
    #[inline]
    #[must_use]
    pub const fn reclassified(self, other: Self) -> Self {
        const CLASSIFICATION: u64 = 0x1ff << GROUP;
        Self(self.0 & !CLASSIFICATION | other.0 & CLASSIFICATION)
    }

    /// Merges two descriptors that have no set field in common.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Replaces length, cells and the offset of the network header, which must be below 64.
    #[inline]
    #[must_use]
    pub fn reshaped(self, len: u16, cells: Cells, l3_offset: u8) -> Self {
        debug_assert!(cells.0 <= u16::MAX as u32, "a cell has at least one byte");
        debug_assert!(l3_offset < 64, "two tags end at 22");
        let remaining = self.0 & !(SUM_MASK | 0xfc << IP);
        Self(remaining | u64::from(cells.0 as u16) | u64::from(len) << SUM_BYTES | u64::from(l3_offset) << (IP + 2))
    }

    /// Length of the frame in bytes.
    #[inline]
    #[must_use]
    pub const fn frame_len(self) -> u16 {
        (self.0 >> SUM_BYTES) as u16
    }

    /// Whether the wire pads the frame.
    #[inline]
    #[must_use]
    pub const fn is_padded(self) -> bool {
        (self.frame_len() as u32) < MIN_FRAME
    }

    /// Cells charged for the frame.
    #[inline]
    #[must_use]
    pub const fn cells(self) -> Cells {
        Cells(self.0 as u16 as u32)
    }

    /// Ingress port of the frame.
    #[inline]
    #[must_use]
    pub const fn ingress(self) -> u8 {
        (self.0 >> INGRESS) as u8 & 63
    }

    /// Marks the frame as the switch's own: its ingress port has not received it.
    #[must_use]
    pub const fn owned(self) -> Self {
        Self(self.0 | OWN)
    }

    /// Whether the switch itself has made the frame.
    #[inline]
    #[must_use]
    pub const fn is_own(self) -> bool {
        self.0 & OWN != 0
    }

    /// Priority group that the frame is charged to.
    #[inline]
    #[must_use]
    pub const fn group(self) -> u8 {
        (self.0 >> GROUP) as u8 & 7
    }

    /// Cells, and bytes above them: a summand for sums of descriptors.
    #[inline]
    #[must_use]
    pub(crate) const fn sum(self) -> u64 {
        self.0 & SUM_MASK
    }

    /// Offset of the frame's network header.
    #[inline]
    #[must_use]
    pub const fn l3_offset(self) -> u8 {
        (self.0 >> IP) as u8 >> 2
    }

    /// The charge: ingress port, priority group and cells.
    #[inline]
    #[must_use]
    pub fn charge(self) -> (usize, usize, Cells) {
        (usize::from(self.ingress()), usize::from(self.group()), self.cells())
    }

    /// Whether both are charged to the same group of the same port.
    #[inline]
    #[must_use]
    pub const fn is_charged_like(self, other: Self) -> bool {
        (self.0 ^ other.0) & CHARGE == 0
    }

    /// Egress queue of the frame.
    #[inline]
    #[must_use]
    pub const fn queue(self) -> usize {
        (self.0 >> QUEUE) as usize & 7
    }

    /// Traffic class of the frame.
    #[inline]
    #[must_use]
    pub const fn class(self) -> u8 {
        (self.0 >> CLASS) as u8 & 7
    }

    /// Creates a descriptor with only the network header, to be merged by [`with`](Self::with).
    #[inline]
    #[must_use]
    pub const fn ip(l3: L3, offset: u8, ecn_capable: bool) -> Self {
        debug_assert!(offset < 64, "two tags end at 22");
        // Only IP is ECN-capable, so the two bits of L3 encode both.
        Self(((offset << 2) as u64 | (ecn_capable as u64 * l3 as u64)) << IP)
    }

    /// Descriptor of the frame after marking: it is neither marked nor counted again. The offset of its network header
    /// stays.
    #[inline]
    #[must_use]
    pub const fn marked(self) -> Self {
        Self(self.0 & !(3 << IP))
    }

    /// Whether the frame is ECN-capable.
    #[inline]
    #[must_use]
    pub const fn is_markable(self) -> bool {
        self.0 >> IP & 3 != 0
    }

    /// Whether the frame is an ECN-capable packet of IPv4 without tag.
    #[inline]
    #[must_use]
    pub(crate) const fn is_markable_untagged_ipv4(self) -> bool {
        (self.0 ^ Self::ip(L3::V4, 14, true).0) >> IP & 0xff == 0
    }

    /// Network layer and offset of its header, if the frame is ECN-capable.
    #[inline]
    #[must_use]
    pub const fn markable(self) -> Option<(L3, usize)> {
        let l3 = match self.0 >> IP & 3 {
            1 => L3::V4,
            2 => L3::V6,
            _ => return None,
        };
        Some((l3, self.l3_offset() as usize))
    }
}

impl std::fmt::Debug for FrameDesc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut desc = f.debug_struct("FrameDesc");
        desc.field("len", &self.frame_len()).field("cells", &self.cells().0);
        desc.field("ingress", &self.ingress()).field("group", &self.group());
        desc.field("queue", &self.queue()).field("class", &self.class());
        desc.field("markable", &self.markable()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_ecn_capable_ip_is_markable() {
        let desc = FrameDesc::new(1, Cells(1), 0, 0, 0);
        assert_eq!(desc.markable(), None);
        assert_eq!(desc.with(FrameDesc::ip(L3::V4, 14, true)).markable(), Some((L3::V4, 14)));
        assert_eq!(desc.with(FrameDesc::ip(L3::V6, 22, true)).markable(), Some((L3::V6, 22)));
        for (l3, offset, capable) in [(L3::V4, 14, true), (L3::V4, 14, false), (L3::V4, 18, true), (L3::V6, 14, true)] {
            let desc = FrameDesc::new(1, Cells(1), 9, 5, 7).with(FrameDesc::ip(l3, offset, capable));
            assert_eq!(desc.is_markable_untagged_ipv4(), desc.markable() == Some((L3::V4, 14)), "{desc:?}");
        }
        assert_eq!(desc.with(FrameDesc::ip(L3::V4, 14, false)).markable(), None);
        assert_eq!(desc.with(FrameDesc::ip(L3::Other, 14, true)).markable(), None);
        assert_eq!(desc.with(FrameDesc::ip(L3::V4, 14, true)).marked().markable(), None);
    }

    proptest! {
        #[test]
        fn descriptor_keeps_each_field(
            (len, cells, to_len, to_cells) in any::<(u16, u16, u16, u16)>(),
            (ingress, class, group, queue) in (0_u8..64, 0_u8..8, 0_u8..8, 0_u8..8),
            (offset, to_offset, capable) in (0_u8..64, 0_u8..64, any::<bool>()),
        ) {
            let (cells, to_cells) = (Cells(cells.into()), Cells(to_cells.into()));
            let all = |desc: FrameDesc| (desc.ingress(), desc.class(), desc.group(), desc.queue(), desc.l3_offset(), desc.markable());
            let desc = FrameDesc::new(len, cells, ingress, 0, 0).classified(class, group, queue);
            let desc = desc.with(FrameDesc::ip(L3::V6, offset, capable));
            let markable = capable.then_some((L3::V6, usize::from(offset)));
            prop_assert_eq!((desc.frame_len(), desc.cells(), desc.is_markable()), (len, cells, capable));
            prop_assert_eq!(all(desc), (ingress, class, group, usize::from(queue), offset, markable));
            let again = desc.reshaped(to_len, to_cells, to_offset);
            prop_assert_eq!((again.frame_len(), again.cells(), again.l3_offset()), (to_len, to_cells, to_offset));
            prop_assert_eq!(all(again.reshaped(len, cells, offset)), all(desc), "and nothing else");
            prop_assert!(!desc.is_charged_like(FrameDesc::new(len, cells, ingress, group ^ 1, queue)));
            prop_assert!(desc.is_charged_like(again) && !desc.is_charged_like(FrameDesc::new(len, cells, ingress ^ 1, group, queue)));
        }
    }
}
