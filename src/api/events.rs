//! The last events of the switch, for clients that connect later.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::model::Event;

/// Number of events that are kept.
pub const KEPT: usize = 256;

/// The last [`KEPT`] events. Only the control thread uses it.
#[derive(Debug, Default)]
pub struct EventLog {
    events: Mutex<VecDeque<Event>>,
}

impl EventLog {
    /// Adds an event that was reported at `at` since the start of the switch.
    pub fn add(&self, at: Duration, text: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let number = events.back().map_or(0, |last| last.number + 1);
        if events.len() == KEPT {
            events.pop_front();
        }
        let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        events.push_back(Event { number, at_ns, text: text.to_owned() });
    }

    /// All kept events, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_log_keeps_newest_events_with_their_numbers() {
        let log = EventLog::default();
        for number in 0..KEPT + 3 {
            log.add(Duration::from_millis(number as u64), &format!("event {number}"));
        }
        let events = log.all();
        let (first, last) = (&events[0], &events[KEPT - 1]);
        assert_eq!((events.len(), first.number, first.text.as_str()), (KEPT, 3, "event 3"));
        assert_eq!((last.number, last.at_ns), (KEPT as u64 + 2, (KEPT as u64 + 2) * 1_000_000));
    }
}
