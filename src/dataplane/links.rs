//! The ports that can send: their links, and those that refuse frames.

use crate::sets::PortSet;

/// The state of all ports' egress sides.
#[derive(Debug)]
pub(super) struct Links {
    /// Ports that have a link.
    pub up: PortSet,
    /// Own ports with queues that refuse frames: the watchdog discards them, or the port is stuck.
    pub refusing: PortSet,
    /// Own ports whose devices take no frames.
    pub stuck: PortSet,
}

impl Links {
    /// `ports` ports, all with a link.
    pub fn new(ports: usize) -> Self {
        Self { up: PortSet::first(ports), refusing: PortSet::EMPTY, stuck: PortSet::EMPTY }
    }
}
