//! The loop guard: blocks a port of each loop that own data units of LLDP or own probes show.

use std::collections::BTreeMap;

use super::agent::{Event, EventKind};
use super::probe::Returned;
use crate::forward::{LagsSpec, VlanMode};
use crate::sets::PortSet;
use crate::units::Nanos;

/// Receiving and sending port of a loop.
type Place = (usize, usize);

/// The guard. It decides for each loop once.
#[derive(Debug)]
pub struct Guard {
    /// Whether it blocks ports.
    blocks: bool,
    names: Vec<String>,
    vlans: Vec<VlanMode>,
    /// Link aggregation groups, each of which bridges as one port.
    lags: LagsSpec,
    /// Loops, with the port that is blocked for each.
    known: BTreeMap<Place, Option<usize>>,
}

impl Guard {
    /// The guard of `ports`, which have these names and VLANs and of which `lags` are groups. It blocks some if
    /// `blocks`.
    #[must_use]
    pub fn new(ports: impl Iterator<Item = (String, VlanMode)>, lags: LagsSpec, blocks: bool) -> Self {
        let (names, vlans) = ports.unzip();
        Self { blocks, names, vlans, lags, known: BTreeMap::new() }
    }

    /// Sets whether ports are blocked, for loops that are known too.
    pub fn set_blocks(&mut self, blocks: bool) {
        if self.blocks != blocks {
            self.blocks = blocks;
            self.known.clear();
        }
    }

    /// Sets the VLANs of the ports, by which the next look decides.
    pub fn set_vlans(&mut self, vlans: Vec<VlanMode>) {
        self.vlans = vlans;
    }

    /// Takes the present loops: by LLDP, and by probes. Returns events about those that begin or end, or that block
    /// another port than before.
    pub fn look(
        &mut self,
        by_lldp: impl Iterator<Item = Place>,
        by_probes: impl Iterator<Item = Returned>,
        now: Nanos,
    ) -> Vec<Event> {
        let mut loops: BTreeMap<Place, Option<usize>> = by_lldp.map(|place| (place, self.decide(place))).collect();
        for Returned { port, from, circulates } in by_probes {
            let blocked = if self.blocks && circulates { self.later((port, from)) } else { None };
            let known = loops.entry((port, from)).or_default();
            *known = known.or(blocked);
        }
        let mut events = Vec::new();
        let stays_blocked = |port: usize| loops.values().any(|blocked| *blocked == Some(port));
        for (&place, blocked) in self.known.iter().filter(|(place, _)| !loops.contains_key(place)) {
            let released = blocked.filter(|port| !stays_blocked(*port)).map(|port| self.names[port].clone());
            events.push(self.event(place, EventKind::LoopEnded { released }, now));
        }
        self.known.retain(|place, _| loops.contains_key(place));
        for (place, blocked) in loops {
            if self.known.get(&place) != Some(&blocked) {
                let name = blocked.map(|port| self.names[port].clone());
                events.push(self.event(place, EventKind::Loop { blocked: name }, now));
                self.known.insert(place, blocked);
            }
        }
        events
    }

    /// The ports that forward nothing.
    #[must_use]
    pub fn blocked(&self) -> PortSet {
        self.known.values().filter_map(|port| *port).collect()
    }

    /// The ports of the loops for which a port is blocked: both that received and that sent the own frames.
    #[must_use]
    pub fn looped(&self) -> PortSet {
        let blocking = self.known.iter().filter(|(_, blocked)| blocked.is_some());
        blocking.flat_map(|(&(port, from), _)| [port, from]).collect()
    }

    /// The port to block for a loop that a probe shows: the later one. `None` if both are one bridge port: the loop is
    /// elsewhere then, since the switch sends no frame back, and any host of the network can send probes back.
    fn later(&self, (port, from): Place) -> Option<usize> {
        let [one, other] = [port, from].map(|port| self.lags.bridge_port(port));
        (one != other).then_some(if one > other { port } else { from })
    }

    /// The port to block for a loop that LLDP shows, whose data units have no VLAN: that of the higher number, so that
    /// both directions name the same.
    fn decide(&self, (port, from): Place) -> Option<usize> {
        let is_loop = self.blocks && bridge_a_common_vlan(&self.vlans[port], &self.vlans[from]);
        is_loop.then_some(port.max(from))
    }

    fn event(&self, (port, from): Place, kind: EventKind, at: Nanos) -> Event {
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
    use crate::forward::LagSpec;

    fn guard(blocks: bool) -> Guard {
        let trunk = |tagged: &[u16], native| VlanMode::Trunk { tagged: tagged.to_vec(), native };
        let vlans = [
            VlanMode::Access(1),
            VlanMode::Access(1),
            VlanMode::Access(20),
            trunk(&[20, 30], None),
            trunk(&[30], None),
        ];
        Guard::new(["a", "b", "c", "d", "e"].map(str::to_owned).into_iter().zip(vlans), LagsSpec::default(), blocks)
    }

    /// Looks at loops that LLDP shows.
    fn look(guard: &mut Guard, loops: &[Place], now: u64) -> Vec<Event> {
        guard.look(loops.iter().copied(), std::iter::empty(), Nanos(now))
    }

    /// Looks at probes that have returned: receiving port, sending port, and whether frames circulate.
    fn look_at_probes(guard: &mut Guard, probes: &[(usize, usize, bool)], now: u64) -> Vec<Event> {
        let returned = probes.iter().map(|&(port, from, circulates)| Returned { port, from, circulates });
        guard.look(std::iter::empty(), returned, Nanos(now))
    }

    fn texts(events: &[Event]) -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event.port, event.text())).collect()
    }

    /// The event of a loop by which frames of `from` come back, and for which `blocked` is blocked.
    fn loop_text(from: &str, blocked: &str) -> String {
        format!(
            "a loop: frames of the own port {from} come back here; {blocked} is blocked, remove the cable or the loop \
             behind it"
        )
    }

    #[test]
    fn one_port_of_a_loop_is_blocked_until_its_frames_come_back_no_more() {
        let mut guard = guard(true);
        let events = look(&mut guard, &[(0, 1), (1, 0)], 1);
        assert_eq!(texts(&events), [format!("0 {}", loop_text("b", "b")), format!("1 {}", loop_text("a", "b"))]);
        assert_eq!(guard.blocked(), PortSet::only(1));
        assert_eq!(look(&mut guard, &[(0, 1), (1, 0)], 2), []);
        assert_eq!(texts(&look(&mut guard, &[(1, 0)], 3)), ["0 frames of the own port b come back no more"]);
        assert_eq!(guard.blocked(), PortSet::only(1), "one direction is enough");
        let events = look(&mut guard, &[], 4);
        assert_eq!(texts(&events), ["1 frames of the own port a come back no more; b is not blocked any more"]);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
    }

    #[test]
    fn port_that_hears_itself_is_blocked() {
        let mut guard = guard(true);
        look(&mut guard, &[(3, 3)], 1);
        assert_eq!(guard.blocked(), PortSet::only(3));
    }

    #[test]
    fn ports_without_a_common_vlan_are_told_and_not_blocked() {
        let mut guard = guard(true);
        // Untagged in VLAN 1 and 20; untagged in VLAN 1 and tagged in others.
        let events = look(&mut guard, &[(0, 2), (1, 3)], 1);
        let expected = [
            "0 frames of the own port c come back here; no port is blocked",
            "1 frames of the own port d come back here; no port is blocked",
        ];
        assert_eq!((texts(&events), guard.blocked()), (expected.map(str::to_owned).to_vec(), PortSet::EMPTY));
        assert_eq!(guard.looped(), PortSet::EMPTY, "a loop without a block moves no station");
        look(&mut guard, &[(3, 4)], 2);
        assert_eq!(guard.blocked(), PortSet::only(4), "VLAN 30 is tagged at both");
        look(&mut guard, &[(2, 3)], 3);
        assert_eq!(guard.blocked(), PortSet::only(3), "a port of VLAN 20 takes frames with that tag");
    }

    #[test]
    fn of_several_ports_on_one_segment_all_but_the_first_are_blocked() {
        let mut guard = guard(true);
        guard.vlans = vec![VlanMode::Access(1); 5];
        let all = (0..3).flat_map(|port| (0..3).filter(move |from| *from != port).map(move |from| (port, from)));
        look(&mut guard, &all.collect::<Vec<_>>(), 1);
        assert_eq!(guard.blocked(), [1, 2].into_iter().collect());
    }

    #[test]
    fn alert_blocks_nothing_and_a_new_action_holds_for_known_loops() {
        let mut guard = guard(false);
        look(&mut guard, &[(0, 1)], 1);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
        guard.set_blocks(true);
        assert_eq!(look(&mut guard, &[(0, 1)], 2).len(), 1);
        assert_eq!(guard.blocked(), PortSet::only(1));
    }

    #[test]
    fn probe_that_returns_in_its_vlan_blocks_and_one_in_another_vlan_is_told() {
        let mut guard = guard(true);
        let events = look_at_probes(&mut guard, &[(1, 0, true), (2, 0, false)], 1);
        assert_eq!(
            texts(&events),
            [
                format!("1 {}", loop_text("a", "b")),
                "2 frames of the own port a come back here; no port is blocked".to_owned(),
            ]
        );
        assert_eq!(guard.blocked(), PortSet::only(1));
        assert_eq!(look_at_probes(&mut guard, &[(1, 0, true), (2, 0, false)], 2), []);
        let events = look_at_probes(&mut guard, &[(1, 0, false), (2, 0, false)], 3);
        assert_eq!(texts(&events), ["1 frames of the own port a come back here; no port is blocked"]);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
        assert_eq!(look_at_probes(&mut guard, &[], 4).len(), 2);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
    }

    #[test]
    fn loop_that_is_only_told_blocks_once_frames_circulate() {
        let mut guard = guard(true);
        // LLDP shows a pair without a common VLAN; then a probe circulates.
        assert_eq!(look(&mut guard, &[(0, 2)], 1).len(), 1);
        let both = [Returned { port: 0, from: 2, circulates: true }];
        let events = guard.look([(0, 2)].into_iter(), both.into_iter(), Nanos(2));
        assert_eq!((texts(&events), guard.blocked()), (vec![format!("0 {}", loop_text("c", "c"))], PortSet::only(2)));
        // LLDP alone does not keep the block.
        assert_eq!(look(&mut guard, &[(0, 2)], 3).len(), 1);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
    }

    /// Any host of a network sees the probes that bridges flood, and can send them back.
    #[test]
    fn probe_that_returns_at_its_own_port_or_group_is_told_and_blocks_nothing() {
        let mut guard = guard(true);
        let events = look_at_probes(&mut guard, &[(1, 1, true)], 1);
        assert_eq!(texts(&events), ["1 frames of the own port b come back here; no port is blocked"]);
        let ports = [0, 3].into_iter().collect();
        let group = LagSpec { name: "bond".to_owned(), ports, min_links: 1, is_negotiated: true };
        guard.lags.groups.push(group);
        look_at_probes(&mut guard, &[(0, 3, true), (3, 0, true)], 2);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
        // The group counts by its first port, whichever member receives or sends.
        look_at_probes(&mut guard, &[(3, 1, true), (1, 0, true)], 3);
        assert_eq!(guard.blocked(), PortSet::only(1));
        assert_eq!(guard.looped(), [0, 1, 3].into_iter().collect());
    }

    #[test]
    fn alert_blocks_nothing_for_probes() {
        let mut guard = guard(false);
        assert_eq!(look_at_probes(&mut guard, &[(0, 1, true)], 1).len(), 1);
        assert_eq!(guard.blocked(), PortSet::EMPTY);
    }
}
