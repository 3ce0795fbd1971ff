//! Link aggregation groups (IEEE 802.1AX): several ports that bridge and route as one.
//!
//! Bridging knows a group by its *head*, its first port: the forwarding database, VLANs and floods name the head. Each
//! frame then leaves by one of the active members, which the hash of its flow selects.
//!
//! The hash selects one of [`BUCKETS`] buckets. Each bucket prefers the members in an order of its own, and uses the
//! first that is active. So a lost member moves only its own buckets, which go to all others alike, and come back with
//! it.

use crate::sets::{MAX_PORTS, PortSet};

/// Most members of a group.
pub const MAX_MEMBERS: usize = 8;

/// Buckets of a group: 8 * 7 * 6 * 5, a multiple of each number from 1 to 8. So all members share them evenly, also
/// when up to three are lost.
pub const BUCKETS: usize = 1680;
/// Members of a group from which the numbers of buckets have no further digits.
const LAST_DIGIT: usize = 5;

/// The ports of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LagSpec {
    /// Name in metrics, tables and errors.
    pub name: String,
    /// Its ports: one to [`MAX_MEMBERS`].
    pub ports: PortSet,
    /// Fewest active members with which the group carries frames; at least one.
    pub min_links: u8,
    /// Whether LACP decides which members are active. Without it, or where no control plane runs, every member with a
    /// link is active.
    pub is_negotiated: bool,
}

impl LagSpec {
    /// The port that stands for the group in bridging: its first.
    ///
    /// # Panics
    /// If the group has no port: the configuration refuses that.
    #[must_use]
    pub fn head(&self) -> usize {
        self.ports.lowest().expect("a group has a port")
    }
}

/// The groups of a switch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LagsSpec {
    /// Groups, in ascending order of their heads. A port is in one of them at most.
    pub groups: Vec<LagSpec>,
    /// Seed of the flow hash, and whether both directions of a flow hash alike.
    pub hash_seed: u64,
    /// See `hash_seed`.
    pub is_symmetric: bool,
}

impl LagsSpec {
    /// The port that stands for `port` in bridging: the head of its group, or itself.
    #[must_use]
    pub fn bridge_port(&self, port: usize) -> usize {
        self.group_of(port).map_or(port, LagSpec::head)
    }

    /// The group of a port.
    #[must_use]
    pub fn group_of(&self, port: usize) -> Option<&LagSpec> {
        self.groups.iter().find(|group| group.ports.contains(port))
    }

    /// Ports that are members of a group.
    #[must_use]
    pub fn members(&self) -> PortSet {
        self.groups.iter().fold(PortSet::EMPTY, |all, group| all | group.ports)
    }

    /// The ports that a frame can be forwarded to if the ports `up` have a link and the members `distributing` may
    /// send: a group counts by its head.
    #[must_use]
    pub fn bridge_ports_up(&self, up: PortSet, distributing: PortSet) -> PortSet {
        self.groups.iter().fold(up - self.members(), |ports, group| {
            let active = group.ports & up & distributing;
            ports | PortSet::only_if(active.len() >= usize::from(group.min_links.max(1)), group.head())
        })
    }
}

/// State of the members of all groups, as LACP has decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LagState {
    /// Members that take frames.
    pub collecting: PortSet,
    /// Members that send frames. Only those with a link do.
    pub distributing: PortSet,
    /// Members of these that keep their frames in their queues until the others have sent older ones.
    pub closed: PortSet,
}

impl LagState {
    /// The state before any negotiation: members of groups without LACP are active.
    #[must_use]
    pub fn initial(spec: &LagsSpec) -> Self {
        let groups = spec.groups.iter().filter(|group| !group.is_negotiated);
        let active = groups.fold(PortSet::EMPTY, |all, group| all | group.ports);
        Self { collecting: active, distributing: active, closed: PortSet::EMPTY }
    }
}

/// The member of a group of `ports` that carries the flows of `bucket` while the members `active` may send; `None` if
/// none may.
#[must_use]
pub fn member_of(bucket: usize, ports: PortSet, active: PortSet) -> Option<u8> {
    let mut left = [0; MAX_PORTS];
    let mut count = 0;
    for port in ports.iter() {
        left[count] = port as u8;
        count += 1;
    }
    // The digits of the bucket's number, to the bases count, count - 1 and so on, name a permutation of the members. A
    // hash of the number takes their place when a large group has none left.
    let (mut digits, is_large) = (bucket, count >= LAST_DIGIT);
    while count > 0 {
        if is_large && count < LAST_DIGIT {
            digits = (bucket + count).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        }
        let at = digits % count;
        digits /= count;
        if active.contains(left[at].into()) {
            return Some(left[at]);
        }
        left.copy_within(at + 1..count, at);
        count -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(ports: PortSet, active: PortSet) -> Vec<usize> {
        let member = |bucket| member_of(bucket, ports, active).map(usize::from);
        active.iter().map(|port| (0..BUCKETS).filter(|&bucket| member(bucket) == Some(port)).count()).collect()
    }

    #[test]
    fn members_share_the_buckets_evenly_whatever_is_lost() {
        for count in 1..=MAX_MEMBERS {
            let ports = PortSet::first(count);
            for active in (1..1_u64 << count).map(PortSet::from_bits) {
                let (shares, even) = (shares(ports, active), BUCKETS / active.len());
                assert_eq!(shares.iter().sum::<usize>(), BUCKETS);
                let is_fair = |share: &usize| share.abs_diff(even) * 5 <= even;
                assert!(shares.iter().all(is_fair), "{count} members, active {active:?}: {shares:?}");
            }
        }
        assert_eq!(shares(PortSet::first(3), PortSet::from_bits(0b011)), [840, 840]);
    }

    #[test]
    fn group_without_active_members_carries_nothing() {
        assert_eq!(member_of(17, PortSet::first(4), PortSet::EMPTY), None);
        assert_eq!(member_of(17, PortSet::first(4), PortSet::only(9)), None, "a port of another group");
    }

    #[test]
    fn group_is_up_from_its_least_number_of_links() {
        let group = |ports, min_links| LagSpec { name: String::new(), ports, min_links, is_negotiated: true };
        let groups = vec![group(PortSet::from_bits(0b0011), 2), group(PortSet::from_bits(0b1100), 1)];
        let spec = LagsSpec { groups, ..LagsSpec::default() };
        let up = |up: u64, distributing: u64| {
            spec.bridge_ports_up(PortSet::from_bits(up), PortSet::from_bits(distributing)).bits()
        };
        assert_eq!(up(0b1_1111, 0b1111), 0b1_0101);
        assert_eq!(up(0b1_1101, 0b1111), 0b1_0100, "one of two links is too few");
        assert_eq!(up(0b1_1011, 0b1111), 0b1_0101, "the head stands for the group without a link of its own");
        assert_eq!(up(0b1_1111, 0b0111), 0b1_0101);
        assert_eq!(up(0b1_1111, 0b0000), 0b1_0000, "other ports need no LACP");
        assert_eq!([0, 1, 2, 3, 4].map(|port| spec.bridge_port(port)), [0, 0, 2, 2, 4]);
    }

    proptest! {
        /// A member that is lost moves its own buckets alone, and has the same ones when it is back.
        #[test]
        fn lost_member_moves_its_own_buckets_alone(ports in 1_u64..256, active: u64, lost in 0_usize..8) {
            let (ports, lost) = (PortSet::from_bits(ports), PortSet::only(lost));
            let before = ports & PortSet::from_bits(active);
            for bucket in 0..BUCKETS {
                let member = member_of(bucket, ports, before);
                prop_assert_eq!(member.is_some(), !before.is_empty());
                prop_assert!(member.is_none_or(|member| before.contains(member.into())));
                if member.is_some_and(|member| !lost.contains(member.into())) {
                    prop_assert_eq!(member_of(bucket, ports, before - lost), member);
                }
            }
        }
    }
}
