//! Class and row of received frames, by the bytes that decide them, and sums of those that are shed.

use super::port_classifier::PortClassifier;
use crate::dataplane::frame::class_bits::ClassBits;
use crate::io::{Burst, Packet};
use crate::sets::{CLASSES, ClassSet, FrameSet};
use crate::units::Bytes;
use crate::wire::{Purpose, glance, glance_roce, glance_usual};

/// Rows of the frames that may pass at a port: one for each class, one for network control, one for bridge protocols.
pub(super) const NETWORK: usize = CLASSES;
pub(super) const BRIDGE: usize = CLASSES + 1;
pub(super) const ROWS: usize = CLASSES + 2;
/// The row after them counts the frames that cannot be shed.
pub(super) const OTHERS: usize = ROWS;
/// Rows as they are stored: their number is a power of two, so that a look-up needs no check.
pub(super) const SLOTS: usize = (OTHERS + 1).next_power_of_two();

/// Chooses the usual frames of `burst` in the classes `spent`, which have no more in this poll: most frames of a flood.
#[inline]
pub(super) fn choose_spent(
    spent: ClassSet,
    classifier: &PortClassifier,
    burst: &Burst<impl Packet>,
) -> (FrameSet, [Shed; CLASSES]) {
    let (mut frames, mut sums): (FrameSet, [Shed; CLASSES]) = (FrameSet::EMPTY, Default::default());
    if spent.is_empty() || classifier.has_roce() {
        return (frames, sums);
    }
    for (index, packet) in burst.iter().enumerate() {
        let Some(class_bits) = usual_class(classifier, packet.bytes()) else { continue };
        if spent.contains(class_bits.class().into()) {
            frames.insert(index);
            sums[usize::from(class_bits.class())].add(packet.len());
        }
    }
    (frames, sums)
}

/// Class of a usual frame; `None`: more of the frame decides. The class of an ACK or CNP may not depend on its DSCP.
#[inline(always)]
pub(super) fn usual_class(classifier: &PortClassifier, frame: &[u8]) -> Option<ClassBits> {
    let traffic_class = if classifier.has_roce() { None } else { glance_usual(frame) };
    traffic_class.map(|traffic_class| classifier.of_usual()[usize::from(traffic_class)].class_bits)
}

/// Frames and bytes of one class that are shed in a burst: frames in the upper half, bytes in the lower.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shed(u64);

impl Shed {
    #[inline]
    pub fn add(&mut self, len: usize) {
        self.0 += 1 << 32 | len as u64;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn frames(self) -> u64 {
        self.0 >> 32
    }

    pub fn bytes(self) -> Bytes {
        Bytes(self.0 & u64::from(u32::MAX))
    }
}

/// Class of a frame that is shed.
pub(crate) fn class_of(classifier: &PortClassifier, frame: &[u8]) -> u8 {
    row_of(classifier, frame).map_or(0, |(class_bits, _)| class_bits.class())
}

/// Class and row of a frame that is not usual; `None` for MAC control from the link peer, which always passes.
#[inline(never)]
pub(super) fn row_of(classifier: &PortClassifier, frame: &[u8]) -> Option<(ClassBits, usize)> {
    let glance = glance(frame);
    let is_data = glance.purpose == Purpose::Data;
    let kind = if is_data && classifier.has_roce() { glance_roce(frame) } else { None };
    let of_marks = || classifier.of(glance.dscp, glance.pcp);
    let class_bits = kind.and_then(|kind| classifier.of_roce(kind)).unwrap_or_else(of_marks).class_bits;
    match glance.purpose {
        Purpose::MacControl => None,
        Purpose::Network => Some((class_bits, NETWORK)),
        Purpose::Bridge => Some((class_bits, BRIDGE)),
        Purpose::Data => Some((class_bits, usize::from(class_bits.class()))),
    }
}
