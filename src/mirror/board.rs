//! The state of the sessions as tables, JSON and metrics show it.

use serde::Serialize;

/// The meeting point of the thread of mirrors with others. It has no events.
pub type Board = crate::board::Board<MirrorView, std::convert::Infallible>;

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
    /// The latest error with its remedy; `None`: the last attempt succeeded. Errors of sFlow are those of collectors.
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

    /// The error of a collector whose last datagram was not sent. It begins with the collector's address.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        self.collectors.iter().find_map(|collector| collector.error.clone())
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
