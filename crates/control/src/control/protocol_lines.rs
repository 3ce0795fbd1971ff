//! Lines about events of LLDP, LACP and mirrors: of each subject at most one a second.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::stats::{Notice, NoticeKind};

/// Least time between two lines of a subject.
const QUIET: Duration = Duration::from_secs(1);
/// Most lines at a time.
const MOST_LINES: usize = 32;

/// The events of one subject that are not yet reported.
#[derive(Debug, Default)]
struct Waiting {
    /// Time of the last line.
    reported: Option<Duration>,
    /// The last event since then, and the number of events.
    last: Option<Notice>,
    count: u64,
    /// Number of the last event, for the order of the lines.
    number: u64,
}

/// The port, group or session of an event, its name, and the part that it concerns.
type Subject = (String, (&'static str, Option<&'static str>));

/// An event of a protocol.
#[derive(Debug, Clone)]
pub(super) struct ProtocolEvent {
    /// Its subject.
    pub subject: Subject,
    /// Its kind.
    pub kind: NoticeKind,
    /// The port that it concerns, if it is about one.
    pub port: Option<String>,
    /// The event as a sentence that follows the name of its port, group or session.
    pub text: String,
}

/// The events of a protocol that wait. A peer may cause events at any rate; their subjects are few.
#[derive(Debug)]
pub(super) struct ProtocolLines {
    protocol: &'static str,
    waiting: BTreeMap<Subject, Waiting>,
    events: u64,
}

/// The lines of all protocols.
#[derive(Debug)]
pub(super) struct Protocols {
    pub lldp: ProtocolLines,
    pub lacp: ProtocolLines,
    pub mirror: ProtocolLines,
}

impl Default for Protocols {
    fn default() -> Self {
        let [lldp, lacp, mirror] = ["lldp", "lacp", "mirror"].map(ProtocolLines::new);
        Self { lldp, lacp, mirror }
    }
}

impl ProtocolLines {
    fn new(protocol: &'static str) -> Self {
        Self { protocol, waiting: BTreeMap::new(), events: 0 }
    }

    /// Notices about `events` and earlier ones, without time. `dropped` counts events that were lost.
    pub fn next(&mut self, events: impl Iterator<Item = ProtocolEvent>, dropped: u64, now: Duration) -> Vec<Notice> {
        for event in events {
            self.events += 1;
            let text = format!("{}: {}: {}", self.protocol, event.subject.0, event.text);
            let waiting = self.waiting.entry(event.subject).or_default();
            (waiting.count, waiting.number) = (waiting.count + 1, self.events);
            waiting.last = Some(Notice { port: event.port, ..Notice::new(event.kind, text) });
        }
        let is_due = |waiting: &Waiting| waiting.reported.is_none_or(|reported| now >= reported + QUIET);
        let due = self.waiting.iter_mut().filter(|(_, waiting)| waiting.count > 0 && is_due(waiting));
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(_, waiting)| waiting.number);
        let mut notices = Vec::new();
        for (_, waiting) in due.into_iter().take(MOST_LINES) {
            waiting.reported = Some(now);
            let more = std::mem::take(&mut waiting.count) - 1;
            notices.extend(waiting.last.take().map(|notice| notice.and_more(more)));
        }
        if dropped > 0 {
            let text = format!("{}: {dropped} events were not reported because too many came at once", self.protocol);
            notices.push(Notice::new(NoticeKind::EventsLost, text));
        }
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(port: &str, text: &str) -> ProtocolEvent {
        let (kind, subject) = (NoticeKind::LldpChanged, (port.to_owned(), ("changed", None)));
        ProtocolEvent { subject, kind, port: Some(port.to_owned()), text: text.to_owned() }
    }

    fn look(lines: &mut ProtocolLines, events: Vec<ProtocolEvent>, ms: u64) -> Vec<String> {
        let notices = lines.next(events.into_iter(), 0, Duration::from_millis(ms));
        notices.into_iter().map(|notice| notice.text).collect()
    }

    #[test]
    fn flood_of_one_port_makes_a_line_a_second_and_hides_no_other_port() {
        let mut lines = ProtocolLines::new("lldp");
        let flood = vec![event("p1", "h1 has changed"); 500];
        assert_eq!(look(&mut lines, flood.clone(), 0), ["lldp: p1: h1 has changed (and 499 more)"]);
        let second = look(&mut lines, [flood, vec![event("p2", "h1 has appeared")]].concat(), 100);
        assert_eq!(second, ["lldp: p2: h1 has appeared"]);
        assert_eq!(look(&mut lines, Vec::new(), 999), [""; 0]);
        assert_eq!(look(&mut lines, Vec::new(), 1000), ["lldp: p1: h1 has changed (and 499 more)"]);
    }

    #[test]
    fn lost_protocol_events_are_counted_in_a_line() {
        let notices = ProtocolLines::new("lacp").next(std::iter::empty(), 3, Duration::ZERO);
        let text = "lacp: 3 events were not reported because too many came at once";
        assert_eq!(notices, [Notice::new(NoticeKind::EventsLost, text)]);
    }
}
