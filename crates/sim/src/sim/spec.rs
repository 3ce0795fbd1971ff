//! A validated scenario, ready to run: switches, hosts, cables, flows, faults and limits. [`super::scenario`] reads
//! one.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::config::{Config, Warning};
use crate::hosts::FlowKind;
use crate::plan::SwitchSpec;
use crate::sets::{ClassSet, PortSet};
use crate::units::{BitRate, Bytes, Length, Nanos};
use crate::wire::{MacAddr, inband};

use super::control::ControlSpec;
use super::transport::TransportSpec;
use super::workload::{Distribution, WorkloadNode};

/// A whole scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Origin of the scenario, for messages: a path, or a name in place of one.
    pub source: String,
    /// Files with the configurations of its switches.
    pub files: Vec<PathBuf>,
    /// Name in tables and plots.
    pub name: String,
    /// Name of this variant; empty: the scenario has no variants.
    pub variant: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Network time for which hosts send.
    pub duration: Nanos,
    /// Longest network time, after that, for frames under way to arrive.
    pub drain: Nanos,
    /// Network time between two samples for plots; zero: no samples.
    pub sample: Nanos,
    /// Network time between two samples of the lengths of all queues; zero: no samples.
    pub queues: Nanos,
    /// Queues that are counted port by port; `None`: none are.
    pub monitor: Option<QueueMonitor>,
    /// Number of events after which the run is given up.
    pub most_events: u64,
    /// Method by which switches learn the ports of hosts.
    pub learning: Learning,
    /// Settings of a routed network; `None`: switches bridge. docs/simulation.md describes the network.
    pub routed: Option<RoutedSpec>,
    /// Switches, by index.
    pub switches: Vec<SwitchNode>,
    /// Hosts, by index.
    pub hosts: Vec<HostNode>,
    /// Every cable: one per host, and those between switches.
    pub links: Vec<LinkNode>,
    /// All flows, by index.
    pub flows: Vec<FlowNode>,
    /// Workloads, which start flows while the run goes on.
    pub workloads: Vec<WorkloadNode>,
    /// Deliberate faults.
    pub faults: Vec<Fault>,
    /// Switch ports that plots show; empty: those with any queued frames or pauses.
    pub watch: Vec<PortRef>,
    /// Columns of the table that compares variants: titles, or names of flows for their rates; empty: the default
    /// columns.
    pub columns: Vec<String>,
    /// Warnings about valid but probably unintended settings, each with file, line and key.
    pub warnings: Vec<Warning>,
}

impl Scenario {
    /// Identifies the run, for the head of a table and the subtitle of a plot.
    #[must_use]
    pub fn title(&self) -> String {
        let of = if self.variant.is_empty() { "" } else { ": " };
        format!("{}{of}{}, seed {}", self.name, self.variant, self.seed)
    }

    /// Whether a fault shuts `port`, or a reload takes it out.
    #[must_use]
    pub fn is_ever_shut(&self, port: PortRef) -> bool {
        self.faults.iter().any(|fault| fault.kind == FaultKind::Shut { port })
            || self.switches[port.switch].taken_out().contains(port.port)
    }

    /// Traffic classes that are lossless for a part of the run only, at some switch.
    #[must_use]
    pub fn changed_classes(&self) -> ClassSet {
        self.switches.iter().fold(ClassSet::EMPTY, |classes, switch| classes | switch.changed_classes())
    }

    /// Returns the settings of all flows: those that are listed, and those of each sender of workloads.
    pub fn flow_settings(&self) -> impl Iterator<Item = &FlowNode> {
        self.flows.iter().chain(self.workloads.iter().flat_map(|workload| &workload.senders))
    }

    /// Returns the tags of the frames that `host` sends or receives; `None`: untagged frames.
    pub fn tags_of(&self, host: usize) -> impl Iterator<Item = Option<(u16, u8)>> {
        let flows = self.flows.iter().filter(move |flow| flow.from == host || flow.to == host);
        let workloads = self.workloads.iter().filter(move |workload| workload.involves(host));
        flows.chain(workloads.flat_map(|workload| &workload.senders)).map(|flow| flow.tag)
    }

    /// Returns sender and receiver of each flow of a class that is ever lossless, and of each that a workload may
    /// start.
    #[must_use]
    pub fn lossless_pairs(&self) -> Vec<(usize, usize)> {
        let changed = self.changed_classes();
        let is_lossless = |flow: &&FlowNode| flow.lossless || changed.contains(usize::from(flow.class));
        let flows = self.flows.iter().filter(is_lossless).map(|flow| (flow.from, flow.to));
        let workloads = self.workloads.iter().flat_map(|workload| {
            let senders = workload.senders.iter().filter(is_lossless);
            senders.flat_map(|flow| workload.receivers().iter().map(move |&to| (flow.from, to)))
        });
        flows.chain(workloads.filter(|(from, to)| from != to)).collect()
    }
}

/// Samples of the queues of all switch ports, counted by kilobytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMonitor {
    /// Time of the first sample in the run.
    pub first: Nanos,
    /// Time from one sample to the next.
    pub every: Nanos,
    /// Samples before the run, when all queues are empty.
    pub before: u64,
    /// Number of all samples.
    pub samples: u64,
    /// Numbers of samples after which the counts are kept, in ascending order.
    pub dumps: Vec<u64>,
}

/// Settings of a network whose switches route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutedSpec {
    /// Seed of the flow hashes. Each router mixes in its number.
    pub hash_seed: u64,
    /// Time from a change of a link until all routers follow it.
    pub reroute: Nanos,
}

/// Method by which switches learn the ports of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Learning {
    /// Static entries along the shortest paths. If a switch has several, the port with the lowest number is used. Works
    /// in any topology.
    #[default]
    Routes,
    /// Learning by bridges, from announcements that hosts send before anything else. Only for topologies without loops.
    Frames,
}

/// A switch.
#[derive(Debug, Clone)]
pub struct SwitchNode {
    /// Name, unique among switches and hosts.
    pub name: String,
    /// Configuration as for `holdfast run`. Its `hosts` have become [`HostNode`]s.
    pub config: Config,
    /// Times at which its lcores poll.
    pub poll: PollSpec,
    /// Whether lossless frames to unknown stations are flooded. This disables the safety rule against deadlock, to
    /// demonstrate the deadlock that the rule prevents.
    pub floods_lossless: bool,
    /// Other configurations that it takes while it runs.
    pub reloads: Vec<SwitchReload>,
}

/// A configuration that a switch takes while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchReload {
    /// Time from the beginning of the run.
    pub at: Nanos,
    /// Its settings, which differ from those before in nothing that needs a restart.
    pub switch: SwitchSpec,
}

impl SwitchNode {
    /// The plans by which the switch runs: from the start, and from each reload on.
    pub fn plans(&self) -> impl Iterator<Item = &SwitchSpec> {
        std::iter::once(&self.config.switch).chain(self.reloads.iter().map(|reload| &reload.switch))
    }

    /// The times that the peer of `port` has to stop at XOFF.
    pub fn reactions(&self, port: usize) -> impl Iterator<Item = Nanos> {
        self.plans().map(move |plan| plan.ports[port].reaction)
    }

    /// Ports that a reload takes out.
    pub fn taken_out(&self) -> PortSet {
        let pairs = self.plans().zip(self.plans().skip(1));
        pairs.fold(PortSet::EMPTY, |ports, (before, after)| ports | before.replaced_by(after))
    }

    /// Traffic classes that a reload makes lossless or lossy.
    pub fn changed_classes(&self) -> ClassSet {
        let first = self.config.switch.lossless_classes();
        self.plans().fold(ClassSet::EMPTY, |classes, plan| classes | first ^ plan.lossless_classes())
    }
}

/// Poll times of the lcores of a switch. The next poll begins after `every`, plus `frame` for each frame of the current
/// poll (`shed` if it was shed), plus up to `jitter`. The jitter is drawn anew for each poll and lcore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollSpec {
    /// Time of a poll without frames.
    pub every: Nanos,
    /// Time that an lcore needs to receive or send a frame; zero: the core is never too slow.
    pub frame: Nanos,
    /// Time that an lcore needs to shed a frame.
    pub shed: Nanos,
    /// Most time by which a poll is late.
    pub jitter: Nanos,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNode {
    /// Name, unique among switches and hosts.
    pub name: String,
    /// MAC address.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// Whether the host obeys PFC.
    pub obeys_pfc: bool,
    /// Time from the end of a PFC frame until the host begins no further frame of the priority; a frame in progress is
    /// completed. `None`: the longest time that the standard allows at the link's speed (60 quanta at 10G, 394 at 100G
    /// ...).
    pub response: Option<Nanos>,
    /// Receive buffer of a slow host; `None`: the host receives every frame at once.
    pub receiver: Option<ReceiverSpec>,
    /// Whether switches know the port of the host from the beginning ([`Learning`]).
    pub known: bool,
}

/// A host that receives more slowly than its link, and sends PFC frames by the fill of its own buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverSpec {
    /// Rate at which the host empties its buffer.
    pub rate: BitRate,
    /// Fill from which on all lossless priorities are at XOFF.
    pub xoff: Bytes,
    /// Fill below which they are at XON.
    pub xon: Bytes,
}

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRef {
    /// Index of the switch.
    pub switch: usize,
    /// Index of the port in the switch.
    pub port: usize,
}

/// One end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A port of a switch.
    Port(PortRef),
    /// The only port of a host, by the index of the host.
    Host(usize),
}

/// A cable. Both ends have the same rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkNode {
    /// Name for tables, like `tor.p1-h1`.
    pub name: String,
    /// One end; the switch port if the other end is a host.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Rate of both directions.
    pub rate: BitRate,
    /// Length; the delay is 5 ns per metre.
    pub length: Length,
}

/// A flow from one host to another.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowNode {
    /// Name in tables: `h1-h2`, with a number if a pair has several flows.
    pub name: String,
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Kind of its frames.
    pub kind: FlowKind,
    /// Lengths of its frames without the frame check sequence.
    pub frames: FrameSizes,
    /// DSCP of its packets.
    pub dscp: u8,
    /// VLAN tag and PCP, if its frames carry one.
    pub tag: Option<(u16, u8)>,
    /// Traffic class that the first switch assigns.
    pub class: u8,
    /// PFC priority that pauses the flow.
    pub priority: u8,
    /// Whether the class is lossless at the first switch.
    pub lossless: bool,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
    /// Maximum rate, on the wire.
    pub rate: BitRate,
    /// Time at which the flow begins.
    pub start: Nanos,
    /// Time at which the flow ends; `None`: with the scenario.
    pub stop: Option<Nanos>,
    /// Load: data that the flow has to send, over time.
    pub load: Load,
    /// Reliable transport; `None`: frames are sent once and not acknowledged.
    pub transport: Option<TransportSpec>,
    /// Congestion control; `None`: the flow sends at its rate.
    pub control: Option<ControlSpec>,
    /// Round-trip time of the empty path that congestion control assumes; `None`: computed from the path.
    pub base_rtt: Option<Nanos>,
    /// Entropy of the UDP source port of its packets and of the answers to them; `None`: its number.
    pub entropy: Option<[u16; 2]>,
}

impl FlowNode {
    /// Bytes of each frame that carry no data: Ethernet, IPv4, UDP and, of RoCE, BTH, invariant CRC and telemetry.
    #[must_use]
    pub fn header_bytes(&self) -> u64 {
        let tag = if self.tag.is_some() { 4 } else { 0 };
        let roce = if self.kind == FlowKind::Roce { 12 + 4 } else { 0 };
        let telemetry = self.control.is_some_and(|control| control.needs().telemetry);
        14 + tag + 20 + 8 + roce + if telemetry { inband::LEN as u64 } else { 0 }
    }
}

/// Lengths of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSizes {
    /// One length for all frames.
    Fixed(u16),
    /// Each length drawn from this range, both ends included.
    Uniform(u16, u16),
    /// 7 frames of 64 B, 4 of 576 B and 1 of 1500 B on the wire, frame check sequence included, in random order.
    Imix,
}

/// Load of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// There is always a frame to send.
    Steady,
    /// There is always a frame for the time `on`, none for the time `off`, from the flow's start.
    OnOff {
        /// Length of a sending phase.
        on: Nanos,
        /// Length of a silent phase.
        off: Nanos,
    },
    /// Messages, one every `every` (the first at the start), at most `count`. The completion time of each is reported.
    Messages {
        /// Bytes of frames in a message, at least one frame.
        size: MessageSize,
        /// Mean time from one message to the next.
        every: Nanos,
        /// Whether these times are drawn from an exponential distribution.
        poisson: bool,
        /// Number of messages; `None`: no limit.
        count: Option<u32>,
    },
}

/// Sizes of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSize {
    /// One size for all messages.
    Fixed(Bytes),
    /// Each size drawn from this range, both ends included.
    Uniform(Bytes, Bytes),
    /// Each size drawn from a published distribution.
    Known(Distribution),
}

/// A deliberate fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Time at which it begins.
    pub at: Nanos,
    /// Time at which it ends; `None`: with the run.
    pub until: Option<Nanos>,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    /// The link is down, and both ends detect it. Frames on the wire are lost.
    LinkDown {
        /// Index of the link.
        link: usize,
    },
    /// A port of a switch is shut (`enabled: false`). Its link stays up, so that its peer learns of it by PFC alone.
    Shut {
        /// The port.
        port: PortRef,
    },
    /// A link loses frames.
    Lose {
        /// Index of the link.
        link: usize,
        /// Direction of the losses; `None`: both.
        toward: Option<Way>,
        /// Frames that are lost.
        what: Lost,
        /// Number of frames lost in a million.
        per_million: u32,
    },
    /// A host repeatedly sends XOFF for these priorities with the longest pause time, and XON at the end.
    Storm {
        /// Index of the host.
        host: usize,
        /// Priorities of the storm.
        priorities: ClassSet,
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
        /// Time in which the host obeys.
        response: Nanos,
    },
    /// A host receives more slowly.
    Slow {
        /// Index of the host.
        host: usize,
        /// Receive buffer of the host.
        receiver: ReceiverSpec,
    },
    /// A host sends malformed and strange frames in addition to its flows, until hosts stop sending.
    Garbage {
        /// Index of the host.
        host: usize,
        /// Rate of the malformed frames on the wire.
        rate: BitRate,
    },
    /// An lcore does not poll.
    Stall {
        /// Index of the switch.
        switch: usize,
        /// Index of the lcore; `None`: all.
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
    /// All frames.
    Any,
}
