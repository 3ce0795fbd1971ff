//! Results of a run: plain numbers, in the order of the scenario, for tables, JSON, CSV and plots. All times are
//! picoseconds of network time, all counts are exact.

use crate::pfc::Answers;
use crate::plan::drops::DropReason;
use crate::sets::CLASSES;

use super::queues::QueueLengths;
use super::spec::PortRef;

pub use super::workload::{Completion, Completions, WorkloadOutcome};

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Network time at the end of the run, drained or given up.
    pub end_ps: u64,
    /// Network time for which hosts sent.
    pub sending_ps: u64,
    /// Number of events that were handled.
    pub events: u64,
    /// Steps of switches after which every invariant was checked.
    pub checks: u64,
    /// Reason for which the run ended.
    pub ending: Ending,
    /// The last of the engine's looks after the hosts' time to send at which no frame was under way; `None`: frames
    /// were under way at each.
    pub last_empty_ps: Option<u64>,
    /// The invariant that was violated; `None`: all held.
    pub violation: Option<Violation>,
    /// Reasons, as sentences, for which lossless service is not promised here; empty: it is guaranteed.
    pub waivers: Vec<String>,
    /// Results by flow.
    pub flows: Vec<FlowOutcome>,
    /// Results by workload.
    pub workloads: Vec<WorkloadOutcome>,
    /// Completed flows of workloads, in order of completion.
    pub completions: Completions,
    /// Most flows of workloads that were in progress at once.
    pub most_flows_at_once: u64,
    /// Sampled lengths of the queues of all switch ports; `None`: they were not sampled.
    pub queues: Option<QueueLengths>,
    /// Counts of queue lengths, port by port, at each dump of the monitor.
    pub queue_dumps: Vec<QueueDump>,
    /// Results by host.
    pub hosts: Vec<HostOutcome>,
    /// Results by switch.
    pub switches: Vec<SwitchOutcome>,
    /// Results by link.
    pub links: Vec<LinkOutcome>,
    /// Every pause, in order of beginning; at most [`MOST_PAUSES`].
    pub pauses: Vec<Pause>,
    /// Number of pauses beyond [`MOST_PAUSES`].
    pub pauses_left_out: u64,
    /// The sampled series.
    pub samples: Samples,
}

/// Maximum number of pauses kept for plots.
pub const MOST_PAUSES: usize = 1 << 16;

/// Reason for which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every frame has arrived or is counted as lost, and nothing is held anywhere.
    Drained,
    /// Frames were still under way or held when the time to drain was over: a deadlock, a storm, or too short a time.
    Undrained {
        /// Frames in queues of switches, on wires and in receive rings.
        frames: u64,
    },
    /// The run reached the number of events that the scenario allows.
    TooManyEvents,
    /// An invariant was violated.
    Violated,
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant, e.g. `cells_conserved`.
    pub invariant: &'static str,
    /// Time of the violation.
    pub at_ps: u64,
    /// Number of the event after which it was found.
    pub event: u64,
    /// A sentence with the place and the numbers.
    pub what: String,
}

/// Results of one flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Whether the flow repeats lost frames.
    pub is_reliable: bool,
    /// Whether nothing of a reliable flow is in flight or to be sent again; always true for others.
    pub is_settled: bool,
    /// One if a reliable flow gave up, because its timeouts brought no progress; else zero.
    pub failed_flows: u64,
    /// Frames that left the host.
    pub sent_frames: u64,
    /// Bytes of these frames, without the frame check sequence.
    pub sent_bytes: u64,
    /// Frames that arrived; duplicates are not counted.
    pub received_frames: u64,
    /// Bytes of these frames.
    pub received_bytes: u64,
    /// Received frames that were marked CE.
    pub marked_frames: u64,
    /// CNPs that the receiver generated.
    pub cnps: u64,
    /// Frames that arrived after a later one.
    pub late_frames: u64,
    /// Frames that arrived again after they had been received; for a reliable flow they count as discarded.
    pub duplicate_frames: u64,
    /// Frames of a reliable flow that its receiver discarded: an earlier one was missing, or it had them.
    pub discarded_frames: u64,
    /// Retransmissions among `sent_frames`.
    pub repeated_frames: u64,
    /// NAKs that arrived at the sender.
    pub naks: u64,
    /// Timeouts of the sender.
    pub timeouts: u64,
    /// Time from a frame's start at the sender to its end at the receiver.
    pub latency: Spread,
    /// Time from a message's arrival at the sender's queue to the end of its last frame at the receiver.
    pub completion: Spread,
    /// Reliable flows: time from a message's arrival at the sender's queue until all of it was acknowledged.
    pub acknowledged: Spread,
    /// Messages whose sending began; `completion` counts those of which every frame arrived.
    pub messages: u64,
    /// Rate of congestion control at the end, in bit/s; without it, the flow's rate.
    pub rate_at_end: u64,
    /// Time at which the flow's last frame arrived.
    pub last_arrival_ps: u64,
    /// Length of the flow's sending period.
    pub span_ps: u64,
    /// The port on the flow's path whose receive backlog kept XOFF longest during the sending period; lossless flows
    /// only.
    pub backlog: Option<BacklogHold>,
}

/// Time for which a receive backlog kept the lossless classes of a port at XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogHold {
    /// The port with the backlog.
    pub port: PortRef,
    /// Time for which it kept XOFF.
    pub held_ps: u64,
}

impl FlowOutcome {
    /// Adds the counters of `other`. Times of frames and messages are left out.
    pub fn add(&mut self, other: &Self) {
        self.sent_frames += other.sent_frames;
        self.sent_bytes += other.sent_bytes;
        self.received_frames += other.received_frames;
        self.received_bytes += other.received_bytes;
        self.marked_frames += other.marked_frames;
        self.cnps += other.cnps;
        self.late_frames += other.late_frames;
        self.duplicate_frames += other.duplicate_frames;
        self.discarded_frames += other.discarded_frames;
        self.repeated_frames += other.repeated_frames;
        self.naks += other.naks;
        self.timeouts += other.timeouts;
        self.failed_flows += other.failed_flows;
        self.messages += other.messages;
        self.rate_at_end += other.rate_at_end;
        self.last_arrival_ps = self.last_arrival_ps.max(other.last_arrival_ps);
    }

    /// Returns the number of frames that were sent and never arrived.
    #[must_use]
    pub fn lost_frames(&self) -> u64 {
        // Duplicates do not count: they are copies of flooded frames, which the host did not send.
        self.sent_frames.saturating_sub(self.received_frames + self.discarded_frames)
    }
}

/// Statistics of a set of times; all zero for an empty set. Quantiles are exact for up to [`Spread::KEPT`] values.
/// Beyond that, they come from an evenly spaced subset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    /// Number of times.
    pub count: u64,
    /// Sum of the times.
    pub sum_ps: u64,
    /// Shortest time.
    pub least_ps: u64,
    /// Median.
    pub p50_ps: u64,
    /// 99th percentile.
    pub p99_ps: u64,
    /// Longest time.
    pub most_ps: u64,
}

impl Spread {
    /// Maximum number of values from which quantiles are computed.
    pub const KEPT: usize = 1 << 14;

    /// Returns the mean; zero for an empty set.
    #[must_use]
    pub fn mean_ps(&self) -> u64 {
        self.sum_ps.checked_div(self.count).unwrap_or(0)
    }
}

/// Counts of queue lengths until a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDump {
    /// Number of samples.
    pub samples: u64,
    /// By port that had a queue, in order of switches and ports: the samples of one kilobyte, of two, and so on. The
    /// others had less.
    pub counts: Vec<(PortRef, Vec<u64>)>,
}

/// Results of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostOutcome {
    /// PFC frames received.
    pub pfc_rx_frames: u64,
    /// PFC frames sent, for a slow receiver or a storm.
    pub pfc_tx_frames: u64,
    /// Time for which the host was paused, by priority.
    pub paused_ps: [u64; CLASSES],
    /// Received data frames, CNPs and ACKs that were for another host.
    pub foreign_frames: u64,
    /// Most bytes in its receive buffer.
    pub receive_highest_bytes: u64,
    /// Lossy frames dropped because a slow host's buffer was full.
    pub receive_dropped_frames: u64,
}

/// Results of one switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchOutcome {
    /// Results by port.
    pub ports: Vec<PortOutcome>,
    /// Most cells used of the shared pools: lossy, lossless.
    pub shared_highest_cells: [u64; 2],
    /// Cells used of the shared pools when hosts stopped sending.
    pub shared_at_stop_cells: [u64; 2],
    /// Most cells used of the headroom pool (policy `shared-pool`).
    pub headroom_pool_highest_cells: u64,
    /// Number of polls.
    pub polls: u64,
    /// Longest time between two polls of an lcore.
    pub poll_gap_highest_ps: u64,
    /// Frames handed from one lcore to another.
    pub handed_off_frames: u64,
    /// Results by routed port; empty without routing.
    pub hops: Vec<HopOutcome>,
}

/// Results of the next hop behind a routed port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopOutcome {
    /// Index of the port.
    pub port: usize,
    /// Frames routed to the next hop.
    pub frames: u64,
}

/// Results of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOutcome {
    /// Results by traffic class (received, dropped), priority group (cells, PFC) or queue (sent, marked).
    pub classes: [ClassOutcome; CLASSES],
    /// Drops of frames that have no class, by reason.
    pub unclassified_drops: Vec<(DropReason, u64)>,
    /// PFC frames sent.
    pub pfc_tx_frames: u64,
    /// PFC frames received.
    pub pfc_rx_frames: u64,
    /// Frames dropped because the receive ring was full.
    pub missed_frames: u64,
    /// Lossless frames among `missed_frames`.
    pub missed_lossless_frames: u64,
    /// Most frames in the receive ring.
    pub ring_highest_frames: u64,
    /// Times that the receive backlog set the port's lossless groups to XOFF.
    pub backlog_xoffs: u64,
    /// Time for which the receive backlog kept XOFF.
    pub backlog_held_ps: u64,
    /// Most cells in the port's insurance (policy `dynamic`).
    pub insurance_highest_cells: u64,
    /// Storms that the watchdog detected, and storms whose end it detected.
    pub watchdog: (u64, u64),
}

/// Results of one class of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassOutcome {
    /// Answers of the peer to XOFF of the priority of this number.
    pub answers: Answers,
    /// Whether the group is lossless here.
    pub lossless: bool,
    /// Frames received, by traffic class.
    pub rx_frames: u64,
    /// Frames sent, by queue.
    pub tx_frames: u64,
    /// Bytes of these frames.
    pub tx_bytes: u64,
    /// Frames marked CE, by queue.
    pub marked_frames: u64,
    /// Messages of QCN that the congestion point made, by queue.
    pub cnms_made: u64,
    /// Drops by reason, by traffic class.
    pub drops: Vec<(DropReason, u64)>,
    /// XOFFs sent, refreshes included, by priority.
    pub xoff_tx: u64,
    /// Times that the group changed from XON to XOFF.
    pub pauses_tx: u64,
    /// XONs sent, by priority.
    pub xon_tx: u64,
    /// XOFFs received, by priority.
    pub xoff_rx: u64,
    /// Time for which the port kept its peer paused.
    pub held_ps: u64,
    /// Time for which the peer kept the port paused.
    pub paused_ps: u64,
    /// Most cells in the reserve and the shared pool, by group.
    pub used_highest_cells: u64,
    /// Cells in the reserve and the shared pool when hosts stopped sending.
    pub used_at_stop_cells: u64,
    /// Most cells in headroom, by group.
    pub headroom_highest_cells: u64,
    /// Size of the group's headroom.
    pub headroom_cells: u64,
    /// Most cells in the queue.
    pub queue_highest_cells: u64,
    /// Bytes in the queue when hosts stopped sending.
    pub queue_at_stop_bytes: u64,
}

impl ClassOutcome {
    /// Returns the number of drops for all reasons.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|(_, count)| count).sum()
    }
}

/// Results of one link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkOutcome {
    /// Frames lost on the wire by a fault: toward a, toward b.
    pub lost_frames: [u64; 2],
    /// PFC frames among `lost_frames`.
    pub lost_pfc_frames: [u64; 2],
}

/// A period in which one end of a link kept the other paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Index of the link.
    pub link: usize,
    /// Whether end `a` is the paused one.
    pub holds_a: bool,
    /// Priority.
    pub priority: u8,
    /// Time at which the first XOFF arrived.
    pub from_ps: u64,
    /// Time at which the XON arrived, the pause expired, or the run ended.
    pub to_ps: u64,
}

/// Values sampled every `every_ps`, from time zero on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// Time between two samples.
    pub every_ps: u64,
    /// Number of samples: the length of every series.
    pub count: usize,
    /// Switch ports where any value was ever nonzero, or those that the scenario watches.
    pub ports: Vec<PortSeries>,
    /// By flow: bytes received since the previous sample.
    pub flow_bytes: Vec<Vec<u32>>,
    /// By flow: the rate of congestion control in Mbit/s; empty for a flow without it.
    pub flow_rate_mbps: Vec<Vec<u32>>,
    /// By switch: cells used of the shared pools, lossy and lossless.
    pub pools: Vec<[Vec<u32>; 2]>,
}

/// Samples of a switch port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSeries {
    /// The sampled port.
    pub port: PortRef,
    /// Classes where any value was ever nonzero.
    pub classes: Vec<ClassSeries>,
    /// Bytes sent since the previous sample.
    pub tx_bytes: Vec<u32>,
}

/// Samples of a class of a switch port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSeries {
    /// Number of the priority group for received frames, and of the queue for sent frames.
    pub class: u8,
    /// Bytes in the queue.
    pub queue_bytes: Vec<u32>,
    /// Cells of the group in the shared pool.
    pub shared_cells: Vec<u32>,
    /// Cells of the group in headroom.
    pub headroom_cells: Vec<u32>,
    /// T: the limit on `shared_cells`.
    pub threshold_cells: Vec<u32>,
    /// Whether the group is at XOFF.
    pub xoff: Vec<bool>,
    /// Frames marked since the previous sample.
    pub marked: Vec<u32>,
}
