//! A fault as the configuration or the API orders it, in the words of the simulator.

use std::fmt;

use ipnet::IpNet;

use crate::sets::ClassSet;
use crate::units::Nanos;

/// The effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The wire loses frames.
    Lose,
    /// Frames arrive later.
    Delay {
        /// Time added to each frame.
        by: Nanos,
    },
    /// Frames arrive twice.
    Duplicate,
    /// Frames arrive behind later ones.
    Reorder {
        /// Number of later frames that pass first.
        behind: u16,
    },
    /// Frames arrive with one wrong bit.
    Corrupt,
    /// ECN-capable packets arrive with CE.
    Mark,
    /// The host repeats XOFF.
    Storm {
        /// The paused priorities.
        priorities: ClassSet,
    },
    /// PFC frames take effect late.
    Late {
        /// Time added to each PFC frame.
        response: Nanos,
    },
    /// PFC frames have no effect.
    Ignore,
}

/// A [`FaultKind`] without its values, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FaultVerb {
    /// [`FaultKind::Lose`].
    Lose = 0,
    /// [`FaultKind::Delay`].
    Delay = 1,
    /// [`FaultKind::Duplicate`].
    Duplicate = 2,
    /// [`FaultKind::Reorder`].
    Reorder = 3,
    /// [`FaultKind::Corrupt`].
    Corrupt = 4,
    /// [`FaultKind::Mark`].
    Mark = 5,
    /// [`FaultKind::Storm`].
    Storm = 6,
    /// [`FaultKind::Late`].
    Late = 7,
    /// [`FaultKind::Ignore`].
    Ignore = 8,
}

impl FaultVerb {
    /// Number of verbs.
    pub const COUNT: usize = 9;

    /// Every verb, with its word in the configuration and in labels, and its effect as a participle.
    pub const TABLE: [(Self, &'static str, &'static str); Self::COUNT] = [
        (Self::Lose, "lose", "lost"),
        (Self::Delay, "delay", "delayed"),
        (Self::Duplicate, "duplicate", "duplicated"),
        (Self::Reorder, "reorder", "reordered"),
        (Self::Corrupt, "corrupt", "corrupted"),
        (Self::Mark, "mark", "marked CE"),
        (Self::Storm, "storm", "of a PFC storm"),
        (Self::Late, "late", "of PFC late"),
        (Self::Ignore, "ignore", "of PFC ignored"),
    ];

    /// The word in the configuration and in labels.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::TABLE[self as usize].1
    }
}

impl FaultKind {
    /// The kind without its values.
    #[must_use]
    pub fn verb(self) -> FaultVerb {
        match self {
            Self::Lose => FaultVerb::Lose,
            Self::Delay { .. } => FaultVerb::Delay,
            Self::Duplicate => FaultVerb::Duplicate,
            Self::Reorder { .. } => FaultVerb::Reorder,
            Self::Corrupt => FaultVerb::Corrupt,
            Self::Mark => FaultVerb::Mark,
            Self::Storm { .. } => FaultVerb::Storm,
            Self::Late { .. } => FaultVerb::Late,
            Self::Ignore => FaultVerb::Ignore,
        }
    }
}

/// The end of the wire that frames travel toward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Toward {
    /// Frames that the switch receives.
    Switch = 0,
    /// Frames that the switch sends.
    Host = 1,
}

impl Toward {
    /// Both directions with their words.
    pub const TABLE: [(&'static str, Self); 2] = [("switch", Self::Switch), ("host", Self::Host)];

    /// The word in the configuration and in labels.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::TABLE[self as usize].0
    }
}

/// The frames that a loss concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// All but MAC control frames.
    Data,
    /// MAC control frames: PFC and PAUSE.
    Pfc,
    /// All frames.
    Any,
}

impl What {
    /// Every choice with its word.
    pub const TABLE: [(&'static str, Self); 3] = [("data", Self::Data), ("pfc", Self::Pfc), ("any", Self::Any)];

    /// The word in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::TABLE[self as usize].0
    }
}

/// The share of the selected frames that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Every frame.
    All,
    /// A random share, in millionths.
    Chance(u32),
    /// One of so many frames, by count.
    OneIn(u32),
}

/// The packets of a flow. A field that is `None` matches all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Source address.
    pub source: Option<IpNet>,
    /// Destination address.
    pub destination: Option<IpNet>,
    /// IP protocol.
    pub protocol: Option<u8>,
    /// Source port of UDP or TCP.
    pub source_port: Option<u16>,
    /// Destination port of UDP or TCP.
    pub destination_port: Option<u16>,
    /// Destination queue pair of RoCEv2.
    pub queue_pair: Option<u32>,
    /// DSCP.
    pub dscp: Option<u8>,
}

impl Flow {
    /// Whether it matches every frame.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// A injected fault at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The port.
    pub port: usize,
    /// The effect.
    pub kind: FaultKind,
    /// The direction; `None`: both.
    pub toward: Option<Toward>,
    /// The frames concerned.
    pub what: What,
    /// The share of them that is hit.
    pub share: Share,
    /// Number of frames in a row that are hit each time.
    pub burst: u32,
    /// Traffic classes concerned; `None`: all frames, with or without a class.
    pub classes: Option<ClassSet>,
    /// The flow concerned.
    pub flow: Flow,
    /// Time from the order to the begin of the fault.
    pub at: Nanos,
    /// Duration; `None`: until it is removed.
    pub time: Option<Nanos>,
}

impl Fault {
    /// A fault with the defaults of the configuration: at once, without an end, for every frame of the kind.
    #[must_use]
    pub fn new(port: usize, kind: FaultKind) -> Self {
        let verb = kind.verb();
        let (toward, what) = match verb {
            FaultVerb::Storm => (Some(Toward::Switch), What::Pfc),
            FaultVerb::Late | FaultVerb::Ignore => (Some(Toward::Host), What::Pfc),
            FaultVerb::Lose => (None, What::Any),
            _ => (None, What::Data),
        };
        Self {
            port,
            kind,
            toward,
            what,
            share: Share::All,
            burst: 1,
            classes: None,
            flow: Flow::default(),
            at: Nanos(0),
            time: None,
        }
    }

    /// Whether it acts on frames that travel `toward` an end.
    #[must_use]
    pub fn acts(&self, toward: Toward) -> bool {
        self.toward.is_none_or(|only| only == toward)
    }

    /// The fault as the configuration writes it, at the port named `port`, without defaults of `what` and `at`.
    #[must_use]
    pub fn text(&self, port: &str) -> String {
        let mut parts = vec![format!("{}: {port}", self.kind.verb().word())];
        match self.kind {
            FaultKind::Delay { by } => parts.push(format!("by: {}", exact(by))),
            FaultKind::Reorder { behind } => parts.push(format!("behind: {behind}")),
            FaultKind::Storm { priorities } => parts.push(format!("priorities: {}", numbers(priorities))),
            FaultKind::Late { response } => parts.push(format!("response: {}", exact(response))),
            _ => {}
        }
        let usual = if self.classes.is_none() && self.flow.is_any() { What::Any } else { What::Data };
        if self.kind == FaultKind::Lose && self.what != usual {
            parts.push(format!("what: {}", self.what.word()));
        }
        parts.extend(self.toward.map(|toward| format!("toward: {}", toward.word())));
        match self.share {
            Share::All => {}
            Share::Chance(parts_per_million) => {
                let decimals = format!("{:04}", parts_per_million % 10_000);
                let decimals = decimals.trim_end_matches('0');
                let point = if decimals.is_empty() { "" } else { "." };
                parts.push(format!("chance: {}{point}{decimals}%", parts_per_million / 10_000));
            }
            Share::OneIn(count) => parts.push(format!("one_in: {count}")),
        }
        if self.burst > 1 {
            parts.push(format!("burst: {}", self.burst));
        }
        parts.extend(self.classes.map(|classes| format!("class: {}", numbers(classes))));
        if !self.flow.is_any() {
            parts.push(format!("flow: {{{}}}", self.flow));
        }
        if self.at > Nanos(0) {
            parts.push(format!("at: {}", exact(self.at)));
        }
        parts.extend(self.time.map(|time| format!("for: {}", exact(time))));
        format!("{{{}}}", parts.join(", "))
    }
}

/// `time` without rounding, in the largest unit that divides it.
fn exact(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| time.0 > 0 && time.0.is_multiple_of(*size)).unwrap_or((1, "ns"));
    format!("{}{unit}", time.0 / size)
}

fn numbers(classes: ClassSet) -> String {
    let all: Vec<String> = classes.iter().map(|class| class.to_string()).collect();
    format!("[{}]", all.join(", "))
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |net: IpNet| {
            if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
        };
        let fields = [
            ("source", self.source.map(address)),
            ("destination", self.destination.map(address)),
            ("protocol", self.protocol.map(|number| number.to_string())),
            ("source_port", self.source_port.map(|number| number.to_string())),
            ("destination_port", self.destination_port.map(|number| number.to_string())),
            ("queue_pair", self.queue_pair.map(|number| number.to_string())),
            ("dscp", self.dscp.map(|number| number.to_string())),
        ];
        let written = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
        f.write_str(&written.collect::<Vec<_>>().join(", "))
    }
}
