//! Interfaces come up and go down: with the links of their ports, and because Linux shuts them.

use super::Router;
use super::neighbours::Effect;
use crate::sets::PortSet;
use crate::units::Nanos;

impl Router {
    /// Sets the ports that have a link. An interface is up while one of its ports is, unless it is shut. The networks
    /// of one that is down, and static routes by it alone, give way to other routes.
    pub fn set_links(&mut self, up: PortSet, now: Nanos) {
        let down = std::mem::replace(&mut self.up, up) - up;
        if !down.is_empty() {
            let mut effect = Effect::default();
            self.neighbours.ports_down(down, now, &mut effect);
            self.apply(effect, now);
        }
        for index in 0..self.interfaces.len() as u16 {
            self.set_state(index, self.interfaces[usize::from(index)].is_shut, now);
        }
    }

    /// Sets whether Linux has shut an interface (`ip link set NAME down`). One that is shut is down even if its ports
    /// have links. It has no addresses, and takes and sends no packets.
    pub fn set_shut(&mut self, index: u16, is_shut: bool, now: Nanos) {
        let known = self.interfaces.get(usize::from(index)).filter(|interface| interface.is_shut != is_shut);
        let Some(networks) = known.map(|interface| interface.attached().networks.clone()) else { return };
        self.set_state(index, is_shut, now);
        self.update_own();
        let shut = self.interfaces.iter().filter(|interface| interface.is_shut);
        self.tables.set_shut(shut.map(|interface| interface.vlan).collect());
        for network in networks {
            if is_shut {
                self.disown_hosts(index, network);
            } else {
                self.adopt_hosts(index, network, now);
            }
        }
    }

    /// Whether Linux has shut an interface.
    #[must_use]
    pub fn is_shut(&self, index: u16) -> bool {
        self.interfaces.get(usize::from(index)).is_some_and(|interface| interface.is_shut)
    }

    /// Brings an interface up or down, by the links of its ports and whether it is shut.
    fn set_state(&mut self, index: u16, is_shut: bool, now: Nanos) {
        let interface = &mut self.interfaces[usize::from(index)];
        let (was_up, is_up) = (interface.is_up, !is_shut && !(interface.ports & self.up).is_empty());
        if (was_up, interface.is_shut) == (is_up, is_shut) {
            return;
        }
        let before = interface.routes(index);
        (interface.is_up, interface.is_shut) = (is_up, is_shut);
        if is_up {
            let addresses = interface.addresses().to_vec();
            self.announce(index, &addresses);
        } else if was_up {
            let mut effect = Effect::default();
            self.neighbours.interface_down(index, now, &mut effect);
            self.apply(effect, now);
        }
        self.replace_routes(index, &before);
        self.follow_link(index, now);
        self.tables.touch();
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::route::{Action, GroupId, PuntCause, StaticNeighbour};
    use crate::router::tests::{HOST, arp_reply, hop, punt, router, seconds, updated, way};
    use crate::router::{Source, fixture, frames};
    use crate::wire::MacAddr;

    const FAR: &str = "10.9.0.0/16";

    /// The second interface, 10.0.1.1/24, has a next hop and a static neighbour.
    fn rig() -> Router {
        let mut router = router();
        let mut spec = fixture::two_ports();
        let fixed = StaticNeighbour { interface: 1, address: [10, 0, 1, 7].into(), mac: HOST };
        spec.neighbours = vec![fixed];
        router.configure(&spec, seconds(1));
        let hops = [hop(0, "10.0.0.2"), hop(1, "10.0.1.2")];
        router.set_route(Source::Kernel, FAR.parse().unwrap(), &hops, seconds(1));
        arp_reply(&mut router, 0, "10.0.0.2", MacAddr([2, 0, 0, 0, 8, 8]), seconds(1));
        arp_reply(&mut router, 1, "10.0.1.2", HOST, seconds(1));
        router.take_output();
        router
    }

    fn arp(router: &mut Router, target: [u8; 4]) -> usize {
        let request = frames::arp_request((HOST, [10, 0, 1, 9].into()), target.into(), None);
        router.receive(&punt(1, PuntCause::Arp, request), seconds(2));
        router.take_output().len()
    }

    #[test]
    fn interface_that_linux_shuts_loses_its_networks_addresses_neighbours_and_next_hops() {
        let mut router = rig();
        assert_eq!(way(&updated(&mut router), "10.9.1.1").1.len(), 2);
        router.set_shut(1, true, seconds(2));
        let table = updated(&mut router);
        assert_eq!(way(&table, "10.9.1.1").1, [MacAddr([2, 0, 0, 0, 8, 8])], "the group lacks it");
        for gone in ["10.0.1.1", "10.0.1.2", "10.0.1.7", "10.0.1.77", "10.0.1.255"] {
            assert_eq!(way(&table, gone).0, Action::NoRoute, "{gone}");
        }
        assert!(!table.is_own([10, 0, 1, 1].into()) && table.is_own([10, 0, 0, 1].into()));
        assert!(table.is_shut(4093) && !table.is_shut(4094));
        assert_eq!(arp(&mut router, [10, 0, 1, 1]), 0, "it answers nothing");
        assert!(!router.interfaces_view()[1].is_up && router.interfaces_view()[1].is_shut);
        assert_eq!(router.interfaces_view()[1].addresses.len(), 3, "they are still listed");
    }

    #[test]
    fn interface_that_linux_opens_again_has_all_as_before() {
        let mut router = rig();
        router.set_shut(1, true, seconds(2));
        router.set_links(PortSet::first(2), seconds(2));
        updated(&mut router);
        assert_eq!(router.take_output(), [], "links change nothing while it is shut");
        router.set_shut(1, false, seconds(3));
        assert_eq!(router.take_output().len(), 2, "it announces its addresses");
        arp_reply(&mut router, 1, "10.0.1.2", HOST, seconds(3));
        let table = updated(&mut router);
        assert_eq!(way(&table, "10.9.1.1").1.len(), 2);
        assert_eq!(way(&table, "10.0.1.1").0, Action::Local);
        assert_eq!(way(&table, "10.0.1.7"), (Action::Forward, vec![HOST]), "the static neighbour");
        assert_eq!(way(&table, "10.0.1.77").0, Action::Glean(1));
        assert!(table.is_own([10, 0, 1, 1].into()) && !table.is_shut(4093));
        assert_eq!(arp(&mut router, [10, 0, 1, 1]), 1);
    }

    #[test]
    fn open_interface_without_a_link_is_down_and_keeps_its_addresses() {
        let mut router = rig();
        router.set_shut(1, true, seconds(2));
        router.set_links(PortSet::only(0), seconds(2));
        router.set_shut(1, false, seconds(3));
        let shown = &router.interfaces_view()[1];
        assert!(!shown.is_up && !shown.is_shut);
        assert_eq!(way(&updated(&mut router), "10.0.1.1").0, Action::Local);
        router.set_links(PortSet::first(2), seconds(4));
        assert_eq!(way(&updated(&mut router), "10.0.1.77").0, Action::Glean(1));
    }

    #[test]
    fn address_of_a_shut_interface_stays_if_a_loopback_has_it() {
        let mut router = rig();
        let own = IpAddr::from([10, 0, 1, 1]);
        router.set_loopbacks(vec![own]);
        router.set_shut(1, true, seconds(2));
        assert_eq!(router.route_to(own), Some((Source::Local, GroupId::LOCAL)));
        assert!(updated(&mut router).is_own(own));
    }
}
