//! Time for which PFC held transmitters, by tier of the fabric: hosts are tier 0, their switches tier 1, and so on.

use std::collections::VecDeque;

use super::show::{NOTHING, share, span};
use crate::sim::outcome::Outcome;
use crate::sim::routes::Cables;
use crate::sim::spec::{End, PortRef, Scenario};
use crate::text::format::grouped;
use crate::text::table::Table;

/// Pauses of the transmitters of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tier {
    /// Number of transmitters: hosts, or ports with a cable.
    pub transmitters: u64,
    /// Transmitters among them that were held.
    pub held: u64,
    /// Time for which they were held, summed over transmitters and priorities.
    pub held_ps: u64,
    /// Longest time of one transmitter, summed over priorities.
    pub longest_ps: u64,
}

impl Tier {
    fn add(&mut self, held_ps: u64) {
        self.transmitters += 1;
        self.held += u64::from(held_ps > 0);
        self.held_ps += held_ps;
        self.longest_ps = self.longest_ps.max(held_ps);
    }
}

/// Returns the pauses by tier.
#[must_use]
pub fn tiers(scenario: &Scenario, outcome: &Outcome) -> Vec<Tier> {
    let cables = Cables::new(scenario);
    let of_switch = tiers_of_switches(scenario, &cables);
    let mut tiers = vec![Tier::default(); 1 + of_switch.iter().copied().max().unwrap_or(0)];
    outcome.hosts.iter().for_each(|host| tiers[0].add(host.paused_ps.iter().sum()));
    for (switch, (tier, result)) in of_switch.iter().zip(&outcome.switches).enumerate() {
        let ports = result.ports.iter().enumerate();
        for (_, port) in ports.filter(|(port, _)| cables.peer(PortRef { switch, port: *port }).is_some()) {
            tiers[*tier].add(port.classes.iter().map(|class| class.paused_ps).sum());
        }
    }
    tiers
}

/// Returns the tier of each switch: links from the nearest host. A switch that no host reaches is in tier 1.
fn tiers_of_switches(scenario: &Scenario, cables: &Cables) -> Vec<usize> {
    let mut tiers = vec![0; scenario.switches.len()];
    let mut queue = VecDeque::new();
    for host in 0..scenario.hosts.len() {
        if let Some(port) = cables.port_of(host).filter(|port| tiers[port.switch] == 0) {
            tiers[port.switch] = 1;
            queue.push_back(port.switch);
        }
    }
    while let Some(switch) = queue.pop_front() {
        for port in 0..scenario.switches[switch].config.switch.ports.len() {
            if let Some(End::Port(next)) = cables.peer(PortRef { switch, port })
                && tiers[next.switch] == 0
            {
                tiers[next.switch] = tiers[switch] + 1;
                queue.push_back(next.switch);
            }
        }
    }
    tiers.into_iter().map(|tier| tier.max(1)).collect()
}

/// Name of a tier in tables and plots.
#[must_use]
pub fn name(tier: usize) -> String {
    match tier {
        0 => "hosts".to_owned(),
        1 => "1: ToR".to_owned(),
        2 => "2: aggregation".to_owned(),
        3 => "3: core".to_owned(),
        _ => tier.to_string(),
    }
}

/// Returns the pauses as a table.
#[must_use]
pub fn table(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new("tier | >transmitters | >held | >PFC time | >of the time | >longest");
    for (number, tier) in tiers(scenario, outcome).iter().enumerate() {
        let counts = [tier.transmitters, tier.held].map(grouped);
        let whole = tier.transmitters.saturating_mul(outcome.end_ps);
        let part = if tier.held == 0 { NOTHING.to_owned() } else { share(tier.held_ps, whole) };
        table.row([name(number)].into_iter().chain(counts).chain([span(tier.held_ps), part, span(tier.longest_ps)]));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::scenario::{self, Options};

    /// Two ToRs below an aggregation switch, and a core switch above it.
    const THREE_TIERS: &str = "
duration: 2us
switches:
  - {name: t*, count: 2, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}]}}
  - {name: agg, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}]}}
  - {name: core, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}]}}
hosts: [{name: h*, count: 2, at: t1.p*}, {name: g1, at: t2.p1}]
links: [{a: t1.p4, b: agg.p1}, {a: t2.p4, b: agg.p2}, {a: agg.p3, b: core.p1}]
";

    #[test]
    fn pauses_are_summed_by_distance_from_the_hosts() {
        let scenario = scenario::parse("x.yaml", THREE_TIERS, None, &Options::default()).unwrap().remove(0).1;
        let mut outcome = crate::sim::run(&scenario, &mut |_| {});
        outcome.hosts[1].paused_ps[3] = 7;
        outcome.hosts[2].paused_ps[3] = 5;
        outcome.switches[0].ports[3].classes[3].paused_ps = 20;
        outcome.switches[0].ports[3].classes[4].paused_ps = 2;
        outcome.switches[3].ports[0].classes[3].paused_ps = 9;
        let tier = |transmitters, held, held_ps, longest_ps| Tier { transmitters, held, held_ps, longest_ps };
        // The ports without a cable transmit nothing.
        assert_eq!(
            tiers(&scenario, &outcome),
            [tier(3, 2, 12, 7), tier(5, 1, 22, 22), tier(3, 0, 0, 0), tier(1, 1, 9, 9)]
        );
        let names: Vec<String> = (0..5).map(name).collect();
        assert_eq!(names, ["hosts", "1: ToR", "2: aggregation", "3: core", "4"]);
    }
}
