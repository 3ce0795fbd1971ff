//! Measures of a run: the columns of the table that compares variants.

use std::borrow::Cow;

use super::class_time::ClassTime;
use super::csv::whole;
use super::group::{all, groups, together};
use super::verdict::sent_and_lost;
use super::workloads::{self, slowdown};
use super::{late, show};
use crate::plan::DropReason;
use crate::sim::outcome::{ClassOutcome, Outcome, PortOutcome, Spread, SwitchOutcome};
use crate::sim::spec::{End, PortRef, Scenario, SwitchNode};
use crate::text::format::{gigabits, grouped};
use crate::units::{Bytes, WIRE_OVERHEAD};

/// A measured value with its unit.
pub enum Measure {
    Count(u64),
    /// Bits per second.
    Rate(f64),
    /// Picoseconds; zero means none.
    Time(u64),
    Bytes(u64),
    /// A number of frames, and the number of frames that it is a share of.
    Share(u64, u64),
    /// A fraction from 0 to 1.
    Part(f64),
}

/// A column: its title in the table, its name in JSON and CSV, and the function that measures it.
pub struct Column {
    pub title: &'static str,
    pub name: &'static str,
    pub of: fn(&Scenario, &Outcome) -> Measure,
    /// Whether it is measured in the samples of the run.
    sampled: bool,
}

const fn column(title: &'static str, name: &'static str, of: fn(&Scenario, &Outcome) -> Measure) -> Column {
    Column { title, name, of, sampled: false }
}

const fn sampled(title: &'static str, name: &'static str, of: fn(&Scenario, &Outcome) -> Measure) -> Column {
    Column { title, name, of, sampled: true }
}

/// Number of columns that the table has unless the scenario selects columns.
const USUAL: usize = 17;

/// All columns, the default ones first.
pub const COLUMNS: &[Column] = &[
    column("lossless Gb/s", "lossless_received_bits_per_second", |s, o| Measure::Rate(rate(s, o, true))),
    column("lossy Gb/s", "lossy_received_bits_per_second", |s, o| Measure::Rate(rate(s, o, false))),
    column("lossless lost", "lossless_lost_frames", |s, o| Measure::Count(sent_and_lost(s, o, true).1)),
    column("lossy lost", "lossy_lost_frames", |s, o| Measure::Count(sent_and_lost(s, o, false).1)),
    column("pauses", "pauses_sent", |_, o| Measure::Count(classes(o, |class| class.pauses_tx))),
    column("held", "peers_held_ps", |_, o| Measure::Time(classes(o, |class| class.held_ps))),
    column("marked", "marked_per_million", |_, o| {
        let all = all(o);
        Measure::Share(all.marked_frames, all.received_frames)
    }),
    column("CNPs", "cnps", |_, o| Measure::Count(all(o).cnps)),
    column("headroom", "headroom_highest_bytes", |s, o| Measure::Bytes(switches(s, o, headroom))),
    column("lossless pool", "lossless_shared_highest_bytes", |s, o| {
        Measure::Bytes(switches(s, o, |switch| switch.shared_highest_cells[1]))
    }),
    column("lossy pool", "lossy_shared_highest_bytes", |s, o| {
        Measure::Bytes(switches(s, o, |switch| switch.shared_highest_cells[0]))
    }),
    column("message p50", "completion_p50_ps", |_, o| Measure::Time(all(o).completion.p50_ps)),
    column("p99", "completion_p99_ps", |_, o| Measure::Time(all(o).completion.p99_ps)),
    column("max", "completion_max_ps", |_, o| Measure::Time(all(o).completion.most_ps)),
    column("repeated", "repeated_frames", |_, o| Measure::Count(all(o).repeated_frames)),
    column("timeouts", "timeouts", |_, o| Measure::Count(all(o).timeouts)),
    column("failed flows", "failed_flows", |_, o| Measure::Count(all(o).failed_flows)),
    column("messages", "completions", |_, o| Measure::Count(all(o).completion.count)),
    column("slowest", "lossless_slowest_bits_per_second", |s, o| {
        Measure::Rate(rates(s, o).into_iter().reduce(f64::min).unwrap_or(0.0))
    }),
    column("fastest", "lossless_fastest_bits_per_second", |s, o| {
        Measure::Rate(rates(s, o).into_iter().fold(0.0, f64::max))
    }),
    column("fairness", "lossless_fairness_per_million", |s, o| Measure::Part(fairness(&rates(s, o)))),
    column("latency p50", "lossless_latency_p50_ps", |s, o| Measure::Time(latency(s, o).p50_ps)),
    column("latency p99", "lossless_latency_p99_ps", |s, o| Measure::Time(latency(s, o).p99_ps)),
    column("queue", "lossless_queue_highest_bytes", |s, o| Measure::Bytes(queue(s, o))),
    column("XOFFs", "xoffs_sent", |_, o| Measure::Count(classes(o, |class| class.xoff_tx))),
    column("hosts held", "hosts_held_ps", |_, o| Measure::Time(o.hosts.iter().flat_map(|host| host.paused_ps).sum())),
    column("insurance", "insurance_highest_bytes", |s, o| {
        Measure::Bytes(switches(s, o, |switch| switch.ports.iter().map(|port| port.insurance_highest_cells).sum()))
    }),
    column("headroom set aside", "headroom_set_aside_bytes", |s, _| {
        let plans = s.switches.iter().map(|node| &node.config.switch.buffer);
        Measure::Bytes(plans.map(|plan| plan.headroom.to_bytes(plan.cell).0).sum())
    }),
    column("pool size", "lossless_pool_bytes", |s, _| {
        let plans = s.switches.iter().map(|node| &node.config.switch.buffer);
        Measure::Bytes(plans.map(|plan| plan.lossless_shared.to_bytes(plan.cell).0).sum())
    }),
    column("least group, cells", "lossless_group_at_stop_least_cells", |_, o| {
        Measure::Count(groups_at_stop(o).into_iter().min().unwrap_or(0))
    }),
    column("most group, cells", "lossless_group_at_stop_most_cells", |_, o| {
        Measure::Count(groups_at_stop(o).into_iter().max().unwrap_or(0))
    }),
    column("pool used, cells", "lossless_pool_at_stop_cells", |_, o| {
        Measure::Count(o.switches.iter().map(|switch| switch.shared_at_stop_cells[1]).sum())
    }),
    column("pool free, cells", "lossless_pool_free_at_stop_cells", |s, o| {
        let pools = s.switches.iter().map(|node| u64::from(node.config.switch.buffer.lossless_shared.0));
        let free = pools.zip(&o.switches).map(|(all, switch)| all.saturating_sub(switch.shared_at_stop_cells[1]));
        Measure::Count(free.sum())
    }),
    column("busiest uplink", "busiest_uplink_bits_per_second", |s, o| Measure::Rate(busiest_and_idlest(s, o).0)),
    column("idlest uplink", "idlest_uplink_bits_per_second", |s, o| Measure::Rate(busiest_and_idlest(s, o).1)),
    column("CNMs", "cnms_made", |_, o| Measure::Count(classes(o, |class| class.cnms_made))),
    column("storms", "watchdog_storms", |_, o| Measure::Count(ports(o).map(|port| port.watchdog.0).sum())),
    column("discarded", "watchdog_dropped_frames", |_, o| {
        let drops = ports(o).flat_map(|port| &port.classes).flat_map(|class| &class.drops);
        Measure::Count(drops.filter(|(reason, _)| *reason == DropReason::Watchdog).map(|(_, count)| count).sum())
    }),
    column("not flooded", "lossless_unknown_dropped_frames", |_, o| {
        let drops = ports(o).flat_map(|port| &port.classes).flat_map(|class| &class.drops);
        Measure::Count(drops.filter(|(reason, _)| *reason == DropReason::LosslessUnknown).map(|(_, count)| count).sum())
    }),
    sampled("late Gb/s", "late_received_bits_per_second", late::total),
    sampled("late slowest", "late_slowest_bits_per_second", late::slowest),
    sampled("late fastest", "late_fastest_bits_per_second", late::fastest),
    sampled("late fairness", "late_fairness_per_million", late::fair),
    sampled("late queue p50", "late_queue_p50_bytes", late::median_depth),
    sampled("late queue p99", "late_queue_p99_bytes", late::high_depth),
    column("slowdown p50", "slowdown_p50_per_million", |_, o| Measure::Part(slowdown(o)[0])),
    column("slowdown p95", "slowdown_p95_per_million", |_, o| Measure::Part(slowdown(o)[1])),
    column("slowdown p99", "slowdown_p99_per_million", |_, o| Measure::Part(slowdown(o)[2])),
];

/// Whether `title` is the title of a column. The `columns` of a scenario may also name a flow, which stands for its
/// rate.
#[must_use]
pub fn is_column(title: &str) -> bool {
    COLUMNS.iter().any(|column| column.title == title) || ClassTime::read(title).is_some()
}

/// Whether the table of `scenario` needs the samples of its runs. Other tables leave the columns from samples at zero.
#[must_use]
pub fn needs_samples(scenario: &Scenario) -> bool {
    COLUMNS.iter().any(|column| column.sampled && scenario.columns.iter().any(|title| title == column.title))
}

/// Returns the titles of all columns.
pub fn column_titles() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.title)
}

/// A column of the table: a measure, a time of the messages of a class, or the rate of the flow with this name.
pub enum Shown<'a> {
    Measure(&'static Column),
    Class(ClassTime),
    Flow(&'a str),
}

impl<'a> Shown<'a> {
    /// Returns the columns of these titles, or the default ones if there are none.
    pub fn all(titles: &'a [String]) -> Vec<Self> {
        if titles.is_empty() {
            return COLUMNS.iter().take(USUAL).map(Shown::Measure).collect();
        }
        let one = |title: &'a String| {
            let known = COLUMNS.iter().find(|column| column.title == title.as_str());
            let other = || ClassTime::read(title).map_or(Shown::Flow(title.as_str()), Shown::Class);
            known.map_or_else(other, Shown::Measure)
        };
        titles.iter().map(one).collect()
    }

    pub fn title(&self) -> Cow<'static, str> {
        match self {
            Shown::Measure(column) => Cow::Borrowed(column.title),
            Shown::Class(time) => Cow::Owned(time.title()),
            Shown::Flow(name) => Cow::Owned(format!("{name} Gb/s")),
        }
    }

    /// Measures the column; `None` if this variant has no such flow.
    pub fn of(&self, scenario: &Scenario, outcome: &Outcome) -> Option<Measure> {
        match self {
            Shown::Measure(column) => Some((column.of)(scenario, outcome)),
            Shown::Class(time) => Some(time.of(scenario, outcome)),
            Shown::Flow(name) => {
                let flow = scenario.flows.iter().position(|flow| flow.name == *name)?;
                Some(Measure::Rate(groups(scenario, outcome, usize::MAX).get(flow)?.rate))
            }
        }
    }
}

/// Returns the rate of each lossless flow, in bits per second.
fn rates(scenario: &Scenario, outcome: &Outcome) -> Vec<f64> {
    groups(scenario, outcome, usize::MAX).iter().filter(|group| group.lossless).map(|group| group.rate).collect()
}

/// Returns Jain's fairness index: one for equal rates, 1/n if one flow has everything.
pub fn fairness(rates: &[f64]) -> f64 {
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let sum: f64 = rates.iter().sum();
    if squares > 0.0 { sum * sum / (squares * rates.len() as f64) } else { 0.0 }
}

/// Returns the latency of all lossless flows together.
fn latency(scenario: &Scenario, outcome: &Outcome) -> Spread {
    let flows = scenario.flows.iter().zip(&outcome.flows).filter(|(flow, _)| flow.lossless);
    together(flows.map(|(_, flow)| &flow.latency))
}

/// Returns the greatest depth of any lossless queue, in bytes.
fn queue(scenario: &Scenario, outcome: &Outcome) -> u64 {
    let of = |(node, switch): (&SwitchNode, &SwitchOutcome)| {
        let lossless = switch.ports.iter().flat_map(|port| &port.classes).filter(|class| class.lossless);
        lossless.map(|class| class.queue_highest_cells).max().unwrap_or(0) * node.config.switch.buffer.cell.0
    };
    scenario.switches.iter().zip(&outcome.switches).map(of).max().unwrap_or(0)
}

/// Returns the cells of each lossless group that held any when hosts stopped sending.
fn groups_at_stop(outcome: &Outcome) -> Vec<u64> {
    let lossless = ports(outcome).flat_map(|port| &port.classes).filter(|class| class.lossless);
    lossless.map(|class| class.used_at_stop_cells).filter(|&cells| cells > 0).collect()
}

/// Returns the highest and the lowest rate of the uplinks of the switch that has the busiest one, in bits per second.
/// An uplink leads from a switch with hosts to another switch.
fn busiest_and_idlest(scenario: &Scenario, outcome: &Outcome) -> (f64, f64) {
    let ends = || scenario.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let has_hosts = |switch| ends().any(|ends| matches!(ends, (End::Port(at), End::Host(_)) if at.switch == switch));
    let uplinks = ends().filter_map(|ends| match ends {
        (End::Port(port), End::Port(_)) if has_hosts(port.switch) => Some((port.switch, wire_rate(port, outcome))),
        _ => None,
    });
    let uplinks: Vec<(usize, f64)> = uplinks.collect();
    let busiest = uplinks.iter().copied().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((switch, highest)) = busiest else { return (0.0, 0.0) };
    let own = uplinks.iter().filter(|(of, _)| *of == switch).map(|(_, rate)| *rate);
    (highest, own.fold(highest, f64::min))
}

/// Returns the mean rate at which a port sent until the last frame of any flow arrived, on the wire.
fn wire_rate(port: PortRef, outcome: &Outcome) -> f64 {
    let classes = outcome.switches.get(port.switch).and_then(|switch| switch.ports.get(port.port));
    let bytes = |class: &ClassOutcome| class.tx_bytes + u64::from(WIRE_OVERHEAD) * class.tx_frames;
    let bytes: u64 = classes.into_iter().flat_map(|port| &port.classes).map(bytes).sum();
    let time = all(outcome).last_arrival_ps;
    bytes as f64 * 8e12 / time.max(1) as f64
}

fn ports(outcome: &Outcome) -> impl Iterator<Item = &PortOutcome> {
    outcome.switches.iter().flat_map(|switch| &switch.ports)
}

/// Returns the total rate that lossless or lossy flows received, in bits per second.
fn rate(scenario: &Scenario, outcome: &Outcome, lossless: bool) -> f64 {
    let groups = groups(scenario, outcome, usize::MAX);
    let flows: f64 = groups.iter().filter(|group| group.lossless == lossless).map(|group| group.rate).sum();
    let workloads = (0..outcome.workloads.len()).filter(|&of| scenario.workloads[of].is_lossless() == lossless);
    flows + workloads.map(|number| workloads::rate(scenario, outcome, number)).sum::<f64>()
}

/// Sums a count over all classes of all ports.
fn classes(outcome: &Outcome, of: fn(&ClassOutcome) -> u64) -> u64 {
    ports(outcome).flat_map(|port| &port.classes).map(of).sum()
}

/// Sums a number of cells over all switches, in bytes.
fn switches(scenario: &Scenario, outcome: &Outcome, of: fn(&SwitchOutcome) -> u64) -> u64 {
    let nodes = scenario.switches.iter().zip(&outcome.switches);
    nodes.map(|(node, switch)| of(switch) * node.config.switch.buffer.cell.0).sum()
}

/// Sums the highest headroom use of each group, in cells: the need if all had peaked at the same time.
fn headroom(switch: &SwitchOutcome) -> u64 {
    switch.ports.iter().flat_map(|port| &port.classes).map(|class| class.headroom_highest_cells).sum()
}

impl Measure {
    /// Returns the unit of [`Measure::shown_number`]; empty for counts.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::Count(_) | Measure::Part(_) => "",
            Measure::Rate(_) => "Gb/s",
            Measure::Time(_) => "us",
            Measure::Bytes(_) => "KiB",
            Measure::Share(..) => "%",
        }
    }

    /// Returns the number in that unit.
    pub fn shown_number(&self) -> f64 {
        match *self {
            Measure::Count(count) => count as f64,
            Measure::Part(part) => part,
            Measure::Rate(rate) => rate / 1e9,
            Measure::Time(ps) => ps as f64 / 1e6,
            Measure::Bytes(bytes) => bytes as f64 / 1024.0,
            Measure::Share(part, whole) => {
                if whole == 0 {
                    0.0
                } else {
                    part as f64 * 100.0 / whole as f64
                }
            }
        }
    }

    /// Formats the value for tables.
    pub fn text(&self) -> String {
        match *self {
            Measure::Bytes(0) => show::NOTHING.to_owned(),
            Measure::Rate(0.0) => show::NOTHING.to_owned(),
            Measure::Count(count) => grouped(count),
            Measure::Rate(rate) => gigabits(rate),
            Measure::Time(ps) => show::span(ps),
            Measure::Bytes(bytes) => Bytes(bytes).to_string(),
            Measure::Share(part, whole) => show::share(part, whole),
            Measure::Part(part) => format!("{part:.3}"),
        }
    }

    /// Returns the value for JSON and CSV: bits per second, picoseconds, bytes, or millionths.
    pub fn number(&self) -> u64 {
        match *self {
            Measure::Count(number) | Measure::Time(number) | Measure::Bytes(number) => number,
            Measure::Rate(rate) => whole(rate),
            Measure::Share(part, whole) => (part * 1_000_000).checked_div(whole).unwrap_or(0),
            Measure::Part(part) => whole(part * 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_of_equal_rates_is_one() {
        assert!((fairness(&[2.0, 2.0, 2.0, 2.0]) - 1.0).abs() < 1e-12);
        assert!((fairness(&[8.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!(fairness(&[]).abs() < 1e-12);
    }

    #[test]
    fn titles_and_names_are_unique() {
        let unique =
            |of: fn(&Column) -> &'static str| COLUMNS.iter().map(of).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(unique(|column| column.title).len(), COLUMNS.len());
        assert_eq!(unique(|column| column.name).len(), COLUMNS.len());
    }
}
