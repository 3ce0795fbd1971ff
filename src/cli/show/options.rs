//! Which options of `show` select rows of which resource. An option without effect is refused: the rows would look
//! selected.

use super::super::Failure;
use super::{Args, What};

/// The options that select rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector {
    Port,
    Class,
    /// An address or prefix.
    Route,
    Source,
    Family,
    Limit,
    All,
}

impl Selector {
    pub const ALL: [Self; 7] =
        [Self::Port, Self::Class, Self::Route, Self::Source, Self::Family, Self::Limit, Self::All];

    /// The option in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Port => "--port",
            Self::Class => "--class",
            Self::Route => "an address or prefix",
            Self::Source => "--source",
            Self::Family => "--family",
            Self::Limit => "--limit",
            Self::All => "--all",
        }
    }

    /// Whether the command line has it.
    fn is_given(self, args: &Args) -> bool {
        match self {
            Self::Port => args.port.is_some(),
            Self::Class => args.class.is_some(),
            Self::Route => args.route.is_some(),
            Self::Source => args.source.is_some(),
            Self::Family => args.family.is_some(),
            Self::Limit => args.limit.is_some(),
            Self::All => args.all,
        }
    }
}

impl What {
    /// Whether `selector` selects rows of the resource.
    pub fn has(self, selector: Selector) -> bool {
        match selector {
            Selector::Port => self.has_ports(),
            Selector::Class => self.has_classes(),
            _ => self == Self::Routes,
        }
    }

    /// Whether its rows belong to a port, or to an interface with ports.
    fn has_ports(self) -> bool {
        match self {
            Self::Ports | Self::Pfc | Self::Buffers | Self::Groups | Self::Queues | Self::Drops | Self::Ecn => true,
            Self::Fdb | Self::Vlans | Self::Lags | Self::Lldp | Self::Faults | Self::Mirrors => true,
            Self::Interfaces | Self::Neighbours | Self::Routes | Self::Watchdog | Self::Lcores => true,
            Self::Settings | Self::Hosts | Self::Events => true,
            Self::Config | Self::Classes | Self::Flows | Self::Advice | Self::Version => false,
        }
    }

    /// Whether some of its rows belong to a class, group, priority or queue.
    fn has_classes(self) -> bool {
        match self {
            Self::Ports | Self::Pfc | Self::Groups | Self::Queues | Self::Drops | Self::Ecn | Self::Mirrors => true,
            Self::Watchdog | Self::Classes | Self::Flows | Self::Events => true,
            Self::Buffers | Self::Fdb | Self::Vlans | Self::Lags | Self::Lldp | Self::Faults => false,
            Self::Interfaces | Self::Neighbours | Self::Routes | Self::Lcores | Self::Hosts => false,
            Self::Config | Self::Advice | Self::Settings | Self::Version => false,
        }
    }
}

/// Refuses the first option that selects no rows of `what`.
pub fn check(args: &Args, what: What) -> Result<(), Failure> {
    let wrong = Selector::ALL.into_iter().find(|selector| selector.is_given(args) && !what.has(*selector));
    let Some(wrong) = wrong else { return Ok(()) };
    let what = what.name();
    let remedy = match wrong {
        Selector::Port => "it has no rows of a port; remove --port",
        Selector::Class => "it has no rows of a class; remove --class",
        _ => "only `show routes` has",
    };
    Err(Failure::usage(format!("`show {what}` does not take {}: {remedy}", wrong.name())))
}
