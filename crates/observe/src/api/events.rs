//! The last events of the switch, for clients that connect later.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::model::Event;
use crate::stats::Notice;

/// Number of events that are kept.
pub const KEPT: usize = 256;

/// Events that are kept of one subject: one that hosts cause cannot take the places of all others.
const KEPT_OF_SUBJECT: usize = 16;

/// Notices of requests that wait for the control thread at most. Further ones are not reported.
const MOST_REQUESTS: usize = 64;

/// The last events: at most [`KEPT`], and of each subject at most 16. The control thread adds them; servers read them.
#[derive(Debug, Default)]
pub struct EventLog {
    log: Mutex<Log>,
    /// Notices of requests, for the control thread.
    requests: Mutex<Vec<Notice>>,
}

#[derive(Debug, Default)]
struct Log {
    /// The kept events, the oldest first, each with its subject.
    events: Vec<(String, Event)>,
    /// Number of the next event.
    next: u64,
}

impl EventLog {
    /// Adds an event that was reported at `at` since the start of the switch. At the limit of its subject, the oldest
    /// event of the subject gives way. If the log is full, the oldest of the subject that has most gives way. Returns
    /// the event.
    pub fn add(&self, at: Duration, notice: &Notice) -> Event {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let subject = subject(&notice.text).to_owned();
        if log.count(&subject) >= KEPT_OF_SUBJECT {
            log.leave_out(&subject);
        } else if log.events.len() >= KEPT {
            let greatest = log.greatest();
            log.leave_out(&greatest);
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let event = Event::new(log.next, nanos(at), nanos(wall), notice);
        log.next += 1;
        log.events.push((subject, event.clone()));
        event
    }

    /// Has the control thread report `notice` of a request soon.
    pub fn report(&self, notice: Notice) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() < MOST_REQUESTS {
            requests.push(notice);
        }
    }

    /// Takes the notices of requests.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All kept events, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Event> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.events.iter().map(|(_, event)| event.clone()).collect()
    }
}

impl Log {
    fn count(&self, subject: &str) -> usize {
        self.events.iter().filter(|(other, _)| other == subject).count()
    }

    /// The subject that has most events; of several, the one with the oldest.
    fn greatest(&self) -> String {
        let mut counts: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for (subject, event) in &self.events {
            counts.entry(subject).or_insert((0, u64::MAX - event.number)).0 += 1;
        }
        let greatest = counts.into_iter().max_by_key(|(_, rank)| *rank);
        greatest.map_or_else(String::new, |(subject, _)| subject.to_owned())
    }

    /// Removes the oldest event of `subject`. The next one counts it.
    fn leave_out(&mut self, subject: &str) {
        let Some(place) = self.events.iter().position(|(other, _)| other == subject) else { return };
        let (_, event) = self.events.remove(place);
        if let Some((_, next)) = self.events[place..].iter_mut().find(|(other, _)| other == subject) {
            next.left_out += event.left_out + 1;
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The kind of an event and the port, group or session that it concerns: `link: p2` of `t=1.0s link: p2 is down`.
fn subject(text: &str) -> &str {
    let line = text.strip_prefix("t=").and_then(|text| text.split_once(' ')).map_or(text, |(_, line)| line);
    let Some((kind, rest)) = line.split_once(": ") else { return line };
    let place = rest.find([' ', ':']).unwrap_or(rest.len());
    &line[..kind.len() + 2 + place]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::NoticeKind;

    fn log(texts: impl IntoIterator<Item = String>) -> Vec<Event> {
        let log = EventLog::default();
        let notice = |text| Notice::new(NoticeKind::Advice, text);
        texts
            .into_iter()
            .enumerate()
            .for_each(|(ms, text)| drop(log.add(Duration::from_millis(ms as u64), &notice(text))));
        log.all()
    }

    #[test]
    fn event_has_kind_severity_place_and_wall_clock_in_one_line_of_json() {
        let log = EventLog::default();
        let notice = Notice::new(NoticeKind::WatchdogStorm, "watchdog: p2 class 3").at_port("p2").of_class(Some(3));
        let event = log.add(Duration::from_secs(5), &notice.and_more(2));
        assert!(event.at_unix_ns > 1_600_000_000_000_000_000, "{event:?}");
        let line = event.json().replace(&event.at_unix_ns.to_string(), "W");
        let expected = r#"{"number":0,"at_ns":5000000000,"at_unix_ns":W,"kind":"watchdog_storm","severity":"warning","#;
        let place = r#""port":"p2","class":3,"text":"watchdog: p2 class 3 (and 2 more)","more":2,"left_out":0}"#;
        assert_eq!(line, format!("{expected}{place}"));
        assert_eq!(log.all(), [event]);
    }

    #[test]
    fn event_log_keeps_newest_events_with_their_numbers() {
        let events = log((0..KEPT + 3).map(|number| format!("event: p{number} is here")));
        let (first, last) = (&events[0], &events[KEPT - 1]);
        assert_eq!((events.len(), first.number, first.text.as_str()), (KEPT, 3, "event: p3 is here"));
        assert_eq!((last.number, last.at_ns), (KEPT as u64 + 2, (KEPT as u64 + 2) * 1_000_000));
    }

    #[test]
    fn subject_is_kind_and_place() {
        let cases = [
            ("t=12.3s watchdog: p2 class 3 restored", "watchdog: p2"),
            ("t=12.3s port xoff: p1 has no buffer left", "port xoff: p1"),
            ("lldp: p1: p2: h1 has appeared", "lldp: p1"),
            ("warning: p1 class 3: too late", "warning: p1"),
            ("reloaded", "reloaded"),
        ];
        for (text, expected) in cases {
            assert_eq!(subject(text), expected);
        }
    }

    #[test]
    fn flood_of_neighbours_leaves_events_of_others_and_is_counted() {
        let link = (0..9).map(|second| format!("t={second}.0s link: p9 is down"));
        let flood = (0..4000).map(|number| format!("lldp: p{}: h{number} has appeared", number % 4));
        let events = log(link.chain(flood));
        assert_eq!(events.len(), 9 + 4 * KEPT_OF_SUBJECT);
        assert!(events[..9].iter().all(|event| event.text.contains("link: p9")));
        assert_eq!(events.iter().map(|event| event.left_out).sum::<u64>(), 4000 - 4 * KEPT_OF_SUBJECT as u64);
    }

    proptest! {
        /// With up to `hostile` subjects that flood, each other subject keeps its newest events: as many as an equal
        /// part of the log, or all.
        #[test]
        fn no_subject_pushes_out_the_newest_events_of_another(
            subjects in prop::collection::vec(0_usize..40, 1..1500), hostile in 1_usize..40,
        ) {
            let name = |subject: usize| format!("kind: p{subject} says");
            // Subjects from `hostile` on are quiet: a tenth of the events.
            let texts: Vec<usize> = subjects.iter().enumerate()
                .map(|(at, subject)| if at % 10 == 0 { *subject } else { subject % hostile }).collect();
            let events = log(texts.iter().map(|subject| name(*subject)));
            prop_assert!(events.len() <= KEPT);
            prop_assert!(events.is_sorted_by_key(|event| event.number));
            for subject in 0..40 {
                let all: Vec<u64> =
                    (0..texts.len()).filter(|at| texts[*at] == subject).map(|at| at as u64).collect();
                let kept: Vec<&Event> = events.iter().filter(|event| event.text == name(subject)).collect();
                let least = all.len().min(KEPT_OF_SUBJECT).min(KEPT / 40);
                prop_assert!(kept.len() >= least && kept.len() <= KEPT_OF_SUBJECT);
                prop_assert!(kept.iter().map(|event| event.number).eq(all[all.len() - kept.len()..].iter().copied()));
                let counted = kept.iter().map(|event| event.left_out + 1).sum::<u64>();
                prop_assert_eq!(counted, all.len() as u64);
            }
        }
    }
}
