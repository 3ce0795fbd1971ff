//! The choice among equal paths that HPCC's simulator makes (`CalculateRoute` of third.cc, `SwitchNode::GetOutDev`).
//!
//! Its switches hash addresses and ports, with the number of the node as the seed, and take the next hop of that place
//! in the order in which a walk from the destination finds them. Holdfast's routers hash other fields. So each flow
//! gets the UDP source ports with which they choose the same links. The seed of a run changes no path, as there.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::topology::Topology;
use crate::hosts::frame::{ROCE_PORT, SOURCE_PORT_BASE};
use crate::route::{FoundGroup, RouteTable};
use crate::sim::router;
use crate::sim::spec::Scenario;

/// Source ports that a flow may have.
const ENTROPY: u16 = 0x3fff;
/// The first source port of a pair of hosts there.
const FIRST_PORT: u32 = 10_000;
const UDP: u8 = 17;

/// One direction of a flow: the nodes at its ends, and the hosts' addresses here.
#[derive(Debug, Clone, Copy)]
pub struct Direction {
    pub nodes: [usize; 2],
    pub addresses: [Ipv4Addr; 2],
    /// Source and destination port there; the destination above.
    pub ports: u32,
}

impl Direction {
    /// The other direction, with these ports.
    pub fn reversed(mut self, ports: u32) -> Self {
        self.nodes.reverse();
        self.addresses.reverse();
        Self { ports, ..self }
    }
}

/// The ports of a flow's data there, of which `number` flows of its pair of hosts came before, and those of its ACKs.
pub fn ports_of(number: u32, dst_port: u16) -> [u32; 2] {
    let (source, destination) = ((FIRST_PORT + number) & 0xffff, u32::from(dst_port));
    [destination << 16 | source, source << 16 | destination]
}

/// A switch at which a packet has a choice: the hash of the router, its ports by bucket, and the one to take.
struct Choice {
    table: Arc<RouteTable>,
    by_bucket: Vec<u8>,
    wanted: u8,
}

impl Choice {
    fn is_made_with(&self, addresses: [Ipv4Addr; 2], source_port: u16) -> bool {
        let [src, dst] = addresses.map(u32::from);
        let ports = u32::from(source_port) << 16 | u32::from(ROCE_PORT);
        let hash = self.table.hash.v4(src, dst, UDP, ports);
        self.by_bucket[hash as usize & (self.by_bucket.len() - 1)] == self.wanted
    }
}

/// The equal paths of a topology, and the routers that stand for its switches.
pub struct EqualPaths {
    /// Neighbours of each node, the last one first: there is at most one way to each.
    neighbours: Vec<Vec<usize>>,
    is_switch: Vec<bool>,
    /// By node of a switch, the nodes behind its ports and its tables.
    switches: HashMap<usize, (Vec<usize>, Arc<RouteTable>)>,
    /// By destination, the next hops of each node.
    toward: HashMap<usize, Vec<Vec<usize>>>,
}

impl EqualPaths {
    /// `ports`: by switch of `scenario`, its node and the nodes behind its ports.
    pub fn new(topology: &Topology, ports: impl Iterator<Item = (usize, Vec<usize>)>, scenario: &Scenario) -> Self {
        let mut neighbours = vec![Vec::new(); topology.is_switch.len()];
        for [a, b] in topology.links.iter().map(|link| link.ends) {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        for nodes in &mut neighbours {
            // There the order is that of the switches' addresses. Each takes 2 MB, so that the next one lies below.
            nodes.sort_unstable_by(|one, other| other.cmp(one));
            nodes.dedup();
        }
        let plans = scenario.switches.iter().map(|switch| switch.config.switch.routing.as_ref());
        let switches =
            ports.zip(plans).filter_map(|((node, behind), plan)| Some((node, (behind, router::table(plan?)?))));
        Self { neighbours, is_switch: topology.is_switch.clone(), switches: switches.collect(), toward: HashMap::new() }
    }

    /// The entropy of the source port, from `first` on, with which a packet takes the path that it takes there; `None`
    /// if there is none.
    pub fn entropy(&mut self, first: u16, direction: Direction) -> Option<u16> {
        let choices = self.choices(direction)?;
        let candidates = (0..=ENTROPY).map(|step| first.wrapping_add(step) & ENTROPY);
        candidates.into_iter().find(|entropy| {
            choices.iter().all(|choice| choice.is_made_with(direction.addresses, SOURCE_PORT_BASE | entropy))
        })
    }

    /// The choices on the path of `direction`.
    fn choices(&mut self, direction: Direction) -> Option<Vec<Choice>> {
        let [src, dst] = direction.nodes;
        let toward = self.toward.entry(dst).or_insert_with(|| next_hops(&self.neighbours, &self.is_switch, dst));
        let (mut node, mut choices) = (*toward[src].first()?, Vec::new());
        while node != dst {
            let hops = &toward[node];
            let hash = node_hash(node, [address(src), address(dst), direction.ports]);
            let next = *hops.get(hash as usize % hops.len().max(1))?;
            // One switch has no router, and hosts hang at their ports.
            if let Some((behind, table)) = self.switches.get(&node).filter(|_| next != dst) {
                // The last one of several links between two nodes counts there.
                let wanted = behind.iter().rposition(|&other| other == next)?;
                let by_bucket = ports_by_bucket(table, direction.addresses[1]);
                let wanted = u8::try_from(wanted).ok().filter(|port| by_bucket.contains(port))?;
                if by_bucket.iter().any(|port| *port != wanted) {
                    choices.push(Choice { table: table.clone(), by_bucket, wanted });
                }
            }
            node = next;
        }
        Some(choices)
    }
}

/// By node, the next hops to host `to` on shortest paths, in the order of a walk from `to`.
fn next_hops(neighbours: &[Vec<usize>], is_switch: &[bool], to: usize) -> Vec<Vec<usize>> {
    let (mut hops, mut away) = (vec![Vec::new(); neighbours.len()], vec![usize::MAX; neighbours.len()]);
    away[to] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(node) = queue.pop_front() {
        for &next in &neighbours[node] {
            if away[next] == usize::MAX {
                away[next] = away[node] + 1;
                if is_switch[next] {
                    queue.push_back(next);
                }
            }
            if away[next] == away[node] + 1 {
                hops[next].push(node);
            }
        }
    }
    hops
}

/// The ports of the next hops to `address`, by bucket of their group.
fn ports_by_bucket(table: &RouteTable, address: Ipv4Addr) -> Vec<u8> {
    let mut found = [FoundGroup::default()];
    table.fib.lookup_v4(&[address.into()], &mut found);
    let Some(group) = table.groups.get(found[0].index()) else { return Vec::new() };
    table.buckets_of(*group).map(|id| table.adjacencies[usize::from(id.0)].port_number).collect()
}

/// The address of a node there.
fn address(node: usize) -> u32 {
    let node = node as u32;
    0x0b00_0001 + ((node / 256) << 16) + ((node % 256) << 8)
}

/// The hash of the switch `node`: MurmurHash3 for 32 bits of three words, with the node as the seed.
fn node_hash(node: usize, words: [u32; 3]) -> u32 {
    let mut hash = node as u32;
    for word in words {
        hash ^= word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = hash.rotate_left(13);
        hash = hash.wrapping_add((hash << 2).wrapping_add(0xe654_6b64));
    }
    hash ^= 4 * words.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_that_of_the_published_code() {
        let ports = [100 << 16 | 10_000, 10_001 << 16 | 100];
        assert_eq!(node_hash(0, [0; 3]), 0xd941_144b);
        assert_eq!(node_hash(64, [address(0), address(57), ports[0]]), 0xdef5_2608);
        assert_eq!(node_hash(71, [address(256), address(255), ports[1]]), 0x27e8_17ff);
        assert_eq!((ports_of(0, 100)[0], ports_of(1, 100)[1]), (ports[0], ports[1]));
    }

    #[test]
    fn next_hops_are_in_the_order_of_a_walk_from_the_destination() {
        // Hosts 0 and 1 at switches 2 and 3, which switches 4 and 5 join; 6 is further away.
        let links = [(0, 2), (1, 3), (2, 5), (2, 4), (3, 4), (3, 5), (2, 6), (6, 4)];
        let mut neighbours = vec![Vec::new(); 7];
        for (a, b) in links {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        neighbours.iter_mut().for_each(|nodes| nodes.sort_unstable());
        let is_switch: Vec<bool> = (0..7).map(|node| node > 1).collect();
        let hops = next_hops(&neighbours, &is_switch, 1);
        assert_eq!(hops, [vec![2], vec![], vec![4, 5], vec![1], vec![3], vec![3], vec![4]]);
    }
}
