//! A second ledger beside that of the switch, fed by the frames that pass its ports. It knows which frame crosses a
//! threshold.
//!
//! It uses the library's own [`PortLedger`], in the order of the switch. At the beginning of a poll, the frames that
//! left in the last one are released, and paused groups are judged. Then each frame of a lossless class is admitted
//! when work on its burst begins. Lossy classes have their own pools and are not included.
//!
//! With one lcore, pool and ledger are exact, so the shadow predicts each XOFF and XON. A PFC frame that it did not
//! expect, or an expected one that is missing, is a surprise. A run with surprises has no result.

use std::sync::Arc;

use holdfast::mmu::{ExactPool, Lease, Pools, PortLedger, SharedPool};
use holdfast::plan::SwitchSpec;
use holdfast::units::{CellSize, Cells};
use holdfast::wire::mac_control::PfcFrame;

use super::{Arrival, Flow, Left, Link};

/// The cause of an XOFF or XON, with its time in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The first frame beyond the threshold was complete at this time.
    Crossed(u64),
    /// The frame that arrived at this time filled the receive ring to the mark, together with those that a poll left.
    Backlog(u64),
    /// The frame that was sent at this time brought the group below its XON threshold.
    Fell(u64),
    /// The receive ring was found empty at this time.
    Drained(u64),
}

/// State of one port for the lossless class.
#[derive(Debug)]
struct Group {
    ledger: PortLedger,
    mark: Option<u32>,
    has_backlog: bool,
    /// Whether the switch last sent XOFF for the class, not XON.
    told: bool,
    /// The cause of the PFC frame that is due.
    cause: Option<Cause>,
}

/// The shadow of a switch of one lcore with one lossless class.
#[derive(Debug)]
pub struct Shadow {
    class: u8,
    groups: Vec<Group>,
    pools: Pools,
    cells: Cells,
    /// Frames that left in this poll, by burst: time, ingress port and number.
    left: Vec<(u64, usize, u32)>,
    /// Unexpected PFC frames, and changes without a PFC frame.
    pub surprises: u64,
}

impl Shadow {
    /// Creates the shadow of a switch for `class`, whose frames all have `frame_len` bytes.
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

    /// Begins a poll: releases the frames that left in the last one. Groups are judged after each burst, so that the
    /// burst that made the difference is known.
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
            if group.ledger.reevaluate_xoff(&self.pools) && !group.has_backlog {
                group.cause = group.told.then_some(Cause::Fell(at));
            }
        }
    }

    /// Admits a frame on which the switch decides.
    #[inline]
    pub fn received(&mut self, arrival: Arrival, flow: Flow) {
        if flow.class != self.class {
            return;
        }
        let group = &mut self.groups[arrival.port()];
        let before = group.ledger.xoff();
        // A refused frame is lost, and the bench asserts that none is.
        let _ = group.ledger.admit(usize::from(self.class), self.cells, &mut self.pools);
        if before.is_empty() && !group.ledger.xoff().is_empty() {
            group.cause = (!group.told).then_some(Cause::Crossed(arrival.at()));
        }
    }

    /// Records that the switch found at `now` that no frame was left at `port`.
    #[inline]
    pub fn drained(&mut self, port: usize, now: u64) {
        let group = &mut self.groups[port];
        if std::mem::take(&mut group.has_backlog) && group.ledger.xoff().is_empty() {
            group.cause = Some(Cause::Drained(now));
        }
    }

    /// Records that the switch learned at `now` how many frames are `left` at `port`.
    pub fn asked(&mut self, port: usize, left: Left, link: &Link, now: u64) {
        if left.frames == 0 {
            return self.drained(port, now);
        }
        let group = &mut self.groups[port];
        // Any frame is a backlog if there was no time to receive it.
        let mark = group.mark.map(|mark| if left.is_cut_short { 1 } else { mark });
        let Some(mark) = mark.filter(|&mark| left.frames >= mark as usize && !group.has_backlog) else { return };
        group.has_backlog = true;
        let arrival = link.waiting_behind(mark as usize - 1).unwrap_or_default();
        group.cause = (!group.told).then_some(Cause::Backlog(arrival.at()));
    }

    /// Records that a frame has left; `arrival` describes it at ingress.
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

    /// Records that `port` sent a PFC frame. Returns the cause, if the frame announces a change.
    pub fn pfc(&mut self, port: usize, frame: &PfcFrame) -> Option<Cause> {
        if !frame.enabled.contains(self.class.into()) {
            return None;
        }
        let xoff = frame.quanta[usize::from(self.class)].0 > 0;
        let group = &mut self.groups[port];
        if group.told == xoff {
            // A refresh, which is due from time to time.
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

    /// Ends a poll: each change that was due must have been sent.
    #[inline]
    pub fn end_poll(&mut self) {
        for group in &mut self.groups {
            let wants = group.ledger.xoff().contains(self.class.into()) || group.has_backlog;
            // After eight XOFFs at whose end frames still came, the switch waits for a poll without any.
            let may_wait = group.told && matches!(group.cause, Some(Cause::Drained(_)));
            self.surprises += u64::from(wants != group.told && !may_wait);
        }
    }
}
