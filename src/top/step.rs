//! What happened between two looks.

use crate::api::State;
use crate::api::model::{Lcore, Pfc, PfcPriority, Port};

/// What happened between two looks at one switch.
#[derive(Debug, Default, Clone)]
pub struct Step {
    /// Time between them; zero at the first, when nothing is known yet.
    pub seconds: f64,
    /// By port, as the state has them.
    pub ports: Vec<PortStep>,
    /// By lcore, as the state has them.
    pub lcores: Vec<LcoreStep>,
    /// Bits a second sent by queue, as the state has them.
    pub queues: Vec<QueueStep>,
    /// By flow, bits a second received.
    pub flows: Vec<f64>,
}

/// One port.
#[derive(Debug, Default, Clone, Copy)]
pub struct PortStep {
    /// Bits a second received, on the wire.
    pub rx_bps: f64,
    /// Bits a second sent, on the wire.
    pub tx_bps: f64,
    /// Frames of lossless classes dropped a second, and those lost before they had a class.
    pub lost: f64,
    /// Other frames dropped a second.
    pub dropped: f64,
    /// PFC frames sent a second.
    pub pfc_sent: f64,
    /// Frames marked a second.
    pub marked: f64,
    /// Where the port held its peer.
    pub xoff: Held,
    /// Where the peer held the port.
    pub paused: Held,
}

/// Pauses of one port in one direction.
#[derive(Debug, Default, Clone, Copy)]
pub struct Held {
    /// Priorities that were held at any time between the looks.
    pub mask: u8,
    /// The longest of them, as a share of the time.
    pub share: f64,
}

/// One lcore.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct LcoreStep {
    /// Share of polls that moved a frame.
    pub busy: f64,
    /// Polls a second.
    pub polls: f64,
    /// 99 % of the gaps were shorter than this; null if there was none.
    pub gap_p99_ns: Option<u64>,
    /// Gaps by length, as the state has them.
    pub gaps: Vec<u64>,
    /// Share of the time that it rested.
    pub rested: f64,
    /// Frames handed on a second.
    pub handed: f64,
}

/// One queue.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct QueueStep {
    /// Bits a second sent, without what the wire takes beside.
    pub tx_bps: f64,
    /// Frames marked a second.
    pub marked: f64,
}

/// Frames of `port` that are a loss whatever their class: those of lossless classes, and those lost before any admission.
pub fn lost(port: &Port) -> u64 {
    port.lossless_dropped_frames.saturating_add(port.missed_frames).saturating_add(port.no_buffer_frames)
}

/// Frames of `port` that were dropped and may be.
pub fn dropped(port: &Port) -> u64 {
    port.dropped_frames.saturating_sub(port.lossless_dropped_frames)
}

/// The PFC of `port`.
pub fn pfc_of<'a>(state: &'a State, port: &str) -> Option<&'a Pfc> {
    state.pfc.iter().find(|pfc| pfc.port == port)
}

/// Growth a second of one counter.
struct Rate(f64);

impl Rate {
    fn of(&self, before: u64, now: u64) -> f64 {
        if self.0 > 0.0 { now.saturating_sub(before) as f64 / self.0 } else { 0.0 }
    }
}

impl Step {
    /// From `before` to `now`.
    pub fn new(before: &State, now: &State) -> Self {
        let seconds = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let rate = Rate(seconds);
        let ports = now.ports.iter().map(|port| port_step(before, now, port, &rate)).collect();
        let lcores = now.lcores.iter().map(|lcore| {
            let nothing = Lcore::default();
            lcore_step(before.lcores.iter().find(|was| was.lcore == lcore.lcore).unwrap_or(&nothing), lcore, &rate)
        });
        // Queues and flows are the same ones in the same order for as long as a switch runs.
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

/// What of a priority is `(whether it is held, XOFFs, time held)`.
fn held(before: &Pfc, now: &Pfc, rate: &Rate, of: fn(&PfcPriority) -> (bool, u64, u64)) -> Held {
    let mut all = Held::default();
    for line in now.priorities.iter().filter(|line| line.priority < 8) {
        let was = before.priorities.iter().find(|was| was.priority == line.priority);
        let ((_, xoffs_was, time_was), (is_held, xoffs, time)) = (was.map_or((false, 0, 0), of), of(line));
        if is_held || xoffs > xoffs_was {
            all.mask |= 1 << line.priority;
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

/// The power of two below which 99 % of `gaps` are.
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
