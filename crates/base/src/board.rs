//! The meeting point of an agent's thread with others: they read its state and take its events.
//!
//! # Example
//!
//! ```
//! let board = holdfast_base::board::Board::<u32, &str>::default();
//! board.publish(7, vec!["began"]);
//! assert_eq!((*board.view(), board.take_events()), (7, (vec!["began"], 0)));
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events that wait to be taken. Further ones are dropped and counted.
const MOST_EVENTS: usize = 1024;

/// The latest state of an agent and its events. A reader copies them and never waits for the agent.
#[derive(Debug)]
pub struct Board<View, Event>(Mutex<Inner<View, Event>>);

#[derive(Debug)]
struct Inner<View, Event> {
    view: Arc<View>,
    events: Vec<Event>,
    dropped_events: u64,
}

impl<View: Default, Event> Default for Board<View, Event> {
    fn default() -> Self {
        Self(Mutex::new(Inner { view: Arc::default(), events: Vec::new(), dropped_events: 0 }))
    }
}

impl<View, Event> Board<View, Event> {
    fn lock(&self) -> MutexGuard<'_, Inner<View, Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the state of the agent and its events.
    pub fn publish(&self, view: View, events: Vec<Event>) {
        let mut inner = self.lock();
        inner.view = Arc::new(view);
        let room = MOST_EVENTS - inner.events.len().min(MOST_EVENTS);
        inner.dropped_events += events.len().saturating_sub(room) as u64;
        inner.events.extend(events.into_iter().take(room));
    }

    /// The latest state; the default one before the first.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.lock().view.clone()
    }

    /// Takes the events, oldest first, and the number of those that were dropped.
    #[must_use]
    pub fn take_events(&self) -> (Vec<Event>, u64) {
        let mut inner = self.lock();
        (std::mem::take(&mut inner.events), std::mem::take(&mut inner.dropped_events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_bounded_and_taken_once() {
        let board = Board::<(), u8>::default();
        for _ in 0..3 {
            board.publish((), vec![7; MOST_EVENTS / 2]);
        }
        let (events, dropped) = board.take_events();
        assert_eq!((events.len(), dropped), (MOST_EVENTS, MOST_EVENTS as u64 / 2));
        assert_eq!(board.take_events(), (Vec::new(), 0));
    }
}
