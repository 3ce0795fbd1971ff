//! The log, newest first: pauses and drops as differences of two states, and events that the switch reported.
//!
//! A congested port sends XOFF and XON a hundred thousand times a second. So pauses that follow each other are one
//! entry: it grows while they continue, and stays unchanged after they end. Drops of one kind are joined in the same
//! way.

use std::collections::VecDeque;

use super::step::lost;
use crate::api::State;
use crate::api::model::{Event, PfcPriority};
use crate::stats::losses;
use crate::text::format::{grouped, percent, short, time};
use crate::units::Nanos;

/// Entries kept in the log.
const KEPT: usize = 400;

/// An episode ends if it has not recurred for this long, in nanoseconds.
const QUIET_NS: u64 = 2_000_000_000;

/// Severity of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A loss in a lossless class.
    Bad,
    /// Unusual, but not a loss.
    Odd,
    /// Normal operation.
    Plain,
}

/// The kind of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EpisodeKind {
    /// The port pauses its peer.
    Holds,
    /// The peer pauses the port.
    Held,
    /// Frames dropped for a reason, in a lossless or a lossy class.
    Drops { lossless: bool },
    /// Frames lost before admission.
    Missed,
}

/// Events of one kind at one place that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Episode {
    kind: EpisodeKind,
    port: String,
    /// Traffic class of dropped frames, or priority of a pause.
    class: Option<u8>,
    reason: String,
    /// Time of the last state in which the episode continued, in nanoseconds.
    last_ns: u64,
    /// Number of XOFF frames, or of lost or dropped frames.
    count: u64,
    /// Time paused, in nanoseconds. Zero for drops.
    held_ns: u64,
}

/// One entry of the log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Time at which the entry began, in nanoseconds since the start of the switch.
    pub at_ns: u64,
    /// Severity.
    pub weight: Weight,
    /// Whether the episode continues.
    pub live: bool,
    text: String,
    episode: Option<Episode>,
}

impl Entry {
    /// The text of the entry.
    pub fn text(&self) -> String {
        self.episode.as_ref().map_or_else(|| self.text.clone(), |episode| episode.text(self.at_ns))
    }
}

impl Episode {
    fn text(&self, began_ns: u64) -> String {
        let (port, lasted) = (&self.port, self.last_ns.saturating_sub(began_ns));
        let of = format!("{} of {}", grouped_time(self.held_ns), grouped_time(lasted));
        let share = percent(self.held_ns.min(lasted) / 1_000, (lasted / 1_000).max(1));
        let class = self.class.map_or("no class".to_owned(), |class| format!("class {class}"));
        match self.kind {
            EpisodeKind::Holds => {
                format!("{port} pauses its peer, {}: {} XOFF, {share}% ({of})", priority(self.class), short(self.count))
            }
            EpisodeKind::Held => {
                format!("{port} is paused, {}: {} XOFF, {share}% ({of})", priority(self.class), short(self.count))
            }
            EpisodeKind::Drops { lossless: true } => {
                format!("{port} LOST {} of lossless {class}: {}", grouped(self.count), self.reason)
            }
            EpisodeKind::Drops { lossless: false } => {
                format!("{port} dropped {} of {class}: {}", grouped(self.count), self.reason)
            }
            EpisodeKind::Missed => format!("{port} LOST {} in its receive ring", grouped(self.count)),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.port, self.class, &self.reason) == (other.kind, &other.port, other.class, &other.reason)
    }
}

fn priority(class: Option<u8>) -> String {
    format!("priority {}", class.unwrap_or(0))
}

fn grouped_time(ns: u64) -> String {
    time(Nanos(ns))
}

/// The log, newest entry first.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// Number of the first event that is not in the log yet.
    next_event: u64,
}

impl Log {
    /// All entries, newest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Adds an entry with the text `text` at time `at_ns`.
    pub fn say(&mut self, at_ns: u64, weight: Weight, text: impl Into<String>) {
        self.insert(Entry { at_ns, weight, live: false, text: text.into(), episode: None });
    }

    /// Empties the log: another switch runs now.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Adds the pauses and drops between two states, and the events that the switch reported.
    pub fn look(&mut self, before: Option<&State>, now: &State, events: &[Event]) {
        let next = self.next_event;
        for event in events.iter().filter(|event| event.number >= next) {
            // The log shows the time in its own column.
            let text = event.text.strip_prefix("t=").and_then(|text| text.split_once("s ")).map(|(_, text)| text);
            let text = text.unwrap_or(&event.text);
            match text.strip_prefix(losses::PREFIX) {
                None => self.say(event.at_ns, Weight::Odd, text),
                // Losses before the first state have only this event. Later losses have episodes that grow.
                Some(_) if before.is_none() => self.say(event.at_ns, Weight::Bad, text),
                Some(_) => {}
            }
        }
        self.next_event = events.iter().map(|event| event.number.saturating_add(1)).fold(next, u64::max);
        if let Some(before) = before {
            pauses(before, now).into_iter().chain(drops(before, now)).for_each(|episode| self.go_on(before, episode));
        }
        for entry in &mut self.entries {
            let is_over = |episode: &Episode| now.at_ns.saturating_sub(episode.last_ns) > QUIET_NS;
            entry.live = entry.live && !entry.episode.as_ref().is_none_or(is_over);
        }
    }

    /// Extends the live episode of the same kind and place, or begins a new one.
    fn go_on(&mut self, before: &State, episode: Episode) {
        let same = |entry: &&mut Entry| entry.live && entry.episode.as_ref().is_some_and(|old| old.is_same(&episode));
        if let Some(Entry { episode: Some(old), .. }) = self.entries.iter_mut().find(same) {
            old.last_ns = episode.last_ns;
            old.count = old.count.saturating_add(episode.count);
            old.held_ns = old.held_ns.saturating_add(episode.held_ns);
            return;
        }
        let weight = match episode.kind {
            EpisodeKind::Drops { lossless: true } | EpisodeKind::Missed => Weight::Bad,
            EpisodeKind::Drops { lossless: false } => Weight::Odd,
            EpisodeKind::Holds | EpisodeKind::Held => Weight::Plain,
        };
        let at_ns = before.at_ns;
        self.insert(Entry { at_ns, weight, live: true, text: String::new(), episode: Some(episode) });
    }

    fn insert(&mut self, entry: Entry) {
        let at = self.entries.partition_point(|other| other.at_ns > entry.at_ns);
        self.entries.insert(at, entry);
        if self.entries.len() > KEPT {
            // A live entry stays: its episode may still grow. The oldest ended entry is removed.
            let oldest = self.entries.iter().rposition(|entry| !entry.live).unwrap_or(KEPT);
            self.entries.remove(oldest);
        }
    }
}

/// Reads the number of XOFF frames and the time paused, in nanoseconds, of one direction.
type Side = fn(&PfcPriority) -> (u64, u64);

fn pauses(before: &State, now: &State) -> Vec<Episode> {
    let mut all = Vec::new();
    for pfc in &now.pfc {
        let Some(was) = before.pfc.iter().find(|was| was.port == pfc.port) else { continue };
        for (line, old) in pfc.priorities.iter().zip(&was.priorities) {
            let sides: [(EpisodeKind, Side); 2] = [
                (EpisodeKind::Holds, |line| (line.sent_xoff_frames, line.sent_paused_ns)),
                (EpisodeKind::Held, |line| (line.received_xoff_frames, line.received_paused_ns)),
            ];
            for (kind, of) in sides {
                let ((count_was, held_was), (count, held)) = (of(old), of(line));
                let (count, held_ns) = (count.saturating_sub(count_was), held.saturating_sub(held_was));
                if count > 0 || held_ns > 0 {
                    let (port, class) = (pfc.port.clone(), Some(line.priority));
                    all.push(Episode { kind, port, class, reason: String::new(), last_ns: now.at_ns, count, held_ns });
                }
            }
        }
    }
    all
}

fn drops(before: &State, now: &State) -> Vec<Episode> {
    let episode = |kind, port: &str, class, reason: &str, count| Episode {
        kind,
        port: port.to_owned(),
        class,
        reason: reason.to_owned(),
        last_ns: now.at_ns,
        count,
        held_ns: 0,
    };
    let mut all = Vec::new();
    for drop in &now.drops {
        let same = |was: &&crate::api::model::Dropped| {
            (&was.port, was.class, &was.reason, was.lossless) == (&drop.port, drop.class, &drop.reason, drop.lossless)
        };
        let count = drop.frames.saturating_sub(before.drops.iter().find(same).map_or(0, |was| was.frames));
        if count > 0 {
            all.push(episode(
                EpisodeKind::Drops { lossless: drop.lossless },
                &drop.port,
                drop.class,
                &drop.reason,
                count,
            ));
        }
    }
    for port in &now.ports {
        let missed = |port: &crate::api::model::Port| lost(port).saturating_sub(port.lossless_dropped_frames);
        let was = before.ports.iter().find(|was| was.port == port.port).map_or(0, missed);
        let count = missed(port).saturating_sub(was);
        if count > 0 {
            all.push(episode(EpisodeKind::Missed, &port.port, None, "", count));
        }
    }
    all
}
