//! Waivers: the reasons for which switches do not guarantee lossless service in a scenario. Reports list waivers under
//! `not promised`.

use std::collections::BTreeSet;

use super::host::standard_response_ps;
use super::load::PS;
use super::spec::{
    End, Fault, FaultKind, FlowNode, FrameSizes, LinkNode, Load, Lost, PortRef, Scenario, SwitchNode, SwitchReload,
};
use crate::headroom::{
    HeadroomInput, LEFT_BEHIND, Lapse, SHORTEST_FRAME, SmallPackets, headroom, largest_frame, most_slack, posting_gap,
    standard_response,
};
use crate::mmu::{HeadroomPolicy, HpccRule, HpccRules};
use crate::pfc::PriorityMap;
use crate::plan::{PortSpec, SwitchSpec};
use crate::sets::ClassSet;
use crate::units::{BitRate, Bytes, Cells, Nanos, WIRE_OVERHEAD};

/// A reason for which some switches guarantee nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiver {
    /// The switches, by index.
    pub switches: BTreeSet<usize>,
    /// The reason, as a sentence.
    pub what: String,
}

impl Waiver {
    fn of(switch: usize, what: String) -> Self {
        Self { switches: BTreeSet::from([switch]), what }
    }
}

/// Returns every waiver of a scenario. If a switch without a waiver drops a lossless frame for lack of buffer, that is
/// a bug.
#[must_use]
pub fn waivers(scenario: &Scenario) -> Vec<Waiver> {
    // `lossless_kept` does not depend on these rules, so no switch is exempt. They come first, so that the verdict
    // names them.
    let rules = scenario.switches.iter().filter_map(of_rules);
    let mut waivers: Vec<Waiver> = rules.map(|what| Waiver { switches: BTreeSet::new(), what }).collect();
    for (number, host) in scenario.hosts.iter().enumerate().filter(|(_, host)| !host.obeys_pfc) {
        waivers.push(Waiver { switches: of_host(number, scenario), what: format!("{} does not obey PFC", host.name) });
    }
    let end = scenario.duration.0.saturating_add(scenario.drain.0);
    let faults = scenario.faults.iter().filter(|fault| fault.at.0 <= end);
    waivers.extend(faults.filter_map(|fault| of_fault(fault, scenario)));
    waivers.extend((0..scenario.switches.len()).flat_map(|switch| of_ports(switch, scenario)));
    for (number, switch) in scenario.switches.iter().enumerate() {
        for reload in &switch.reloads {
            let found = of_reload(number, reload, scenario).into_iter();
            let fresh: Vec<Waiver> = found.filter(|waiver| !waivers.contains(waiver)).collect();
            waivers.extend(fresh);
        }
        let taken_out = switch.taken_out();
        waivers.extend(taken_out.iter().map(|port| of_outage(PortRef { switch: number, port }, "taken out", scenario)));
    }
    for (number, switch) in scenario.switches.iter().enumerate() {
        waivers.extend(of_pool(switch).into_iter().chain(of_backlog(switch)).map(|what| Waiver::of(number, what)));
        if switch.floods_lossless {
            // Flooded frames also reach neighbours that are not their destination. PFC stops them there like any other
            // frame, so neighbours need no waiver.
            waivers.push(Waiver::of(number, format!("{} floods lossless frames", switch.name)));
        }
    }
    waivers
}

/// Returns the switches at both ends of a link.
fn ends(link: &LinkNode) -> BTreeSet<usize> {
    let of = |end| if let End::Port(port) = end { Some(port.switch) } else { None };
    [link.a, link.b].into_iter().filter_map(of).collect()
}

/// Returns the switch at which a host is.
fn of_host(host: usize, scenario: &Scenario) -> BTreeSet<usize> {
    let links = scenario.links.iter().filter(|link| link.a == End::Host(host) || link.b == End::Host(host));
    links.flat_map(ends).collect()
}

/// Returns a switch and its neighbours: a switch that polls late also obeys PFC late.
#[must_use]
pub fn around(switch: usize, scenario: &Scenario) -> BTreeSet<usize> {
    let next = scenario.links.iter().map(ends).filter(|ends| ends.contains(&switch));
    next.flatten().chain([switch]).collect()
}

fn of_fault(fault: &Fault, scenario: &Scenario) -> Option<Waiver> {
    let (switches, what) = match fault.kind {
        FaultKind::LinkDown { link } => {
            (ends(&scenario.links[link]), format!("link {} goes down", scenario.links[link].name))
        }
        FaultKind::Lose { link, what: Lost::Pfc | Lost::Any, .. } => {
            (ends(&scenario.links[link]), format!("link {} loses PFC frames", scenario.links[link].name))
        }
        FaultKind::Shut { port } => return Some(of_outage(port, "shut", scenario)),
        FaultKind::Stall { switch, .. } => {
            (around(switch, scenario), format!("{} stalls", scenario.switches[switch].name))
        }
        // A dead host receives no PFC frames, and may send before it receives the next refresh.
        FaultKind::Dead { host } if fault.until.is_some() => {
            let sends = scenario.flow_settings().any(|flow| flow.from == host && flow.lossless);
            let name = &scenario.hosts[host].name;
            sends.then(|| {
                (of_host(host, scenario), format!("{name} restarts, and does not know which priorities are at XOFF"))
            })?
        }
        // Headroom, watchdog and back-pressure exist for these faults. A late host is included in the headroom check of
        // its port.
        FaultKind::Lose { .. }
        | FaultKind::Storm { .. }
        | FaultKind::Dead { .. }
        | FaultKind::Slow { .. }
        | FaultKind::Late { .. }
        | FaultKind::Garbage { .. } => return None,
    };
    Some(Waiver { switches, what })
}

/// Frames for a port that is shut or taken out, and frames that it receives, are lost. Its peer gets XON, and XOFF
/// again with headroom in use.
fn of_outage(port: PortRef, how: &str, scenario: &Scenario) -> Waiver {
    let is_at = |link: &&LinkNode| [link.a, link.b].contains(&End::Port(port));
    let switches = scenario.links.iter().filter(is_at).flat_map(ends).collect();
    let switch = &scenario.switches[port.switch];
    Waiver { switches, what: format!("{}.{} is {how}", switch.name, switch.config.switch.ports[port.port].name) }
}

/// Reasons at the ports of a switch, as it is from the start.
fn of_ports(switch: usize, scenario: &Scenario) -> Vec<Waiver> {
    let ends = scenario.links.iter().flat_map(|link| [(link.a, link.b, link), (link.b, link.a, link)]);
    let at = |(end, peer, link)| match end {
        End::Port(port) if port.switch == switch => of_port(port, peer, link, scenario),
        _ => None,
    };
    ends.filter_map(at).collect()
}

/// Reasons at the ports of a switch once it runs by `reload`, if other classes or ports are lossless then.
fn of_reload(number: usize, reload: &SwitchReload, scenario: &Scenario) -> Vec<Waiver> {
    let kinds = |plan: &SwitchSpec| plan.ports.iter().map(PortSpec::lossless_groups).collect::<Vec<ClassSet>>();
    let first = &scenario.switches[number].config.switch;
    if kinds(first) == kinds(&reload.switch) && first.replaced_by(&reload.switch).is_empty() {
        return Vec::new();
    }
    let mut scenario = scenario.clone();
    let switch = &mut scenario.switches[number];
    switch.config.switch = reload.switch.clone();
    let pool = of_pool(switch).map(|what| Waiver::of(number, what));
    pool.into_iter().chain(of_ports(number, &scenario)).collect()
}

fn of_pool(switch: &SwitchNode) -> Option<String> {
    let plan = &switch.config.switch.buffer;
    let etas = switch.config.switch.ports.iter().flat_map(|port| port.buffer.groups);
    let (sum, pool): (u64, _) = (etas.map(|group| u64::from(group.headroom.0)).sum(), plan.headroom.0);
    let is_short = plan.policy == HeadroomPolicy::SharedPool && sum > u64::from(pool);
    is_short.then(|| format!("{}: the headroom pool has {pool} cells, and its groups need {sum}", switch.name))
}

/// Returns a reason if a switch decides by rules of HPCC's simulator. It names the invariants that they break, and
/// which the auditor does not check.
fn of_rules(switch: &SwitchNode) -> Option<String> {
    let rules = switch.config.switch.hpcc;
    if rules.is_empty() {
        return None;
    }
    let broken: Vec<&str> = rules.iter().filter_map(HpccRule::broken_invariant).collect();
    let unchecked = if broken.is_empty() { String::new() } else { format!("; not checked: {}", broken.join(", ")) };
    let which = if rules == HpccRules::all() { "all rules".to_owned() } else { rules.to_string() };
    Some(format!("{} decides as HPCC's simulator ({which}){unchecked}", switch.name))
}

/// Returns a reason if frames take time and a port has no backlog mark. Such a core may be slower than its load, and a
/// full receive ring alone pauses no sender.
fn of_backlog(switch: &SwitchNode) -> Option<String> {
    let unmarked = |port: &&PortSpec| {
        port.pfc.is_on() && port.backlog_mark.is_none() && port.buffer.groups.iter().any(|group| group.lossless)
    };
    let port = switch.config.switch.ports.iter().find(unmarked).filter(|_| switch.poll.frame.0 > 0)?;
    let (name, frame) = (&switch.name, switch.poll.frame);
    Some(format!("a core of {name} needs {frame} per frame, and the backlog of {name}.{} pauses no peer", port.name))
}

/// Compares the headroom of the lossless groups of `port` with the need of this cable and this peer.
fn of_port(port: PortRef, peer: End, link: &LinkNode, scenario: &Scenario) -> Option<Waiver> {
    let switch = &scenario.switches[port.switch];
    let (config, spec) = (&switch.config.switch, &switch.config.switch.ports[port.port]);
    // The group with the least headroom is checked: all groups need the same.
    let lossless = spec.buffer.groups.iter().enumerate().filter(|(_, group)| group.lossless && !spec.is_absent);
    let (class, group) = lossless.min_by_key(|(_, group)| group.headroom)?;
    let name = format!("{}.{}", switch.name, spec.name);
    if !spec.pfc.is_on() {
        // The port neither sends XOFF nor obeys that of its peer.
        return Some(Waiver { switches: ends(link), what: format!("PFC is off at {name}") });
    }
    if let End::Port(peer) = peer
        && !(spec.lossless_groups() - obeyed(peer, scenario)).is_empty()
    {
        let (of, spec) = (&scenario.switches[peer.switch], &scenario.switches[peer.switch].config.switch);
        let what = format!(
            "{}.{} does not obey PFC for all priorities that {name} pauses",
            of.name, spec.ports[peer.port].name
        );
        return Some(Waiver::of(port.switch, what));
    }
    if let End::Port(peer) = peer {
        let (of, other) =
            (&scenario.switches[peer.switch], &scenario.switches[peer.switch].config.switch.ports[peer.port]);
        if other.live.marks.roce != spec.live.marks.roce {
            let what = format!(
                "{}.{} and {name} differ in `maps.roce`: ACKs or CNPs may ignore pauses of {name}",
                of.name, other.name
            );
            return Some(Waiver::of(port.switch, what));
        }
    }
    let input = input(port, peer, link, scenario);
    if let Some(lapse) = Lapse::of(&input) {
        let (poll_gap, rate) = (input.poll_gap, link.rate);
        let what = if lapse.longest_poll_gap.is_none() {
            let time = response_time(peer, link, scenario);
            format!("the peer of {name} takes {time} to obey PFC, so a pause at {rate} may expire before its refresh")
        } else {
            format!(
                "{name} polls every {poll_gap}, so a pause at {rate} may expire before its peer receives the refresh"
            )
        };
        return Some(Waiver::of(port.switch, what));
    }
    let needed = headroom(&input);
    let has = match config.buffer.policy {
        HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => group.headroom,
        HeadroomPolicy::Dynamic => spec.buffer.insurance,
    };
    (has < needed.cells).then(|| {
        let bytes = |cells: Cells| -> Bytes { cells.to_bytes(config.buffer.cell) };
        let is_too_little = headroom_below_own_need(port, has, link, scenario, &input);
        let causes: Vec<String> = is_too_little.into_iter().chain(causes(port, peer, link, scenario, &input)).collect();
        let (has, needs) = (bytes(has), bytes(needed.cells));
        let causes = if causes.is_empty() { String::new() } else { format!(": {}", causes.join("; ")) };
        let what = format!("{name} class {class} has {has} of headroom and needs {needs} for this cable and peer");
        Waiver::of(port.switch, what + &causes)
    })
}

/// Returns a clause if a port with headroom `has` has less than its configuration needs by its own settings.
fn headroom_below_own_need(
    port: PortRef,
    has: Cells,
    link: &LinkNode,
    scenario: &Scenario,
    input: &HeadroomInput,
) -> Option<String> {
    let config = &scenario.switches[port.switch].config;
    let device = &config.devices[port.port];
    let own = headroom(&HeadroomInput {
        cable: device.cable,
        poll_gap: config.switch.poll_gap,
        peer_response: device.peer_response.map(|time| link.rate.bytes_in(time)),
        small_packets: config.summary.small_packets,
        ..*input
    });
    (has < own.cells).then(|| format!("`headroom` is below the {} that the configuration needs", own.total))
}

/// Returns the settings of the switch's configuration that assume less than `input`, which is that of the scenario.
/// Each is a clause that names the key and both values.
fn causes(port: PortRef, peer: End, link: &LinkNode, scenario: &Scenario, input: &HeadroomInput) -> Vec<String> {
    let config = &scenario.switches[port.switch].config;
    let device = &config.devices[port.port];
    let (promised, assumed) = (config.summary.small_packets, device.peer_response.map(|time| link.rate.bytes_in(time)));
    let mut causes = Vec::new();
    if input.cable > device.cable {
        causes.push(format!("the cable has {}, and `cable` is {}", input.cable, device.cable));
    }
    let bytes = |response: Option<Bytes>| response.unwrap_or_else(|| standard_response(link.rate));
    if bytes(input.peer_response) > bytes(assumed) {
        let time = response_time(peer, link, scenario);
        let assumed = device.peer_response.map_or_else(
            || format!("left out: {} at {}", standard_response_time(link.rate), link.rate),
            |time| time.to_string(),
        );
        causes.push(format!("the peer takes {time} to obey PFC, and `peer_response` is {assumed}"));
    }
    if input.poll_gap > config.switch.poll_gap {
        causes.push(format!("polls are {} apart, and `poll_gap` is {}", input.poll_gap, config.switch.poll_gap));
    }
    if input.small_packets.percent() > promised.percent() {
        causes.push(format!("a lossless flow has small packets, and `small_packets` is {promised}"));
    }
    causes
}

/// Returns the time that `peer` takes to obey PFC.
fn response_time(peer: End, link: &LinkNode, scenario: &Scenario) -> Nanos {
    let response = response_ps(peer, link, scenario).map(|ps| Nanos(ps.div_ceil(PS)));
    response.unwrap_or_else(|| standard_response_time(link.rate))
}

/// Returns the longest time that the standard allows at this rate.
fn standard_response_time(rate: BitRate) -> Nanos {
    Nanos(standard_response_ps(rate).div_ceil(PS))
}

/// Returns the priorities whose pauses `port` obeys, by each plan of its switch.
pub(super) fn obeyed(port: PortRef, scenario: &Scenario) -> ClassSet {
    let of_plan = |plan: &SwitchSpec| {
        let spec = &plan.ports[port.port];
        spec.pfc.obeyed(plan.lossless_queues(spec), &PriorityMap::new(plan.classes.pfc_to_queue))
    };
    scenario.switches[port.switch].plans().map(of_plan).fold(ClassSet::ALL, |all, some| all & some)
}

/// Returns the input of the headroom formula for `port`, with this cable and this peer.
pub(super) fn input(port: PortRef, peer: End, link: &LinkNode, scenario: &Scenario) -> HeadroomInput {
    let switch = &scenario.switches[port.switch];
    let (config, spec) = (&switch.config.switch, &switch.config.switch.ports[port.port]);
    let poll_gap = if switch.poll.frame.0 == 0 {
        Nanos(switch.poll.every.0 + switch.poll.jitter.0)
    } else {
        // The length of a poll depends on its load. The run adds a waiver if a poll exceeds the gap that headroom was
        // computed for.
        config.poll_gap
    };
    HeadroomInput {
        rate: link.rate,
        cable: link.length,
        mtu: spec.mtu,
        poll_gap,
        posted: HeadroomInput::posted(
            link.rate,
            posting_gap(config.poll_gap, spec.tx_queues),
            config.has_congestion_points(),
        ),
        cell: config.buffer.cell,
        peer_response: response_ps(peer, link, scenario).map(|ps| bytes_in_ps(link.rate, ps)),
        left: spec.backlog_mark.map_or(LEFT_BEHIND, |mark| mark.saturating_sub(1)),
        small_packets: small_packets(port, scenario),
        stops_queues: 0,
        other_rings: 0,
    }
}

/// Returns the share of small packets that `port` must expect. It is the configured share if no lossless flow sends
/// small packets, otherwise any share. The last frame of a message may be small, so messages do not satisfy the
/// configured share.
fn small_packets(port: PortRef, scenario: &Scenario) -> SmallPackets {
    let switch = &scenario.switches[port.switch];
    let (share, mtu) = (switch.config.summary.small_packets, switch.config.switch.ports[port.port].mtu);
    let is_small = |flow: &FlowNode| {
        let shortest = match flow.frames {
            FrameSizes::Fixed(len) | FrameSizes::Uniform(len, _) => u64::from(len),
            FrameSizes::Imix => SHORTEST_FRAME,
        };
        2 * shortest < largest_frame(mtu).0 || matches!(flow.load, Load::Messages { .. })
    };
    let has_small = scenario.flow_settings().any(|flow| flow.lossless && is_small(flow));
    if has_small { SmallPackets::ALL } else { share }
}

/// Returns the reason for which the receive ring of `port`, which has lost a lossless frame, is not promised to lose
/// none. `others` frames in it are not stopped by a pause of a lossless priority.
#[must_use]
pub fn of_full_ring(port: PortRef, others: usize, scenario: &Scenario) -> Option<Waiver> {
    let switch = &scenario.switches[port.switch];
    let (spec, device) = (&switch.config.switch.ports[port.port], &switch.config.devices[port.port]);
    let name = format!("{}.{}", switch.name, spec.name);
    let Some(mark) = spec.backlog_mark else {
        let what = format!("the receive ring of {name} was full, and the port has no backlog mark");
        return Some(Waiver::of(port.switch, what));
    };
    let link = scenario.links.iter().find_map(|link| match (link.a, link.b) {
        (End::Port(at), peer) | (peer, End::Port(at)) if at == port => Some((peer, link)),
        _ => None,
    });
    let (peer, link) = link?;
    // The rule of docs/configuration.md: the mark, and the shortest frames that arrive until the peer has stopped.
    let rows = headroom(&input(port, peer, link, scenario)).rows;
    let wire: u64 = rows.iter().filter(|row| row.name != "whole cells").map(|row| row.value.0).sum();
    let needed = u64::from(mark) + wire.div_ceil(SHORTEST_FRAME + u64::from(WIRE_OVERHEAD));
    let room = u64::from(device.rx_descriptors).saturating_sub(others as u64);
    (room < needed).then(|| {
        let what = format!(
            "{name} has a receive ring of {} descriptors, {others} of them taken by frames that PFC does not stop, and \
             needs {needed} until its peer stops",
            device.rx_descriptors
        );
        Waiver::of(port.switch, what)
    })
}

/// Returns the bytes that pass in `ps`, rounded up once.
fn bytes_in_ps(rate: BitRate, ps: u64) -> Bytes {
    let bits = u128::from(rate.0) * u128::from(ps);
    Bytes(u64::try_from(bits.div_ceil(8_000_000_000_000)).unwrap_or(u64::MAX))
}

/// Returns the response time of the peer, in picoseconds; `None`: the longest that the standard allows.
fn response_ps(peer: End, link: &LinkNode, scenario: &Scenario) -> Option<u64> {
    match peer {
        End::Host(host) => {
            let late = scenario.faults.iter().filter_map(|fault| match fault.kind {
                FaultKind::Late { host: late, response } if late == host => Some(response.0 * PS),
                _ => None,
            });
            let own = scenario.hosts[host].response.map(|own| own.0 * PS);
            let late = late.max().map(|late| late.max(own.unwrap_or_else(|| standard_response_ps(link.rate))));
            late.or(own)
        }
        // A switch reacts at its next poll; frames that it has posted by then still leave.
        End::Port(port) => {
            let switch = &scenario.switches[port.switch];
            let poll = if switch.poll.frame.0 == 0 {
                switch.poll.every.0 + switch.poll.jitter.0
            } else {
                switch.config.switch.poll_gap.0
            };
            Some(
                (poll
                    + most_slack(posting_gap(
                        switch.config.switch.poll_gap,
                        switch.config.switch.ports[port.port].tx_queues,
                    ))
                    .0)
                    * PS,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::scenario::{Options, parse};

    /// The reasons of a switch `tor` with these keys of its ports, and hosts with these keys.
    fn reasons(port: &str, host: &str) -> Vec<String> {
        reasons_with("", port, host)
    }

    /// The reasons with further keys of the configuration.
    fn reasons_with(keys: &str, port: &str, host: &str) -> Vec<String> {
        let text = format!(
            "duration: 100us\nswitches:\n  - name: tor\n    config:\n      preset: roce\n      {keys}\n      \
             ports: [{{name: p*, count: 2, speed: 10G{port}}}]\n\
             hosts: [{{name: h*, count: 2, at: tor.p*{host}}}]\nflows: [{{from: h1, to: h2, frame: 1500}}]\n"
        );
        let scenario = parse("x.yaml", &text, None, &Options::default()).unwrap().remove(0).1;
        waivers(&scenario).into_iter().map(|waiver| waiver.what).collect()
    }

    #[test]
    fn slow_peer_is_named_as_the_cause_with_its_key() {
        assert_eq!(reasons("", ""), [""; 0]);
        assert_eq!(reasons(", peer_response: 50us", ", response: 50us"), [""; 0]);
        let of = |port, host| reasons(port, host).remove(0);
        let cause = |text: String| text.split_once("cable and peer: ").map(|(_, cause)| cause.to_owned()).unwrap();
        assert_eq!(
            cause(of(", peer_response: 5us", ", response: 50us")),
            "the peer takes 50us to obey PFC, and `peer_response` is 5us"
        );
        assert_eq!(
            cause(of("", ", response: 50us")),
            "the peer takes 50us to obey PFC, and `peer_response` is left out: 3.07us at 10G"
        );
        // The cable is another cause, and both are named.
        assert_eq!(
            cause(of(", peer_response: 5us", ", response: 50us, length: 300m")),
            "the cable has 300m, and `cable` is 3m; the peer takes 50us to obey PFC, and `peer_response` is 5us"
        );
        // Headroom that is written may be too little for the configuration itself.
        let given = reasons_with("classes: {3: {headroom: 20kB}}", "", "");
        assert!(given[0].contains("cable and peer: `headroom` is below the 13"), "{given:?}");
        let lapse = of(", peer_response: 1ms", ", response: 5ms");
        assert_eq!(lapse, "the peer of tor.p1 takes 5ms to obey PFC, so a pause at 10G may expire before its refresh");
    }
}
