//! Isolation on an overloaded lcore: it sheds lossy frames before it pauses the senders of lossless ones.

use super::{Auditor, Check, ensure};
use crate::dataplane::ingress::shed::{LEAST_PASSED, SETTLING_POLLS};
use crate::dataplane::pipeline::Pipeline;
use crate::io::Packet;
use crate::plan::counters::UNCLASSIFIED;
use crate::plan::drops::DropReason;
use crate::sets::CLASSES;

/// Polls in addition to [`SETTLING_POLLS`] before the rule applies.
const PROOF_POLLS: u64 = 2;

/// How long a port's own receive backlog has paused its lossless classes without shrinking.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct HeldByBacklog {
    /// Consecutive polls since the backlog last shrank below `lowest`.
    polls: u64,
    /// The smallest backlog so far, in frames; `None` before the first poll.
    lowest: Option<u64>,
}

/// Frames that one lcore has passed since the backlog of one of its ports paused lossless classes for longer than
/// [`SETTLING_POLLS`].
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PassedWhileHeld {
    polls: u64,
    /// Frames passed when that period began.
    before: Passed,
}

/// Frames received and not shed, summed over all ports of an lcore.
#[derive(Debug, Default, Clone, Copy)]
struct Passed {
    lossy: u64,
    /// Lossless frames and MAC control, which cannot be shed.
    others: u64,
}

impl Auditor {
    /// Checks that an lcore whose patience is spent sheds enough while the backlog of one of its ports pauses lossless
    /// classes and does not shrink. Its ports then pass at most the least allowance of lossy frames per poll, or fewer
    /// lossy frames than frames that cannot be shed. The rule is judged after each poll of the lcore: a flood at any of
    /// its ports takes time from all.
    pub(crate) fn check_starved<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        for part in fleet {
            if !self.lcores[part.lcore].has_polled {
                continue;
            }
            let (mut overdue, is_patient) = (None, part.shedder.is_patient(part.now));
            for port in (part.pauses.backlogged | self.held & part.own).iter() {
                if !part.pauses.backlogged.contains(port) {
                    self.ports[port].held = HeldByBacklog::default();
                    self.held.remove(port);
                    continue;
                }
                self.held.insert(port);
                let left = part.telemetry.counters.ports[port].backlog_frames.get();
                let held = &mut self.ports[port].held;
                if is_patient || held.lowest.is_none_or(|lowest| left < lowest) {
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
                "{}: its own backlog has paused its lossless classes for {} polls, and its lcore has passed {lossy} \
                 lossy and {others} other frames in the last {polls}",
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
