//! Rates and pauses between two states of a switch.

use crate::api::State;
use crate::api::model::{Lcore, Pfc, PfcPriority, Port};
use crate::sets::ClassSet;

/// Rates and pauses between two states of one switch.
#[derive(Debug, Default, Clone)]
pub struct Step {
    /// Time between the two states, in seconds. Zero if there is only one state yet.
    pub seconds: f64,
    /// One entry per port, in the order of the state.
    pub ports: Vec<PortStep>,
    /// One entry per lcore, in the order of the state.
    pub lcores: Vec<LcoreStep>,
    /// One entry per queue, in the order of the state.
    pub queues: Vec<QueueStep>,
    /// Bits received per second by each flow, in the order of the state.
    pub flows: Vec<f64>,
}

/// Rates of one port.
#[derive(Debug, Default, Clone, Copy)]
pub struct PortStep {
    /// Bits received per second, on the wire.
    pub rx_bps: f64,
    /// Bits sent per second, on the wire.
    pub tx_bps: f64,
    /// Frames lost per second: drops of lossless classes, and losses before classification.
    pub lost: f64,
    /// Other frames dropped per second.
    pub dropped: f64,
    /// PFC frames sent per second.
    pub pfc_sent: f64,
    /// Frames marked with CE per second.
    pub marked: f64,
    /// Pauses of the peer by the port.
    pub xoff: Held,
    /// Pauses of the port by the peer.
    pub paused: Held,
}

/// Pauses of one port in one direction.
#[derive(Debug, Default, Clone, Copy)]
pub struct Held {
    /// Priorities that were paused at any time between the two states.
    pub priorities: ClassSet,
    /// The longest pause time of any priority, as a share of the time between the two states.
    pub share: f64,
}

/// Rates of one lcore.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct LcoreStep {
    /// Share of polls that moved a frame.
    pub busy: f64,
    /// Polls per second.
    pub polls: f64,
    /// A bound in nanoseconds below which 99 % of the poll gaps are; `None` without any gap.
    pub gap_p99_ns: Option<u64>,
    /// Number of poll gaps by length, in the buckets of the state.
    pub gaps: Vec<u64>,
    /// Share of the time that the lcore rested.
    pub rested: f64,
    /// Frames handed off to other lcores per second.
    pub handed: f64,
}

/// Rates of one queue.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct QueueStep {
    /// Bits sent per second, without preamble, inter-frame gap and other overhead of the wire.
    pub tx_bps: f64,
    /// Frames marked with CE per second.
    pub marked: f64,
}

/// Frames of `port` that count as lost: drops of lossless classes, and frames lost before admission, which have no
/// class.
pub fn lost(port: &Port) -> u64 {
    port.lossless_dropped_frames.saturating_add(port.missed_frames).saturating_add(port.no_buffer_frames)
}

/// Frames that `port` dropped in lossy classes.
pub fn dropped(port: &Port) -> u64 {
    port.dropped_frames.saturating_sub(port.lossless_dropped_frames)
}

/// The PFC state of `port`.
pub fn pfc_of<'a>(state: &'a State, port: &str) -> Option<&'a Pfc> {
    state.pfc.iter().find(|pfc| pfc.port == port)
}

/// Growth of a counter per second, for states this many seconds apart.
struct Rate(f64);

impl Rate {
    fn of(&self, before: u64, now: u64) -> f64 {
        if self.0 > 0.0 { now.saturating_sub(before) as f64 / self.0 } else { 0.0 }
    }
}

impl Step {
    /// Computes the rates between `before` and `now`.
    pub fn new(before: &State, now: &State) -> Self {
        let seconds = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let rate = Rate(seconds);
        let ports = now.ports.iter().map(|port| port_step(before, now, port, &rate)).collect();
        let lcores = now.lcores.iter().map(|lcore| {
            let nothing = Lcore::default();
            lcore_step(before.lcores.iter().find(|was| was.lcore == lcore.lcore).unwrap_or(&nothing), lcore, &rate)
        });
        // Queues and flows keep their order while a switch runs.
        let queues = now.queues.iter().enumerate().map(|(at, queue)| {
            let was = before.queues.get(at).filter(|was| was.port == queue.port && was.queue == queue.queue);
            was.map_or_else(QueueStep::default, |was| QueueStep {
                tx_bps: rate.of(was.sent_bytes, queue.sent_bytes) * 8.0,
                marked: rate.of(was.ecn_marked_frames, queue.ecn_marked_frames),
            })
        });
        let flows = now.flows.iter().enumerate().map(|(at, flow)| {
            let was = before.flows.get(at);
            was.map_or(0.0, |was| rate.of(was.received_wire_bytes, flow.received_wire_bytes) * 8.0)
        });
        Self { seconds, ports, lcores: lcores.collect(), queues: queues.collect(), flows: flows.collect() }
    }
}

fn port_step(before: &State, now: &State, port: &Port, rate: &Rate) -> PortStep {
    let Some(was) = before.ports.iter().find(|was| was.port == port.port) else { return PortStep::default() };
    let nothing = Pfc::default();
    let (pfc_was, pfc) = (pfc_of(before, &port.port).unwrap_or(&nothing), pfc_of(now, &port.port).unwrap_or(&nothing));
    let marked = |state: &State| {
        let queues = state.queues.iter().filter(|queue| queue.port == port.port);
        queues.fold(0_u64, |sum, queue| sum.saturating_add(queue.ecn_marked_frames))
    };
    PortStep {
        rx_bps: rate.of(was.received_wire_bytes, port.received_wire_bytes) * 8.0,
        tx_bps: rate.of(was.sent_wire_bytes, port.sent_wire_bytes) * 8.0,
        lost: rate.of(lost(was), lost(port)),
        dropped: rate.of(dropped(was), dropped(port)),
        pfc_sent: rate.of(pfc_was.sent_frames, pfc.sent_frames),
        marked: rate.of(marked(before), marked(now)),
        xoff: held(pfc_was, pfc, rate, |line| (line.xoff, line.sent_xoff_frames, line.sent_paused_ns)),
        paused: held(pfc_was, pfc, rate, |line| (line.paused, line.received_xoff_frames, line.received_paused_ns)),
    }
}

/// Pauses in one direction. `of` reads from a priority whether it is paused, its XOFF count and its time paused.
fn held(before: &Pfc, now: &Pfc, rate: &Rate, of: fn(&PfcPriority) -> (bool, u64, u64)) -> Held {
    let mut all = Held::default();
    for line in now.priorities.iter().filter(|line| line.priority < 8) {
        let was = before.priorities.iter().find(|was| was.priority == line.priority);
        let ((_, xoffs_was, time_was), (is_held, xoffs, time)) = (was.map_or((false, 0, 0), of), of(line));
        if is_held || xoffs > xoffs_was {
            all.priorities.insert(line.priority.into());
        }
        all.share = all.share.max(rate.of(time_was, time) / 1e9);
    }
    all.share = all.share.min(1.0);
    all
}

fn lcore_step(was: &Lcore, now: &Lcore, rate: &Rate) -> LcoreStep {
    let polls = now.polls.saturating_sub(was.polls);
    let busy = now.busy_polls.saturating_sub(was.busy_polls);
    let before = was.poll_gaps.iter().copied().chain(std::iter::repeat(0));
    let gaps: Vec<u64> = now.poll_gaps.iter().zip(before).map(|(now, was)| now.saturating_sub(was)).collect();
    LcoreStep {
        busy: if polls > 0 { (busy as f64 / polls as f64).min(1.0) } else { 0.0 },
        polls: rate.of(was.polls, now.polls),
        gap_p99_ns: p99(&gaps),
        gaps,
        rested: (rate.of(was.rested_ns, now.rested_ns) / 1e9).min(1.0),
        handed: rate.of(was.handed_off_frames, now.handed_off_frames),
    }
}

/// The lowest power of two, in nanoseconds, below which 99 % of `gaps` are.
fn p99(gaps: &[u64]) -> Option<u64> {
    let all = gaps.iter().fold(0_u64, |sum, gaps| sum.saturating_add(*gaps));
    let mut left = all - all / 100;
    if all == 0 {
        return None;
    }
    let bucket = gaps.iter().position(|count| {
        left = left.saturating_sub(*count);
        left == 0
    });
    Some(1_u64.checked_shl(bucket.unwrap_or(0) as u32).unwrap_or(u64::MAX))
}
