//! The meeting point of the agent's thread with others: they read its state, take its events and give it settings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::agent::{Event, Timing};
use super::local::Stated;
use super::view::AgentView;

/// Events that wait to be taken. Further ones are dropped and counted.
const MOST_EVENTS: usize = 1024;

/// The settings of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Statements by port index; `None`: the port has no LLDP.
    pub stated: Vec<Option<Stated>>,
    /// Times of the protocol.
    pub timing: Timing,
    /// Whether a port of each loop is blocked.
    pub blocks_loops: bool,
}

/// The latest state of the agent, its events and new settings. A reader copies them and never waits for the agent.
#[derive(Debug, Default)]
pub struct Board(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    view: Arc<AgentView>,
    events: Vec<Event>,
    dropped_events: u64,
    settings: Option<Settings>,
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

    /// The latest state; without ports before the first.
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

    /// Gives the agent new settings. Its thread takes them at its next look.
    pub fn configure(&self, settings: Settings) {
        self.lock().settings = Some(settings);
    }

    /// Takes new settings, if there are any.
    #[must_use]
    pub fn take_settings(&self) -> Option<Settings> {
        self.lock().settings.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lldp::EventKind;
    use crate::units::Nanos;

    #[test]
    fn events_are_bounded_and_taken_once() {
        let board = Board::default();
        let event = Event { port: 0, at: Nanos(1), neighbour: "h1".to_owned(), kind: EventKind::New };
        for _ in 0..3 {
            board.publish(AgentView::default(), vec![event.clone(); MOST_EVENTS / 2]);
        }
        let (events, dropped) = board.take_events();
        assert_eq!((events.len(), dropped), (MOST_EVENTS, MOST_EVENTS as u64 / 2));
        assert_eq!(board.take_events(), (Vec::new(), 0));
    }

    #[test]
    fn latest_settings_are_taken_once() {
        let (board, timing) = (Board::default(), Timing { interval: 7, ..Timing::default() });
        board.configure(Settings { stated: vec![None], timing: Timing::default(), blocks_loops: false });
        board.configure(Settings { stated: vec![None], timing, blocks_loops: false });
        assert_eq!(board.take_settings().map(|settings| settings.timing.interval), Some(7));
        assert_eq!(board.take_settings(), None);
    }
}
