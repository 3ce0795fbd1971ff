//! Lines about the neighbours of ports, from the events of LLDP: of each subject at most one a second for each port.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lldp::Event;

/// Least time between two lines of a subject at a port.
const QUIET: Duration = Duration::from_secs(1);
/// Most lines at a time.
const MOST_LINES: usize = 32;

/// The events of one subject at one port that are not yet reported.
#[derive(Debug, Default)]
struct Waiting {
    /// Time of the last line.
    reported: Option<Duration>,
    /// The last event since then, and the number of events.
    last: String,
    count: u64,
    /// Number of the last event, for the order of the lines.
    number: u64,
}

/// The name of an event, and that of its difference.
type Subject = (&'static str, Option<&'static str>);

/// The events that wait. A peer may cause events at any rate.
#[derive(Debug, Default)]
pub(super) struct NeighbourLines {
    waiting: BTreeMap<(usize, Subject), Waiting>,
    events: u64,
}

impl NeighbourLines {
    /// Lines about `events` and earlier ones, without time. `dropped` counts events that were lost; `name` is the name
    /// of a port.
    pub fn next(
        &mut self,
        (events, dropped): (Vec<Event>, u64),
        name: impl Fn(usize) -> String,
        now: Duration,
    ) -> Vec<String> {
        for event in events {
            self.events += 1;
            let waiting = self.waiting.entry((event.port, event.kind.subject())).or_default();
            (waiting.count, waiting.number) = (waiting.count + 1, self.events);
            waiting.last = event.text();
        }
        let is_due = |waiting: &Waiting| waiting.reported.is_none_or(|reported| now >= reported + QUIET);
        let due = self.waiting.iter_mut().filter(|(_, waiting)| waiting.count > 0 && is_due(waiting));
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(_, waiting)| waiting.number);
        let mut lines = Vec::new();
        for ((port, _), waiting) in due.into_iter().take(MOST_LINES) {
            let more = match std::mem::take(&mut waiting.count) - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            waiting.reported = Some(now);
            lines.push(format!("lldp: {}: {}{more}", name(*port), waiting.last));
        }
        if dropped > 0 {
            lines.push(format!("lldp: {dropped} events were not reported because too many came at once"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lldp::EventKind;
    use crate::units::Nanos;

    fn event(port: usize, kind: EventKind) -> Event {
        Event { port, at: Nanos(0), neighbour: "h1".to_owned(), kind }
    }

    fn look(lines: &mut NeighbourLines, events: Vec<Event>, ms: u64) -> Vec<String> {
        lines.next((events, 0), |port| format!("p{}", port + 1), Duration::from_millis(ms))
    }

    #[test]
    fn flood_of_one_port_makes_a_line_a_second_and_hides_no_other_port() {
        let mut lines = NeighbourLines::default();
        let flood = vec![event(0, EventKind::Changed); 500];
        let first = look(&mut lines, flood.clone(), 0);
        assert_eq!(first, ["lldp: p1: neighbour h1 has changed its statements (and 499 more)"]);
        let second = look(&mut lines, [flood, vec![event(1, EventKind::New)]].concat(), 100);
        assert_eq!(second, ["lldp: p2: neighbour h1 has appeared"]);
        assert_eq!(look(&mut lines, Vec::new(), 999), [""; 0]);
        assert_eq!(
            look(&mut lines, Vec::new(), 1000),
            ["lldp: p1: neighbour h1 has changed its statements (and 499 more)"]
        );
    }

    #[test]
    fn lost_events_are_told() {
        let lines = NeighbourLines::default().next((Vec::new(), 3), |_| String::new(), Duration::ZERO);
        assert_eq!(lines, ["lldp: 3 events were not reported because too many came at once"]);
    }
}
