//! DSCP or PCP to traffic class to priority group and egress queue.

use crate::sets::CLASSES;

/// Which of a frame's marks decides its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The DSCP of IPv4 and IPv6; frames without IP get the port's own class.
    Dscp,
    /// The PCP of the outermost VLAN tag; untagged frames get the port's own class.
    Pcp,
    /// Nothing: every frame gets the port's own class.
    Port,
}

/// From marks to traffic classes. Every value is below [`CLASSES`], which [`MarkMap::is_valid`] checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkMap {
    /// DSCP to traffic class.
    pub dscp_to_tc: [u8; 64],
    /// PCP to traffic class.
    pub pcp_to_tc: [u8; 8],
}

impl MarkMap {
    /// Class selector of the DSCP (its upper three bits), PCP as it is.
    /// DSCP 26 (RoCE by convention) comes out as 3, 48 (CNP) as 6.
    #[must_use]
    pub fn identity() -> Self {
        Self { dscp_to_tc: std::array::from_fn(|dscp| (dscp >> 3) as u8), pcp_to_tc: IDENTITY }
    }

    /// Whether every entry names one of the eight classes.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.dscp_to_tc.iter().chain(&self.pcp_to_tc).all(|&class| usize::from(class) < CLASSES)
    }

    /// Traffic class of a frame with this `dscp` and `pcp` (where it has them) on a port that trusts `trust`.
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

/// From traffic classes to groups and queues: the same on every port. Every value is below [`CLASSES`], which
/// [`ClassMap::is_valid`] checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMap {
    /// Traffic class to priority group (and so the PFC priority that stops its sender) at ingress.
    pub tc_to_group: [u8; CLASSES],
    /// Traffic class to queue at egress.
    pub tc_to_queue: [u8; CLASSES],
    /// PFC priority, as received, to the queue that it stops.
    pub pfc_to_queue: [u8; CLASSES],
}

impl ClassMap {
    /// All one to one.
    #[must_use]
    pub fn identity() -> Self {
        Self { tc_to_group: IDENTITY, tc_to_queue: IDENTITY, pfc_to_queue: IDENTITY }
    }

    /// Whether every entry names one of the eight.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        [&self.tc_to_group, &self.tc_to_queue, &self.pfc_to_queue]
            .into_iter()
            .flatten()
            .all(|&to| usize::from(to) < CLASSES)
    }
}

/// The class that `map` sends to `target`, if it alone is.
#[must_use]
pub fn only_class(map: &[u8; CLASSES], target: usize) -> Option<usize> {
    let mut classes = (0..CLASSES).filter(|&class| usize::from(map[class]) == target);
    classes.next().filter(|_| classes.next().is_none())
}

/// Marks that frames get when they leave by a port, by traffic class; `None`: they keep their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// DSCP, below 64, for IP packets.
    pub dscp: [Option<u8>; CLASSES],
    /// PCP, below 8, for frames that leave tagged. A tag that is put on has the traffic class for PCP where there is
    /// `None`.
    pub pcp: [Option<u8>; CLASSES],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_follows_the_class_selector() {
        let map = MarkMap::identity();
        assert!(map.is_valid());
        assert_eq!(map.class(Trust::Dscp, 0, Some(26), Some(5)), 3);
        assert_eq!(map.class(Trust::Dscp, 0, Some(48), None), 6);
    }

    #[test]
    fn what_is_not_there_falls_back_to_the_port() {
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
