//! Mirrors and sFlow as text for people: in the plan of `holdfast check`, and in the differences of a reload.

use super::model::Config;
use crate::config::settings::Settings;
use crate::config::settings::value::{Precision, Value};
use crate::mirror::{Destination, SflowConfig, Target};
use crate::plan::drops::DropReason;
use crate::plan::mirror::{CopyCause, MirrorSession, ReasonSet};
use crate::sets::{ClassSet, PortSet};
use crate::units::Nanos;

/// The events that a session copies, by their labels.
#[must_use]
pub fn events(session: &MirrorSession) -> Vec<&'static str> {
    let is_copied = [session.dropped, session.marked, session.sample > 0];
    CopyCause::LABELS.into_iter().zip(is_copied).filter_map(|(label, is_copied)| is_copied.then_some(label)).collect()
}

/// Labels of the drop reasons of a session; empty: all.
#[must_use]
pub fn reasons(session: &MirrorSession) -> Vec<&'static str> {
    if session.reasons == ReasonSet::ALL {
        return Vec::new();
    }
    let reasons = DropReason::TABLE.iter().filter(|(reason, ..)| session.reasons.contains(*reason));
    reasons.map(|(_, label, _)| *label).collect()
}

/// One line per mirror and one for sFlow, e.g. `mirror losses: dropped for threshold, from p1, classes 3; 128
/// bytes, at most 1000 a second of each event and class on each lcore; to /d.pcapng, 2 files of 64MiB`.
#[must_use]
pub fn lines(config: &Config) -> Vec<String> {
    let mirrors = mirrors(config).map(|(session, target)| {
        let mut events: Vec<String> = events(session).into_iter().map(str::to_owned).collect();
        if session.sample > 0 {
            events.pop();
            events.push(match session.sample {
                1 => "each frame".to_owned(),
                sample => format!("one of {sample} frames"),
            });
        }
        let reasons = reasons(session);
        let reasons = if reasons.is_empty() { String::new() } else { format!(" for {}", reasons.join(", ")) };
        let from = ports(config, session).map_or_else(String::new, |names| format!(", from {}", names.join(", ")));
        let classes =
            if session.classes == ClassSet::ALL { String::new() } else { format!(", classes {}", numbers(session)) };
        let to = match &target.to {
            Destination::Port { port, has_trailer } => {
                let trailer = if *has_trailer { " with trailer" } else { "" };
                format!("port {}{trailer}", port_name(config, *port))
            }
            Destination::File(file) => format!("{}, {} files of {}", file.path.display(), file.files, file.size),
            Destination::Sflow => "sFlow".to_owned(),
        };
        let MirrorSession { bytes, rate, .. } = session;
        format!(
            "mirror {}: {}{reasons}{from}{classes}; {bytes} bytes, at most {rate} a second of each event and class on \
             each lcore; to {to}",
            target.name,
            events.join(", ")
        )
    });
    let sflow =
        config.mirror.sflow.iter().map(|sflow| format!("sFlow: {}", sflow_keys(config, sflow, Precision::Rounded)));
    mirrors.chain(sflow).collect()
}

/// Adds each mirror and the agent of sFlow on one line, as the configuration writes them.
pub(super) fn add(config: &Config, settings: &mut Settings) {
    for (session, target) in mirrors(config) {
        let text = |precision| mirror(config, session, target, precision);
        settings.put(None, format!("mirrors.{}", target.name), true, text);
    }
    let sflow = config.mirror.sflow.as_ref();
    let keys = |precision| sflow.map(|sflow| format!("{{{}}}", sflow_keys(config, sflow, precision)));
    settings.put(None, "sflow", true, |precision| keys(precision).unwrap_or_else(|| "off".to_owned()));
}

/// The sessions that are mirrors.
fn mirrors(config: &Config) -> impl Iterator<Item = (&MirrorSession, &Target)> {
    let sessions = config.switch.mirror.sessions.iter().zip(&config.mirror.targets);
    sessions.filter(|(_, target)| target.to != Destination::Sflow)
}

/// A mirror with every key.
fn mirror(config: &Config, session: &MirrorSession, target: &Target, precision: Precision) -> String {
    let mut keys = Vec::new();
    let mut copied = events(session);
    copied.retain(|event| *event != "sampled");
    if !copied.is_empty() {
        keys.push(format!("copy: [{}]", copied.join(", ")));
    }
    if session.sample > 0 {
        keys.push(format!("sample: {}", session.sample));
    }
    if session.reasons != ReasonSet::ALL {
        keys.push(format!("reasons: [{}]", reasons(session).join(", ")));
    }
    if let Some(names) = ports(config, session) {
        keys.push(format!("ports: [{}]", names.join(", ")));
    }
    if session.classes != ClassSet::ALL {
        keys.push(format!("classes: [{}]", numbers(session)));
    }
    keys.push(format!("bytes: {}, rate: {}", session.bytes, session.rate));
    let to = match &target.to {
        Destination::Port { port, has_trailer } => {
            format!("port: {}, trailer: {has_trailer}", port_name(config, *port))
        }
        Destination::File(file) => {
            let size = file.size.text(precision);
            format!("file: {}, size: {size}, files: {}", file.path.display(), file.files)
        }
        Destination::Sflow => String::new(),
    };
    format!("{{{}, to: {{{to}}}}}", keys.join(", "))
}

/// The keys of sFlow. Its sessions have the number of bytes.
fn sflow_keys(config: &Config, sflow: &SflowConfig, precision: Precision) -> String {
    let collectors: Vec<String> = sflow.collectors.iter().map(ToString::to_string).collect();
    let or_off = |number: u32| if number == 0 { "off".to_owned() } else { number.to_string() };
    let poll = if sflow.poll == Nanos(0) { "off".to_owned() } else { sflow.poll.text(precision) };
    let sessions = config.switch.mirror.sessions.iter().zip(&config.mirror.targets);
    let bytes = { sessions }.find(|(_, target)| target.to == Destination::Sflow).map(|(session, _)| session.bytes);
    let bytes = bytes.map_or_else(String::new, |bytes| format!(", bytes: {bytes}"));
    let [sample, drops, marks] = [sflow.sample, sflow.drops, sflow.marks].map(or_off);
    let (collectors, agent) = (collectors.join(", "), sflow.agent);
    format!(
        "collectors: [{collectors}], agent: {agent}, sample: {sample}, poll: {poll}, drops: {drops}, marks: \
         {marks}{bytes}"
    )
}

fn port_name(config: &Config, port: u8) -> &str {
    config.switch.ports.get(usize::from(port)).map_or("none", |port| port.name.as_str())
}

/// Names of the ports of a session; `None`: all that are no outputs.
fn ports<'a>(config: &'a Config, session: &MirrorSession) -> Option<Vec<&'a str>> {
    if session.ports | config.switch.mirror.outputs == PortSet::ALL {
        return None;
    }
    let ports = config.switch.ports.iter().enumerate().filter(|(index, _)| session.ports.contains(*index));
    Some(ports.map(|(_, port)| port.name.as_str()).collect())
}

fn numbers(session: &MirrorSession) -> String {
    session.classes.iter().map(|class| class.to_string()).collect::<Vec<_>>().join(", ")
}
