//! What a run found: plain numbers, in the order of the scenario, for tables, JSON, CSV and plots. All times are
//! picoseconds of network time, all counts exact.

use crate::dataplane::drops::DropReason;
use crate::sets::CLASSES;

use super::spec::PortRef;

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Network time at the end, drained or given up.
    pub end_ps: u64,
    /// Network time for which hosts sent.
    pub sending_ps: u64,
    /// Events.
    pub events: u64,
    /// Polls of switches after which every invariant was checked.
    pub checks: u64,
    /// How it ended.
    pub ending: Ending,
    /// What must hold and did not; `None`: all held.
    pub violation: Option<Violation>,
    /// Why the switch does not promise to lose nothing here, as sentences; empty: it promises.
    pub waivers: Vec<String>,
    /// By flow.
    pub flows: Vec<FlowOutcome>,
    /// By host.
    pub hosts: Vec<HostOutcome>,
    /// By switch.
    pub switches: Vec<SwitchOutcome>,
    /// By link.
    pub links: Vec<LinkOutcome>,
    /// Every pause, in the order in which they began; no more than [`MOST_PAUSES`].
    pub pauses: Vec<Pause>,
    /// Pauses beyond [`MOST_PAUSES`].
    pub pauses_left_out: u64,
    /// What was sampled.
    pub samples: Samples,
}

/// Pauses kept for plots.
pub const MOST_PAUSES: usize = 1 << 16;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All that was sent has arrived or is counted as lost, and nothing is held anywhere.
    Drained,
    /// Something was still under way or held when the time to drain was over: a deadlock, a storm, or too short a time.
    Undrained {
        /// Frames in switches' queues, on wires and in receive rings.
        frames: u64,
    },
    /// More events than the scenario allows.
    TooManyEvents,
    /// An invariant was violated.
    Violated,
}

/// What must hold and did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant, e.g. `cells_conserved`.
    pub invariant: &'static str,
    /// When.
    pub at_ps: u64,
    /// After which event.
    pub event: u64,
    /// A sentence with the place and the numbers.
    pub what: String,
}

/// What one flow did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Frames that left the host.
    pub sent_frames: u64,
    /// Their bytes, without the frame check sequence.
    pub sent_bytes: u64,
    /// Frames that arrived.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Of them, marked CE.
    pub marked_frames: u64,
    /// CNPs that its receiver sent.
    pub cnps: u64,
    /// Frames that arrived after a later one.
    pub late_frames: u64,
    /// Frames that arrived twice.
    pub duplicate_frames: u64,
    /// Time from a frame's start at the sender to its end at the receiver.
    pub latency: Spread,
    /// Time from a message's arrival at the sender's queue to the end of its last frame at the receiver.
    pub completion: Spread,
    /// Messages that were begun; those of which every frame arrived are the count of `completion`.
    pub messages: u64,
    /// DCQCN's rate at the end, bit/s; the flow's rate without it.
    pub rate_at_end: u64,
    /// When its last frame arrived.
    pub last_arrival_ps: u64,
    /// Time in which it had to send.
    pub span_ps: u64,
    /// Of the ports on its way the one whose receive backlog held it for longest within that time; lossless flows only.
    pub backlog: Option<BacklogHold>,
}

/// A receive backlog that held the lossless classes of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogHold {
    /// Which port.
    pub port: PortRef,
    /// For how long.
    pub held_ps: u64,
}

impl FlowOutcome {
    /// Frames that were sent and never arrived.
    #[must_use]
    pub fn lost_frames(&self) -> u64 {
        self.sent_frames.saturating_sub(self.received_frames)
    }
}

/// How a set of times is spread; all zero if there are none. Quantiles are exact for up to [`Spread::KEPT`] values and
/// those of an evenly chosen part beyond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum_ps: u64,
    /// The least.
    pub least_ps: u64,
    /// The median.
    pub p50_ps: u64,
    /// 99 of 100 are no longer.
    pub p99_ps: u64,
    /// The longest.
    pub most_ps: u64,
}

impl Spread {
    /// Values from which quantiles are taken.
    pub const KEPT: usize = 1 << 14;

    /// The mean; zero if there is nothing.
    #[must_use]
    pub fn mean_ps(&self) -> u64 {
        self.sum_ps.checked_div(self.count).unwrap_or(0)
    }
}

/// What one host did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostOutcome {
    /// PFC frames received.
    pub pfc_rx_frames: u64,
    /// PFC frames sent: a slow receiver's, or a storm's.
    pub pfc_tx_frames: u64,
    /// Time held at XOFF, by priority.
    pub paused_ps: [u64; CLASSES],
    /// Frames that were nobody's here.
    pub foreign_frames: u64,
    /// Most bytes that its receive buffer held.
    pub receive_highest_bytes: u64,
    /// Lossy frames that a slow host had no room for.
    pub receive_dropped_frames: u64,
}

/// What one switch did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchOutcome {
    /// By port.
    pub ports: Vec<PortOutcome>,
    /// Most cells that were used of the shared pools: lossy, lossless.
    pub shared_highest_cells: [u64; 2],
    /// Cells used of them at the end of sending.
    pub shared_at_stop_cells: [u64; 2],
    /// Most cells that were used of the headroom pool (policy `shared-pool`).
    pub headroom_pool_highest_cells: u64,
    /// Polls.
    pub polls: u64,
    /// Longest time between two polls of an lcore.
    pub poll_gap_highest_ps: u64,
    /// Frames that crossed between lcores.
    pub handed_off_frames: u64,
}

/// What one port did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOutcome {
    /// By traffic class (received, dropped), priority group (cells, PFC) or queue (sent, marked).
    pub classes: [ClassOutcome; CLASSES],
    /// Drops of frames that have no class, by reason.
    pub unclassified_drops: Vec<(DropReason, u64)>,
    /// PFC frames sent.
    pub pfc_tx_frames: u64,
    /// PFC frames received.
    pub pfc_rx_frames: u64,
    /// Frames that its receive ring had no room for.
    pub missed_frames: u64,
    /// Of them, lossless.
    pub missed_lossless_frames: u64,
    /// Most frames that its receive ring held.
    pub ring_highest_frames: u64,
    /// Times that its receive backlog turned its lossless groups XOFF.
    pub backlog_xoffs: u64,
    /// Time for which it did.
    pub backlog_held_ps: u64,
    /// Most cells that were in its insurance (policy `dynamic`).
    pub insurance_highest_cells: u64,
    /// Storms that its watchdog found, and saw end.
    pub watchdog: (u64, u64),
}

/// What one class of a port did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassOutcome {
    /// Whether the group is lossless here.
    pub lossless: bool,
    /// Frames received, by traffic class.
    pub rx_frames: u64,
    /// Frames sent, by queue.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames marked CE, by queue.
    pub marked_frames: u64,
    /// Drops by reason, by traffic class.
    pub drops: Vec<(DropReason, u64)>,
    /// XOFFs sent, refreshes included, by priority.
    pub xoff_tx: u64,
    /// Times that the group went from XON to XOFF.
    pub pauses_tx: u64,
    /// XONs sent.
    pub xon_tx: u64,
    /// XOFFs received.
    pub xoff_rx: u64,
    /// Time for which the port held its peer at XOFF.
    pub held_ps: u64,
    /// Time for which its peer held it at XOFF.
    pub paused_ps: u64,
    /// Most cells in reserve and shared pool, by group.
    pub used_highest_cells: u64,
    /// Cells there at the end of sending.
    pub used_at_stop_cells: u64,
    /// Most cells in headroom, by group.
    pub headroom_highest_cells: u64,
    /// What there is of it.
    pub headroom_cells: u64,
    /// Most cells that waited in the queue.
    pub queue_highest_cells: u64,
    /// Bytes in the queue at the end of sending.
    pub queue_at_stop_bytes: u64,
}

impl ClassOutcome {
    /// All drops.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|(_, count)| count).sum()
    }
}

/// What one link did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkOutcome {
    /// Frames lost on the wire by a fault: toward a, toward b.
    pub lost_frames: [u64; 2],
    /// PFC frames among them.
    pub lost_pfc_frames: [u64; 2],
}

/// A time for which one end of a link held the other at XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Index of the link.
    pub link: usize,
    /// Whether end `a` is the one that is held.
    pub holds_a: bool,
    /// Priority.
    pub priority: u8,
    /// When the first XOFF arrived.
    pub from_ps: u64,
    /// When the XON arrived, the time ran out, or the run ended.
    pub to_ps: u64,
}

/// What was looked at every `every_ps`, from zero on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// Distance.
    pub every_ps: u64,
    /// How many instants there are: all series are of this length.
    pub count: usize,
    /// Switch ports where anything was ever not zero, or those that the scenario watches.
    pub ports: Vec<PortSeries>,
    /// By flow: bytes received since the sample before.
    pub flow_bytes: Vec<Vec<u32>>,
    /// By flow: DCQCN's rate in Mbit/s; empty for a flow without.
    pub flow_rate_mbps: Vec<Vec<u32>>,
    /// By switch: cells used of the shared pools: lossy, lossless.
    pub pools: Vec<[Vec<u32>; 2]>,
}

/// Samples of a switch port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSeries {
    /// Which.
    pub port: PortRef,
    /// Classes where anything was ever not zero.
    pub classes: Vec<ClassSeries>,
    /// Bytes sent since the sample before.
    pub tx_bytes: Vec<u32>,
}

/// Samples of a class of a switch port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSeries {
    /// Number of the class: the priority group of what comes in, the queue of what leaves.
    pub class: u8,
    /// Bytes that wait in the queue.
    pub queue_bytes: Vec<u32>,
    /// Cells of the group in the shared pool.
    pub shared_cells: Vec<u32>,
    /// Cells of the group in headroom.
    pub headroom_cells: Vec<u32>,
    /// T: the limit on `shared_cells`.
    pub threshold_cells: Vec<u32>,
    /// Whether the group is at XOFF.
    pub xoff: Vec<bool>,
    /// Frames marked since the sample before.
    pub marked: Vec<u32>,
}
