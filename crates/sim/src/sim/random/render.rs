//! Writes a draft as the text of a scenario.

use std::fmt::Write;

use super::draft::{
    Cable, ClassDraft, CrossingDraft, Draft, FaultDraft, FaultKindDraft, FlowDraft, FrameDraft, HeadroomDraft,
    HostDraft, LimitDraft, LinkDraft, LoadDraft, PatternDraft, PortDraft, SizesDraft, SlowReceiver, SwitchDraft,
    TransportDraft, WorkloadDraft,
};
use crate::sets::ClassSet;

/// Returns the text of the scenario.
#[must_use]
pub fn yaml(draft: &Draft) -> String {
    let mut out = String::new();
    let drain = draft.drain();
    let _ = writeln!(out, "seed: {}\nduration: {}\ndrain: {}", draft.seed, time(draft.duration), time(drain));
    // Nothing plots these runs, and a sample costs as much as a poll.
    let _ = writeln!(out, "sample: {}\nevents: {}", time(1_000_000.max(drain / 10_000)), draft.most_events());
    if draft.learns {
        out += "learning: frames\n";
    }
    out += "switches:\n";
    draft.switches.iter().for_each(|switch| write_switch(&mut out, draft, switch));
    out += "hosts:\n";
    draft.hosts.iter().for_each(|host| write_host(&mut out, host));
    write_list(&mut out, "flows", draft.flows.iter().map(flow));
    write_list(&mut out, "workloads", draft.workloads.iter().map(workload));
    let links = draft.links.iter().map(|link| {
        let ([a, b], id) = (link.ends, link.id);
        format!("a: s{a}.u{id}, b: s{b}.u{id}, length: {}m", link.length)
    });
    write_list(&mut out, "links", links);
    write_list(&mut out, "faults", draft.faults.iter().map(|one| fault(draft, one)));
    out
}

fn write_list(out: &mut String, key: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    if !items.is_empty() {
        let _ = writeln!(out, "{key}:");
        items.iter().for_each(|item| {
            let _ = writeln!(out, "  - {{{item}}}");
        });
    }
}

fn write_switch(out: &mut String, draft: &Draft, switch: &SwitchDraft) {
    let SwitchDraft { id, every, frame, jitter, .. } = switch;
    let _ = writeln!(out, "  - name: s{id}");
    write_reloads(out, draft, switch);
    let _ = writeln!(
        out,
        "    poll: {{every: {}, frame: {}, jitter: {}}}\n    config:",
        time(*every),
        time(*frame),
        time(*jitter)
    );
    let policy = match switch.headroom {
        HeadroomDraft::Independent => "independent".to_owned(),
        HeadroomDraft::SharedPool(ratio) => format!("{{policy: shared-pool, ratio: {}.{}}}", ratio / 10, ratio % 10),
        HeadroomDraft::Dynamic => "dynamic".to_owned(),
    };
    let reserve = switch.port_reserve.map_or(String::new(), |(lossless, lossy)| {
        format!(", port_reserve: {{lossless: {lossless}B, lossy: {lossy}B}}")
    });
    let _ = writeln!(
        out,
        "      buffer: {{size: {}B, cell: {}B, lossy: {}%, headroom: {policy}{reserve}}}",
        switch.size, switch.cell, switch.lossy
    );
    let backlog = if switch.backlog { "" } else { ", backlog_xoff: off" };
    let _ = writeln!(
        out,
        "      lcores: {{count: {}, poll_gap: {}{backlog}}}\n      fdb: {{capacity: 64}}",
        switch.lcores,
        time(switch.poll_gap)
    );
    if let Some(action) = switch.watchdog {
        let _ = writeln!(out, "      watchdog: {{detection: 10ms, restoration: 10ms, action: {action}}}");
    }
    out.push_str("      classes:\n");
    switch.classes.iter().for_each(|one| {
        let _ = writeln!(out, "        {}: {{{}}}", one.class, class(one));
    });
    out.push_str("      ports:\n");
    let mut crosses =
        [switch.crossing == CrossingDraft::All, switch.crossing != CrossingDraft::None].into_iter().cycle();
    let mut tx_queues = || {
        let is_one = crosses.next().unwrap_or(false) && switch.lcores > 1;
        if is_one { ", tx_queues: 1" } else { "" }
    };
    for host in draft.hosts.iter().filter(|host| host.switch == *id) {
        let (name, tx_queues) = (format!("p{}", host.id), tx_queues());
        let end = PortEnd { name, speed: host.rate, length: host.length, port: &host.port, tx_queues };
        write_port(out, switch, &end);
    }
    for link in draft.links.iter().filter(|link| link.ends.contains(id)) {
        let (name, tx_queues) = (format!("u{}", link.id), tx_queues());
        let end = PortEnd { name, speed: link.rate, length: link.length, port: &link.port, tx_queues };
        write_port(out, switch, &end);
    }
}

fn write_reloads(out: &mut String, draft: &Draft, switch: &SwitchDraft) {
    if switch.reloads.is_empty() {
        return;
    }
    out.push_str("    reloads:\n");
    for reload in &switch.reloads {
        let buffer = reload.sizes.map(|SizesDraft { lossy, port_reserve: (lossless, other), .. }| {
            format!("buffer: {{lossy: {lossy}%, port_reserve: {{lossless: {lossless}B, lossy: {other}B}}}}")
        });
        let cable = reload.sizes.map(|SizesDraft { cable, .. }| format!("{{name: \"*\", cable: {cable}m}}"));
        let port = reload.out.and_then(|(cable, mtu)| {
            let name = port_at(draft, switch, cable)?;
            let setting = mtu.map_or("device: none".to_owned(), |mtu| format!("mtu: {mtu}"));
            Some(format!("{{name: {name}, {setting}}}"))
        });
        let ports: Vec<String> = cable.into_iter().chain(port).collect();
        let ports = (!ports.is_empty()).then(|| format!("ports: [{}]", ports.join(", ")));
        let class = |number: usize| {
            let drawn = switch.classes.iter().find(|class| usize::from(class.class) == number);
            format!("{number}: {{lossless: {}}}", !drawn.is_some_and(|class| class.lossless))
        };
        let classes: Vec<String> = reload.swapped.iter().map(class).collect();
        let classes = (!classes.is_empty()).then(|| format!("classes: {{{}}}", classes.join(", ")));
        let set: Vec<String> = buffer.into_iter().chain(classes).chain(ports).collect();
        let _ = writeln!(out, "      - {{at: {}, set: {{{}}}}}", time(reload.at), set.join(", "));
    }
}

/// The name of the port of `switch` at `cable`, if there still is one.
fn port_at(draft: &Draft, switch: &SwitchDraft, cable: Cable) -> Option<String> {
    match cable {
        Cable::Host(id) => {
            draft.hosts.iter().any(|host| (host.id, host.switch) == (id, switch.id)).then(|| format!("p{id}"))
        }
        Cable::Link(id) => {
            let is_at = |link: &LinkDraft| link.id == id && link.ends.contains(&switch.id);
            draft.links.iter().any(is_at).then(|| format!("u{id}"))
        }
    }
}

/// A port with its end of a cable.
struct PortEnd<'a> {
    name: String,
    /// Rate of the link.
    speed: u64,
    /// Metres of cable.
    length: u64,
    port: &'a PortDraft,
    /// The key of its transmit queues, if it has one.
    tx_queues: &'static str,
}

fn write_port(out: &mut String, switch: &SwitchDraft, end: &PortEnd<'_>) {
    let &PortEnd { ref name, speed, length, port, tx_queues } = end;
    let _ = write!(
        out,
        "        - {{name: {name}, speed: {}, cable: {}m, mtu: {}",
        rate(speed),
        port.claims.unwrap_or(length),
        switch.mtu
    );
    if port.pfc != "software" {
        let _ = write!(out, ", pfc: {}", port.pfc);
    }
    // 0 means not known yet.
    if ![0, 1024].contains(&port.rx_descriptors) {
        let _ = write!(out, ", rx_descriptors: {}", port.rx_descriptors);
    }
    out.push_str(tx_queues);
    out.push_str("}\n");
}

fn class(class: &ClassDraft) -> String {
    let limit = |name: &str, limit: Option<LimitDraft>| {
        limit.map(|limit| match limit {
            LimitDraft::Alpha(alpha) => format!("{name}alpha: {alpha}"),
            LimitDraft::Bytes(bytes) => format!("{name}limit: {bytes}B"),
        })
    };
    let size = |key: &str, bytes: Option<u64>| bytes.map(|bytes| format!("{key}: {bytes}B"));
    let scheduler = class.weight.map(|weight| match weight {
        0 => "scheduler: strict".to_owned(),
        weight => format!("scheduler: {{weight: {weight}}}"),
    });
    let parts = [
        Some(format!("lossless: {}", class.lossless)),
        limit("", class.limit),
        size("reserve", class.reserve),
        size("xon_offset", class.xon_offset),
        size("xon_floor", class.xon_floor),
        size("headroom", class.headroom),
        limit("queue_", class.queue_limit),
        size("queue_reserve", class.queue_reserve),
        scheduler,
        class.ecn.map(|(kmin, kmax, pmax)| format!("ecn: {{kmin: {kmin}B, kmax: {kmax}B, pmax: {pmax}%}}")),
        class.qcn.map(|(set_point, sample)| format!("qcn: {{set_point: {set_point}B, sample: {sample}B}}")),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

fn write_host(out: &mut String, host: &HostDraft) {
    let _ = write!(out, "  - {{name: h{}, at: s{}.p{}, length: {}m", host.id, host.switch, host.id, host.length);
    if !host.obeys {
        out.push_str(", pfc: ignore");
    }
    if !host.known {
        out.push_str(", known: false");
    }
    if let Some(response) = host.response {
        let _ = write!(out, ", response: {}", time(response));
    }
    if let Some(of) = host.receiver {
        let _ = write!(out, ", {}", receiver(of));
    }
    out.push_str("}\n");
}

fn flow(flow: &FlowDraft) -> String {
    let frame = match flow.frame {
        FrameDraft::Fixed(len) => len.to_string(),
        FrameDraft::Uniform(from, to) => format!("{{from: {from}, to: {to}}}"),
        FrameDraft::Imix => "imix".to_owned(),
    };
    let load = match flow.load {
        LoadDraft::Steady => None,
        LoadDraft::OnOff(on, off) => Some(format!("load: {{on: {}, off: {}}}", time(on), time(off))),
        LoadDraft::Messages(from, to, every) => {
            Some(format!("load: {{message: {{from: {from}B, to: {to}B}}, every: {}, poisson: true}}", time(every)))
        }
    };
    let parts = [
        Some(format!("from: h{}, to: h{}, dscp: {}, frame: {frame}", flow.from, flow.to, flow.class * 8)),
        flow.rate.map(|of| format!("rate: {}", rate(of))),
        Some(format!("ecn: {}, start: {}", flow.ecn, time(flow.start))),
        flow.stop.map(|stop| format!("stop: {}", time(stop))),
        load,
        flow.dcqcn.then(|| "dcqcn: true".to_owned()),
        flow.control.map(|control| format!("cc: {control}")),
        flow.transport.map(transport),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

fn workload(workload: &WorkloadDraft) -> String {
    let hosts = workload.hosts.iter().map(|host| format!("h{host}")).collect::<Vec<String>>().join(", ");
    let pattern = match workload.pattern {
        PatternDraft::Poisson(sizes, load) => {
            format!("sizes: {sizes}, load: {}.{:04}%, from: [{hosts}], to: [{hosts}]", load / 10_000, load % 10_000)
        }
        PatternDraft::Incast(size, every) => format!(
            "incast: {{senders: {}, size: {size}B, every: {}, poisson: true}}, from: [{hosts}], to: [{hosts}]",
            workload.hosts.len() - 1,
            time(every)
        ),
        PatternDraft::AllToAll(size) => format!("all_to_all: {size}B, hosts: [{hosts}]"),
        PatternDraft::AllReduce(is_tree, size, times) => {
            let shape = if is_tree { "tree" } else { "ring" };
            format!("all_reduce: {shape}, size: {size}B, times: {times}, hosts: [{hosts}]")
        }
    };
    let parts = [
        Some(pattern),
        Some(format!("dscp: {}, frame: {}, ecn: {}", workload.class * 8, workload.frame, workload.ecn)),
        Some(format!("start: {}", time(workload.start))),
        workload.control.map(|control| format!("cc: {control}")),
        workload.transport.map(transport),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

fn transport(transport: TransportDraft) -> String {
    let TransportDraft { recovery, ack_every, window, timeout } = transport;
    let window = window.map_or(String::new(), |window| format!(", window: {window}B"));
    format!("transport: {{recovery: {recovery}, ack_every: {ack_every}, timeout: {}{window}}}", time(timeout))
}

fn fault(draft: &Draft, fault: &FaultDraft) -> String {
    let place = |cable: Cable| match cable {
        Cable::Host(id) => format!("s{}.p{id}", draft.host(id).switch),
        Cable::Link(id) => {
            let end = draft.links.iter().find(|link| link.id == id).map_or(0, |link| link.ends[0]);
            format!("s{end}.u{id}")
        }
    };
    let what = match fault.kind {
        FaultKindDraft::Down(cable) => format!("down: {}", place(cable)),
        FaultKindDraft::Shut(cable) => format!("shut: {}", place(cable)),
        FaultKindDraft::Lose(cable, what, chance, one_way) => {
            let toward = if one_way { format!(", toward: {}", place(cable)) } else { String::new() };
            format!("lose: {}, what: {what}, chance: {}.{}%{toward}", place(cable), chance / 10, chance % 10)
        }
        FaultKindDraft::Storm(host, ClassSet::EMPTY) => format!("storm: h{host}"),
        FaultKindDraft::Storm(host, priorities) => {
            let priorities = priorities.iter().map(|priority| priority.to_string());
            format!("storm: h{host}, priorities: [{}]", priorities.collect::<Vec<String>>().join(", "))
        }
        FaultKindDraft::Dead(host) => format!("dead: h{host}"),
        FaultKindDraft::Late(host, response) => format!("late: h{host}, response: {}", time(response)),
        FaultKindDraft::Slow(host, of) => format!("slow: h{host}, {}", receiver(of)),
        FaultKindDraft::Garbage(host, of) => format!("garbage: h{host}, rate: {}", rate(of)),
        FaultKindDraft::Stall(switch, None) => format!("stall: s{switch}"),
        FaultKindDraft::Stall(switch, Some(lcore)) => format!("stall: s{switch}, lcore: {lcore}"),
    };
    let time_of = fault.time.map_or(String::new(), |of| format!("for: {}, ", time(of)));
    format!("at: {}, {time_of}{what}", time(fault.at))
}

fn receiver(receiver: SlowReceiver) -> String {
    format!("receiver: {{rate: {}, buffer: {}B}}", rate(receiver.rate), receiver.bytes)
}

fn rate(mbps: u64) -> String {
    if mbps.is_multiple_of(1000) { format!("{}G", mbps / 1000) } else { format!("{mbps}M") }
}

fn time(ns: u64) -> String {
    match ns {
        0 => "0ns".to_owned(),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1000) => format!("{}us", ns / 1000),
        ns => format!("{ns}ns"),
    }
}
