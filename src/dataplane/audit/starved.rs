//! Isolation on a busy core: an lcore with more frames than time sheds lossy frames before it holds lossless senders.

use super::super::counters::UNCLASSIFIED;
use super::super::drops::DropReason;
use super::super::pipeline::Pipeline;
use super::super::shed::{LEAST_PASSED, SETTLING_POLLS};
use super::{Auditor, Check, ensure};
use crate::packet::Packet;
use crate::sets::CLASSES;

/// Polls beyond those in which the allowance settles, after which the rule is asked.
const PROOF_POLLS: u64 = 2;

/// How long the lossless classes of a port have been held by its own receive backlog, while that did not shrink.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeldByBacklog {
    /// Polls in a row after which no fewer frames were left than ever since it began.
    polls: u64,
    /// The fewest frames left; `None` before the first poll.
    lowest: Option<u64>,
}

/// Frames that one lcore has passed since the backlog of one of its ports has been held for longer than the allowance takes
/// to settle.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PassedWhileHeld {
    polls: u64,
    /// Frames received and not shed when that began.
    before: Passed,
}

/// Frames received and not shed, of all ports of an lcore.
#[derive(Debug, Default, Clone, Copy)]
struct Passed {
    lossy: u64,
    /// Lossless frames and MAC control, which cannot be shed.
    others: u64,
}

impl Auditor {
    /// While the lossless classes of some port are held by its own backlog, and it does not shrink, the ports of its lcore pass
    /// no more lossy frames in a poll than the least allowance, or fewer than frames that cannot be shed. Judged after each poll
    /// of the lcore: a flood at any of its ports takes the time of all.
    pub(super) fn check_starved<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        for part in fleet {
            if !self.lcores[part.lcore].has_polled {
                continue;
            }
            let mut overdue = None;
            for port in (part.pauses.backlogged | self.held & part.own).iter() {
                if !part.pauses.backlogged.contains(port) {
                    self.ports[port].held = HeldByBacklog::default();
                    self.held.remove(port);
                    continue;
                }
                self.held.insert(port);
                let left = part.telemetry.counters.ports[port].backlog_frames.get();
                let held = &mut self.ports[port].held;
                if held.lowest.is_none_or(|lowest| left < lowest) {
                    *held = HeldByBacklog { polls: 0, lowest: Some(left) };
                }
                held.polls += 1;
                if held.polls > SETTLING_POLLS {
                    overdue = Some(port);
                }
            }
            self.check_overdue(part, overdue)?;
        }
        Ok(())
    }

    fn check_overdue<P: Packet>(&mut self, part: &Pipeline<P>, overdue: Option<usize>) -> Check {
        let window = &mut self.lcores[part.lcore].passed;
        let Some(port) = overdue else {
            window.polls = 0;
            return Ok(());
        };
        let now = passed(part);
        if window.polls == 0 {
            *window = PassedWhileHeld { polls: 1, before: now };
            return Ok(());
        }
        let (polls, before) = (window.polls, window.before);
        window.polls += 1;
        let (lossy, others) = (now.lossy - before.lossy, now.others - before.others);
        let least = polls * LEAST_PASSED * part.own.len() as u64;
        ensure(polls < PROOF_POLLS || lossy <= least.max(others), "starved_by_lossy", || {
            format!(
                "{}: its lossless classes are held by its own backlog for {} polls, and its lcore has passed {lossy} lossy and {others} other \
                 frames in the last {polls}",
                self.ports[port].name, self.ports[port].held.polls
            )
        })
    }
}

fn passed<P: Packet>(part: &Pipeline<P>) -> Passed {
    let mut passed = Passed::default();
    for port in part.own.iter() {
        let counters = &part.telemetry.counters.ports[port];
        for class in 0..CLASSES {
            let is_lossy = !part.ports[port].classifier.of_class(class).class_bits.lossy_queue().is_empty();
            let shed = counters.drops[class][DropReason::Shed as usize].get();
            *(if is_lossy { &mut passed.lossy } else { &mut passed.others }) += counters.rx_frames[class].get() - shed;
        }
        let refused = counters.drops[UNCLASSIFIED][DropReason::MacControl as usize].get();
        passed.others += counters.pfc_rx_frames.get() + counters.pause_rx_frames.get() + refused;
    }
    passed
}
