//! Maps from DSCP or PCP to traffic class, and from traffic class to priority group and egress queue.

use crate::sets::CLASSES;
use crate::text::format::word_of;

/// The mark of a frame that determines its traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The DSCP of IPv4 and IPv6; frames without IP get the port's own class.
    Dscp,
    /// The PCP of the outermost VLAN tag; untagged frames get the port's own class.
    Pcp,
    /// No mark: every frame gets the port's own class.
    Port,
}

impl Trust {
    /// The words of the configuration for it.
    pub const WORDS: [(&'static str, Self); 3] = [("dscp", Self::Dscp), ("pcp", Self::Pcp), ("port", Self::Port)];

    /// The word of the configuration for it.
    #[must_use]
    pub fn label(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }
}

/// Maps from DSCP and PCP to traffic class. Every value is below [`CLASSES`], which [`MarkMap::is_valid`] checks.
///
/// RFC 2474 section 3: "the mapping of codepoints to PHBs MUST be configurable". IEEE 802.1Q YANG (clause 6.9.4):
/// priority regeneration maps "incoming priority values on a per-Port basis, under management control." `pcp_to_tc` is
/// that table and the table of traffic classes (clause 8.6.6) in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkMap {
    /// DSCP to traffic class.
    pub dscp_to_tc: [u8; 64],
    /// PCP to traffic class.
    pub pcp_to_tc: [u8; 8],
    /// Classes of RoCEv2 packets without data of applications, whatever their marks.
    pub roce: RoceMap,
}

/// Traffic classes of RoCEv2 packets that carry no data of applications; `None`: that of their marks. The classes are
/// lossy: PFC names the priority of a class, and the senders of these packets may mark them with another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoceMap {
    /// Class of ACKs and NAKs.
    pub ack: Option<u8>,
    /// Class of congestion notification packets.
    pub cnp: Option<u8>,
}

impl RoceMap {
    /// The words for both kinds in the configuration, with their classes.
    #[must_use]
    pub fn entries(&self) -> [(&'static str, Option<u8>); 2] {
        [("ack", self.ack), ("cnp", self.cnp)]
    }
}

impl MarkMap {
    /// Maps a DSCP to its class selector (the upper three bits) and a PCP to the class of its number. DSCP 26 (RoCE by
    /// convention) maps to 3, DSCP 48 (CNP) to 6.
    ///
    /// RFC 2474 section 3: "Packets received with an unrecognized codepoint SHOULD be forwarded as if they were marked
    /// for the Default behavior". This map knows all 64 codepoints, so that none is unrecognized.
    #[must_use]
    pub fn identity() -> Self {
        let dscp_to_tc = std::array::from_fn(|dscp| (dscp >> 3) as u8);
        Self { dscp_to_tc, pcp_to_tc: IDENTITY, roce: RoceMap::default() }
    }

    /// Whether every entry is one of the eight classes.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let of_roce = [self.roce.ack, self.roce.cnp].into_iter().flatten();
        let marked = self.dscp_to_tc.iter().chain(&self.pcp_to_tc).copied();
        marked.chain(of_roce).all(|class| usize::from(class) < CLASSES)
    }

    /// Returns the traffic class of a frame with this `dscp` and `pcp`, if present, at a port that trusts `trust`. A
    /// frame without the trusted mark gets `port_class`.
    ///
    /// RFC 2474 section 3: "DS-compliant nodes MUST select PHBs by matching against the entire 6-bit DSCP field".
    /// IEEE 802.1Q clause 12.6.2, in substance: a frame without a priority has the default priority of its port.
    #[inline]
    #[must_use]
    pub fn class(&self, trust: Trust, port_class: u8, dscp: Option<u8>, pcp: Option<u8>) -> u8 {
        let class = match trust {
            Trust::Dscp => dscp.map(|dscp| self.dscp_to_tc[usize::from(dscp & 63)]),
            Trust::Pcp => pcp.map(|pcp| self.pcp_to_tc[usize::from(pcp & 7)]),
            Trust::Port => None,
        };
        class.unwrap_or(port_class) & 7
    }
}

const IDENTITY: [u8; CLASSES] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Maps from traffic classes to groups and queues, identical on every port. Every value is below [`CLASSES`], which
/// [`ClassMap::is_valid`] checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMap {
    /// Traffic class to priority group at ingress. The group's number is the PFC priority that pauses its sender.
    pub tc_to_group: [u8; CLASSES],
    /// Traffic class to queue at egress.
    pub tc_to_queue: [u8; CLASSES],
    /// Received PFC priority to the queue that it pauses.
    pub pfc_to_queue: [u8; CLASSES],
}

impl ClassMap {
    /// Maps every class and priority to the same number.
    #[must_use]
    pub fn identity() -> Self {
        Self { tc_to_group: IDENTITY, tc_to_queue: IDENTITY, pfc_to_queue: IDENTITY }
    }

    /// Whether every entry is below [`CLASSES`].
    #[must_use]
    pub fn is_valid(&self) -> bool {
        [&self.tc_to_group, &self.tc_to_queue, &self.pfc_to_queue]
            .into_iter()
            .flatten()
            .all(|&to| usize::from(to) < CLASSES)
    }
}

/// Returns the class that `map` maps to `target`; `None` if there is no such class, or more than one.
#[must_use]
pub fn only_class(map: &[u8; CLASSES], target: usize) -> Option<usize> {
    let mut classes = (0..CLASSES).filter(|&class| usize::from(map[class]) == target);
    classes.next().filter(|_| classes.next().is_none())
}

/// Marks to write into frames at egress, by traffic class. `None` keeps the mark of the frame.
///
/// IEEE 802.1Q clause 6.9.3, in substance: the PCP of a sent tag encodes the priority of the frame. A kept tag keeps
/// its PCP unless `pcp` names another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// New DSCP, below 64, of IP packets.
    pub dscp: [Option<u8>; CLASSES],
    /// New PCP, below 8, of frames that leave tagged. If it is `None`, an inserted tag gets the traffic class as its
    /// PCP.
    pub pcp: [Option<u8>; CLASSES],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_map_follows_the_class_selector() {
        let map = MarkMap::identity();
        assert!(map.is_valid());
        assert_eq!(map.class(Trust::Dscp, 0, Some(26), Some(5)), 3);
        assert_eq!(map.class(Trust::Dscp, 0, Some(48), None), 6);
    }

    #[test]
    fn class_falls_back_to_the_port_class_without_a_trusted_mark() {
        let map = MarkMap::identity();
        assert_eq!(map.class(Trust::Dscp, 5, None, Some(3)), 5);
        assert_eq!(map.class(Trust::Pcp, 2, Some(26), None), 2);
        assert_eq!(map.class(Trust::Pcp, 2, Some(26), Some(4)), 4);
        assert_eq!(map.class(Trust::Port, 1, Some(26), Some(4)), 1);
    }

    #[test]
    fn a_map_beyond_eight_classes_is_invalid() {
        let mut map = ClassMap::identity();
        map.tc_to_queue[3] = 8;
        assert!(!map.is_valid());
    }
}
