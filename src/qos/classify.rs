//! DSCP or PCP to traffic class to priority group and egress queue.

use super::CLASSES;

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

/// The maps of the switch. Every value is below [`CLASSES`], which [`ClassMap::is_valid`] checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMap {
    /// DSCP to traffic class.
    pub dscp_to_tc: [u8; 64],
    /// PCP to traffic class.
    pub pcp_to_tc: [u8; 8],
    /// Traffic class to priority group (and so PFC priority) at ingress.
    pub tc_to_group: [u8; CLASSES],
    /// Traffic class to queue (and so PFC priority) at egress.
    pub tc_to_queue: [u8; CLASSES],
}

impl ClassMap {
    /// Class selector of the DSCP (its upper three bits), PCP as it is, groups and queues one to one.
    /// DSCP 26 (RoCE by convention) comes out as 3, 48 (CNP) as 6.
    #[must_use]
    pub fn identity() -> Self {
        let mut dscp_to_tc = [0; 64];
        for (dscp, tc) in dscp_to_tc.iter_mut().enumerate() {
            *tc = (dscp >> 3) as u8;
        }
        Self {
            dscp_to_tc,
            pcp_to_tc: [0, 1, 2, 3, 4, 5, 6, 7],
            tc_to_group: [0, 1, 2, 3, 4, 5, 6, 7],
            tc_to_queue: [0, 1, 2, 3, 4, 5, 6, 7],
        }
    }

    /// Whether every entry names one of the eight classes.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let tables: [&[u8]; 4] = [&self.dscp_to_tc, &self.pcp_to_tc, &self.tc_to_group, &self.tc_to_queue];
        tables.iter().all(|table| table.iter().all(|&class| usize::from(class) < CLASSES))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_follows_the_class_selector() {
        let map = ClassMap::identity();
        assert!(map.is_valid());
        assert_eq!(map.class(Trust::Dscp, 0, Some(26), Some(5)), 3);
        assert_eq!(map.class(Trust::Dscp, 0, Some(48), None), 6);
    }

    #[test]
    fn what_is_not_there_falls_back_to_the_port() {
        let map = ClassMap::identity();
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
