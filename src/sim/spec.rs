//! A scenario as it is run: switches, hosts, cables, flows, faults and bounds, all checked. [`super::scenario`] reads one.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::config::Config;
use crate::hosts::FlowKind;
use crate::units::{BitRate, Bytes, Length, Nanos};
use crate::wire::MacAddr;

use super::dcqcn::DcqcnSpec;

/// A whole scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Where it came from, for messages: a path, or what stands for one.
    pub source: String,
    /// Files that its switches' configurations are from.
    pub files: Vec<PathBuf>,
    /// Its name in tables and plots.
    pub name: String,
    /// Which of its variants this is; empty: it has none.
    pub variant: String,
    /// What all randomness follows from.
    pub seed: u64,
    /// Network time for which hosts send.
    pub duration: Nanos,
    /// Longest network time after that in which all that is under way may arrive.
    pub drain: Nanos,
    /// Network time between two samples of what plots show; zero: there are none.
    pub sample: Nanos,
    /// Events after which the run is given up.
    pub most_events: u64,
    /// How switches know where hosts are.
    pub learning: Learning,
    /// Switches, by index.
    pub switches: Vec<SwitchNode>,
    /// Hosts, by index.
    pub hosts: Vec<HostNode>,
    /// Every cable: one a host, and those between switches.
    pub links: Vec<LinkNode>,
    /// All flows, by index.
    pub flows: Vec<FlowNode>,
    /// What goes wrong on purpose.
    pub faults: Vec<Fault>,
    /// Switch ports that plots show; empty: those where something waits or is paused.
    pub watch: Vec<PortRef>,
    /// Columns of the table that compares variants, by title, or by a flow's name for its rate; empty: the usual ones.
    pub columns: Vec<String>,
    /// What works, but hardly as it was meant; each with file, line and key.
    pub warnings: Vec<String>,
}

impl Scenario {
    /// Which run this is, for the head of a table and under the title of a picture.
    #[must_use]
    pub fn title(&self) -> String {
        let of = if self.variant.is_empty() { "" } else { ": " };
        format!("{}{of}{}, seed {}", self.name, self.variant, self.seed)
    }
}

/// How switches know where hosts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Learning {
    /// Static entries along the shortest paths: the first port of the lowest number where there are several. Any topology.
    #[default]
    Routes,
    /// As bridges learn, from announcements that hosts send before anything else. Topologies without circles only.
    Frames,
}

/// A switch.
#[derive(Debug, Clone)]
pub struct SwitchNode {
    /// Its name, unique among switches and hosts.
    pub name: String,
    /// What `holdfast run` would take. Its `hosts` have become [`HostNode`]s.
    pub config: Config,
    /// When its lcores poll.
    pub poll: PollSpec,
    /// The safety rule against deadlock is off: lossless frames to unknown stations are flooded. To show what it prevents.
    pub floods_lossless: bool,
}

/// When the lcores of a switch poll: the next poll begins `every` + `frame` for each frame of the last one, or `shed` if it was shed,
/// + up to `jitter` after the last one. Drawn anew for each poll and lcore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollSpec {
    /// Time of a poll that finds nothing.
    pub every: Nanos,
    /// Time that a frame takes the lcore, received or sent; a core faster than any load if zero.
    pub frame: Nanos,
    /// Time that a frame takes which the lcore sheds.
    pub shed: Nanos,
    /// Most time that a poll is late by.
    pub jitter: Nanos,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNode {
    /// Its name, unique among switches and hosts.
    pub name: String,
    /// Its address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Whether it stops when PFC tells it to.
    pub obeys_pfc: bool,
    /// Time from the end of a PFC frame until the host begins no frame more of the priority; a frame begun is finished.
    /// `None`: as long as the standard lets a peer of the link's speed take (facts: 60 quanta at 10G, 394 at 100G ...).
    pub response: Option<Nanos>,
    /// What it takes off its receive buffer; `None`: all, at once.
    pub receiver: Option<ReceiverSpec>,
    /// Whether switches know where it is from the beginning ([`Learning`]).
    pub known: bool,
}

/// A host that receives more slowly than its link, and says so with PFC by a buffer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverSpec {
    /// Rate at which it empties its buffer.
    pub rate: BitRate,
    /// XOFF for all lossless priorities from this fill on.
    pub xoff: Bytes,
    /// XON below this.
    pub xon: Bytes,
}

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortRef {
    /// Index of the switch.
    pub switch: usize,
    /// Index of its port.
    pub port: usize,
}

/// One end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A switch's port.
    Port(PortRef),
    /// A host's only port, by the host's index.
    Host(usize),
}

/// A cable. Both ends have the same rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkNode {
    /// `tor.p1-h1`, for tables.
    pub name: String,
    /// One end; the switch's port if the other is a host.
    pub a: End,
    /// The other.
    pub b: End,
    /// Rate.
    pub rate: BitRate,
    /// Length; 5 ns a metre.
    pub length: Length,
}

/// A flow from a host to another.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowNode {
    /// Name in tables: `h1-h2`, with a number if there are several.
    pub name: String,
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Shape of its frames.
    pub kind: FlowKind,
    /// Lengths of its frames without the frame check sequence.
    pub frames: FrameSizes,
    /// DSCP of its packets.
    pub dscp: u8,
    /// VLAN tag and PCP, if its frames carry one.
    pub tag: Option<(u16, u8)>,
    /// Traffic class that the first switch finds for it.
    pub class: u8,
    /// PFC priority that stops it.
    pub priority: u8,
    /// Whether that class is lossless at the first switch.
    pub lossless: bool,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
    /// Rate on the wire beyond which it never sends.
    pub rate: BitRate,
    /// When it begins.
    pub start: Nanos,
    /// When it ends; `None`: with the scenario.
    pub stop: Option<Nanos>,
    /// What it has to send, and when.
    pub load: Load,
    /// Congestion control; `None`: it sends at its rate.
    pub dcqcn: Option<DcqcnSpec>,
}

/// Lengths of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSizes {
    /// All the same.
    Fixed(u16),
    /// Each drawn from this range, both ends included.
    Uniform(u16, u16),
    /// 7 of 64 B, 4 of 576 B and 1 of 1500 B on the wire, frame check sequence included, in a drawn order.
    Imix,
}

/// What a flow has to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Always a frame.
    Steady,
    /// Always a frame for `on`, none for `off`, from the flow's start.
    OnOff {
        /// Time sending.
        on: Nanos,
        /// Time silent.
        off: Nanos,
    },
    /// Messages, one every `every` (the first at the start), at most `count`: the time each takes is reported.
    Messages {
        /// Bytes of frames in a message, at least one frame.
        size: MessageSize,
        /// Mean time from one to the next.
        every: Nanos,
        /// Whether these times are drawn from an exponential distribution.
        poisson: bool,
        /// How many; `None`: as many as there is time for.
        count: Option<u32>,
    },
}

/// Sizes of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSize {
    /// All the same.
    Fixed(Bytes),
    /// Each drawn from this range, both ends included.
    Uniform(Bytes, Bytes),
    /// Each drawn from the web search distribution of the DCTCP paper (Alizadeh et al., SIGCOMM 2010, figure 4).
    WebSearch,
}

/// Something that goes wrong from `at` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// When it begins.
    pub at: Nanos,
    /// When it ends; `None`: with the run.
    pub until: Option<Nanos>,
    /// What.
    pub kind: FaultKind,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    /// The link is down, and both ends see it. What is on the wire is lost.
    LinkDown {
        /// Index of the link.
        link: usize,
    },
    /// A link loses frames.
    Lose {
        /// Index of the link.
        link: usize,
        /// Which way; `None`: both.
        toward: Option<Way>,
        /// Which frames.
        what: Lost,
        /// Of a million, how many.
        per_million: u32,
    },
    /// A host says XOFF for these priorities, for the longest time there is, again and again; XON at the end.
    Storm {
        /// Index of the host.
        host: usize,
        /// Priorities, as a mask.
        priorities: u8,
    },
    /// A host neither sends nor receives, while its link stays up.
    Dead {
        /// Index of the host.
        host: usize,
    },
    /// A host takes longer to obey PFC.
    Late {
        /// Index of the host.
        host: usize,
        /// This long.
        response: Nanos,
    },
    /// A host receives more slowly.
    Slow {
        /// Index of the host.
        host: usize,
        /// How.
        receiver: ReceiverSpec,
    },
    /// A host sends malformed and strange frames beside its flows, until hosts fall silent.
    Garbage {
        /// Index of the host.
        host: usize,
        /// At this rate on the wire.
        rate: BitRate,
    },
    /// An lcore does not poll.
    Stall {
        /// Index of the switch.
        switch: usize,
        /// Which lcore; `None`: all.
        lcore: Option<usize>,
    },
}

/// A direction on a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Toward end `a`.
    A,
    /// Toward end `b`.
    B,
}

/// Frames that a fault loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// All but PFC frames.
    Data,
    /// PFC frames only.
    Pfc,
    /// Any.
    Any,
}
