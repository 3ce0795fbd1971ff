//! The LLDP agent of the switch: a state machine of each port (802.1AB clause 9.2), for the nearest bridge.
//!
//! It has no clock, input or output. Its caller passes frames, links, settings and the time, which never decreases, and
//! takes frames and events.

mod loops;
mod neighbours;
mod port;
mod transmit;

#[cfg(test)]
mod tests;

use self::loops::{Loops, OwnNumbers};
pub(super) use self::neighbours::Neighbour;
use self::port::PortAgent;
use super::compare::{Difference, DifferenceKind};
use super::local::Stated;
use super::remedy::Remedy;
use super::view::{AgentView, PortView};
use crate::units::Nanos;
use crate::wire::lldp::Lldpdu;

/// Neighbours that a port remembers.
pub const MOST_NEIGHBOURS: usize = 8;
/// Frames and events that wait for the caller. Further ones are dropped and counted.
const MOST_OUTPUT: usize = 1024;

/// One second, the unit of LLDP.
const SECOND: Nanos = Nanos(1_000_000_000);

/// Times of the protocol. The defaults are those of 802.1AB table 9-2, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Seconds between two frames (msgTxInterval, clause 9.2.5.7).
    pub interval: u16,
    /// Intervals for which a frame holds (msgTxHold, clause 9.2.5.6).
    pub hold: u16,
    /// Seconds between two frames for a new neighbour (msgFastTx, clause 9.2.5.5).
    pub fast_interval: u16,
    /// Frames for a new neighbour (txFastInit, clause 9.2.5.19).
    pub fast_frames: u8,
    /// Frames that may leave at once; one more may each second (txCreditMax, clause 9.2.5.17).
    pub most_credit: u8,
    /// Seconds between the end of LLDP on a port and its next begin (reinitDelay, clause 9.2.5.10).
    pub restart_delay: u16,
    /// Seconds between a change of the settings and the frame that tells it, so that several changes share a frame.
    pub change_delay: u16,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            interval: 30,
            hold: 4,
            fast_interval: 1,
            fast_frames: 4,
            most_credit: 5,
            restart_delay: 2,
            change_delay: 1,
        }
    }
}

impl Timing {
    /// Seconds for which a sent frame holds (txTTL, clause 9.2.5.22): one more than the intervals.
    #[must_use]
    pub fn ttl(&self) -> u16 {
        self.interval.saturating_mul(self.hold).saturating_add(1)
    }
}

/// Adds seconds to an instant.
fn after(now: Nanos, seconds: u16) -> Nanos {
    Nanos(now.0.saturating_add(u64::from(seconds) * SECOND.0))
}

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Index of the port.
    pub port: usize,
    /// The frame, untagged, without the frame check sequence.
    pub frame: Vec<u8>,
}

/// An event at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Index of the port.
    pub port: usize,
    /// Instant.
    pub at: Nanos,
    /// The neighbour by name, chassis and port, safe to show.
    pub neighbour: String,
    /// The event.
    pub kind: EventKind,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A neighbour has appeared.
    New,
    /// A neighbour has changed its statements.
    Changed,
    /// The information of a neighbour has expired.
    AgedOut,
    /// A neighbour has said that it stops.
    ShutDown,
    /// A neighbour was forgotten because the link came up again, or because LLDP was turned off on the port.
    Removed,
    /// Neighbours are ignored because the port has [`MOST_NEIGHBOURS`] already; once for each such time.
    TooMany,
    /// A statement of a neighbour differs from the settings of the port; with the command that mends it.
    Differs(Difference, Remedy),
    /// A statement of a neighbour differs no more.
    Agrees(DifferenceKind),
    /// LLDP or probes of the own port that stands for the neighbour come back here.
    Loop {
        /// The port that is blocked for it; `None`: both forward.
        blocked: Option<String>,
    },
    /// They come back no more.
    LoopEnded {
        /// The port whose block has ended, if no other loop keeps it blocked.
        released: Option<String>,
    },
}

impl EventKind {
    /// The name in the log of events.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::New => "lldp_new",
            Self::Changed => "lldp_changed",
            Self::AgedOut => "lldp_aged_out",
            Self::ShutDown => "lldp_shut_down",
            Self::Removed => "lldp_removed",
            Self::TooMany => "lldp_too_many",
            Self::Differs(..) => "lldp_differs",
            Self::Agrees(_) => "lldp_agrees",
            Self::Loop { .. } => "lldp_loop",
            Self::LoopEnded { .. } => "lldp_loop_ended",
        }
    }

    /// The name, with that of the difference if the event is about one.
    #[must_use]
    pub fn subject(&self) -> (&'static str, Option<&'static str>) {
        let difference = match self {
            Self::Differs(difference, _) => Some(difference.name()),
            Self::Agrees(kind) => Some(kind.name()),
            _ => None,
        };
        (self.name(), difference)
    }
}

impl Event {
    /// The event in plain English, without its port.
    #[must_use]
    pub fn text(&self) -> String {
        let neighbour = &self.neighbour;
        match &self.kind {
            EventKind::New => format!("neighbour {neighbour} has appeared"),
            EventKind::Changed => format!("neighbour {neighbour} has changed its statements"),
            EventKind::AgedOut => format!("neighbour {neighbour} is silent; its statements have expired"),
            EventKind::ShutDown => format!("neighbour {neighbour} has ended LLDP"),
            EventKind::Removed => format!("neighbour {neighbour} is forgotten"),
            EventKind::TooMany => format!("neighbour {neighbour} is ignored: the port has {MOST_NEIGHBOURS} already"),
            EventKind::Differs(difference, remedy) => {
                let mellanox = remedy.mellanox.iter().map(|command| format!(", or {command}")).collect::<String>();
                let sentence = difference.sentence();
                format!("neighbour {neighbour} differs: {sentence}; run there: {}{mellanox}", remedy.command)
            }
            EventKind::Agrees(kind) => format!("neighbour {neighbour} agrees again on {}", kind.name()),
            EventKind::Loop { blocked: Some(port) } => {
                format!(
                    "a loop: frames of the own port {neighbour} come back here; {port} is blocked, remove the cable or \
                     the loop behind it"
                )
            }
            EventKind::Loop { blocked: None } => {
                format!("frames of the own port {neighbour} come back here; no port is blocked")
            }
            EventKind::LoopEnded { released: Some(port) } => {
                format!("frames of the own port {neighbour} come back no more; {port} is not blocked any more")
            }
            EventKind::LoopEnded { released: None } => format!("frames of the own port {neighbour} come back no more"),
        }
    }
}

/// A neighbour as events name it.
fn neighbour_name(pdu: &Lldpdu) -> String {
    match &pdu.system_name {
        Some(name) if !name.as_str().is_empty() => format!("{name} ({} {})", pdu.chassis, pdu.port),
        _ => format!("{} {}", pdu.chassis, pdu.port),
    }
}

/// Statistics of a port (802.1AB clause 9.2.6 and, for neighbours, 11.5.1).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LldpCounts {
    /// Frames sent (statsFramesOutTotal).
    pub frames_out: u64,
    /// Frames received (statsFramesInTotal).
    pub frames_in: u64,
    /// Received frames whose data unit was discarded (statsFramesDiscardedTotal).
    pub frames_discarded: u64,
    /// Received frames with an error (statsFramesInErrorsTotal).
    pub frames_in_errors: u64,
    /// TLVs discarded for an error (statsTLVsDiscardedTotal).
    pub tlvs_discarded: u64,
    /// TLVs of unknown types (statsTLVsUnrecognizedTotal).
    pub tlvs_unrecognized: u64,
    /// Neighbours whose information has expired (statsAgeoutsTotal).
    pub ageouts: u64,
    /// TLVs omitted from sent frames for lack of room (lldpduLengthErrors).
    pub length_errors: u64,
    /// Neighbours added.
    pub inserts: u64,
    /// Neighbours removed, expired ones included.
    pub deletes: u64,
    /// Data units of neighbours for which there was no room.
    pub drops: u64,
}

/// The output of the agent.
#[derive(Debug, Default)]
struct Output {
    frames: Vec<Outgoing>,
    events: Vec<Event>,
    /// Frames and events that found no room.
    dropped: u64,
}

impl Output {
    /// Returns whether there was room.
    fn send(&mut self, port: usize, frame: Vec<u8>) -> bool {
        let has_room = self.frames.len() < MOST_OUTPUT;
        if has_room {
            self.frames.push(Outgoing { port, frame });
        }
        self.dropped += u64::from(!has_room);
        has_room
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() < MOST_OUTPUT {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }
}

/// The agents of all ports.
#[derive(Debug)]
pub struct Agent {
    ports: Vec<PortAgent>,
    own: OwnNumbers,
    loops: Loops,
    timing: Timing,
    output: Output,
}

impl Agent {
    /// Creates the agent of a switch with these statements by port index; `None`: the port has no LLDP. All links are
    /// down.
    #[must_use]
    pub fn new(ports: Vec<Option<Stated>>, timing: Timing) -> Self {
        let own = OwnNumbers::of(&ports);
        let ports = ports.into_iter().enumerate().map(|(index, stated)| PortAgent::new(index, stated)).collect();
        Self { ports, own, loops: Loops::default(), timing, output: Output::default() }
    }

    /// Replaces the statements, by port index. A port that loses its statement stops; one that gets one begins.
    pub fn configure(&mut self, stated: Vec<Option<Stated>>, now: Nanos) {
        self.own = OwnNumbers::of(&stated);
        for (index, (port, stated)) in self.ports.iter_mut().zip(stated).enumerate() {
            if stated.is_none() {
                self.loops.forget(index);
            }
            port.configure(stated, now, &self.timing, &mut self.output);
        }
    }

    /// Replaces the times of the protocol. Data units under way keep theirs.
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// Tells the agent the link of a port.
    pub fn link(&mut self, port: usize, is_up: bool, now: Nanos) {
        self.loops.forget(port);
        if let Some(port) = self.ports.get_mut(port) {
            port.link(is_up, now, &self.timing, &mut self.output);
        }
    }

    /// Takes a frame that a port has received, whatever its bytes. Frames that are no LLDP are ignored.
    pub fn received(&mut self, port: usize, frame: &[u8], now: Nanos) {
        let Some(at) = self.ports.get_mut(port) else { return };
        if let Some(from) = at.received(frame, &self.own, now, &self.timing, &mut self.output) {
            self.loops.note(port, from, after(now, self.timing.ttl()));
        }
    }

    /// The receiving and the sending port of each loop: own data units came back within their life.
    pub fn loops(&self) -> impl Iterator<Item = (usize, usize)> {
        self.loops.all()
    }

    /// Acts on the time: sends frames and forgets neighbours. Call it at [`Agent::due`] or once a second.
    pub fn tick(&mut self, now: Nanos) {
        self.loops.expire(now);
        for port in &mut self.ports {
            port.tick(now, &self.timing, &mut self.output);
        }
    }

    /// The next instant at which [`Agent::tick`] has work; `None`: not before another call.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        self.ports.iter().filter_map(PortAgent::due).min()
    }

    /// Ends LLDP on all ports. Peers are told by data units of TTL 0, which the caller must still send.
    pub fn stop(&mut self, now: Nanos) {
        for port in &mut self.ports {
            port.configure(None, now, &self.timing, &mut self.output);
        }
    }

    /// Takes the frames to send.
    #[must_use]
    pub fn take_frames(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.output.frames)
    }

    /// Takes the events, oldest first.
    #[must_use]
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.output.events)
    }

    /// The state for observers.
    #[must_use]
    pub fn view(&self, now: Nanos) -> AgentView {
        let mut ports: Vec<PortView> = self.ports.iter().map(|port| port.view(now)).collect();
        for (port, from) in self.loops() {
            ports[port].loop_with = Some(from);
        }
        AgentView { ports, output_dropped: self.output.dropped }
    }
}
