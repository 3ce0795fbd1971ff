//! Looks on while the switch runs: events as they happen, advices as they become true.

use std::sync::Arc;

use super::advice::{Adviser, advices};
use super::events::Events;
use super::snapshot::Snapshot;
use super::subject::Subject;

/// Remembers what was said about one switch.
#[derive(Debug)]
pub struct Onlooker {
    subject: Arc<Subject>,
    events: Events,
    adviser: Adviser,
}

impl Onlooker {
    /// One that has seen nothing of `subject` yet.
    #[must_use]
    pub fn new(subject: Arc<Subject>) -> Self {
        Self { subject, events: Events::default(), adviser: Adviser::default() }
    }

    /// Lines to tell now, without line ends. Advices begin with `warning: `, events with their time.
    #[must_use]
    pub fn look(&mut self, now: Snapshot) -> Vec<String> {
        let advices = self.adviser.fresh(advices(&self.subject, &now));
        let mut lines = self.events.next(&self.subject, now);
        lines.extend(advices.into_iter().map(|advice| format!("warning: {}", advice.text)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::quiet;
    use super::*;

    #[test]
    fn events_come_first_and_advices_once() {
        let subject = Arc::new(quiet());
        let mut onlooker = Onlooker::new(subject.clone());
        let mut look = |seconds| onlooker.look(Snapshot::take(&subject, Duration::from_secs(seconds)));
        assert_eq!(look(1), [""; 0]);
        subject.counters.ports[1].watchdog_storms[3].add(1);
        let lines = look(2);
        assert!(lines.len() == 2 && lines[0].starts_with("t=2.0s watchdog: p2"), "{lines:?}");
        assert!(lines[1].starts_with("warning: p2: the watchdog found a storm once"), "{lines:?}");
        assert_eq!(look(3), [""; 0]);
    }
}
