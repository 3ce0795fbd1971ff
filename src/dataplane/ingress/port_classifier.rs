//! Class, priority group and queue of a frame, by the mark that its ingress port trusts.

use crate::dataplane::frame::class_bits::ClassBits;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::spec::PortSpec;
use crate::qos::{ClassMap, Trust};
use crate::sets::{CLASSES, ClassSet};

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
}

/// The classifier of a port for untagged IP packets. Unlike that of the port, it stays in registers over a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpClassifier<'a> {
    untrusted: u8,
    by_mark: &'a [Classification; NO_MARK as usize + 1],
}

impl IpClassifier<'_> {
    /// Classifies a packet.
    #[inline]
    pub fn of(self, dscp: u8) -> Classification {
        self.by_mark[usize::from((dscp | self.untrusted) & NO_MARK)]
    }
}

impl PortClassifier {
    /// Creates the classifier of frames that the port of `spec` receives.
    pub fn new(spec: &PortSpec, classes: &ClassMap) -> Self {
        let by_class = std::array::from_fn(|class| Self::classification(spec, classes, class as u8));
        let by_mark = std::array::from_fn(|mark| {
            let given = (mark != usize::from(NO_MARK)).then_some(mark as u8);
            by_class[usize::from(spec.marks.class(spec.trust, spec.port_class, given, given))]
        });
        let untrusted = if spec.trust == Trust::Dscp { 0 } else { NO_MARK };
        Self { trust: spec.trust, untrusted, by_mark, by_class }
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

    /// The classifier of untagged IP packets.
    #[inline]
    pub fn of_untagged_ip(&self) -> IpClassifier<'_> {
        IpClassifier { untrusted: self.untrusted & NO_MARK, by_mark: &self.by_mark }
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
                assert_eq!(classifier.of_untagged_ip().of(dscp).desc, one.desc, "{trust:?}, DSCP {dscp}");
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
