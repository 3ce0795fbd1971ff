//! Times of empty paths, as HPCC's simulator computes them: for `standalone_fct` and for windows.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::topology::Topology;
use crate::units::Bytes;

/// The base time of a pair of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Base {
    /// Twice the delay, and the time of a payload on each link once, in nanoseconds.
    pub rtt_ns: u64,
    /// The lowest rate of the path, in bit/s.
    pub rate: u64,
    /// Number of switches on it.
    pub switches: usize,
}

impl Base {
    /// Bytes under way on the path.
    pub fn bdp(self) -> Bytes {
        Bytes((u128::from(self.rtt_ns) * u128::from(self.rate) / 8_000_000_000) as u64)
    }
}

/// The base times of the pairs of hosts that a run needs.
#[derive(Debug)]
pub struct BaseTimes {
    pairs: HashMap<(usize, usize), Base>,
    /// The longest round trip of any two hosts in nanoseconds, which is T with `GLOBAL_T`, and the most bytes that are
    /// under way between two.
    pub longest_ns: u64,
    pub most_bdp: Bytes,
}

impl BaseTimes {
    /// Returns the times from hosts to the destinations `to`.
    pub fn new(topology: &Topology, to: &HashSet<usize>, payload_bytes: u64) -> Self {
        let mut links = vec![BTreeMap::new(); topology.is_switch.len()];
        // The last one of several links between two nodes counts there.
        for link in &topology.links {
            let [a, b] = link.ends;
            links[a].insert(b, link);
            links[b].insert(a, link);
        }
        let (mut pairs, mut longest_ns, mut most_bdp) = (HashMap::new(), 0, Bytes(0));
        for host in topology.hosts() {
            // Breadth first, from the destination. Hosts are no way for others.
            let mut found: HashMap<usize, (u64, u64, u64, usize)> = HashMap::from([(host, (0, 0, u64::MAX, 0))]);
            let mut queue = VecDeque::from([host]);
            while let Some(node) = queue.pop_front() {
                let (delay, sending, rate, links_passed) = found[&node];
                for (&next, link) in &links[node] {
                    if found.contains_key(&next) {
                        continue;
                    }
                    let time = payload_bytes * 8_000_000_000 / link.rate.0.max(1);
                    let (delay, sending) = (delay + link.delay_ns as u64, sending + time);
                    found.insert(next, (delay, sending, rate.min(link.rate.0), links_passed + 1));
                    if topology.is_switch[next] {
                        queue.push_back(next);
                    }
                }
            }
            for (from, (delay, sending, rate, links_passed)) in found.into_iter().filter(|(from, _)| *from != host) {
                if !topology.is_switch[from] {
                    let switches = links_passed.saturating_sub(1);
                    let base = Base { rtt_ns: 2 * delay + sending, rate, switches };
                    longest_ns = longest_ns.max(base.rtt_ns);
                    most_bdp = most_bdp.max(base.bdp());
                    if to.contains(&host) {
                        pairs.insert((from, host), base);
                    }
                }
            }
        }
        Self { pairs, longest_ns, most_bdp }
    }

    /// Returns the time from host `src` to host `dst`; `None` if no path leads there.
    pub fn of(&self, src: usize, dst: usize) -> Option<Base> {
        self.pairs.get(&(src, dst)).copied()
    }
}
