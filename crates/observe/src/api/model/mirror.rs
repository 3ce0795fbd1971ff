//! Mirrors and sFlow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::config::mirror_words;
use crate::mirror::{Destination, FileConfig, MirrorView, SflowConfig, Target};
use crate::plan::mirror::{CopyCause, MirrorSession, ReasonSet};
use crate::sets::{ClassSet, PortSet};

/// Sessions that copy frames, the events that they copy, and the agent of sFlow.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mirrors {
    /// Mirrors, and behind them those of sFlow.
    pub sessions: Vec<Session>,
    /// Frames by event, over all sessions; empty without sessions.
    pub events: Vec<CopiedEvent>,
    /// Ports that send copies.
    pub outputs: Vec<MirrorOutput>,
    /// The agent of sFlow.
    pub sflow: Option<Sflow>,
    /// Copies discarded, made for the sessions before a reload.
    pub stale_copies: u64,
}

/// A session.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// `dropped`, `marked` or `sampled`.
    pub events: Vec<String>,
    /// One of so many received frames is copied.
    pub one_in: Option<u32>,
    /// Drop reasons; null: all.
    pub reasons: Option<Vec<String>>,
    /// Receiving ports; null: all.
    pub ports: Option<Vec<String>>,
    /// Traffic classes; null: all, and frames without a class.
    pub classes: Option<Vec<u8>>,
    /// Bytes of a frame that are copied.
    pub frame_bytes: u16,
    /// Most copies by each lcore, of each event and traffic class.
    pub copies_per_second: u32,
    /// `port mon`, a path, or `sflow`.
    pub destination: String,
    /// Copies that the destination took.
    pub copies: u64,
    /// Bytes of these copies.
    pub written_bytes: u64,
    /// Copies that the destination refused.
    pub lost_copies: u64,
    /// Last error with its remedy; null: there is none, or it is over. For sFlow see `sflow.error`.
    pub error: Option<String>,
}

/// A port that sends copies.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MirrorOutput {
    /// Its name.
    pub port: String,
    /// Frames that its queues refused or discarded.
    pub dropped_frames: u64,
}

/// Frames that met an event.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopiedEvent {
    /// `dropped`, `marked` or `sampled`.
    pub event: String,
    /// Copies given to the exporters; one serves all sessions that want it.
    pub copied_frames: u64,
    /// Frames not copied for a session: beyond its rate, or the bytes of a poll.
    pub policed_frames: u64,
    /// Frames not copied, since every buffer was in use.
    pub no_buffer_frames: u64,
}

/// The agent of sFlow.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sflow {
    /// Address and port of each.
    pub collectors: Vec<String>,
    /// Address of the switch for collectors.
    pub agent: String,
    /// Interval of counters; null: none.
    pub poll_ns: Option<u64>,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// Collectors whose last datagram was not sent, each with its remedy; null: none.
    pub error: Option<String>,
}

impl Mirrors {
    /// The sessions of the switch and their counters.
    pub(in crate::api) fn of(look: &Look<'_>) -> Self {
        let switch_view = look.switch_view;
        let config = &switch_view.mirror_config;
        let view = switch_view.mirror.as_ref().map(|board| board.view()).unwrap_or_default();
        let sessions = switch_view.spec.mirror.sessions.iter().zip(&config.targets);
        Self {
            sessions: sessions.map(|(session, target)| Session::of(look, session, target, &view)).collect(),
            events: if config.targets.is_empty() { Vec::new() } else { CopiedEvent::all(look) },
            outputs: switch_view.spec.mirror.outputs.iter().map(|port| MirrorOutput::of(look, port)).collect(),
            sflow: config.sflow.as_ref().map(|sflow| Sflow::of(sflow, &view)),
            stale_copies: view.stale,
        }
    }
}

impl Session {
    fn of(look: &Look<'_>, session: &MirrorSession, target: &Target, view: &MirrorView) -> Self {
        let spec = &look.switch_view.spec;
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
        let is_of_some_ports = session.ports | spec.mirror.outputs != PortSet::ALL;
        let ports = (0..spec.ports.len()).filter(|&port| session.ports.contains(port));
        let ports = ports.map(|port| look.switch_view.port_name(port).to_owned());
        let classes = session.classes.iter().map(|class| class as u8);
        let state = view.session(&target.name).cloned().unwrap_or_default();
        Self {
            name: target.name.clone(),
            events: owned(mirror_words::events(session)),
            one_in: (session.sample > 0).then_some(session.sample),
            reasons: (session.reasons != ReasonSet::ALL).then(|| owned(mirror_words::reasons(session))),
            ports: is_of_some_ports.then(|| ports.collect()),
            classes: (session.classes != ClassSet::ALL).then(|| classes.collect()),
            frame_bytes: session.bytes,
            copies_per_second: session.rate,
            destination: destination(look, &target.to),
            copies: state.copies,
            written_bytes: state.bytes,
            lost_copies: state.lost,
            error: state.error,
        }
    }
}

/// A destination in words.
fn destination(look: &Look<'_>, to: &Destination) -> String {
    match to {
        Destination::Port { port, .. } => format!("port {}", look.switch_view.port_name(usize::from(*port))),
        Destination::File(FileConfig { path, .. }) => path.display().to_string(),
        Destination::Sflow => "sflow".to_owned(),
    }
}

impl MirrorOutput {
    fn of(look: &Look<'_>, port: usize) -> Self {
        Self {
            port: look.switch_view.port_name(port).to_owned(),
            dropped_frames: look.switch_view.copies_dropped_at(port),
        }
    }
}

impl CopiedEvent {
    fn all(look: &Look<'_>) -> Vec<Self> {
        let lcores = &look.switch_view.counters.lcores;
        let event = |(kind, event): (usize, &str)| Self {
            event: event.to_owned(),
            copied_frames: lcores.iter().map(|lcore| lcore.copies[kind].get()).sum(),
            policed_frames: lcores.iter().map(|lcore| lcore.copies_policed[kind].get()).sum(),
            no_buffer_frames: lcores.iter().map(|lcore| lcore.copies_full[kind].get()).sum(),
        };
        CopyCause::LABELS.into_iter().enumerate().map(event).collect()
    }
}

impl Sflow {
    fn of(config: &SflowConfig, view: &MirrorView) -> Self {
        let state = view.sflow.clone().unwrap_or_default();
        Self {
            collectors: config.collectors.iter().map(ToString::to_string).collect(),
            agent: config.agent.to_string(),
            poll_ns: (config.poll.0 > 0).then_some(config.poll.0),
            datagrams: state.sent(),
            send_errors: state.send_errors,
            error: state.error(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stats::{Snapshot, SwitchView, fixture};

    fn mirrors(switch_view: &SwitchView) -> Mirrors {
        let snapshot = Snapshot::take(switch_view, Duration::ZERO);
        Mirrors::of(&Look { switch_view, snapshot: &snapshot })
    }

    #[test]
    fn sessions_have_filters_and_the_counts_of_their_names() {
        let mirrors = mirrors(&fixture::mirroring());
        let [losses, samples] = &mirrors.sessions[..] else { panic!("two sessions") };
        assert_eq!(
            (losses.name.as_str(), &losses.events[..], losses.one_in),
            ("losses", &["dropped".to_owned()][..], None)
        );
        assert_eq!(losses.reasons.as_deref(), Some(&["threshold".to_owned()][..]));
        assert_eq!(losses.ports.as_deref(), Some(&["p1".to_owned()][..]));
        assert_eq!((losses.classes.as_deref(), losses.destination.as_str()), (Some(&[3][..]), "/d"));
        assert_eq!((losses.copies, losses.written_bytes, losses.lost_copies), (5, 640, 4));
        assert!(losses.error.is_some());
        assert_eq!((samples.one_in, &samples.ports, &samples.classes), (Some(10_000), &None, &None));
        assert_eq!((samples.copies, samples.destination.as_str()), (0, "sflow"));
        let events: Vec<(&str, u64, u64, u64)> = mirrors
            .events
            .iter()
            .map(|of| (of.event.as_str(), of.copied_frames, of.policed_frames, of.no_buffer_frames))
            .collect();
        assert_eq!(events, [("dropped", 9, 0, 2), ("marked", 0, 0, 0), ("sampled", 0, 4, 0)]);
        let outputs: Vec<_> = mirrors.outputs.iter().map(|of| (of.port.as_str(), of.dropped_frames)).collect();
        assert_eq!(outputs, [("p2", 6)], "without the frames that it received");
        let sflow = mirrors.sflow.expect("an agent");
        assert_eq!(mirrors.stale_copies, 3);
        assert_eq!((sflow.poll_ns, sflow.datagrams, sflow.send_errors), (Some(20_000_000_000), 7, 1));
    }

    #[test]
    fn switch_without_mirrors_has_none() {
        assert_eq!(mirrors(&fixture::quiet()), Mirrors::default());
    }
}
