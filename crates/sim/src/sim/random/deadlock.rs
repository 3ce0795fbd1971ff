//! Detection of circular waits among lossless flows.
//!
//! A frame that waits for a link occupies the buffer behind the previous link. So each flow makes every link of its
//! path wait for the next one. Without a circle of these dependencies, no wait lasts for ever (Dally & Seitz 1987; for
//! PFC Hu et al., HotNets 2016). A tree never has a circle. On a ring of four or more switches, shortest paths may
//! close one. A run that then does not drain shows a deadlock of the network, not a defect of a switch.

use std::collections::{BTreeMap, BTreeSet};

use crate::sim::routes::Cables;
use crate::sim::routing::Fabric;
use crate::sim::spec::{End, PortRef, Scenario};

/// Whether the lossless flows of `scenario` can deadlock. All lossless classes count as one, because a pause may stop
/// all of them.
#[must_use]
pub fn can_deadlock(scenario: &Scenario) -> bool {
    let mut waits: Waits = BTreeMap::new();
    for (before, after) in if scenario.routed.is_some() { routed_pairs(scenario) } else { bridged_pairs(scenario) } {
        waits.entry(after).or_default();
        waits.entry(before).or_default().insert(after);
    }
    has_circle(waits)
}

/// The ports that each port waits for.
type Waits = BTreeMap<PortRef, BTreeSet<PortRef>>;

/// Pairs of ports that bridged lossless frames take one after the other.
fn bridged_pairs(scenario: &Scenario) -> Vec<(PortRef, PortRef)> {
    let (cables, mut pairs) = (Cables::new(scenario), Vec::new());
    for (from, to) in scenario.lossless_pairs() {
        let toward = cables.toward(to);
        let (mut at, mut before) = (cables.port_of(from).map(|port| port.switch), None);
        while let Some(port) = at.and_then(|switch| Some(PortRef { switch, port: toward[switch]? })) {
            at = match cables.peer(port) {
                Some(End::Port(next)) => Some(next.switch),
                Some(End::Host(_)) | None => None,
            };
            pairs.extend(before.replace(port).map(|before| (before, port)));
        }
    }
    pairs
}

/// Pairs of ports that routed lossless frames may take one after the other.
fn routed_pairs(scenario: &Scenario) -> Vec<(PortRef, PortRef)> {
    let (cables, fabric) = (Cables::new(scenario), Fabric::new(scenario));
    let ends = scenario.lossless_pairs().into_iter();
    let ends = ends.filter_map(|(from, to)| Some((cables.port_of(from)?, cables.port_of(to)?)));
    ends.flat_map(|(from, to)| fabric.egress_pairs(from, to)).collect()
}

/// Removes ports that wait for no other port. The remainder is empty, or it is a circle with the ports that lead to it.
fn has_circle(mut waits: Waits) -> bool {
    loop {
        let free: Vec<PortRef> = waits.iter().filter(|(_, on)| on.is_empty()).map(|(port, _)| *port).collect();
        if free.is_empty() {
            return !waits.is_empty();
        }
        for port in free {
            waits.remove(&port);
            waits.values_mut().for_each(|on| {
                on.remove(&port);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pairs: &[(usize, usize)]) -> BTreeMap<PortRef, BTreeSet<PortRef>> {
        let port = |port| PortRef { switch: 0, port };
        let mut waits: BTreeMap<PortRef, BTreeSet<PortRef>> = BTreeMap::new();
        for &(a, b) in pairs {
            waits.entry(port(a)).or_default().insert(port(b));
            waits.entry(port(b)).or_default();
        }
        waits
    }

    #[test]
    fn wait_cycle_is_found_behind_a_chain_that_leads_to_it() {
        assert!(!has_circle(waits(&[])));
        assert!(!has_circle(waits(&[(1, 2), (2, 3), (1, 3)])));
        assert!(has_circle(waits(&[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)])));
    }
}
