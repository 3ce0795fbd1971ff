//! The loop guard: blocks a port of each loop that the own data units of LLDP show.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::forward::VlanMode;
use crate::lldp::{Event, EventKind};
use crate::sets::PortSet;
use crate::units::Nanos;

/// The guard. It decides for each loop once.
pub(super) struct Guard {
    /// Whether it blocks ports.
    blocks: bool,
    names: Vec<String>,
    vlans: Vec<VlanMode>,
    /// Loops by receiving and sending port, with the port that is blocked for each.
    known: BTreeMap<(usize, usize), Option<usize>>,
}

impl Guard {
    /// The guard of the ports of `config`, which blocks some if `blocks`.
    pub fn new(config: &Config, blocks: bool) -> Self {
        let ports = &config.switch.ports;
        Self {
            blocks,
            names: ports.iter().map(|port| port.name.clone()).collect(),
            vlans: ports.iter().map(|port| port.vlan.clone()).collect(),
            known: BTreeMap::new(),
        }
    }

    /// Sets whether ports are blocked, for loops that are known too.
    pub fn set_blocks(&mut self, blocks: bool) {
        if self.blocks != blocks {
            self.blocks = blocks;
            self.known.clear();
        }
    }

    /// Takes the present loops, by receiving and sending port. Returns events about those that begin or end.
    pub fn look(&mut self, loops: impl Iterator<Item = (usize, usize)>, now: Nanos) -> Vec<Event> {
        let loops: Vec<(usize, usize)> = loops.collect();
        let mut events = Vec::new();
        for &place in self.known.keys().filter(|place| !loops.contains(place)) {
            events.push(self.event(place, EventKind::LoopEnded, now));
        }
        self.known.retain(|place, _| loops.contains(place));
        for place in loops {
            if !self.known.contains_key(&place) {
                let blocked = self.decide(place);
                let name = blocked.map(|port| self.names[port].clone());
                events.push(self.event(place, EventKind::Loop { blocked: name }, now));
                self.known.insert(place, blocked);
            }
        }
        events
    }

    /// The ports that forward nothing.
    pub fn blocked(&self) -> PortSet {
        self.known.values().filter_map(|port| *port).collect()
    }

    /// The port to block for a loop: that of the higher number, so that both directions name the same.
    fn decide(&self, (port, from): (usize, usize)) -> Option<usize> {
        let is_loop = self.blocks && bridge_a_common_vlan(&self.vlans[port], &self.vlans[from]);
        is_loop.then_some(port.max(from))
    }

    fn event(&self, (port, from): (usize, usize), kind: EventKind, at: Nanos) -> Event {
        Event { port, at, neighbour: self.names[from].clone(), kind }
    }
}

/// Whether a frame can leave by one of two ports and come back by the other in the same VLAN: it then circulates. A
/// port takes frames that are tagged with its untagged VLAN too.
fn bridge_a_common_vlan(one: &VlanMode, other: &VlanMode) -> bool {
    let is_routed = |mode: &VlanMode| matches!(mode, VlanMode::Routed(_));
    let passes = |from: &VlanMode, to: &VlanMode| {
        let is_untagged = from.untagged().is_some() && from.untagged() == to.untagged();
        is_untagged || from.tagged().iter().any(|&vlan| to.carries(Some(vlan)))
    };
    !is_routed(one) && !is_routed(other) && (passes(one, other) || passes(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const PORTS: &str = "ports:
  - {name: a, device: net_null0, speed: 10G}
  - {name: b, device: net_null1, speed: 10G}
  - {name: c, device: net_null2, speed: 10G, vlan: 20}
  - {name: d, device: net_null3, speed: 10G, vlan: {tagged: [20, 30]}}
  - {name: e, device: net_null4, speed: 10G, vlan: {tagged: [30]}}
";

    fn guard(blocks: bool) -> Guard {
        Guard::new(&config::parse("x.yaml", PORTS).unwrap_or_else(|errors| panic!("{errors}")), blocks)
    }

    fn texts(events: &[Event]) -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event.port, event.text())).collect()
    }

    #[test]
    fn one_port_of_a_loop_is_blocked_until_its_frames_come_back_no_more() {
        let mut guard = guard(true);
        let events = guard.look([(0, 1), (1, 0)].into_iter(), Nanos(1));
        assert_eq!(
            texts(&events),
            [
                "0 a loop: frames of the own port b come back here; b is blocked, remove the cable",
                "1 a loop: frames of the own port a come back here; b is blocked, remove the cable",
            ]
        );
        assert_eq!(guard.blocked(), PortSet::only(1));
        assert_eq!(guard.look([(0, 1), (1, 0)].into_iter(), Nanos(2)), []);
        assert_eq!(
            texts(&guard.look([(1, 0)].into_iter(), Nanos(3))),
            ["0 frames of the own port b are not seen any more"]
        );
        assert_eq!(guard.blocked(), PortSet::only(1), "one direction is enough");
        guard.look([].into_iter(), Nanos(4));
        assert_eq!(guard.blocked(), PortSet::EMPTY);
    }

    #[test]
    fn port_that_hears_itself_is_blocked() {
        let mut guard = guard(true);
        guard.look([(3, 3)].into_iter(), Nanos(1));
        assert_eq!(guard.blocked(), PortSet::only(3));
    }

    #[test]
    fn ports_without_a_common_vlan_are_told_and_not_blocked() {
        let mut guard = guard(true);
        // Untagged in VLAN 1 and 20; untagged in VLAN 1 and tagged in others.
        let events = guard.look([(0, 2), (1, 3)].into_iter(), Nanos(1));
        let expected = [
            "0 frames of the own port c come back here; no port is blocked",
            "1 frames of the own port d come back here; no port is blocked",
        ];
        assert_eq!((texts(&events), guard.blocked()), (expected.map(str::to_owned).to_vec(), PortSet::EMPTY));
        guard.look([(3, 4)].into_iter(), Nanos(2));
        assert_eq!(guard.blocked(), PortSet::only(4), "VLAN 30 is tagged at both");
        guard.look([(2, 3)].into_iter(), Nanos(3));
        assert_eq!(guard.blocked(), PortSet::only(3), "a port of VLAN 20 takes frames with that tag");
    }

    #[test]
    fn of_several_ports_on_one_segment_all_but_the_first_are_blocked() {
        let mut guard = guard(true);
        guard.vlans = vec![VlanMode::Access(1); 5];
        let all = (0..3).flat_map(|port| (0..3).filter(move |from| *from != port).map(move |from| (port, from)));
        guard.look(all, Nanos(1));
        assert_eq!(guard.blocked(), [1, 2].into_iter().collect());
    }

    #[test]
    fn alert_blocks_nothing_and_a_new_action_holds_for_known_loops() {
        let mut guard = guard(false);
        guard.look([(0, 1)].into_iter(), Nanos(1));
        assert_eq!(guard.blocked(), PortSet::EMPTY);
        guard.set_blocks(true);
        assert_eq!(guard.look([(0, 1)].into_iter(), Nanos(2)).len(), 1);
        assert_eq!(guard.blocked(), PortSet::only(1));
    }
}
