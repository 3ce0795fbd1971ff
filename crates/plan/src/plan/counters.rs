//! Counters of the packet path: plain loads and stores by the one lcore that owns them, readable by any thread at any
//! time.

use crossbeam_utils::CachePadded;

use super::decision_log::DecisionLog;
use super::drops::PerReason;
use crate::pfc::RESPONSE_BUCKETS;
use crate::plan::mirror::CopyCause;
use crate::plan::spec::SwitchSpec;
use crate::route::table::MAX_ADJACENCIES;
use crate::route::{AdjacencyId, PuntCause};
use crate::sets::{CLASSES, MAX_PORTS};
use crate::sync::{AtomicU64, Ordering};
use crate::wire::RoceControl;

/// A class is starved if it has less than one of this many frames of its port, and of the frames that it had to send.
pub const STARVED_PART: u64 = 100;

/// Row of [`PortCounters::drops`] for frames dropped before they had a class.
pub const UNCLASSIFIED: usize = CLASSES;

/// A 64-bit value with one writer. No read-modify-write: on the machine it is a plain load, add and store.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may call this: two writers would lose counts.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Sets the value; used for gauges.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Raises the value to `value` if it is lower; used for watermarks.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }

    /// Present value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One counter for each class.
pub type PerClass = [Counter; CLASSES];

/// One counter for each port.
#[derive(Debug)]
pub struct PerPort([Counter; MAX_PORTS]);

impl Default for PerPort {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl std::ops::Index<usize> for PerPort {
    type Output = Counter;

    fn index(&self, port: usize) -> &Counter {
        &self.0[port % MAX_PORTS]
    }
}

/// Counters of one port. The lcore that owns the port writes them. Each other lcore that sends by a joint port has a
/// set of its own, in which it counts what it sends, marks, drops and holds there ([`Counters::guests`]).
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Data frames received, by traffic class, without PFC frames and malformed frames.
    pub rx_frames: PerClass,
    /// Bytes of the received data frames, by traffic class, without the frame check sequence.
    pub rx_bytes: PerClass,
    /// Data frames sent, by egress queue.
    pub tx_frames: PerClass,
    /// Bytes of the sent data frames, by egress queue.
    pub tx_bytes: PerClass,
    /// Frames dropped, by traffic class and reason; the last row is for frames without a class. Drops before the egress
    /// queue count at the receiving port. Drops at the queue count at the port by which the frame would have left.
    pub drops: [PerReason<Counter>; CLASSES + 1],
    /// PFC frames sent with XOFF for this priority (refreshes included).
    pub pfc_tx_xoff: PerClass,
    /// PFC frames sent with XON for this priority.
    pub pfc_tx_xon: PerClass,
    /// PFC frames received with XOFF for this priority.
    pub pfc_rx_xoff: PerClass,
    /// PFC frames received with XON for this priority.
    pub pfc_rx_xon: PerClass,
    /// Pauses of this priority for which the peer stopped in time ([`crate::pfc::Obedience`]).
    pub pfc_stops: PerClass,
    /// Pauses of this priority during which its frames came too late.
    pub pfc_late_pauses: PerClass,
    /// Frames that came too late after XOFF of this priority.
    pub pfc_late_frames: PerClass,
    /// Bytes of these frames.
    pub pfc_late_bytes: PerClass,
    /// Histogram of the time from XOFF to the last frame of the priority ([`crate::pfc::RESPONSE_BOUNDS`]).
    pub pfc_response: [[Counter; RESPONSE_BUCKETS]; CLASSES],
    /// Sum of these times in nanoseconds.
    pub pfc_response_sum_ns: PerClass,
    /// Gauge, a mask: priorities for which the peer has stopped in time.
    pub pfc_obeyed_mask: Counter,
    /// Gauge, a mask: priorities that the peer does not obey.
    pub pfc_disobeyed_mask: Counter,
    /// PFC frames sent.
    pub pfc_tx_frames: Counter,
    /// PFC frames received.
    pub pfc_rx_frames: Counter,
    /// Classic PAUSE frames received (and ignored).
    pub pause_rx_frames: Counter,
    /// Frames received while frames of the port were sampled. The samples are of these.
    pub sample_pool: Counter,
    /// Frames marked CE, by egress queue.
    pub ecn_marked: PerClass,
    /// ACKs and NAKs, and CNPs of RoCEv2 that got their class by their kind, in the order of
    /// [`crate::wire::RoceControl::ALL`].
    pub roce_frames: [Counter; RoceControl::COUNT],
    /// Messages of QCN that the congestion point of the egress queue has made.
    pub cnms_made: PerClass,
    /// Messages of QCN of this switch that left by this port.
    pub cnms_sent: Counter,
    /// Nanoseconds for which the egress queue had frames and was held by its maximum rate.
    pub max_rate_held_ns: PerClass,
    /// Gauge: cells that frames received here hold in reserve and shared, by priority group.
    pub group_used_cells: PerClass,
    /// Gauge: cells in headroom, by priority group.
    pub group_headroom_cells: PerClass,
    /// Watermark of `group_used_cells`.
    pub group_used_highest_cells: PerClass,
    /// Watermark of `group_headroom_cells`.
    pub group_headroom_highest_cells: PerClass,
    /// Gauge: cells waiting in the egress queue.
    pub queue_cells: PerClass,
    /// Watermark of `queue_cells`.
    pub queue_highest_cells: PerClass,
    /// Gauge, a mask: priorities for which this port holds its peer at XOFF.
    pub xoff_mask: Counter,
    /// Gauge, a mask: priorities that the peer holds at XOFF.
    pub paused_mask: Counter,
    /// Nanoseconds for which this port has held its peer at XOFF, by priority.
    pub pfc_tx_paused_ns: PerClass,
    /// Nanoseconds for which the peer has held this port at XOFF, by priority; obeyed or not.
    pub pfc_rx_paused_ns: PerClass,
    /// PFC frames of obeyed priorities that the watchdog made this port ignore.
    pub pfc_rx_ignored: PerClass,
    /// Gauge: cells in the shared pool, by priority group.
    pub group_shared_cells: PerClass,
    /// Watermark of `group_shared_cells`.
    pub group_shared_highest_cells: PerClass,
    /// Gauge: cells of the port's own reserve in use, by lossy and lossless groups.
    pub reserve_used_cells: [Counter; 2],
    /// Gauge: cells of the port's insurance in use (dynamic headroom).
    pub insurance_cells: Counter,
    /// Watermark of `insurance_cells`.
    pub insurance_highest_cells: Counter,
    /// Gauge, 0 or 1: the whole port is XOFF, because its groups' share of the pool is at its limit (dynamic headroom).
    pub port_xoff: Counter,
    /// Gauge: frames left in the receive ring after the last poll that left frames behind.
    pub backlog_frames: Counter,
    /// Watermark of `backlog_frames`.
    pub backlog_highest_frames: Counter,
    /// Times that the backlog of the receive ring made the lossless groups XOFF.
    pub backlog_xoffs: Counter,
    /// Nanoseconds for which the backlog held the lossless groups at XOFF.
    pub backlog_held_ns: Counter,
    /// Times that XOFF of this priority stopped the receive queues that carry it (`pfc: queue`).
    pub queue_stops: PerClass,
    /// Gauge, a mask by receive queue: the lossless groups that the queue carries, and bit 8 for frames of others. Zero
    /// for a port with one queue and PFC by frames.
    pub rx_queue_carries: PerClass,
    /// Storms that the watchdog has detected, by queue.
    pub watchdog_storms: PerClass,
    /// Storms whose end the watchdog has detected, by queue.
    pub watchdog_restores: PerClass,
    /// Gauge, a mask: queues in a storm.
    pub watchdog_mask: Counter,
    /// Gauge, 0 or 1: the port is stuck, because its device takes no frames.
    pub egress_stuck: Counter,
    /// Times that the port got stuck.
    pub egress_stucks: Counter,
    /// Times that the link came up, the start included. PFC frames announced the state to the peer each time.
    pub link_ups: Counter,
}

/// Buckets of the poll-gap histogram: the n-th counts gaps below 2^n ns, the last all longer gaps.
pub const GAP_BUCKETS: usize = 24;

/// Counters of one lcore.
#[derive(Debug, Default)]
pub struct LcoreCounters {
    /// Polls; each covers all ports of the lcore.
    pub polls: Counter,
    /// Polls that moved a frame.
    pub busy_polls: Counter,
    /// Histogram of the time between polls, by power of two nanoseconds.
    pub poll_gap: [Counter; GAP_BUCKETS],
    /// Sum of the times between polls in nanoseconds.
    pub poll_gap_sum_ns: Counter,
    /// The longest time between two polls in nanoseconds.
    pub poll_gap_highest_ns: Counter,
    /// Gauge: entries in the forwarding database.
    pub fdb_entries: Counter,
    /// Addresses learned, or moved to another port.
    pub fdb_learned: Counter,
    /// Addresses not learned because their buckets were full of live entries.
    pub fdb_full: Counter,
    /// Gauge: stations of each bridge port in this lcore's database.
    pub fdb_stations: PerPort,
    /// Stations of each bridge port that this lcore made give way to others.
    pub fdb_evicted: PerPort,
    /// Addresses that this lcore did not learn at each bridge port, because the port was at its limit.
    pub fdb_refused: PerPort,
    /// Gauge: cells in use of the lossless shared pool.
    pub lossless_used_cells: Counter,
    /// Watermark of `lossless_used_cells`.
    pub lossless_used_highest_cells: Counter,
    /// Gauge: cells in use of the lossy shared pool.
    pub lossy_used_cells: Counter,
    /// Watermark of `lossy_used_cells`.
    pub lossy_used_highest_cells: Counter,
    /// Gauge: cells in use of the headroom pool that lossless groups share (headroom policy `shared-pool`). Every lcore
    /// reports the same pool.
    pub headroom_pool_used_cells: Counter,
    /// Watermark of `headroom_pool_used_cells`.
    pub headroom_pool_highest_cells: Counter,
    /// Gauge: the lcore's clock in nanoseconds, which dates decisions ([`super::decision_log`]).
    pub clock_ns: Counter,
    /// Gauge: frames held in egress queues.
    pub held_frames: Counter,
    /// Frames handed to the lcore that owns their egress port.
    pub handed_off_frames: Counter,
    /// Watermark of the frames that waited in one hand-off ring to this lcore.
    pub handoff_highest_frames: Counter,
    /// Rests: sleeps of the lcore because no frames came.
    pub rests: Counter,
    /// Nanoseconds for which the lcore has rested.
    pub rested_ns: Counter,
    /// Histogram of the delays by which the lcore woke later than requested, by power of two nanoseconds. A wake-up in
    /// time counts as below 1 ns.
    pub rest_overshoot: [Counter; GAP_BUCKETS],
    /// Sum of these delays in nanoseconds.
    pub rest_overshoot_sum_ns: Counter,
    /// The longest of these delays in nanoseconds.
    pub rest_overshoot_highest_ns: Counter,
    /// Frames that were routed.
    pub routed_frames: Counter,
    /// Routed frames that were fragments.
    pub routed_fragments: Counter,
    /// Frames given to the control plane, by cause.
    pub punted: [Counter; PuntCause::COUNT],
    /// Frames not given to it because they were beyond the rate of their cause.
    pub punt_policed: [Counter; PuntCause::COUNT],
    /// The frames of `punt_policed`, by the port that received them.
    pub punt_policed_at: Box<[[Counter; PuntCause::COUNT]]>,
    /// Frames not given to it because there was no buffer for their port.
    pub punt_full: Counter,
    /// Frames of the control plane, and copies for outputs of mirrors, that were offered to a queue, one for each port.
    pub injected_frames: Counter,
    /// Such frames without a port or a buffer.
    pub inject_drops: Counter,
    /// Copies given to the thread of mirrors, by kind of event.
    pub copies: [Counter; CopyCause::KINDS],
    /// Frames that a session wanted and that were not copied, because they were beyond its rate.
    pub copies_policed: [Counter; CopyCause::KINDS],
    /// Frames that a session wanted and that were not copied, because every buffer was in use.
    pub copies_full: [Counter; CopyCause::KINDS],
    /// Frames that a session of sFlow wanted and that were not copied, by kind of event.
    pub sflow_lost: [Counter; CopyCause::KINDS],
    /// Routed frames by adjacency; empty without routing.
    pub adjacency_frames: Box<[Counter]>,
}

/// Counts and logs of an lcore at a joint port that it does not own.
#[derive(Debug, Default)]
pub struct GuestCounters {
    /// Frames sent, marked and dropped, PFC frames that probe a stuck port, the depths of its queues, and whether it is
    /// stuck. All other counters are zero.
    pub counters: PortCounters,
    /// Its logged drops.
    pub decisions: DecisionLog,
}

/// All counters of a switch, shared between the lcores that write them and the threads that read them.
#[derive(Debug)]
pub struct Counters {
    /// Counters by port index; written by the lcore that owns the port.
    pub ports: Box<[CachePadded<PortCounters>]>,
    /// Counters by dataplane lcore.
    pub lcores: Box<[CachePadded<LcoreCounters>]>,
    /// Logged drops and pauses by port index; written by the lcore that owns the port.
    pub decisions: Box<[CachePadded<DecisionLog>]>,
    /// Counts of each lcore at the ports of others, by lcore and port; empty if there is no joint port.
    pub guests: Box<[Box<[CachePadded<GuestCounters>]>]>,
}

impl LcoreCounters {
    /// Counts a frame of `cause` from `port` that is not given to the control plane, because it is beyond its rate.
    pub fn count_policed(&self, cause: PuntCause, port: usize) {
        self.punt_policed[cause as usize].add(1);
        if let Some(port) = self.punt_policed_at.get(port) {
            port[cause as usize].add(1);
        }
    }
}

impl PortCounters {
    /// Frames that the device has taken, including PFC frames and messages of QCN.
    #[must_use]
    pub fn taken_frames(&self) -> u64 {
        let data = self.tx_frames.iter().map(Counter::get).sum::<u64>();
        data + self.pfc_tx_frames.get() + self.cnms_sent.get()
    }
}

impl Counters {
    /// Creates counters of zero for `ports` ports and `lcores` lcores.
    #[must_use]
    pub fn new(ports: usize, lcores: usize) -> Self {
        let by_port = || (0..ports).map(|_| Default::default()).collect();
        let lcore = |_| CachePadded::new(LcoreCounters { punt_policed_at: by_port(), ..LcoreCounters::default() });
        Self {
            ports: (0..ports).map(|_| CachePadded::default()).collect(),
            lcores: (0..lcores).map(lcore).collect(),
            decisions: (0..ports).map(|_| CachePadded::default()).collect(),
            guests: Box::default(),
        }
    }

    /// The counters of `port` by all lcores: those of its owner first.
    pub fn of_port(&self, port: usize) -> impl Iterator<Item = &PortCounters> {
        let guests = self.guests.iter().map(move |lcore| &lcore[port].counters);
        std::iter::once(&*self.ports[port]).chain(guests)
    }

    /// The sum of a counter of `port` over all lcores.
    #[must_use]
    pub fn sum(&self, port: usize, of: impl Fn(&PortCounters) -> &Counter) -> u64 {
        self.of_port(port).map(|counters| of(counters).get()).sum()
    }

    /// Frames of `port` that are not given to the control plane because they are beyond their rate, by cause.
    #[must_use]
    pub fn punt_policed_at(&self, port: usize) -> [u64; PuntCause::COUNT] {
        let of = |lcore: &CachePadded<LcoreCounters>, cause: usize| {
            lcore.punt_policed_at.get(port).map_or(0, |counts| counts[cause].get())
        };
        std::array::from_fn(|cause| self.lcores.iter().map(|lcore| of(lcore, cause)).sum())
    }

    /// Stations of `port` that gave way to others, on all lcores.
    #[must_use]
    pub fn fdb_evicted(&self, port: usize) -> u64 {
        self.lcores.iter().map(|lcore| lcore.fdb_evicted[port].get()).sum()
    }

    /// Addresses that `port` was refused because it was at its limit, on all lcores.
    #[must_use]
    pub fn fdb_refused(&self, port: usize) -> u64 {
        self.lcores.iter().map(|lcore| lcore.fdb_refused[port].get()).sum()
    }

    /// Stations of `port`: each lcore has all of them, except for updates on their way.
    #[must_use]
    pub fn fdb_stations(&self, port: usize) -> u64 {
        self.lcores.iter().map(|lcore| lcore.fdb_stations[port].get()).max().unwrap_or(0)
    }

    /// The logs of decisions at `port` by all lcores.
    pub fn logs_of_port(&self, port: usize) -> impl Iterator<Item = &DecisionLog> {
        let guests = self.guests.iter().map(move |lcore| &lcore[port].decisions);
        std::iter::once(&*self.decisions[port]).chain(guests)
    }

    /// Frames routed by an adjacency.
    #[must_use]
    pub fn adjacency_frames(&self, adjacency: AdjacencyId) -> u64 {
        let of =
            |lcore: &CachePadded<LcoreCounters>| lcore.adjacency_frames.get(usize::from(adjacency.0)).map(Counter::get);
        self.lcores.iter().filter_map(of).sum()
    }

    /// Creates the counters of the switch of `spec`: with those of adjacencies if it routes, and of guests if it has
    /// joint ports.
    #[must_use]
    pub fn of(spec: &SwitchSpec) -> Self {
        let mut counters = Self::new(spec.ports.len(), usize::from(spec.lcores));
        if !spec.joint_ports().is_empty() {
            let guests = |_| spec.ports.iter().map(|_| CachePadded::default()).collect();
            counters.guests = (0..spec.lcores).map(guests).collect();
        }
        if spec.routing.is_some() {
            for lcore in &mut counters.lcores {
                lcore.adjacency_frames = (0..MAX_ADJACENCIES).map(|_| Counter::default()).collect();
            }
        }
        counters
    }
}
