//! The meeting point of the agent's thread with others: they read its state and take its events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::agent::Event;
use super::view::AgentView;

/// Events that wait to be taken. Further ones are dropped and counted.
const MOST_EVENTS: usize = 1024;

/// The latest state of the agent and its events. A reader copies them and never waits for the agent.
#[derive(Debug, Default)]
pub struct Board(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    view: Arc<AgentView>,
    events: Vec<Event>,
    dropped_events: u64,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the state of the agent and its events.
    pub fn publish(&self, view: AgentView, events: Vec<Event>) {
        let mut inner = self.lock();
        inner.view = Arc::new(view);
        let room = MOST_EVENTS - inner.events.len().min(MOST_EVENTS);
        inner.dropped_events += events.len().saturating_sub(room) as u64;
        inner.events.extend(events.into_iter().take(room));
    }

    /// The latest state; without groups before the first.
    #[must_use]
    pub fn view(&self) -> Arc<AgentView> {
        self.lock().view.clone()
    }

    /// Takes the events, oldest first, and the number of those that were dropped.
    #[must_use]
    pub fn take_events(&self) -> (Vec<Event>, u64) {
        let mut inner = self.lock();
        (std::mem::take(&mut inner.events), std::mem::take(&mut inner.dropped_events))
    }
}
