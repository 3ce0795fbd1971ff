//! What may be chosen: the view, and the order of ports.

/// What the middle of the screen shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything: ports, pools, groups of one port, what happens.
    Ports,
    /// Pools and priority groups of all ports.
    Buffer,
    /// Egress queues of all ports.
    Queues,
    /// Dataplane lcores and flows.
    Lcores,
    /// What happened and what should be changed.
    Log,
}

impl View {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ports, Self::Buffer, Self::Queues, Self::Lcores, Self::Log];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::Buffer => "buffer",
            Self::Queues => "queues",
            Self::Lcores => "lcores",
            Self::Log => "log",
        }
    }
}

/// What the ports are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Configured,
    Sent,
    Received,
    Queue,
    Paused,
    Drops,
}

impl Sort {
    const ALL: [Self; 6] = [Self::Configured, Self::Sent, Self::Received, Self::Queue, Self::Paused, Self::Drops];

    /// The one after this, round and round.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configured => "as configured",
            Self::Sent => "tx",
            Self::Received => "rx",
            Self::Queue => "queue",
            Self::Paused => "paused",
            Self::Drops => "drops",
        }
    }
}
