//! Class, priority group and queue of a frame, by the mark that its ingress port trusts.

use crate::dataplane::frame::class_bits::ClassBits;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::spec::PortSpec;
use crate::qos::{ClassMap, Trust};
use crate::sets::{CLASSES, ClassSet};
use crate::wire::parse::L3;
use crate::wire::{Usual, ecn};

/// Index of frames without a trusted mark: beyond every DSCP and PCP.
const NO_MARK: u8 = 127;

/// Class, group and queue of a frame, ready to copy into its [`crate::dataplane::frame::meta::Meta`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Classification {
    /// Traffic class, priority group at the ingress port, and queue at the egress port.
    pub desc: FrameDesc,
    pub class_bits: ClassBits,
}

/// The classifier of one ingress port: one table look-up a frame.
#[derive(Debug, Clone)]
pub(crate) struct PortClassifier {
    trust: Trust,
    /// Bits that [`Self::of_ip`] sets in a DSCP: none if the port trusts the DSCP, else all, which gives [`NO_MARK`].
    untrusted: u8,
    /// Entries by mark; the last is for frames without a mark.
    by_mark: [Classification; NO_MARK as usize + 1],
    by_class: [Classification; CLASSES],
    /// Entries of untagged IPv4 packets by the byte of DSCP and ECN, with all that depends on it.
    usual: Box<[Classification; 256]>,
    /// Whether frames of several groups share a queue.
    mixes_groups: bool,
}

impl PortClassifier {
    /// Creates the classifier of frames that the port of `spec` receives.
    pub fn new(spec: &PortSpec, classes: &ClassMap) -> Self {
        let by_class: [Classification; CLASSES] =
            std::array::from_fn(|class| Self::classification(spec, classes, class as u8));
        let mixes = |one: FrameDesc| {
            by_class.iter().any(|other| one.queue() == other.desc.queue() && one.group() != other.desc.group())
        };
        let by_mark = std::array::from_fn(|mark| {
            let given = (mark != usize::from(NO_MARK)).then_some(mark as u8);
            by_class[usize::from(spec.marks.class(spec.trust, spec.port_class, given, given))]
        });
        let untrusted = if spec.trust == Trust::Dscp { 0 } else { NO_MARK };
        let usual = std::array::from_fn(|traffic_class| {
            let traffic_class = traffic_class as u8;
            let mark = traffic_class >> 2 | untrusted;
            let Classification { desc, class_bits } = by_mark[usize::from(mark & NO_MARK)];
            let desc = desc.with(FrameDesc::ip(L3::V4, Usual::L3_OFFSET, ecn::is_ect(traffic_class)));
            Classification { desc, class_bits: class_bits.with_ip(L3::V4, traffic_class) }
        });
        let mixes_groups = by_class.iter().any(|class| mixes(class.desc));
        Self { trust: spec.trust, untrusted, by_mark, by_class, usual: Box::new(usual), mixes_groups }
    }

    fn classification(spec: &PortSpec, classes: &ClassMap, class: u8) -> Classification {
        let (group, queue) = (classes.tc_to_group[usize::from(class)] & 7, classes.tc_to_queue[usize::from(class)] & 7);
        let is_lossy = !spec.lossless_groups().contains(group.into());
        let lossy = ClassSet::only_if(is_lossy, queue.into());
        Classification {
            desc: FrameDesc::NONE.classified(class, group, queue),
            class_bits: ClassBits::new(class, lossy),
        }
    }

    /// The classes of usual frames, by the byte of DSCP and ECN.
    #[inline]
    pub fn of_usual(&self) -> &[Classification; 256] {
        &self.usual
    }

    /// Classifies a frame with the DSCP `dscp` if it is IP, and the PCP `pcp` if it is tagged.
    #[inline]
    pub fn of(&self, dscp: Option<u8>, pcp: Option<u8>) -> Classification {
        let mark = match self.trust {
            Trust::Dscp => dscp,
            Trust::Pcp => pcp,
            Trust::Port => None,
        };
        self.by_mark[usize::from(mark.unwrap_or(NO_MARK) & NO_MARK)]
    }

    /// Classifies an IP packet; `pcp` counts only if it `is_tagged`.
    #[inline]
    pub fn of_ip(&self, dscp: u8, is_tagged: bool, pcp: u8) -> Classification {
        let mark = if (self.trust == Trust::Pcp) & is_tagged { pcp } else { dscp | self.untrusted };
        self.by_mark[usize::from(mark & NO_MARK)]
    }

    /// Whether frames of several groups share a queue.
    #[inline]
    pub fn mixes_groups(&self) -> bool {
        self.mixes_groups
    }

    /// The entry of `class`.
    #[inline]
    pub fn of_class(&self, class: usize) -> Classification {
        self.by_class[class % CLASSES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn of_ip_classifies_like_of_for_each_trust() {
        let switch = config::embedded().switch;
        for trust in [Trust::Dscp, Trust::Pcp, Trust::Port] {
            let spec = PortSpec { trust, ..switch.ports[0].clone() };
            let classifier = PortClassifier::new(&spec, &switch.classes);
            for dscp in 0..64 {
                let (one, other) = (classifier.of_ip(dscp, false, 0), classifier.of(Some(dscp), None));
                assert_eq!((one.desc, one.class_bits), (other.desc, other.class_bits), "{trust:?}, DSCP {dscp}");
                for codepoint in 0..4 {
                    let usual = classifier.of_usual()[usize::from(dscp << 2 | codepoint)];
                    let ip = FrameDesc::ip(L3::V4, 14, ecn::is_ect(codepoint));
                    assert_eq!(usual.desc, one.desc.with(ip), "{trust:?}, DSCP {dscp}");
                    assert_eq!(usual.class_bits, one.class_bits.with_ip(L3::V4, dscp << 2 | codepoint));
                }
                for pcp in [None, Some(0), Some(3), Some(7)] {
                    let (one, other) =
                        (classifier.of_ip(dscp, pcp.is_some(), pcp.unwrap_or(0)), classifier.of(Some(dscp), pcp));
                    assert_eq!(
                        (one.desc, one.class_bits),
                        (other.desc, other.class_bits),
                        "{trust:?}, DSCP {dscp}, PCP {pcp:?}"
                    );
                }
                assert_eq!(classifier.of_class(one.desc.class().into()).desc, one.desc);
            }
        }
    }
}
