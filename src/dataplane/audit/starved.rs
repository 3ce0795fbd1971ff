//! Isolation on a busy core: an lcore with more frames than time sheds lossy frames before it holds lossless senders.

use super::super::drops::DropReason;
use super::super::pipeline::{Pipeline, bits};
use super::super::shed::{LEAST_PASSED, SETTLING_POLLS};
use super::{Auditor, Check, ensure};
use crate::packet::Packet;
use crate::qos::CLASSES;

/// Polls beyond those in which the allowance settles, after which the rule is asked.
const PROOF_POLLS: u64 = 2;

/// How long the lossless classes of a port have been held by its own receive backlog.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeldByBacklog {
    /// Polls in a row.
    polls: u64,
    /// Frames that had been received and not shed when the allowance should have settled: lossless, lossy.
    passed: [u64; 2],
}

impl Auditor {
    /// A port whose lossless classes are held by its own backlog for longer than the allowance takes to settle passes no more
    /// lossy frames in a poll than the least allowance, or fewer than lossless ones. Judged after each poll of the lcore that
    /// owns the port.
    pub(super) fn check_starved<P: Packet>(&mut self, fleet: &[Pipeline<P>]) -> Check {
        for part in fleet.iter().filter(|part| self.lcores[part.lcore].has_polled) {
            for port in bits(part.backlogged | self.held & part.mine) {
                let held = &mut self.ports[port].held;
                if part.backlogged >> port & 1 == 0 {
                    *held = HeldByBacklog::default();
                    self.held &= !(1 << port);
                    continue;
                }
                self.held |= 1 << port;
                held.polls += 1;
                let passed = passed(part, port);
                if held.polls <= SETTLING_POLLS {
                    held.passed = passed;
                    continue;
                }
                let polls = held.polls - SETTLING_POLLS;
                let [lossless, lossy] = [0, 1].map(|kind| passed[kind] - held.passed[kind]);
                let is_fair = lossy <= (polls * LEAST_PASSED).max(lossless);
                ensure(polls < PROOF_POLLS || is_fair, "starved_by_lossy", || {
                    format!(
                        "{}: {lossy} lossy and {lossless} lossless frames passed in {polls} polls while its lossless classes were held by its own \
                         backlog, for {} polls so far",
                        self.ports[port].name, self.ports[port].held.polls
                    )
                })?;
            }
        }
        Ok(())
    }
}

/// Frames that were received at `port` and not shed: lossless, lossy.
fn passed<P: Packet>(part: &Pipeline<P>, port: usize) -> [u64; 2] {
    let counters = &part.counters.ports[port];
    let mut passed = [0; 2];
    for class in 0..CLASSES {
        let is_lossy = part.ports[port].lanes.of_class(class).kind.lossy() != 0;
        let shed = counters.drops[class][DropReason::Shed as usize].get();
        passed[usize::from(is_lossy)] += counters.rx_frames[class].get() - shed;
    }
    passed
}
