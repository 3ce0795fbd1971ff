//! Shortest paths from each switch to the hosts, equal on every machine.

use std::collections::VecDeque;

use super::spec::{End, PortRef, Scenario};
use crate::forward::fdb::StaticEntry;

/// Returns the static entries that lead to every known host, by switch.
#[must_use]
pub fn entries(scenario: &Scenario) -> Vec<Vec<StaticEntry>> {
    let mut entries = vec![Vec::new(); scenario.switches.len()];
    let cables = Cables::new(scenario);
    for (host, node) in scenario.hosts.iter().enumerate().filter(|(_, node)| node.known) {
        let vlans = vlans_of(host, scenario, &cables);
        let home = cables.port_of(host).map(|port| port.switch);
        for (switch, port) in cables.toward(host).into_iter().enumerate() {
            // Routers bridge only to the hosts at their own ports.
            if scenario.routed.is_some() && home != Some(switch) {
                continue;
            }
            let Some(port) = port.and_then(|port| u8::try_from(port).ok()) else { continue };
            entries[switch].extend(vlans.iter().map(|&vlan| StaticEntry { vlan, mac: node.mac, port }));
        }
    }
    entries
}

/// The cables of a scenario, by their ends.
#[derive(Debug)]
pub struct Cables {
    /// By switch and port, the other end of the cable.
    peers: Vec<Vec<Option<End>>>,
    /// By host, the switch port.
    ports: Vec<Option<PortRef>>,
}

impl Cables {
    /// Returns the cables of `scenario`.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let peers = scenario.switches.iter().map(|switch| vec![None; switch.config.switch.ports.len()]);
        let mut cables = Self { peers: peers.collect(), ports: vec![None; scenario.hosts.len()] };
        for link in &scenario.links {
            for (one, other) in [(link.a, link.b), (link.b, link.a)] {
                match one {
                    End::Port(port) => cables.peers[port.switch][port.port] = Some(other),
                    End::Host(host) => {
                        cables.ports[host] = if let End::Port(port) = other { Some(port) } else { None };
                    }
                }
            }
        }
        cables
    }

    /// Returns the switch port of `host`.
    #[must_use]
    pub fn port_of(&self, host: usize) -> Option<PortRef> {
        self.ports[host]
    }

    /// Returns the other end of the cable at `port`.
    #[must_use]
    pub fn peer(&self, port: PortRef) -> Option<End> {
        self.peers[port.switch][port.port]
    }

    /// Returns, by switch, the port that leads to `host` on a shortest path. If there are several, it is the one with
    /// the lowest number.
    #[must_use]
    pub fn toward(&self, host: usize) -> Vec<Option<usize>> {
        let mut toward = vec![None; self.peers.len()];
        let mut distance = vec![usize::MAX; self.peers.len()];
        let Some(home) = self.ports[host] else { return toward };
        (toward[home.switch], distance[home.switch]) = (Some(home.port), 0);
        let mut queue = VecDeque::from([home.switch]);
        while let Some(switch) = queue.pop_front() {
            for peer in self.peers[switch].iter().flatten() {
                let End::Port(next) = *peer else { continue };
                if distance[next.switch] == usize::MAX {
                    distance[next.switch] = distance[switch] + 1;
                    queue.push_back(next.switch);
                }
                let is_shortest = distance[next.switch] == distance[switch] + 1;
                if is_shortest && toward[next.switch].is_none_or(|port| next.port < port) {
                    toward[next.switch] = Some(next.port);
                }
            }
        }
        toward
    }
}

/// Returns the VLANs in which `host` sends or receives: those of tags, and the untagged VLAN of its port.
fn vlans_of(host: usize, scenario: &Scenario, cables: &Cables) -> Vec<u16> {
    let mut vlans: Vec<u16> = scenario.tags_of(host).flatten().map(|(vlan, _)| vlan).collect();
    if let Some(port) = cables.port_of(host) {
        vlans.extend(scenario.switches[port.switch].config.switch.ports[port.port].vlan.untagged());
    }
    vlans.sort_unstable();
    vlans.dedup();
    vlans
}
