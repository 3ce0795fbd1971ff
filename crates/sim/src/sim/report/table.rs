//! One run as text: flows end to end, then the ports, hosts, switches and links that they crossed.

use std::fmt::Write as _;

use super::group::{Group, groups};
use super::show::{NOTHING, cells, class, picoseconds, quantiles, share, span};
use super::{verdict, workloads};
use crate::config::mechanisms;
use crate::plan::DropReason;
use crate::sim::outcome::{ClassOutcome, Outcome, PortOutcome};
use crate::sim::spec::{End, PortRef, Scenario};
use crate::text::format::{gigabits, grouped, some_of};
use crate::text::table::Table;
use crate::units::{Bytes, Cells};

/// Most flows that are shown one by one, unless all are requested.
const MOST_FLOWS: usize = 16;

/// Returns the text that `holdfast sim` prints for a run. With `all`, every flow has its own row, however many there
/// are.
#[must_use]
pub fn table(scenario: &Scenario, outcome: &Outcome, all: bool) -> String {
    let most = if all { usize::MAX } else { MOST_FLOWS };
    let groups = groups(scenario, outcome, most);
    let mut text = head(scenario, outcome) + &mechanisms(scenario);
    if !scenario.flows.is_empty() || scenario.workloads.is_empty() {
        let _ = write!(text, "\n{}", flows(&groups));
    }
    if scenario.flows.len() > most {
        let count = grouped(scenario.flows.len() as u64);
        let _ = writeln!(text, "({count} flows by receiver and class: p50 of the median flow, p99 of the worst flow;");
        text += " --all shows each)\n";
    }
    let (messages, ports) = (messages(&groups), ports(scenario, outcome));
    let hops = next_hops(scenario, outcome);
    let remaining = [hosts(scenario, outcome), switches(scenario, outcome), links(scenario, outcome)];
    for table in [messages, hops, ports].into_iter().chain(remaining) {
        if !table.is_empty() {
            let _ = write!(text, "\n{table}");
        }
    }
    text += &workloads::tables(scenario, outcome);
    text.push('\n');
    for waiver in &outcome.waivers {
        let _ = writeln!(text, "not promised: {waiver}");
    }
    text + &verdict::lines(scenario, outcome)
}

fn head(scenario: &Scenario, outcome: &Outcome) -> String {
    let (time, sending) = (picoseconds(outcome.end_ps), picoseconds(outcome.sending_ps));
    let events = grouped(outcome.events);
    format!("{}: {time} of simulated time, {sending} of it sending; {events} events\n", scenario.title())
}

/// Most switches that a line names.
const MOST_NAMES: usize = 4;

/// Returns a line for each mechanism beyond thresholds, PFC and ECN that is in force, with its switches.
fn mechanisms(scenario: &Scenario) -> String {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for node in &scenario.switches {
        for line in mechanisms::mechanisms(&node.config.switch) {
            match found.iter_mut().find(|(known, _)| *known == line) {
                Some((_, names)) => names.push(&node.name),
                None => found.push((line, vec![&node.name])),
            }
        }
    }
    found.iter().map(|(line, names)| format!("in force at {}: {line}\n", some_of(names, MOST_NAMES))).collect()
}

fn flows(groups: &[Group]) -> Table {
    let mut table = Table::new(
        "flow | class | >sent | >received | >lost | >late | >twice | >repeated | >discarded | >timeouts | >failed | \
         >Gb/s | >marked | >CNPs | >latency p50 | >p99 | >max",
    );
    for group in groups {
        let sum = &group.sum;
        let counts = [sum.lost_frames(), sum.late_frames, sum.duplicate_frames].map(grouped);
        let repeats = [sum.repeated_frames, sum.discarded_frames, sum.timeouts, sum.failed_flows].map(grouped);
        let row = [group.name.clone(), class(usize::from(group.class), group.lossless)];
        let row = row
            .into_iter()
            .chain([grouped(sum.sent_frames), grouped(sum.received_frames)])
            .chain(counts)
            .chain(repeats);
        let marks = [share(sum.marked_frames, sum.received_frames), grouped(sum.cnps)];
        table.row(row.chain([gigabits(group.rate)]).chain(marks).chain(quantiles(&sum.latency)));
    }
    table
        .without_idle(&["late", "twice", "repeated", "discarded", "timeouts", "failed", "CNPs"], "0")
        .without_idle(&["marked"], NOTHING)
}

fn messages(groups: &[Group]) -> Table {
    let mut table = Table::new(
        "messages of | class | >begun | >complete | >time p50 | >p99 | >max | >ACKed p50 | >ACKed p99 | >ACKed max",
    );
    for group in groups.iter().filter(|group| group.sum.messages > 0) {
        let row = [group.name.clone(), class(usize::from(group.class), group.lossless)];
        let counts = [group.sum.messages, group.sum.completion.count].map(grouped);
        let times = quantiles(&group.sum.completion).into_iter().chain(quantiles(&group.sum.acknowledged));
        table.row(row.into_iter().chain(counts).chain(times));
    }
    table.without_idle(&["ACKed p50", "ACKed p99", "ACKed max"], NOTHING)
}

/// Returns the table of port classes with any activity.
fn ports(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "port | class | >queue | >group | >headroom | >of | >pauses | >held peer | >was held | >marked | dropped",
    );
    for (node, switch) in scenario.switches.iter().zip(&outcome.switches) {
        let spec = &node.config.switch;
        for (port_spec, port) in spec.ports.iter().zip(&switch.ports) {
            let name = format!("{}.{}", node.name, port_spec.name);
            for (number, class) in port.classes.iter().enumerate().filter(|(_, class)| happened(class)) {
                table.row(class_row(&name, number, class, spec.buffer.cell));
            }
            if !port.unclassified_drops.is_empty() {
                let row = [name.clone(), "none".to_owned()].into_iter();
                let blank = std::iter::repeat_n(NOTHING.to_owned(), 8);
                table.row(row.chain(blank).chain([drops(&port.unclassified_drops)]));
            }
        }
    }
    let idle = ["queue", "group", "headroom", "of", "pauses", "held peer", "was held", "marked", "dropped"];
    table.without_idle(&idle, NOTHING)
}

fn happened(class: &ClassOutcome) -> bool {
    let counts = [class.queue_highest_cells, class.used_highest_cells, class.headroom_highest_cells];
    let events = [class.pauses_tx, class.held_ps, class.paused_ps, class.marked_frames, class.dropped()];
    counts.iter().chain(&events).any(|&count| count > 0)
}

fn class_row(name: &str, number: usize, outcome: &ClassOutcome, cell: Bytes) -> Vec<String> {
    let count = |count: u64| if count == 0 { NOTHING.to_owned() } else { grouped(count) };
    let headroom = if outcome.headroom_highest_cells > 0 { outcome.headroom_cells } else { 0 };
    vec![
        name.to_owned(),
        class(number, outcome.lossless),
        cells(outcome.queue_highest_cells, cell),
        cells(outcome.used_highest_cells, cell),
        cells(outcome.headroom_highest_cells, cell),
        cells(headroom, cell),
        count(outcome.pauses_tx),
        span(outcome.held_ps),
        span(outcome.paused_ps),
        count(outcome.marked_frames),
        drops(&outcome.drops),
    ]
}

fn drops(drops: &[(DropReason, u64)]) -> String {
    if drops.is_empty() {
        return NOTHING.to_owned();
    }
    let list: Vec<String> =
        drops.iter().map(|(reason, count)| format!("{} {}", grouped(*count), reason.label())).collect();
    list.join(", ")
}

/// Returns the table of routers: the frames that each next hop got, and its share of those of the router.
fn next_hops(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new("router | next hop | >frames | >share");
    for (number, (node, switch)) in scenario.switches.iter().zip(&outcome.switches).enumerate() {
        let all: u64 = switch.hops.iter().map(|hop| hop.frames).sum();
        // A router without traffic has no choice to show.
        for hop in switch.hops.iter().filter(|_| all > 0) {
            let own = End::Port(PortRef { switch: number, port: hop.port });
            let link = scenario.links.iter().find(|link| link.a == own || link.b == own);
            let peer = link.map_or(own, |link| if link.a == own { link.b } else { link.a });
            let frames = [grouped(hop.frames), share(hop.frames, all)];
            table.row([node.name.clone(), end_name(scenario, peer)].into_iter().chain(frames));
        }
    }
    table
}

/// Returns the table of hosts that were paused or paused others.
fn hosts(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new("host | priority | >was held | >of the time | >PFC received | >PFC sent");
    for (node, host) in scenario.hosts.iter().zip(&outcome.hosts) {
        let frames = [host.pfc_rx_frames, host.pfc_tx_frames].map(grouped);
        for (priority, &paused) in host.paused_ps.iter().enumerate().filter(|(_, paused)| **paused > 0) {
            let row = [node.name.clone(), priority.to_string(), picoseconds(paused), share(paused, outcome.end_ps)];
            table.row(row.into_iter().chain(frames.clone()));
        }
        if host.pfc_tx_frames > 0 && host.paused_ps.iter().all(|&paused| paused == 0) {
            let row = [node.name.clone(), NOTHING.to_owned(), NOTHING.to_owned(), NOTHING.to_owned()];
            table.row(row.into_iter().chain(frames));
        }
    }
    table.without_idle(&["PFC sent"], "0")
}

fn switches(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "switch | >lossless pool | >of | >lossy pool | >of | >headroom pool | >poll gap | >missed | >backlog XOFFs | \
         >storms",
    );
    for (node, switch) in scenario.switches.iter().zip(&outcome.switches) {
        let plan = &node.config.switch.buffer;
        let [mut lossy, lossless] = switch.shared_highest_cells.map(|used| cells(used, plan.cell));
        let size = |all: Cells| all.to_bytes(plan.cell).to_string();
        let (lossless_size, mut lossy_size) = (size(plan.lossless_shared), size(plan.lossy_shared));
        if node.config.switch.reverie {
            // The counts of both kinds are those of the one pool.
            (lossy, lossy_size) = ("same pool".to_owned(), NOTHING.to_owned());
        }
        let headroom = cells(switch.headroom_pool_highest_cells, plan.cell);
        let sum = |of: fn(&PortOutcome) -> u64| grouped(switch.ports.iter().map(of).sum());
        table.row([
            node.name.clone(),
            lossless,
            lossless_size,
            lossy,
            lossy_size,
            headroom,
            picoseconds(switch.poll_gap_highest_ps),
            sum(|port| port.missed_frames),
            sum(|port| port.backlog_xoffs),
            sum(|port| port.watchdog.0),
        ]);
    }
    table.without_idle(&["missed", "backlog XOFFs", "storms"], "0").without_idle(&["headroom pool"], NOTHING)
}

/// Returns the table of frames that faults lost on wires.
fn links(scenario: &Scenario, outcome: &Outcome) -> Table {
    let mut table = Table::new("link | toward | >lost | >PFC among them");
    for (node, link) in scenario.links.iter().zip(&outcome.links) {
        for (way, end) in [node.a, node.b].into_iter().enumerate().filter(|(way, _)| link.lost_frames[*way] > 0) {
            let counts = [link.lost_frames[way], link.lost_pfc_frames[way]].map(grouped);
            table.row([node.name.clone(), end_name(scenario, end)].into_iter().chain(counts));
        }
    }
    table.without_idle(&["PFC among them"], "0")
}

/// Returns the name of an end: `h1`, or `tor.p1`.
pub(super) fn end_name(scenario: &Scenario, end: End) -> String {
    match end {
        End::Host(host) => scenario.hosts.get(host).map_or_else(String::new, |host| host.name.clone()),
        End::Port(port) => scenario.switches.get(port.switch).map_or_else(String::new, |switch| {
            let name = switch.config.switch.ports.get(port.port).map_or("", |port| &port.name);
            format!("{}.{name}", switch.name)
        }),
    }
}
