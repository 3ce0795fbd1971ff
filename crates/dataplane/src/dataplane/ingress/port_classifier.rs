//! Class, priority group and queue of a frame, by the mark that its ingress port trusts.

use crate::dataplane::frame::class_bits::ClassBits;
use crate::dataplane::frame::desc::FrameDesc;
use crate::plan::spec::PortSpec;
use crate::qos::{ClassMap, RoceMap, Trust};
use crate::sets::{CLASSES, ClassSet};
use crate::units::Cells;
use crate::wire::parse::L3;
use crate::wire::{PlainKind, RoceControl, Usual, ecn};

/// Index of frames without a trusted mark: beyond every DSCP and PCP.
const NO_MARK: u8 = 127;

/// Class, group and queue of a frame, ready to copy into its [`crate::dataplane::frame::meta::Meta`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Classification {
    /// Traffic class, priority group at the ingress port, and queue at the egress port. Entries by DSCP and ECN have
    /// the ingress port too.
    pub desc: FrameDesc,
    pub class_bits: ClassBits,
    /// The queue of `desc`, ready to copy too.
    pub queue: u8,
}

impl Classification {
    /// Merges two that have no set field in common.
    #[inline]
    fn with(self, other: Self) -> Self {
        let desc = self.desc.with(other.desc);
        Self { desc, class_bits: self.class_bits.with(other.class_bits), queue: desc.queue() as u8 }
    }
}

/// The entries of one kind of frames.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only forms with vectors have loops for kinds"))]
pub(crate) struct KindClassifier<'a> {
    by_traffic_class: &'a [Classification; 256],
    /// Entries by PCP, if it is trusted; `by_traffic_class` has no class then.
    by_pcp: Option<&'a [Classification; CLASSES]>,
}

impl KindClassifier<'_> {
    /// Classifies a frame of the kind.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only forms with vectors have loops for kinds"))]
    #[inline(always)]
    pub fn of(&self, traffic_class: u8, pcp: u8) -> Classification {
        let of_ip = self.by_traffic_class[usize::from(traffic_class)];
        match self.by_pcp {
            Some(by_pcp) => of_ip.with(by_pcp[usize::from(pcp) % CLASSES]),
            None => of_ip,
        }
    }
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
    /// Classes of lossy groups.
    lossy: ClassSet,
    /// Entries by the byte of DSCP and ECN, with all that depends on it and the ingress port: of untagged IPv4, then of
    /// each [`PlainKind`].
    by_traffic_class: Box<[[Classification; 256]; 1 + PlainKind::COUNT]>,
    /// Classes of RoCEv2 packets without data of applications, and whether there are any.
    roce: RoceMap,
    has_roce: bool,
    /// Whether frames of several groups share a queue.
    mixes_groups: bool,
}

impl PortClassifier {
    /// Creates the classifier of frames that port `number`, of `spec`, receives.
    pub fn new(number: usize, spec: &PortSpec, classes: &ClassMap) -> Self {
        let by_class: [Classification; CLASSES] =
            std::array::from_fn(|class| Self::classification(spec, classes, class as u8));
        let mixes = |one: FrameDesc| {
            by_class.iter().any(|other| one.queue() == other.desc.queue() && one.group() != other.desc.group())
        };
        let by_mark: [Classification; NO_MARK as usize + 1] = std::array::from_fn(|mark| {
            let given = (mark != usize::from(NO_MARK)).then_some(mark as u8);
            by_class[usize::from(spec.live.marks.class(spec.live.trust, spec.live.port_class, given, given))]
        });
        let untrusted = if spec.live.trust == Trust::Dscp { 0 } else { NO_MARK };
        let ingress = FrameDesc::new(0, Cells(0), number as u8, 0, 0);
        let entry = |(l3, l3_offset, tags), traffic_class: usize| {
            let traffic_class = traffic_class as u8;
            let of_ip = Classification {
                desc: FrameDesc::ip(l3, l3_offset, ecn::is_ect(traffic_class)).with(ingress),
                class_bits: ClassBits::of_ip(l3, traffic_class).with_tags(tags, false),
                queue: 0,
            };
            let mark = traffic_class >> 2 | untrusted;
            let is_by_pcp = tags > 0 && spec.live.trust == Trust::Pcp;
            if is_by_pcp { of_ip } else { of_ip.with(by_mark[usize::from(mark & NO_MARK)]) }
        };
        let table = |headers| std::array::from_fn(|traffic_class| entry(headers, traffic_class));
        let of_kind = |kind: PlainKind| table((kind.l3(), kind.l3_offset(), kind.is_tagged().into()));
        let [tagged_ipv4, ipv6, tagged_ipv6] = PlainKind::ALL.map(of_kind);
        let by_traffic_class = Box::new([table((L3::V4, Usual::L3_OFFSET, 0)), tagged_ipv4, ipv6, tagged_ipv6]);
        let mixes_groups = by_class.iter().any(|class| mixes(class.desc));
        let (trust, roce) = (spec.live.trust, spec.live.marks.roce);
        let has_roce = roce != RoceMap::default();
        let lossy = (0..CLASSES).filter(|&class| !by_class[class].class_bits.lossy_queue().is_empty()).collect();
        Self { trust, untrusted, by_mark, by_class, lossy, by_traffic_class, roce, has_roce, mixes_groups }
    }

    /// Takes `groups` for the lossless ones.
    pub fn set_lossless(&mut self, groups: ClassSet) {
        let is_by_pcp = |table: usize| self.trust == Trust::Pcp && table > 0 && PlainKind::ALL[table - 1].is_tagged();
        // Entries by the PCP get their class later.
        let tables = self.by_traffic_class.iter_mut().enumerate().filter(|(table, _)| !is_by_pcp(*table));
        let by_traffic_class = tables.flat_map(|(_, table)| table);
        for entry in self.by_mark.iter_mut().chain(&mut self.by_class).chain(by_traffic_class) {
            let lossy = ClassSet::only_if(!groups.contains(entry.desc.group().into()), entry.desc.queue());
            entry.class_bits = entry.class_bits.with_lossy_queue(lossy);
        }
        let is_lossy = |class: &usize| !groups.contains(self.by_class[*class].desc.group().into());
        self.lossy = (0..CLASSES).filter(is_lossy).collect();
    }

    fn classification(spec: &PortSpec, classes: &ClassMap, class: u8) -> Classification {
        let (group, queue) = (classes.tc_to_group[usize::from(class)] & 7, classes.tc_to_queue[usize::from(class)] & 7);
        let is_lossy = !spec.lossless_groups().contains(group.into());
        let lossy = ClassSet::only_if(is_lossy, queue.into());
        Classification {
            desc: FrameDesc::NONE.classified(class, group, queue),
            class_bits: ClassBits::new(class, lossy),
            queue,
        }
    }

    /// The classes of usual frames, by the byte of DSCP and ECN.
    #[inline]
    pub fn of_usual(&self) -> &[Classification; 256] {
        &self.by_traffic_class[0]
    }

    /// The classes of plain frames of `kind`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only forms with vectors have loops for kinds"))]
    #[inline]
    pub fn of_kind(&self, kind: PlainKind) -> KindClassifier<'_> {
        let by_pcp = self.by_mark.first_chunk().filter(|_| kind.is_tagged() && self.trust == Trust::Pcp);
        KindClassifier { by_traffic_class: &self.by_traffic_class[1 + kind as usize], by_pcp }
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

    /// The classes of lossy groups.
    #[inline]
    pub fn lossy(&self) -> ClassSet {
        self.lossy
    }

    /// Whether some RoCEv2 packets have a class whatever their marks.
    #[inline]
    pub fn has_roce(&self) -> bool {
        self.has_roce
    }

    /// The entry of RoCEv2 packets of `kind`; `None`: their marks decide.
    #[inline]
    pub fn of_roce(&self, kind: RoceControl) -> Option<Classification> {
        let class = match kind {
            RoceControl::Ack => self.roce.ack,
            RoceControl::Cnp => self.roce.cnp,
        };
        class.map(|class| self.of_class(class.into()))
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

    /// Each kind with each PCP and ECN codepoint.
    fn kinds() -> impl Iterator<Item = (PlainKind, u8, u8)> {
        let marks = (0..8).flat_map(|pcp| (0..4).map(move |codepoint| (pcp, codepoint)));
        marks.flat_map(|(pcp, codepoint)| PlainKind::ALL.map(|kind| (kind, pcp, codepoint)))
    }

    #[test]
    fn of_ip_classifies_like_of_for_each_trust() {
        let switch = config::embedded().switch;
        for trust in [Trust::Dscp, Trust::Pcp, Trust::Port] {
            let mut spec = switch.ports[0].clone();
            spec.live.trust = trust;
            let classifier = PortClassifier::new(9, &spec, &switch.classes);
            let ingress = FrameDesc::new(0, Cells(0), 9, 0, 0);
            for dscp in 0..64 {
                let (one, other) = (classifier.of_ip(dscp, false, 0), classifier.of(Some(dscp), None));
                assert_eq!((one.desc, one.class_bits), (other.desc, other.class_bits), "{trust:?}, DSCP {dscp}");
                for codepoint in 0..4 {
                    let usual = classifier.of_usual()[usize::from(dscp << 2 | codepoint)];
                    let ip = FrameDesc::ip(L3::V4, 14, ecn::is_ect(codepoint));
                    assert_eq!(usual.desc, one.desc.with(ip).with(ingress), "{trust:?}, DSCP {dscp}");
                    assert_eq!(usize::from(usual.queue), usual.desc.queue(), "{trust:?}, DSCP {dscp}");
                    assert_eq!(usual.class_bits, one.class_bits.with_ip(L3::V4, dscp << 2 | codepoint));
                }
                for (kind, pcp, codepoint) in kinds() {
                    let traffic_class = dscp << 2 | codepoint;
                    let of_kind = classifier.of_kind(kind).of(traffic_class, pcp);
                    let class = classifier.of_ip(dscp, kind.is_tagged(), pcp);
                    let ip = FrameDesc::ip(kind.l3(), kind.l3_offset(), ecn::is_ect(traffic_class));
                    let bits = class.class_bits.with_ip(kind.l3(), traffic_class);
                    assert_eq!(
                        of_kind.desc,
                        class.desc.with(ip).with(ingress),
                        "{trust:?}, {kind:?}, DSCP {dscp}, PCP {pcp}"
                    );
                    assert_eq!(of_kind.class_bits, bits.with_tags(kind.is_tagged().into(), false));
                    assert_eq!(usize::from(of_kind.queue), of_kind.desc.queue(), "{trust:?}, {kind:?}, DSCP {dscp}");
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
                let of_class = classifier.of_class(one.desc.class().into());
                assert_eq!((of_class.desc, usize::from(of_class.queue)), (one.desc, one.desc.queue()));
            }
        }
    }
}
