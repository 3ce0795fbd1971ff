//! A second ledger beside the switch's, from what passes its ports: it knows which frame crosses a threshold.
//!
//! It decides by the library's own [`PortLedger`], in the order in which the switch does: at the begin of a poll what left
//! in the last one is released and paused groups are judged; then each frame of a lossless class is admitted as work on
//! its burst begins. Lossy classes have pools of their own, and are not in it. Since one lcore's pool and ledger are exact, the
//! shadow says XOFF and XON when the switch does; a PFC frame that it did not expect, or one that does not come, counts
//! as a surprise, and a run with surprises has no result.

use std::sync::Arc;

use holdfast::dataplane::SwitchSpec;
use holdfast::mmu::{ExactPool, Lease, Pools, PortLedger, SharedPool};
use holdfast::sets::BURST;
use holdfast::units::{CellSize, Cells};
use holdfast::wire::mac_control::PfcFrame;

use super::{Arrival, Flow, Link};

/// Why a switch says XOFF or XON, and when that came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A frame that was complete at this instant is the first beyond the threshold.
    Crossed(u64),
    /// The frame that came at this instant filled the receive ring to the mark, with what a poll left.
    Backlog(u64),
    /// At this instant the frame was handed out that brought the group back to where it may go on.
    Fell(u64),
    /// At this instant the receive ring was found empty.
    Drained(u64),
}

/// What the shadow knows of one port and one lossless class.
#[derive(Debug)]
struct Group {
    ledger: PortLedger,
    mark: Option<u32>,
    has_backlog: bool,
    /// What the peer was told.
    told: bool,
    /// Why it is to be told something else.
    cause: Option<Cause>,
}

/// The shadow of a switch of one lcore with one lossless class.
#[derive(Debug)]
pub struct Shadow {
    class: u8,
    groups: Vec<Group>,
    pools: Pools,
    cells: Cells,
    /// What left in this poll, by burst: when, the port it came by, how many frames.
    left: Vec<(u64, usize, u32)>,
    /// PFC frames that were not expected, and changes that no PFC frame told.
    pub surprises: u64,
}

impl Shadow {
    /// Of a switch by `spec`, for `class`, of which all frames have `frame_len` bytes.
    pub fn new(spec: &SwitchSpec, class: u8, frame_len: usize) -> Self {
        let hand = |cells| Lease::new(SharedPool::new(cells));
        let groups = spec.ports.iter().map(|port| Group {
            ledger: PortLedger::new(&port.buffer),
            mark: port.backlog_mark,
            has_backlog: false,
            told: false,
            cause: None,
        });
        let shared = [hand(spec.buffer.lossy_shared), hand(spec.buffer.lossless_shared)];
        Self {
            class,
            groups: groups.collect(),
            pools: Pools { shared, headroom: Arc::clone(&ExactPool::new(spec.buffer.headroom)) },
            cells: CellSize::new(spec.buffer.cell).cells_of(frame_len as u16),
            left: Vec::with_capacity(1024),
            surprises: 0,
        }
    }

    /// A poll begins: what left in the last one is free. Burst by burst, so that the one is known which made the difference.
    pub fn begin_poll(&mut self) {
        for index in 0..self.left.len() {
            let (at, port, frames) = self.left[index];
            let cells = Cells(self.cells.0 * frames);
            self.groups[port].ledger.release(usize::from(self.class), cells, &mut self.pools);
            let is_last_of_burst = self.left.get(index + 1).is_none_or(|next| next.0 != at);
            if is_last_of_burst {
                self.judge(at);
            }
        }
        self.left.clear();
    }

    fn judge(&mut self, at: u64) {
        for group in &mut self.groups {
            if group.ledger.judge(&self.pools) && !group.has_backlog {
                group.cause = group.told.then_some(Cause::Fell(at));
            }
        }
    }

    /// The switch was handed this frame.
    #[inline]
    pub fn received(&mut self, arrival: Arrival, flow: Flow) {
        if flow.class != self.class {
            return;
        }
        let group = &mut self.groups[arrival.port()];
        let before = group.ledger.xoff();
        // What is refused is lost, and the bench asserts that nothing is.
        let _ = group.ledger.admit(usize::from(self.class), self.cells, &mut self.pools);
        if before == 0 && group.ledger.xoff() != 0 {
            group.cause = (!group.told).then_some(Cause::Crossed(arrival.at()));
        }
    }

    /// The switch has asked `port` and got `frames`.
    #[inline]
    pub fn visited(&mut self, port: usize, frames: usize, now: u64) {
        if frames < BURST {
            self.drained(port, now);
        }
    }

    fn drained(&mut self, port: usize, now: u64) {
        let group = &mut self.groups[port];
        if std::mem::take(&mut group.has_backlog) && group.ledger.xoff() == 0 {
            group.cause = Some(Cause::Drained(now));
        }
    }

    /// The switch was told at `now` how many frames wait.
    pub fn asked(&mut self, port: usize, left: usize, link: &Link, now: u64) {
        if left == 0 {
            return self.drained(port, now);
        }
        let group = &mut self.groups[port];
        let Some(mark) = group.mark.filter(|&mark| left >= mark as usize && !group.has_backlog) else { return };
        group.has_backlog = true;
        if !group.told {
            let arrival = link.waiting_behind(mark as usize - 1).unwrap_or_default();
            group.cause = Some(Cause::Backlog(arrival.at()));
        }
    }

    /// A frame that came as `arrival` says has left.
    #[inline]
    pub fn sent(&mut self, arrival: Arrival, flow: Flow, now: u64) {
        if flow.class != self.class {
            return;
        }
        match self.left.last_mut() {
            Some((at, port, frames)) if *at == now && *port == arrival.port() => *frames += 1,
            _ => self.left.push((now, arrival.port(), 1)),
        }
    }

    /// `port` has sent a PFC frame. Why, if it tells something new.
    pub fn pfc(&mut self, port: usize, frame: &PfcFrame) -> Option<Cause> {
        if frame.enabled >> self.class & 1 == 0 {
            return None;
        }
        let xoff = frame.quanta[usize::from(self.class)].0 > 0;
        let group = &mut self.groups[port];
        if group.told == xoff {
            // Said again, as it must be from time to time.
            return None;
        }
        group.told = xoff;
        let cause = group.cause.take();
        let is_expected = match cause {
            Some(Cause::Crossed(_) | Cause::Backlog(_)) => xoff,
            Some(Cause::Fell(_) | Cause::Drained(_)) => !xoff,
            None => false,
        };
        self.surprises += u64::from(!is_expected);
        cause.filter(|_| is_expected)
    }

    /// A poll has ended: whatever was to be told has been.
    #[inline]
    pub fn end_poll(&mut self) {
        for group in &mut self.groups {
            let wants = group.ledger.xoff() >> self.class & 1 == 1 || group.has_backlog;
            self.surprises += u64::from(wants != group.told);
        }
    }
}
