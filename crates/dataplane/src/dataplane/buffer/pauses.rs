//! The peers that an lcore has paused, and why: groups at XOFF, or a backlog in the receive ring.

use crate::dataplane::port::Port;
use crate::mutant::{self, Mutant};
use crate::plan::counters::PortCounters;
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::Ticks;

/// The ports whose peers are paused, and the time of the next look at received pauses.
#[derive(Debug, Default)]
pub(crate) struct PauseState {
    /// Ports with groups at XOFF.
    pub xoff: PortSet,
    /// Ports whose peers were told of a pause that may last.
    pub told: PortSet,
    /// Ports whose receive backlog pauses their peers.
    pub backlogged: PortSet,
    /// Time of the earliest watchdog check of all ports; zero until the first one, and after a change of watchdogs.
    pub watch_at: Ticks,
}

impl PauseState {
    /// Passes the XOFF state of a port (buffer and receive backlog) to its PFC. Returns the groups that were not at
    /// XOFF before.
    #[inline]
    pub fn update(&mut self, number: usize, port: &mut Port) -> ClassSet {
        let xoff = port.ledger.xoff();
        self.xoff.set(number, !xoff.is_empty());
        port.pfc.set_xoff(port.wants_xoff())
    }

    /// Evaluates the frames `left` in the receive ring of a port after a poll; `None`: unknown. At least `enough`
    /// frames, or at least the port's mark, are a backlog: the lossless groups are then XOFF until the ring is drained.
    /// Returns whether this changed.
    pub fn judge_backlog(
        &mut self,
        number: usize,
        port: &mut Port,
        left: Option<usize>,
        enough: u32,
        counters: &PortCounters,
        now: Ticks,
    ) -> bool {
        port.left_frames |= left != Some(0);
        let left = if mutant::is(Mutant::BacklogIgnored) { Some(0) } else { left };
        if let Some(left) = left {
            counters.backlog_frames.set(left as u64);
            counters.backlog_highest_frames.raise(left as u64);
        }
        let before = port.backlog.is_on();
        let lossless = |class: &usize| port.classifier.of_class(*class).class_bits.lossy_queue().is_empty();
        let received = (0..CLASSES).filter(lossless).map(|class| counters.rx_frames[class].get()).sum();
        port.backlog.judge(left, enough, received, now);
        let is_changed = port.backlog.is_on() != before;
        if is_changed {
            counters.backlog_xoffs.add(u64::from(!before));
            self.backlogged.set(number, !before);
        }
        is_changed
    }
}
