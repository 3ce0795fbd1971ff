//! Where the frames that come in by a port go, by the mark that is trusted there.

use super::frame_desc::FrameDesc;
use super::meta::Kind;
use super::spec::PortSpec;
use crate::qos::{ClassMap, Trust};
use crate::sets::{CLASSES, ClassSet};

/// Index of frames that carry nothing trusted: beyond every DSCP and PCP.
const NO_MARK: u8 = 127;

/// Where frames of some class go, as it is put into what is known of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    /// Traffic class, priority group at the port that they come in by, and queue at any other.
    pub desc: FrameDesc,
    pub kind: Kind,
}

/// The lanes of one port.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    trust: Trust,
    /// What is put over a DSCP: nothing where it is trusted, and all bits, which is no mark, where it is not.
    untrusted: u8,
    /// By mark; the last is for frames without one.
    by_mark: [Lane; NO_MARK as usize + 1],
    by_class: [Lane; CLASSES],
}

impl Lanes {
    /// Of frames received at the port by `spec`.
    pub fn new(spec: &PortSpec, classes: &ClassMap) -> Self {
        let by_class = std::array::from_fn(|class| Self::lane(spec, classes, class as u8));
        let by_mark = std::array::from_fn(|mark| {
            let given = (mark != usize::from(NO_MARK)).then_some(mark as u8);
            by_class[usize::from(spec.marks.class(spec.trust, spec.port_class, given, given))]
        });
        let untrusted = if spec.trust == Trust::Dscp { 0 } else { NO_MARK };
        Self { trust: spec.trust, untrusted, by_mark, by_class }
    }

    fn lane(spec: &PortSpec, classes: &ClassMap, class: u8) -> Lane {
        let (group, queue) = (classes.tc_to_group[usize::from(class)] & 7, classes.tc_to_queue[usize::from(class)] & 7);
        let is_lossy = spec.lossless_groups() >> group & 1 == 0;
        let lossy = ClassSet::only_if(is_lossy, queue.into());
        Lane { desc: FrameDesc::NONE.classified(class, group, queue), kind: Kind::new(class, lossy) }
    }

    /// Of a frame with this DSCP, if it is IP, and this PCP, if it is tagged.
    #[inline]
    pub fn of(&self, dscp: Option<u8>, pcp: Option<u8>) -> Lane {
        let mark = match self.trust {
            Trust::Dscp => dscp,
            Trust::Pcp => pcp,
            Trust::Port => None,
        };
        self.by_mark[usize::from(mark.unwrap_or(NO_MARK) & NO_MARK)]
    }

    /// Of an IP packet with or without tag, whose PCP is `pcp` if it `is_tagged`.
    #[inline]
    pub fn of_ip(&self, dscp: u8, is_tagged: bool, pcp: u8) -> Lane {
        let mark = if (self.trust == Trust::Pcp) & is_tagged { pcp } else { dscp | self.untrusted };
        self.by_mark[usize::from(mark & NO_MARK)]
    }

    /// Of frames of `class`.
    #[inline]
    pub fn of_class(&self, class: usize) -> Lane {
        self.by_class[class % CLASSES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn an_ip_packet_goes_by_the_mark_that_is_trusted() {
        let switch = config::embedded().switch;
        for trust in [Trust::Dscp, Trust::Pcp, Trust::Port] {
            let spec = PortSpec { trust, ..switch.ports[0].clone() };
            let lanes = Lanes::new(&spec, &switch.classes);
            for dscp in 0..64 {
                let (one, other) = (lanes.of_ip(dscp, false, 0), lanes.of(Some(dscp), None));
                assert_eq!((one.desc, one.kind), (other.desc, other.kind), "{trust:?}, DSCP {dscp}");
                for pcp in [None, Some(0), Some(3), Some(7)] {
                    let (one, other) = (lanes.of_ip(dscp, pcp.is_some(), pcp.unwrap_or(0)), lanes.of(Some(dscp), pcp));
                    assert_eq!((one.desc, one.kind), (other.desc, other.kind), "{trust:?}, DSCP {dscp}, PCP {pcp:?}");
                }
                assert_eq!(lanes.of_class(one.desc.class().into()).desc, one.desc);
            }
        }
    }
}
