//! Resources of a few lines or columns: configuration, classes, hosts, flows, events, advice, version.

use holdfast::api::model::{Event, RunningConfig, Setting};
use holdfast::text::table::Table;

use super::Looks;
use super::cells::{NONE, class, count, duration, gigabits, grown, percent, since, time};

pub fn config(looks: &Looks<'_>) -> String {
    let config: RunningConfig = looks.part("config").unwrap_or_default();
    let overrides = config.overrides.join(" ");
    let overrides = if overrides.is_empty() { String::new() } else { format!("# overridden by: {overrides}\n") };
    let end = if config.text.ends_with('\n') { "" } else { "\n" };
    format!("# {}, hash {}\n{overrides}{}{end}", config.source, config.hash, config.text)
}

pub fn settings(looks: &Looks<'_>) -> String {
    let settings: Vec<Setting> = looks.part("settings").unwrap_or_default();
    let mut table = Table::new("port | setting | value | change by");
    for setting in settings {
        let change = if setting.live { "reload" } else { "restart" };
        table.row([setting.port.unwrap_or_else(|| NONE.to_owned()), setting.key, setting.value, change.to_owned()]);
    }
    table.to_string()
}

pub fn classes(looks: &Looks<'_>) -> String {
    let mut table = Table::new("class | >group | >queue | kind");
    for row in &looks.state().classes {
        let kind = if row.lossless { "lossless" } else { "lossy" };
        table.row([class(row.class, row.lossless), row.group.to_string(), row.queue.to_string(), kind.to_owned()]);
    }
    table.to_string()
}

pub fn hosts(looks: &Looks<'_>) -> String {
    let state = looks.state();
    let mut table = Table::new("host | port | >PFC rcvd | held by priority | >foreign");
    for host in &state.hosts {
        let held = host.paused_ns.iter().enumerate().filter(|(_, ns)| **ns > 0);
        let held: Vec<String> = held.map(|(number, ns)| format!("{number}: {}", percent(*ns, state.at_ns))).collect();
        let held = if held.is_empty() { NONE.to_owned() } else { held.join(", ") };
        let counts = [count(host.pfc_received_frames), held, count(host.foreign_frames)];
        table.row([host.host.clone(), host.port.clone()].into_iter().chain(counts));
    }
    if table.is_empty() {
        return "there are no virtual hosts\n".to_owned();
    }
    format!(
        "{table}(held: share of the time; foreign: frames that belong to no flow of the host; {})\n",
        since(state.at_ns)
    )
}

pub fn flows(looks: &Looks<'_>) -> String {
    let state = looks.state();
    let mut table = Table::new("flow | class | >sent | >received | >missing | >CE | >Gb/s | >p50 | >p99 | >longest");
    let time = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), time);
    for (index, flow) in state.flows.iter().enumerate() {
        let before = looks.before().and_then(|(before, seconds)| Some((before.flows.get(index)?, seconds)));
        let wire = grown(flow.received_wire_bytes, before.map(|(flow, _)| flow.received_wire_bytes));
        let seconds = before.map_or(state.at_ns as f64 / 1e9, |(_, seconds)| seconds);
        table.row([
            format!("{} > {} {}", flow.from, flow.to.as_deref().unwrap_or("outside"), flow.kind),
            flow.class.to_string(),
            count(grown(flow.sent_frames, before.map(|(flow, _)| flow.sent_frames))),
            count(grown(flow.received_frames, before.map(|(flow, _)| flow.received_frames))),
            flow.missing_frames.map_or_else(|| NONE.to_owned(), count),
            percent(flow.ce_frames, flow.received_frames),
            gigabits(wire, seconds),
            time(flow.latency_p50_ns),
            time(flow.latency_p99_ns),
            time(flow.latency_highest_ns),
        ]);
    }
    if table.is_empty() {
        return "there are no flows of virtual hosts\n".to_owned();
    }
    format!("{table}(missing: lost or still under way; {})\n", since(state.at_ns))
}

pub fn events(looks: &Looks<'_>) -> String {
    let events: Vec<Event> = looks.part("events").unwrap_or_default();
    let seen: Option<u64> = looks.before.and_then(|seen| {
        let events: Vec<Event> = serde_json::from_value(seen.json.get("events")?.clone()).ok()?;
        events.last().map(|event| event.number)
    });
    let new = events.iter().filter(|event| seen.is_none_or(|seen| event.number > seen));
    let text: String = new
        .map(|event| {
            let left_out = match event.left_out {
                0 => String::new(),
                earlier => format!(" ({earlier} earlier left out)"),
            };
            match event.text.starts_with("t=") {
                true => format!("{}{left_out}\n", event.text),
                false => format!("t={:.1}s {}{left_out}\n", event.at_ns as f64 / 1e9, event.text),
            }
        })
        .collect();
    match (text.is_empty(), looks.before) {
        (false, _) => text,
        (true, Some(_)) => format!("no events since the last reading, {}\n", since(looks.state().at_ns)),
        (true, None) => format!("no events, {}\n", since(looks.state().at_ns)),
    }
}

pub fn advice(looks: &Looks<'_>) -> String {
    let advice = &looks.state().advice;
    if advice.is_empty() {
        return format!("nothing to change, {}\n", since(looks.state().at_ns));
    }
    advice.iter().map(|advice| format!("{}\n", advice.text)).collect()
}

pub fn version(looks: &Looks<'_>) -> String {
    let (version, at_ns) = (&looks.state().version, looks.state().at_ns);
    let rows = [
        ("version", version.version.clone()),
        ("process", version.pid.to_string()),
        ("running for", duration(at_ns)),
        ("configuration", format!("{}, hash {}", version.config_source, version.config_hash)),
        ("API", format!("{}, {}", version.api, if version.writes { "writes allowed" } else { "read-only" })),
    ];
    rows.iter().map(|(name, value)| format!("{name:<13}  {value}\n")).collect()
}
