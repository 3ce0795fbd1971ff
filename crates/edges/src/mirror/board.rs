//! The state of the sessions as tables, JSON and metrics show it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::units::Nanos;

/// The meeting point of the thread of mirrors with others.
pub type Board = crate::board::Board<MirrorView, Event>;

/// A destination begins to refuse copies, or takes them again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The session, or `sflow` for the collectors.
    pub session: String,
    /// The error with its remedy; `None`: it is over.
    pub error: Option<String>,
}

impl Event {
    /// The event as a sentence behind the name of the session.
    #[must_use]
    pub fn text(&self) -> &str {
        self.error.as_deref().unwrap_or("its destination takes copies again")
    }
}

/// The sessions whose destinations refuse copies. It makes events of changes.
#[derive(Debug, Default)]
pub struct Failing {
    /// The time of the last view with an error, by session.
    errors: BTreeMap<String, Nanos>,
}

impl Failing {
    /// The collectors as a session. No mirror may have this name.
    pub const SFLOW: &str = "sflow";
    /// Time without an error after which it is over. A destination that refuses some copies has it by turns.
    const OVER: Nanos = Nanos(3_000_000_000);

    /// The changes since the view before. Sessions that a reload has removed have none.
    pub fn next(&mut self, view: &MirrorView, now: Nanos) -> Vec<Event> {
        let sflow = view.sflow.iter().map(|sflow| (Self::SFLOW, sflow.error()));
        let sessions = view.sessions.iter().map(|session| (session.name.as_str(), session.error.clone()));
        let mut errors = BTreeMap::new();
        let mut events = Vec::new();
        for (name, error) in sessions.chain(sflow) {
            let last = self.errors.get(name).copied();
            let is_over = last.is_some_and(|last| now.0.saturating_sub(last.0) >= Self::OVER.0);
            match (error, last) {
                (Some(error), last) => {
                    if last.is_none() {
                        events.push(Event { session: name.to_owned(), error: Some(error) });
                    }
                    errors.insert(name.to_owned(), now);
                }
                (None, Some(_)) if is_over => events.push(Event { session: name.to_owned(), error: None }),
                (None, Some(last)) => _ = errors.insert(name.to_owned(), last),
                (None, None) => {}
            }
        }
        self.errors = errors;
        events
    }
}

/// All sessions.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct MirrorView {
    /// Sessions in the order of the configuration.
    pub sessions: Vec<SessionView>,
    /// Copies that were discarded because they were made for sessions before a reload.
    pub stale: u64,
    /// The agent of sFlow; `None`: the switch sends no sFlow.
    pub sflow: Option<SflowView>,
}

impl MirrorView {
    /// The session with this name.
    #[must_use]
    pub fn session(&self, name: &str) -> Option<&SessionView> {
        self.sessions.iter().find(|session| session.name == name)
    }
}

/// A session.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct SessionView {
    /// Name.
    pub name: String,
    /// The destination: `port p7`, `file /var/log/holdfast/drops.pcapng` or `sflow`.
    pub to: String,
    /// Copies that reached the destination. Those of sFlow have reached a datagram.
    pub copies: u64,
    /// Bytes that were written or sent for them.
    pub bytes: u64,
    /// Copies that did not reach it: the file could not be written, or the lcore of the port had no buffer.
    pub lost: u64,
    /// The latest error with its remedy; `None`: the last attempt succeeded, or would. Errors of sFlow are those of
    /// collectors.
    pub error: Option<String>,
}

/// The agent of sFlow.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct SflowView {
    /// Address by which collectors know the switch.
    pub agent: String,
    /// Datagrams. Each was offered to every collector.
    pub datagrams: u64,
    /// Errors of sending, of all collectors.
    pub send_errors: u64,
    /// The collectors.
    pub collectors: Vec<CollectorView>,
}

impl SflowView {
    /// Datagrams that the system has taken, each for one collector.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.collectors.iter().map(|collector| collector.datagrams).sum()
    }

    /// The errors of the collectors whose last datagram was not sent. Each begins with the collector's address.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let errors: Vec<&str> = self.collectors.iter().filter_map(|collector| collector.error.as_deref()).collect();
        (!errors.is_empty()).then(|| errors.join("; "))
    }
}

/// A collector of sFlow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectorView {
    /// Address and port.
    pub address: String,
    /// Datagrams that the system has taken.
    pub datagrams: u64,
    /// Datagrams that it has not.
    pub errors: u64,
    /// The latest error with its remedy; `None`: the last datagram was sent.
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_begin_and_end_are_events() {
        let view = |sessions: &[(&str, Option<&str>)], sflow: Option<&str>| {
            let session = |&(name, error): &(&str, Option<&str>)| SessionView {
                name: name.to_owned(),
                error: error.map(str::to_owned),
                ..SessionView::default()
            };
            let error = sflow.map(str::to_owned);
            let collector = CollectorView { address: "c".to_owned(), datagrams: 0, errors: 0, error };
            let sflow = SflowView { collectors: vec![collector], ..SflowView::default() };
            MirrorView { sessions: sessions.iter().map(session).collect(), stale: 0, sflow: Some(sflow) }
        };
        let mut failing = Failing::default();
        let mut texts = |seconds: u64, view| -> Vec<String> {
            let events = failing.next(&view, Nanos(seconds * 1_000_000_000));
            events.iter().map(|event| format!("{}: {}", event.session, event.text())).collect()
        };
        assert_eq!(texts(0, view(&[("a", None), ("b", Some("full"))], None)), ["b: full"]);
        assert_eq!(texts(1, view(&[("a", None), ("b", Some("full for 2s"))], Some("no route"))), ["sflow: no route"]);
        assert_eq!(texts(2, view(&[("a", Some("full")), ("b", None)], None)), ["a: full"]);
        assert_eq!(texts(3, view(&[("a", Some("full")), ("b", Some("full"))], None)), [""; 0], "refused by turns");
        assert_eq!(
            texts(6, view(&[("a", Some("full")), ("b", None)], None)),
            ["b: its destination takes copies again", "sflow: its destination takes copies again"]
        );
        assert_eq!(texts(7, view(&[("b", None)], None)), [""; 0], "a session that is gone");
        assert_eq!(texts(8, view(&[("a", Some("full"))], None)), ["a: full"]);
    }
}
