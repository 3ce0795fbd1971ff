//! Whether lossless traffic can wait for itself in a circle.
//!
//! A frame that waits for a link occupies the buffer behind the link before, so each flow makes every link of its path wait
//! for the next one. Where these dependencies have no circle nothing can wait forever (Dally & Seitz 1987; of PFC Hu et
//! al., HotNets 2016). On a tree they never have one. On a ring of four switches or more shortest paths may close one, and
//! then a run that does not drain is a deadlock of the network and no fault of a switch.

use std::collections::{BTreeMap, BTreeSet};

use crate::sim::routes::Cables;
use crate::sim::spec::{End, PortRef, Scenario};

/// Whether the lossless flows of `scenario` can. All lossless classes count as one: a pause may stop them all.
#[must_use]
pub fn can_deadlock(scenario: &Scenario) -> bool {
    let cables = Cables::new(scenario);
    let mut waits: BTreeMap<PortRef, BTreeSet<PortRef>> = BTreeMap::new();
    for flow in scenario.flows.iter().filter(|flow| flow.lossless) {
        let toward = cables.toward(flow.to);
        let (mut at, mut before) = (cables.port_of(flow.from).map(|port| port.switch), None);
        while let Some(port) = at.and_then(|switch| Some(PortRef { switch, port: toward[switch]? })) {
            at = match cables.peer(port) {
                Some(End::Port(next)) => Some(next.switch),
                Some(End::Host(_)) | None => None,
            };
            waits.entry(port).or_default();
            if let Some(before) = before.replace(port) {
                waits.entry(before).or_default().insert(port);
            }
        }
    }
    has_circle(waits)
}

/// Takes away what waits for nothing until nothing is left, or only a circle and what leads to it.
fn has_circle(mut waits: BTreeMap<PortRef, BTreeSet<PortRef>>) -> bool {
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
    fn a_circle_is_found_behind_what_leads_to_it() {
        assert!(!has_circle(waits(&[])));
        assert!(!has_circle(waits(&[(1, 2), (2, 3), (1, 3)])));
        assert!(has_circle(waits(&[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)])));
    }
}
