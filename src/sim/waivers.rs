//! When a scenario is one in which the switches promise to lose nothing, and why not.

use super::host::standard_response_ps;
use super::load::PS;
use super::spec::{End, FaultKind, LinkNode, Lost, PortRef, Scenario, SwitchNode};
use crate::dataplane::PortSpec;
use crate::mmu::HeadroomPolicy;
use crate::mmu::headroom::{HeadroomInput, LEFT_BEHIND, PACING_SLACK, SHORTEST_FRAME, WIRE_OVERHEAD, headroom};
use crate::units::{Bytes, Cells, Nanos};

/// Every reason, as a sentence. None: a lossless frame that a switch drops for want of buffer is a bug.
#[must_use]
pub fn waivers(scenario: &Scenario) -> Vec<String> {
    let mut waivers = Vec::new();
    for host in scenario.hosts.iter().filter(|host| !host.obeys_pfc) {
        waivers.push(format!("{} does not obey PFC", host.name));
    }
    waivers.extend(scenario.faults.iter().filter_map(|fault| of_fault(fault.kind, scenario)));
    for link in &scenario.links {
        for (end, peer) in [(link.a, link.b), (link.b, link.a)] {
            if let End::Port(port) = end {
                waivers.extend(of_port(port, peer, link, scenario));
            }
        }
    }
    for switch in &scenario.switches {
        let plan = &switch.config.switch.buffer;
        let etas = switch.config.switch.ports.iter().flat_map(|port| port.buffer.groups);
        let sum: u64 = etas.map(|group| u64::from(group.headroom.0)).sum();
        if plan.policy == HeadroomPolicy::SharedPool && sum > u64::from(plan.headroom.0) {
            let (pool, sum) = (plan.headroom.0, sum);
            waivers.push(format!("{}: the headroom pool of {pool} cells is shared by groups with {sum}", switch.name));
        }
        waivers.extend(of_backlog(switch));
        if switch.floods_lossless {
            waivers.push(format!("{} floods lossless frames", switch.name));
        }
    }
    waivers
}

fn of_fault(fault: FaultKind, scenario: &Scenario) -> Option<String> {
    match fault {
        FaultKind::LinkDown { link } => Some(format!("link {} goes down", scenario.links[link].name)),
        FaultKind::Lose { link, what: Lost::Pfc | Lost::Any, .. } => {
            Some(format!("link {} loses PFC frames", scenario.links[link].name))
        }
        FaultKind::Stall { switch, .. } => Some(format!("{} stalls", scenario.switches[switch].name)),
        // What they do is what headroom, watchdog and back-pressure are for; a late one is counted with its port.
        FaultKind::Lose { .. }
        | FaultKind::Storm { .. }
        | FaultKind::Dead { .. }
        | FaultKind::Slow { .. }
        | FaultKind::Late { .. } => None,
    }
}

/// A core that a frame takes time may be slower than its load, and a full receive ring stops nobody by itself.
fn of_backlog(switch: &SwitchNode) -> Option<String> {
    let unmarked = |port: &&PortSpec| {
        port.pfc.is_on() && port.backlog_mark.is_none() && port.buffer.groups.iter().any(|group| group.lossless)
    };
    let port = switch.config.switch.ports.iter().find(unmarked).filter(|_| switch.poll.frame.0 > 0)?;
    let (name, frame) = (&switch.name, switch.poll.frame);
    Some(format!("a frame takes a core of {name} {frame}, and the backlog of {name}.{} stops nobody", port.name))
}

/// What the lossless groups of `port` have, against what this cable and this peer need.
fn of_port(port: PortRef, peer: End, link: &LinkNode, scenario: &Scenario) -> Option<String> {
    let switch = &scenario.switches[port.switch];
    let (config, spec) = (&switch.config.switch, &switch.config.switch.ports[port.port]);
    // The one that has least: each needs the same.
    let lossless = spec.buffer.groups.iter().enumerate().filter(|(_, group)| group.lossless);
    let (class, group) = lossless.min_by_key(|(_, group)| group.headroom)?;
    let name = format!("{}.{}", switch.name, spec.name);
    if !spec.pfc.is_on() {
        return Some(format!("PFC is off at {name}"));
    }
    let input = input(port, peer, link, scenario);
    // Refreshed by the first poll after half of its life: the other half must be longer than a poll gap.
    let half_life = Nanos(65_535 * 512 * 1_000_000_000 / link.rate.0.max(1) / 2);
    if input.poll_gap >= half_life {
        let poll_gap = input.poll_gap;
        return Some(format!(
            "{name} polls every {poll_gap} and refreshes a pause when {half_life} of its life are left"
        ));
    }
    let needed = headroom(&input);
    let has = match config.buffer.policy {
        HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => group.headroom,
        HeadroomPolicy::Dynamic => spec.buffer.insurance,
    };
    (has < needed.cells).then(|| {
        let bytes = |cells: Cells| -> Bytes { cells.to_bytes(config.buffer.cell) };
        format!(
            "{name} class {class} has {} of headroom and needs {} for this cable and peer",
            bytes(has),
            bytes(needed.cells)
        )
    })
}

/// What headroom of `port` has to be for, with this cable and this peer.
fn input(port: PortRef, peer: End, link: &LinkNode, scenario: &Scenario) -> HeadroomInput {
    let switch = &scenario.switches[port.switch];
    let (config, spec) = (&switch.config.switch, &switch.config.switch.ports[port.port]);
    let response = Nanos(response_ps(peer, link, scenario).div_ceil(PS));
    let poll_gap = if switch.poll.frame.0 == 0 {
        Nanos(switch.poll.every.0 + switch.poll.jitter.0)
    } else {
        // How long a poll takes depends on what comes: as long as headroom was computed for, or the run says so.
        config.poll_gap
    };
    HeadroomInput {
        rate: link.rate,
        cable: link.length,
        mtu: spec.mtu,
        poll_gap,
        posted: HeadroomInput::posted_by_pacing(link.rate),
        cell: config.buffer.cell,
        peer_response: Some(link.rate.bytes_in(response)),
        left: spec.backlog_mark.map_or(LEFT_BEHIND, |mark| mark.saturating_sub(1)),
    }
}

/// Why the receive ring of `port`, which has lost a lossless frame, does not promise to lose none: `others` frames were in
/// it that no pause of a lossless priority stops.
#[must_use]
pub fn of_full_ring(port: PortRef, others: usize, scenario: &Scenario) -> Option<String> {
    let switch = &scenario.switches[port.switch];
    let (spec, device) = (&switch.config.switch.ports[port.port], &switch.config.devices[port.port]);
    let name = format!("{}.{}", switch.name, spec.name);
    let Some(mark) = spec.backlog_mark else {
        return Some(format!("nobody asks what waits in the receive ring of {name}, which was full"));
    };
    let link = scenario.links.iter().find_map(|link| match (link.a, link.b) {
        (End::Port(at), peer) | (peer, End::Port(at)) if at == port => Some((peer, link)),
        _ => None,
    });
    let (peer, link) = link?;
    // As docs/configuration.md has it: the mark, and what arrives in the shortest frames until the peer has stopped.
    let rows = headroom(&input(port, peer, link, scenario)).rows;
    let wire: u64 = rows.iter().filter(|row| row.name != "whole cells").map(|row| row.value.0).sum();
    let needed = u64::from(mark) + wire.div_ceil(SHORTEST_FRAME + WIRE_OVERHEAD);
    let room = u64::from(device.rx_descriptors).saturating_sub(others as u64);
    (room < needed).then(|| {
        format!(
            "{name} has a receive ring of {}, {others} of them taken by frames that no pause stops, and needs {needed} until \
             its peer stops",
            device.rx_descriptors
        )
    })
}

/// How long the peer may take to obey.
fn response_ps(peer: End, link: &LinkNode, scenario: &Scenario) -> u64 {
    match peer {
        End::Host(host) => {
            let late = scenario.faults.iter().filter_map(|fault| match fault.kind {
                FaultKind::Late { host: late, response } if late == host => Some(response.0 * PS),
                _ => None,
            });
            let own = scenario.hosts[host].response.map_or_else(|| standard_response_ps(link.rate), |own| own.0 * PS);
            late.fold(own, u64::max)
        }
        // It hears at its next poll, and what it has posted by then still leaves.
        End::Port(port) => {
            let switch = &scenario.switches[port.switch];
            let poll = if switch.poll.frame.0 == 0 {
                switch.poll.every.0 + switch.poll.jitter.0
            } else {
                switch.config.switch.poll_gap.0
            };
            (poll + PACING_SLACK.0) * PS
        }
    }
}
