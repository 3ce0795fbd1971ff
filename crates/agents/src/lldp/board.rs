//! The meeting point of the agent's thread with others: they read its state, take its events and give it settings.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::agent::{Event, Timing};
use super::local::Stated;
use super::probe::ProbedPort;
use super::view::AgentView;
use crate::forward::VlanMode;
use crate::units::Nanos;

/// The settings of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Statements by port index; `None`: the port has no LLDP.
    pub stated: Vec<Option<Stated>>,
    /// Times of the protocol.
    pub timing: Timing,
    /// Whether a port of each loop is blocked.
    pub blocks_loops: bool,
    /// Time between two rounds of loop probes; `None`: no port sends any.
    pub probe_interval: Option<Nanos>,
    /// VLANs of all ports, by which loops are found.
    pub vlans: Vec<VlanMode>,
    /// Ports that send probes.
    pub probed: Vec<Option<ProbedPort>>,
}

/// The latest state of the agent and its events, and new settings for it.
#[derive(Debug, Default)]
pub struct Board {
    state: crate::board::Board<AgentView, Event>,
    settings: Mutex<Option<Settings>>,
}

impl Deref for Board {
    type Target = crate::board::Board<AgentView, Event>;

    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Option<Settings>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the agent new settings. Its thread takes them at its next look.
    pub fn configure(&self, settings: Settings) {
        *self.lock() = Some(settings);
    }

    /// Takes new settings, if there are any.
    #[must_use]
    pub fn take_settings(&self) -> Option<Settings> {
        self.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_settings_are_taken_once() {
        let (board, timing) = (Board::default(), Timing { interval: 7, ..Timing::default() });
        let old = Settings {
            stated: vec![None],
            timing: Timing::default(),
            blocks_loops: false,
            probe_interval: Some(Nanos(1)),
            vlans: Vec::new(),
            probed: Vec::new(),
        };
        board.configure(old.clone());
        board.configure(Settings { timing, ..old });
        assert_eq!(board.take_settings().map(|settings| settings.timing.interval), Some(7));
        assert_eq!(board.take_settings(), None);
    }
}
