//! A configuration as `holdfast check` shows it: what was derived, beside what was written.

use std::fmt::{self, Write};

use holdfast::config::{Config, PortDevice};
use holdfast::dataplane::{PortSpec, SwitchSpec};
use holdfast::forward::VlanMode;
use holdfast::hosts::{FlowPattern, FlowSpec, FlowTarget};
use holdfast::mmu::Threshold;
use holdfast::qos::{CLASSES, QueueDiscipline, Trust, WredProfile};
use holdfast::stats::table::Align::{Left, Right};
use holdfast::stats::table::Table;
use holdfast::units::{Bytes, Cells, Probability};

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
    writeln!(out, "{}: right", config.source)?;
    writeln!(out, "poll gap {}, metrics {metrics}", config.lcores.poll_gap)?;
    writeln!(out, "\n{}", ports(switch, &config.devices))?;
    writeln!(out, "{}", buffer(switch))?;
    writeln!(out, "{}", classes(switch))?;
    if !config.hosts.is_empty() {
        writeln!(out, "{}", hosts(config))?;
    }
    writeln!(out, "forwarding database: {} entries, {} static", switch.fdb.capacity, switch.fdb.entries.len())?;
    config.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))
}

fn hosts(config: &Config) -> Table {
    let mut table = Table::new(&[
        ("host", Left),
        ("port", Left),
        ("address", Left),
        ("pfc", Left),
        ("sends", Left),
        ("rate", Right),
        ("frame", Right),
        ("class", Right),
        ("pattern", Left),
    ]);
    for host in &config.hosts {
        let port = config.switch.ports.get(host.port).map_or("", |port| port.name.as_str());
        let pfc = if host.obeys_pfc { "obeys" } else { "ignores" };
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

/// The lossless classes of a port with the headroom of each, e.g. `3: 134.06KiB`.
fn headroom(port: &PortSpec, cell: Bytes) -> String {
    let lossless = port.buffer.groups.iter().enumerate().filter(|(_, group)| group.lossless);
    let shown: Vec<String> =
        lossless.map(|(class, group)| format!("{class}: {}", group.headroom.to_bytes(cell))).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

fn ports(switch: &SwitchSpec, devices: &[PortDevice]) -> Table {
    let mut table = Table::new(&[
        ("port", Left),
        ("device", Left),
        ("speed", Right),
        ("cable", Right),
        ("mtu", Right),
        ("trust", Left),
        ("vlan", Left),
        ("pfc", Left),
        ("headroom by class", Left),
    ]);
    for (port, device) in switch.ports.iter().zip(devices) {
        let trust = match port.trust {
            Trust::Dscp => "dscp",
            Trust::Pcp => "pcp",
            Trust::Port => "port",
        };
        table.row([
            port.name.clone(),
            device.kind.to_string(),
            port.rate.to_string(),
            device.cable.to_string(),
            port.mtu.to_string(),
            format!("{trust}, else {}", port.port_class),
            vlans(&port.vlan),
            if port.pfc.is_on() { "software" } else { "off" }.to_owned(),
            headroom(port, switch.buffer.cell),
        ]);
    }
    table
}

/// `10`, or `10,20-30 tagged, 1 native`.
fn vlans(mode: &VlanMode) -> String {
    let (tagged, native) = match mode {
        VlanMode::Access(vlan) => return vlan.to_string(),
        VlanMode::Trunk { tagged, native } => (tagged, native),
    };
    let native = native.map_or(String::new(), |native| format!(", {native} native"));
    format!("{} tagged{native}", ranges(tagged.iter().map(|&vlan| usize::from(vlan))))
}

fn buffer(switch: &SwitchSpec) -> Table {
    let plan = &switch.buffer;
    let promised = [plan.reserves, plan.headroom, plan.lossless_shared, plan.lossy_shared];
    let unused = Cells(promised.iter().fold(plan.total.0, |left, part| left.saturating_sub(part.0)));
    let mut table = Table::new(&[("buffer", Left), ("cells", Right), ("size", Right), ("share", Right)]);
    let rows = [
        ("reserves", plan.reserves),
        ("headroom", plan.headroom),
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

fn classes(switch: &SwitchSpec) -> Table {
    let mut table = Table::new(&[
        ("class", Left),
        ("kind", Left),
        ("dscp", Left),
        ("reserve", Right),
        ("limit", Left),
        ("xon below", Left),
        ("queue", Left),
        ("scheduler", Left),
        ("ecn", Left),
    ]);
    let cell = switch.buffer.cell;
    for class in 0..CLASSES {
        // The first port stands for all: only MTUs could make a difference.
        let Some(group) = switch.ports.first().map(|port| &port.buffer.groups[class]) else { continue };
        let queue = &switch.queues[class];
        let xon = format!("limit - {}, or {}", group.xon_offset.to_bytes(cell), group.xon_floor.to_bytes(cell));
        table.row([
            class.to_string(),
            if group.lossless { "lossless" } else { "lossy" }.to_owned(),
            ranges((0..64).filter(|&dscp| usize::from(switch.ports[0].marks.dscp_to_tc[dscp]) == class)),
            group.reserve.to_bytes(cell).to_string(),
            threshold(group.threshold, cell),
            if group.lossless { xon } else { "-".to_owned() },
            queue.limit.map_or("-".to_owned(), |limit| threshold(limit.threshold, cell)),
            match queue.discipline {
                QueueDiscipline::Strict => "strict".to_owned(),
                QueueDiscipline::Dwrr { weight } => format!("weight {weight}"),
            },
            queue.wred.map_or("-".to_owned(), |wred| ecn(&wred)),
        ]);
    }
    table
}

fn threshold(threshold: Threshold, cell: Bytes) -> String {
    match threshold {
        Threshold::Dynamic(alpha) => format!("alpha {alpha}"),
        Threshold::Static(cells) => cells.to_bytes(cell).to_string(),
    }
}

fn ecn(wred: &WredProfile) -> String {
    let percent = f64::from(wred.pmax.0) * 100.0 / f64::from(Probability::ONE.0);
    format!("{} to {}, {percent:.1}%", wred.kmin, wred.kmax)
}

/// Rising numbers as `1,3-5`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let show = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let shown: Vec<String> = ranges.iter().map(show).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(",") }
}
