//! Selection: the partner of a group, and the members that are connected to it (802.1AX-2014 clause 6.4.14).
//!
//! All links of a group must end at one system and one key (clause 6.3.6, LAG ID). The group keeps its partner while
//! any member has it. Otherwise it takes that of the most members; of equally many, that of the first.

use crate::wire::MacAddr;
use crate::wire::lacp::{Participant, PortState};

/// The other end of a group: system and key, and the port if its link must be alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartnerId {
    /// Priority and address of the system.
    pub system: (u16, MacAddr),
    /// Its key.
    pub key: u16,
    /// The port of a partner that does not aggregate.
    individual: Option<(u16, u16)>,
}

impl PartnerId {
    /// The other end that `partner` states.
    #[must_use]
    pub fn of(partner: &Participant) -> Self {
        let is_individual = !partner.state.has(PortState::AGGREGATION);
        Self {
            system: (partner.system_priority, partner.system),
            key: partner.key,
            individual: is_individual.then_some((partner.port_priority, partner.port)),
        }
    }
}

/// The partner of a group whose members have the partners `members`; `None` for a member without one. `before` is the
/// present one.
#[must_use]
pub fn partner_of(members: &[Option<PartnerId>], before: Option<PartnerId>) -> Option<PartnerId> {
    let present = members.iter().flatten();
    if let Some(before) = before.filter(|before| present.clone().any(|id| id == before)) {
        return Some(before);
    }
    let count = |id: &PartnerId| members.iter().flatten().filter(|other| *other == id).count();
    // The first of the largest.
    present.copied().reduce(|best, id| if count(&id) > count(&best) { id } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(system: u16, key: u16) -> Option<PartnerId> {
        let state = PortState::AGGREGATION;
        let system = MacAddr::local(5, system);
        Some(PartnerId::of(&Participant { system, key, state, ..Participant::default() }))
    }

    #[test]
    fn most_members_decide_and_the_partner_stays() {
        assert_eq!(partner_of(&[None, id(1, 1), id(2, 1), id(2, 1)], None), id(2, 1));
        assert_eq!(partner_of(&[id(1, 1), id(1, 2)], None), id(1, 1), "the first of equally many");
        assert_eq!(partner_of(&[id(1, 1), id(2, 1), id(2, 1)], id(1, 1)), id(1, 1), "it is still there");
        assert_eq!(partner_of(&[None, id(2, 1)], id(1, 1)), id(2, 1));
        assert_eq!(partner_of(&[None, None], id(1, 1)), None);
    }

    #[test]
    fn partner_that_does_not_aggregate_is_alone() {
        let alone = |port| PartnerId::of(&Participant { port, ..Participant::default() });
        assert_ne!(alone(1), alone(2));
        assert_eq!(alone(1), alone(1));
    }
}
