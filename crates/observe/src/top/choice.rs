//! The choices of the user: the view, and the order of ports.

/// A view: the content of the middle of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Overview: ports, pools, groups of one port, and the log.
    Ports,
    /// Pools and priority groups of all ports.
    Buffer,
    /// Egress queues of all ports.
    Queues,
    /// Dataplane lcores and flows.
    Lcores,
    /// Past events, and advice about the configuration.
    Log,
}

impl View {
    /// All views, in the order of their keys.
    pub const ALL: [Self; 5] = [Self::Ports, Self::Buffer, Self::Queues, Self::Lcores, Self::Log];

    /// The name of the view, as shown in its tab.
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

/// The key by which the ports are sorted.
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

    /// The next sort key; the first follows the last.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// The name of the sort key, as shown on the screen.
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
