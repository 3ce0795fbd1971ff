//! The last events of the switch, for clients that connect later.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::model::Event;

/// Number of events that are kept.
pub const KEPT: usize = 256;

/// Events that are kept of one subject: one that hosts cause cannot take the places of all others.
const KEPT_OF_SUBJECT: usize = 16;

/// The last events: at most [`KEPT`], and of each subject at most 16. Only the control thread uses it.
#[derive(Debug, Default)]
pub struct EventLog {
    log: Mutex<Log>,
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
    /// event of the subject gives way. If the log is full, the oldest of the subject that has most gives way.
    pub fn add(&self, at: Duration, text: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let subject = subject(text).to_owned();
        if log.count(&subject) >= KEPT_OF_SUBJECT {
            log.leave_out(&subject);
        } else if log.events.len() >= KEPT {
            let greatest = log.greatest();
            log.leave_out(&greatest);
        }
        let (number, at_ns) = (log.next, u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        log.next += 1;
        log.events.push((subject, Event { number, at_ns, text: text.to_owned(), left_out: 0 }));
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

    fn log(texts: impl IntoIterator<Item = String>) -> Vec<Event> {
        let log = EventLog::default();
        texts.into_iter().enumerate().for_each(|(ms, text)| log.add(Duration::from_millis(ms as u64), &text));
        log.all()
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
