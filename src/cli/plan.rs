//! The output of `holdfast check`: the derived values of a configuration beside the written ones.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use holdfast::config::settings::value::{Value, ranges, threshold};
use holdfast::config::settings::{self, Setting};
use holdfast::config::{Config, LacpConfig, PortDevice, mechanisms, mirror_words};
use holdfast::forward::LagSpec;
use holdfast::headroom::SmallPackets;
use holdfast::hosts::{FlowPattern, FlowSpec, FlowTarget};
use holdfast::mmu::HeadroomPolicy;
use holdfast::plan::{PortSpec, SwitchSpec};
use holdfast::sets::CLASSES;
use holdfast::text::table::Table;
use holdfast::units::{Bytes, Cells};

use super::routing;

/// The plan: ports, buffer, classes, hosts and warnings, as tables.
pub fn describe(config: &Config) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_plan(config, &mut text);
    text
}

fn write_plan(config: &Config, out: &mut impl Write) -> fmt::Result {
    let metrics = config.metrics.map_or("off".to_owned(), |address| format!("http://{address}/metrics"));
    let switch = &config.switch;
    writeln!(out, "{}: valid", config.source)?;
    writeln!(out, "poll gap {}, metrics {metrics}, {}", config.lcores.poll_gap, lcores(config))?;
    if let Some(line) = idle(config) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n{}", ports(switch, &config.devices))?;
    writeln!(out, "{}", guards(switch))?;
    writeln!(out, "{}", buffer(switch))?;
    writeln!(out, "{}", classes(switch))?;
    own_maps(switch)
        .iter()
        .chain(&optional(config))
        .chain(&lags(config))
        .chain(&faults(config))
        .chain(&mirror_words::lines(config))
        .chain(&mechanisms::mechanisms(switch))
        .try_for_each(|line| writeln!(out, "{line}"))?;
    summary(config).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out)?;
    if !config.hosts.is_empty() {
        writeln!(out, "{}", hosts(config))?;
    }
    if let Some(text) = routing::describe(config) {
        writeln!(out, "{text}")?;
    }
    writeln!(out, "forwarding database: {} entries, {} static", switch.fdb.capacity, switch.fdb.entries.len())?;
    config.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))
}

/// Number of dataplane lcores, and their CPUs.
fn lcores(config: &Config) -> String {
    let cpus: Vec<String> = config.lcores.dataplane.iter().map(u16::to_string).collect();
    let cpus = match &cpus[..] {
        [] => String::new(),
        [cpu] => format!(" on CPU {cpu}"),
        cpus => format!(" on CPUs {}", cpus.join(", ")),
    };
    match config.switch.lcores {
        1 => format!("1 dataplane lcore{cpus}"),
        lcores => format!("{lcores} dataplane lcores{cpus}"),
    }
}

/// Describes which lcores rest when idle, and how. `None` if the configuration has no rest.
fn idle(config: &Config) -> Option<String> {
    let idle = config.lcores.idle.as_ref()?;
    let lcores = (0..usize::from(config.switch.lcores)).filter(|&lcore| config.idle_of(lcore).is_some());
    let lcores: Vec<String> = lcores.map(|lcore| lcore.to_string()).collect();
    let who = match &lcores[..] {
        [] => return Some("when idle: every lcore keeps polling, because each has a lossless port".to_owned()),
        [lcore] => format!("lcore {lcore}"),
        lcores => format!("lcores {}", lcores.join(", ")),
    };
    let (wait, after, longest, wake) = (idle.wait.label(), idle.after, idle.longest, idle.wake);
    Some(format!("when idle for {after}: {wait} up to {longest}, and {wake} to wake up; {who}"))
}

/// Consequences of the division of the buffer.
fn summary(config: &Config) -> Vec<String> {
    let (switch, summary) = (&config.switch, &config.summary);
    let has = switch.lossless_groups().len();
    let mut lines = vec![format!(
        "lossless groups: {has}; the buffer has room for {} at these cables and rates, with {} headroom",
        summary.lossless_fit,
        switch.buffer.policy.label()
    )];
    lines.extend(small_packets(config));
    for order in &summary.ecn {
        let verdict = if order.is_before() { "before" } else { "possibly too late" };
        lines.push(format!(
            "ECN of class {} marks from {}, XOFF no earlier than {} in each queue: {verdict}",
            order.class, order.kmin, order.xoff
        ));
    }
    lines
}

/// The share of small packets that headroom expects after XOFF, and its cost. `None` if headroom does not depend on it.
fn small_packets(config: &Config) -> Option<String> {
    let (share, cost) = (config.summary.small_packets, config.summary.small_packets_cost?);
    Some(match share {
        SmallPackets::NONE => {
            "headroom assumes no small packets, by `buffer.small_packets`: traffic with small packets can lose frames"
                .to_owned()
        }
        SmallPackets::ALL => {
            format!("headroom assumes small packets only: {cost} of it would not be needed without small packets")
        }
        share => format!(
            "headroom assumes up to {share} of bytes in small packets, by `buffer.small_packets`: traffic with more \
             can lose frames; {cost} of it would not be needed without small packets"
        ),
    })
}

/// One line per port whose maps differ from those of the first port, e.g. `port p3, unlike port p1: DSCP 46-47 to class
/// 5`.
fn own_maps(switch: &SwitchSpec) -> Vec<String> {
    let Some(first) = switch.ports.first() else { return Vec::new() };
    let line = |port: &PortSpec| {
        let tables: [(_, &[u8], &[u8]); 2] = [
            ("DSCP", &port.live.marks.dscp_to_tc, &first.live.marks.dscp_to_tc),
            ("PCP", &port.live.marks.pcp_to_tc, &first.live.marks.pcp_to_tc),
        ];
        let mut parts = Vec::new();
        for (name, own, other) in tables {
            for class in 0..CLASSES {
                let moved = |&mark: &usize| usize::from(own[mark]) == class && own[mark] != other[mark];
                let marks = ranges((0..own.len()).filter(moved));
                if marks != "-" {
                    parts.push(format!("{name} {marks} to class {class}"));
                }
            }
        }
        let (name, first) = (&port.name, &first.name);
        (!parts.is_empty()).then(|| format!("port {name}, unlike port {first}: {}", parts.join(", ")))
    };
    switch.ports.iter().filter_map(line).collect()
}

/// Settings of ports that are off unless written, as the plan calls them, and what comes before and after the part of
/// the key that says what is set.
const OPTIONAL: [[&str; 3]; 3] =
    [["RoCE", "maps.roce.", ""], ["maximum rates", "", ".max_rate"], ["storm control", "storm_control.", ""]];

/// One line per optional setting and set of ports with equal values, e.g. `storm control of p1, p2: broadcast 1kpps`.
fn optional(config: &Config) -> Vec<String> {
    let (settings, mut lines) = (settings::all(config), Vec::new());
    for [title, before, after] in OPTIONAL {
        let mut ports: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for port in config.switch.ports.iter().map(|port| port.name.as_str()) {
            let own = settings.iter().filter(|(of, _, setting)| *of == Some(port) && setting.text != "off");
            let value = |(_, key, setting): (_, &str, &Setting)| {
                let part = key.strip_prefix(before)?.strip_suffix(after)?;
                Some(format!("{part} {}", setting.text))
            };
            let values: Vec<String> = own.filter_map(value).collect();
            let separator = if values.iter().any(|value| value.contains(',')) { "; " } else { ", " };
            ports.entry(values.join(separator)).or_default().push(port);
        }
        ports.remove("");
        lines.extend(ports.iter().map(|(values, ports)| format!("{title} of {}: {values}", ports.join(", "))));
    }
    lines
}

/// One line if the switch may have injected faults.
fn faults(config: &Config) -> Option<String> {
    let listed = config.faults.as_ref()?.list.len();
    Some(format!("fault injection is allowed: {listed} from the start, others by the API"))
}

/// One line per link aggregation group, e.g. `group bond0: ports a, b; LACP active, fast; carries frames from 1
/// active`.
fn lags(config: &Config) -> Vec<String> {
    let line = |(group, lacp): (&LagSpec, &Option<LacpConfig>)| {
        let names: Vec<&str> = group.ports.iter().map(|port| config.switch.ports[port].name.as_str()).collect();
        let lacp = match lacp {
            None => "no LACP".to_owned(),
            Some(LacpConfig { is_active, is_fast }) => {
                let (mode, rate) =
                    (if *is_active { "active" } else { "passive" }, if *is_fast { "fast" } else { "slow" });
                format!("LACP {mode}, {rate}")
            }
        };
        let LagSpec { name, min_links, .. } = group;
        format!("group {name}: ports {}; {lacp}; carries frames from {min_links} active", names.join(", "))
    };
    config.switch.lags.groups.iter().zip(&config.lacp).map(line).collect()
}

fn hosts(config: &Config) -> Table {
    let mut table = Table::new("host | port | address | pfc | sends | >rate | >frame | >class | pattern");
    for host in &config.hosts {
        let port = config.switch.ports.get(host.port).map_or("", |port| port.name.as_str());
        let pfc = match host {
            host if host.keeps_frames => "queues",
            host if host.obeys_pfc => "obeys",
            _ => "ignores",
        };
        let start = [host.name.clone(), port.to_owned(), host.mac.to_string(), pfc.to_owned()];
        if host.flows.is_empty() {
            table.row(start.iter().cloned().chain(["nothing".to_owned()]));
        }
        for one in &host.flows {
            table.row(start.iter().cloned().chain(flow(config, one)));
        }
    }
    table
}

fn flow(config: &Config, flow: &FlowSpec) -> [String; 5] {
    let to = match flow.to {
        FlowTarget::Host(host) => config.hosts.get(host).map_or(String::new(), |host| host.name.clone()),
        FlowTarget::Station { mac, .. } => mac.to_string(),
    };
    let pattern = match flow.pattern {
        FlowPattern::Steady => "steady".to_owned(),
        FlowPattern::OnOff { on, off } => format!("{on} on, {off} off"),
    };
    let frame = format!("{} B", flow.frame_len);
    [format!("to {to}"), flow.rate.to_string(), frame, flow.class.to_string(), pattern]
}

/// The lossless groups of a port with the headroom of each, e.g. `3: 134.06KiB`.
fn headroom(port: &PortSpec, cell: Bytes) -> String {
    let lossless = port.buffer.groups.iter().enumerate().filter(|(_, group)| group.lossless);
    let shown: Vec<String> =
        lossless.map(|(class, group)| format!("{class}: {}", group.headroom.to_bytes(cell))).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

fn ports(switch: &SwitchSpec, devices: &[PortDevice]) -> Table {
    let mut table = Table::new("port | device | >speed | >cable | >mtu | trust | vlan | rewrite | >lcore");
    for (port, device) in switch.ports.iter().zip(devices) {
        table.row([
            port.name.clone(),
            device.kind.to_string(),
            port.rate.to_string(),
            device.cable.to_string(),
            port.mtu.to_string(),
            format!("{}, else {}", port.live.trust.label(), port.live.port_class),
            port.vlan.shown(),
            rewrite(port),
            port.lcore.to_string(),
        ]);
    }
    table
}

/// The marks that the port rewrites on transmit.
fn rewrite(port: &PortSpec) -> String {
    let tables = [("dscp", port.live.rewrite.dscp), ("pcp", port.live.rewrite.pcp)];
    let used = tables.iter().filter(|(_, table)| table.iter().any(Option::is_some));
    let names: Vec<&str> = used.map(|(name, _)| *name).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// The mechanisms that keep each port lossless.
fn guards(switch: &SwitchSpec) -> Table {
    let mut table = Table::new("port | pfc | headroom by group | >insurance | reserve | >xoff at backlog | watchdog");
    let cell = switch.buffer.cell;
    for port in &switch.ports {
        let kinds = port.buffer.reserve.iter().zip(["lossy", "lossless"]).rev().filter(|(cells, _)| cells.0 > 0);
        let kinds: Vec<String> = kinds.map(|(cells, kind)| format!("{kind} {}", cells.to_bytes(cell))).collect();
        let insurance = port.buffer.insurance;
        table.row([
            port.name.clone(),
            port.pfc.label().to_owned(),
            headroom(port, cell),
            if insurance.0 == 0 { "-".to_owned() } else { insurance.to_bytes(cell).to_string() },
            if kinds.is_empty() { "-".to_owned() } else { kinds.join(", ") },
            port.backlog_mark.map_or("-".to_owned(), |mark| mark.to_string()),
            port.live.watchdog.map_or("-".to_owned(), |spec| spec.shown()),
        ]);
    }
    table
}

fn buffer(switch: &SwitchSpec) -> Table {
    let plan = &switch.buffer;
    let promised = [plan.reserves, plan.headroom, plan.lossless_shared, plan.lossy_shared];
    let unused = Cells(promised.iter().fold(plan.total.0, |left, part| left.saturating_sub(part.0)));
    let mut table = Table::new("buffer | >cells | >size | >share");
    let headroom = match plan.policy {
        HeadroomPolicy::Independent => "headroom".to_owned(),
        policy => format!("headroom, {}", policy.label()),
    };
    let rows = [
        ("reserves", plan.reserves),
        (&headroom, plan.headroom),
        ("lossless pool", plan.lossless_shared),
        ("lossy pool", plan.lossy_shared),
        ("unused", unused),
        ("total", plan.total),
    ];
    for (name, cells) in rows {
        let percent = u64::from(cells.0) * 100 / u64::from(plan.total.0.max(1));
        let size = cells.to_bytes(plan.cell).to_string();
        table.row([name.to_owned(), cells.0.to_string(), size, format!("{percent}%")]);
    }
    table
}

/// Each class with the settings of its group and its queue.
fn classes(switch: &SwitchSpec) -> Table {
    let mut table = Table::new(
        "class | kind | dscp | pcp | >group | >reserve | limit | xon below | >queue | >reserve | limit | scheduler | \
         ecn",
    );
    let cell = switch.buffer.cell;
    // The first port represents all: groups could differ only because of MTUs, and `own_maps` shows the maps that
    // differ.
    for (class, port) in switch.ports.first().into_iter().flat_map(|port| (0..CLASSES).map(move |class| (class, port)))
    {
        let (into_group, into_queue) = (switch.classes.tc_to_group[class], switch.classes.tc_to_queue[class]);
        let group = &port.buffer.groups[usize::from(into_group)];
        let queue = &switch.queues[usize::from(into_queue)];
        let xon = format!("limit - {}, or {}", group.xon_offset.to_bytes(cell), group.xon_floor.to_bytes(cell));
        let marks = |table: &[u8]| ranges((0..table.len()).filter(|&mark| usize::from(table[mark]) == class));
        table.row([
            class.to_string(),
            if group.lossless { "lossless" } else { "lossy" }.to_owned(),
            marks(&port.live.marks.dscp_to_tc),
            marks(&port.live.marks.pcp_to_tc),
            into_group.to_string(),
            group.reserve.to_bytes(cell).to_string(),
            threshold(group.threshold, cell),
            if group.lossless { xon } else { "-".to_owned() },
            into_queue.to_string(),
            if group.lossless { "-".to_owned() } else { queue.reserve.to_bytes(cell).to_string() },
            queue.limit.map_or("-".to_owned(), |limit| threshold(limit.threshold, cell)),
            queue.discipline.shown(),
            queue.wred.map_or("-".to_owned(), |wred| wred.shown()),
        ]);
    }
    table
}
