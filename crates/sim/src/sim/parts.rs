//! Parts of a network that are simulated one after the other for a window of time.
//!
//! A frame that leaves a switch takes at least its wire time and the delay of its cable to the next one. In a window of
//! that length, one end of a cable cannot matter to the other (conservative synchronisation: Chandy and Misra,
//! "Distributed simulation", IEEE TSE 1979). So the events of a window are handled part by part. State of one switch
//! stays in the CPU's caches for many polls. All results are those of one order of time.

use super::node::is_in_time;
use super::spec::{End, FaultKind, Learning, LinkNode, Scenario};
use super::wire::Wire;
use super::workload::Pattern;
use crate::qos::shaper::MIN_FRAME;

/// Shortest crossing of a cable that divides a network: windows of fewer polls gain nothing.
const LEAST_PS: u64 = 200_000;

/// The parts of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    switches: Box<[u32]>,
    hosts: Box<[u32]>,
    /// By part, whether it has hosts.
    pinned: Vec<bool>,
    lookahead_ps: u64,
}

impl Parts {
    /// Returns the parts of `scenario`: switches and hosts with short cables between them are in one part.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        if !is_divisible(scenario) {
            return Self::one(scenario);
        }
        let switches = scenario.switches.len();
        let number = |end: End| match end {
            End::Port(port) => port.switch,
            End::Host(host) => switches + host,
        };
        let mut sets = Sets::new(switches + scenario.hosts.len());
        let mut lookahead_ps = u64::MAX;
        for link in &scenario.links {
            if crossing_ps(link) < LEAST_PS || !are_switches(link.a, link.b) {
                sets.join(number(link.a), number(link.b));
            }
        }
        for link in scenario.links.iter().filter(|link| are_switches(link.a, link.b)) {
            // A short cable may have long ones around it: both its ends are in one part.
            if sets.least(number(link.a)) != sets.least(number(link.b)) {
                lookahead_ps = lookahead_ps.min(crossing_ps(link));
            }
        }
        let (of_all, count) = sets.numbered();
        let (of_switches, of_hosts) = of_all.split_at(switches);
        let mut pinned = vec![false; count];
        for link in scenario.links.iter().filter(|link| !are_switches(link.a, link.b)) {
            pinned[of_all[number(link.a)] as usize] |= crossing_ps(link) < lookahead_ps;
        }
        let mut parts = Self { switches: of_switches.into(), hosts: of_hosts.into(), pinned, lookahead_ps };
        if count > 1 {
            parts.part_hosts();
        }
        parts
    }

    /// Gives hosts parts of their own, where their cables are no shorter than those between switches.
    fn part_hosts(&mut self) {
        let mut own = vec![None; self.pinned.len()];
        for part in &mut self.hosts {
            let with_switch = *part as usize;
            if !self.pinned[with_switch] {
                *part = *own[with_switch].get_or_insert(self.pinned.len() as u32);
                self.pinned.resize(self.pinned.len().max(*part as usize + 1), true);
            }
        }
    }

    /// Returns one part for all of `scenario`.
    #[must_use]
    pub fn one(scenario: &Scenario) -> Self {
        let zeros = |count| vec![0; count].into_boxed_slice();
        let (switches, hosts) = (zeros(scenario.switches.len()), zeros(scenario.hosts.len()));
        Self { switches, hosts, pinned: vec![true], lookahead_ps: u64::MAX }
    }

    /// Number of parts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pinned.len()
    }

    /// Whether `part` must be with the first thread, which has the hosts.
    #[must_use]
    pub fn is_pinned(&self, part: usize) -> bool {
        self.pinned[part]
    }

    /// Returns the end of the window in which `at_ps` is. Windows are as long as the shortest time from one part to
    /// another, and begin at multiples of it. So no thread need know the events of others to find them.
    #[must_use]
    pub fn window_end(&self, at_ps: u64) -> u64 {
        (at_ps / self.lookahead_ps).saturating_add(1).saturating_mul(self.lookahead_ps)
    }

    /// Returns the part of a switch.
    #[inline]
    #[must_use]
    pub fn of_switch(&self, switch: usize) -> usize {
        self.switches[switch] as usize
    }

    /// Returns the part of a host.
    #[inline]
    #[must_use]
    pub fn of_host(&self, host: usize) -> usize {
        self.hosts[host] as usize
    }
}

/// Whether all that crosses between parts of `scenario` are frames. Flooded copies change the count of a flow's frames
/// at once. Losses on wires have one stream of random numbers for all. A switch that polls late excuses others from
/// rules. A collective starts flows at one host when another receives.
fn is_divisible(scenario: &Scenario) -> bool {
    let divides = |kind: &FaultKind| !matches!(kind, FaultKind::Lose { .. } | FaultKind::Stall { .. });
    let is_open = |pattern: &Pattern| !matches!(pattern, Pattern::AllReduce(_));
    let floods = scenario.learning == Learning::Frames || scenario.hosts.iter().any(|host| !host.known);
    !floods
        && scenario.faults.iter().all(|fault| divides(&fault.kind))
        && scenario.workloads.iter().all(|workload| is_open(&workload.pattern))
        && scenario
            .switches
            .iter()
            .all(|switch| is_in_time(switch.poll, switch.config.switch.poll_gap) && switch.poll.frame.0 == 0)
}

/// Returns the shortest time of a frame from one end of a cable to the other.
fn crossing_ps(link: &LinkNode) -> u64 {
    Wire::new(link.a, link.rate, link.length).crossing_ps(MIN_FRAME as usize)
}

/// Whether a cable has a switch at both ends.
fn are_switches(a: End, b: End) -> bool {
    matches!((a, b), (End::Port(_), End::Port(_)))
}

/// Disjoint sets of numbers.
struct Sets {
    /// A member of the set of each number, less than it, or the number itself.
    less: Vec<usize>,
}

impl Sets {
    fn new(count: usize) -> Self {
        Self { less: (0..count).collect() }
    }

    fn least(&mut self, mut number: usize) -> usize {
        while self.less[number] != number {
            self.less[number] = self.less[self.less[number]];
            number = self.less[number];
        }
        number
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.least(a), self.least(b));
        self.less[a.max(b)] = a.min(b);
    }

    /// Returns the index of the set of each number, in order of their least members, and the number of sets.
    fn numbered(mut self) -> (Vec<u32>, usize) {
        let (mut numbers, mut count) = (vec![0; self.less.len()], 0);
        for number in 0..self.less.len() {
            let least = self.least(number);
            if least == number {
                numbers[number] = count;
                count += 1;
            } else {
                numbers[number] = numbers[least];
            }
        }
        (numbers, count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::scenario::{Options, parse};

    fn parts(text: &str) -> Parts {
        let scenarios = parse("parts.yaml", text, None, &Options::default());
        Parts::new(&scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1)
    }

    /// Three switches in a row with these cables between them, and a host at each end with these cables.
    fn row([host, near, far]: [&str; 3], more: &str) -> String {
        let config = "{preset: roce, lcores: {poll_gap: 2us}, ports: [{name: p*, count: 2, speed: 10G}]}";
        format!(
            "
duration: 1ms
switches:
  - {{name: a, config: {config}}}
  - {{name: b, config: {config}}}
  - {{name: c, config: {config}}}
links: [{{a: a.p2, b: b.p1, length: {near}}}, {{a: b.p2, b: c.p1, length: {far}}}]
hosts: [{{name: h1, at: a.p1, length: {host}}}, {{name: h2, at: c.p2, length: {host}}}]
flows: [{{from: h1, to: h2}}]
{more}"
        )
    }

    #[test]
    fn long_cables_divide_a_network_into_parts() {
        // The shortest frame takes 57.6 ns at 10G, and 100 m delay it by 500 ns.
        let far = parts(&row(["5m", "100m", "200m"], ""));
        assert_eq!((far.count(), far.window_end(557_599), far.window_end(557_600)), (3, 557_600, 1_115_200));
        assert_eq!([0, 1, 2].map(|switch| far.of_switch(switch)), [0, 1, 2]);
        assert_eq!([0, 1].map(|host| far.of_host(host)), [0, 2], "with their switches");
        assert_eq!([0, 1, 2].map(|part| far.is_pinned(part)), [true, false, true]);
        let near = parts(&row(["5m", "100m", "5m"], ""));
        assert_eq!([0, 1, 2].map(|switch| near.of_switch(switch)), [0, 1, 1]);
    }

    #[test]
    fn hosts_with_long_cables_are_parts_of_their_own() {
        let parts = parts(&row(["100m", "100m", "100m"], ""));
        assert_eq!([0, 1].map(|host| parts.of_host(host)), [3, 4]);
        assert_eq!([0, 2, 3, 4].map(|part| parts.is_pinned(part)), [false, false, true, true]);
    }

    #[test]
    fn network_with_losses_on_wires_is_one_part() {
        let fault = "faults: [{at: 1us, for: 1us, lose: a.p2, chance: 1%}]";
        assert_eq!(parts(&row(["5m", "100m", "100m"], fault)).count(), 1);
    }
}
