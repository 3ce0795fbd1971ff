//! The faults of one lcore: the orders, their progress and their counters.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::MOST_FAULTS;
use super::counters::{FaultCounters, LcoreCounters, PFC_ROW};
use super::rule::{Draws, Rule};
use super::spec::{FaultKind, Toward};
use super::storm::Storm;
use super::table::{ClassReader, Entry, FaultTable};
use super::view::FrameView;
use crate::io::Packet;
use crate::sets::{CLASSES, ClassSet, MAX_PORTS, PortSet};
use crate::units::Ticks;

/// The fate of a frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fate {
    /// The wire loses it.
    pub is_lost: bool,
    /// Slot of the fault that duplicates it.
    pub copied_by: Option<u8>,
    /// Instant until which it is held, with the slot of the fault.
    pub due: Option<(Ticks, u8)>,
    /// Number of later frames that pass first.
    pub behind: u16,
    /// Row of its counters.
    pub row: u8,
}

/// An order with its progress.
#[derive(Debug, Clone, Copy)]
struct Order {
    entry: Entry,
    rule: Rule,
    storm: Storm,
}

/// The faults of one lcore.
#[derive(Debug)]
pub(super) struct LcoreFaults {
    orders: ArrayVec<Order, MOST_FAULTS>,
    /// The previous orders, while new ones are taken over.
    before: ArrayVec<Order, MOST_FAULTS>,
    classes: Box<[ClassReader]>,
    /// Orders by direction and port, as bits of their indices.
    of_port: [[u64; MAX_PORTS]; 2],
    /// Ports with a storm.
    stormy: PortSet,
    /// Priorities whose storm was removed before its XON.
    xon: Box<[ClassSet]>,
    counters: Arc<FaultCounters>,
    lcore: usize,
    seed: u64,
}

impl LcoreFaults {
    /// The faults of lcore `lcore`, with random numbers by `seed`.
    pub fn new(counters: Arc<FaultCounters>, lcore: usize, seed: u64, table: &FaultTable) -> Self {
        let mut faults = Self {
            orders: ArrayVec::new(),
            before: ArrayVec::new(),
            classes: table.classes.clone().into(),
            of_port: [[0; MAX_PORTS]; 2],
            stormy: PortSet::EMPTY,
            xon: vec![ClassSet::EMPTY; table.classes.len()].into(),
            counters,
            lcore,
            seed,
        };
        faults.apply(table);
        faults
    }

    /// Goes by `table` from now on. Faults that were there before keep their progress.
    #[cold]
    pub fn apply(&mut self, table: &FaultTable) {
        std::mem::swap(&mut self.orders, &mut self.before);
        self.orders.clear();
        (self.of_port, self.stormy) = ([[0; MAX_PORTS]; 2], PortSet::EMPTY);
        let known = self.classes.len().min(table.classes.len());
        self.classes[..known].copy_from_slice(&table.classes[..known]);
        for (index, &entry) in table.entries.iter().take(MOST_FAULTS).enumerate() {
            let before = self.before.iter().find(|order| order.entry.id == entry.id);
            let (rule, storm) = match before {
                Some(order) => (order.rule, order.storm),
                None => (Rule::new(Draws::new(self.seed, entry.id, self.lcore)), Storm::default()),
            };
            self.orders.push(Order { entry, rule, storm });
            if matches!(entry.fault.kind, FaultKind::Storm { .. }) {
                self.stormy.insert(entry.fault.port);
                continue;
            }
            for toward in [Toward::Switch, Toward::Host].into_iter().filter(|&toward| entry.fault.acts(toward)) {
                self.of_port[toward as usize][entry.fault.port] |= 1 << index;
            }
        }
        for order in self.before.iter().filter(|order| order.storm.is_on) {
            let is_left = self.orders.iter().any(|other| other.entry.id == order.entry.id);
            if let (FaultKind::Storm { priorities }, false) = (order.entry.fault.kind, is_left) {
                self.xon[order.entry.fault.port] |= priorities;
                self.stormy.insert(order.entry.fault.port);
            }
        }
    }

    /// Whether a fault may act on frames at `port` that travel `toward` an end.
    #[inline]
    pub fn concerns(&self, port: usize, toward: Toward) -> bool {
        self.of_port[toward as usize][port] != 0
    }

    /// Ends all orders.
    #[cold]
    pub fn end(&mut self) {
        self.apply(&FaultTable::default());
    }

    /// Whether a storm acts between `now` and `until`, or has still to send XON.
    pub fn is_stormy(&self, now: Ticks, until: Ticks) -> bool {
        let is_storm = |order: &Order| {
            let is_due = order.storm.is_on || order.entry.from < until && now < order.entry.until;
            matches!(order.entry.fault.kind, FaultKind::Storm { .. }) && is_due
        };
        self.xon.iter().any(|xon| !xon.is_empty()) || self.orders.iter().any(is_storm)
    }

    /// The priorities to stop and to resume now at `port`, by storms; `None` if no storm is there. The caller sends a
    /// frame for them and then calls [`LcoreFaults::commit_storms`].
    pub fn storms(&self, port: usize, now: Ticks) -> Option<(ClassSet, ClassSet)> {
        if !self.stormy.contains(port) {
            return None;
        }
        let (mut xoff, mut xon, mut active) = (ClassSet::EMPTY, self.xon[port], ClassSet::EMPTY);
        for order in self.orders.iter().filter(|order| order.entry.fault.port == port) {
            let FaultKind::Storm { priorities } = order.entry.fault.kind else { continue };
            if order.entry.is_active(now) {
                active |= priorities;
                xoff |= if order.storm.is_due(now) { priorities } else { ClassSet::EMPTY };
            } else if order.storm.is_on {
                xon |= priorities;
            }
        }
        // Another storm still stops them, and sends XON at its own end.
        Some((xoff, xon - active))
    }

    /// Records that the host has got the frame of [`LcoreFaults::storms`].
    pub fn commit_storms(&mut self, port: usize, now: Ticks) {
        self.xon[port] = ClassSet::EMPTY;
        let mut is_left = false;
        for order in self.orders.iter_mut().filter(|order| order.entry.fault.port == port) {
            let FaultKind::Storm { .. } = order.entry.fault.kind else { continue };
            is_left = true;
            if !order.entry.is_active(now) {
                order.storm.is_on = false;
            } else if order.storm.is_due(now) {
                order.storm.sent(&order.entry, now);
                count(self.counters.lcore(self.lcore), &order.entry, Toward::Switch, PFC_ROW);
            }
        }
        if !is_left {
            self.stormy.remove(port);
        }
    }

    /// Decides on `packet` at `port`, which travels `toward` an end, and changes its bytes if a fault does.
    pub fn judge(&mut self, packet: &mut impl Packet, port: usize, toward: Toward, now: Ticks) -> Fate {
        let counters = self.counters.lcore(self.lcore);
        let view = FrameView::read(packet.bytes(), &self.classes[port]);
        let row = if view.is_pfc { PFC_ROW } else { usize::from(view.class) % CLASSES };
        let mut fate = Fate { row: row as u8, ..Fate::default() };
        let mut left = self.of_port[toward as usize][port];
        while left != 0 {
            let order = &mut self.orders[left.trailing_zeros() as usize];
            left &= left - 1;
            let (entry, fault) = (order.entry, order.entry.fault);
            let is_selected =
                entry.is_active(now) && view.is_of(&fault) && (fault.kind != FaultKind::Mark || view.is_ect());
            if !is_selected || !order.rule.hits(fault.share, fault.burst) {
                continue;
            }
            let due = Ticks(now.0.saturating_add(entry.ticks));
            match fault.kind {
                FaultKind::Lose | FaultKind::Ignore => fate.is_lost = true,
                // Held frames are counted when there was room for them.
                FaultKind::Delay { .. } | FaultKind::Late { .. } => {
                    let before = fate.due.filter(|_| fate.behind == 0);
                    (fate.due, fate.behind) = (before.max(Some((due, entry.slot))), 0);
                    continue;
                }
                FaultKind::Reorder { behind } if fate.due.is_none() => {
                    (fate.due, fate.behind) = (Some((due, entry.slot)), behind);
                    continue;
                }
                // A delay holds the frame already, and storms concern no frame of the wire.
                FaultKind::Reorder { .. } | FaultKind::Storm { .. } => continue,
                FaultKind::Duplicate => {
                    fate.copied_by = Some(entry.slot);
                    continue;
                }
                FaultKind::Corrupt => view.corrupt(packet.bytes_mut(), order.rule.draws.draw()),
                FaultKind::Mark => view.mark(packet.bytes_mut()),
            }
            count(counters, &entry, toward, row);
            if fate.is_lost {
                return fate;
            }
        }
        fate
    }

    /// Counts a frame that the fault in `slot` hit, or let pass for lack of room.
    pub fn count(&self, slot: u8, toward: Toward, row: usize, is_hit: bool) {
        let counters = self.counters.lcore(self.lcore);
        let Some(order) = self.orders.iter().find(|order| order.entry.slot == slot) else { return };
        if is_hit {
            return count(counters, &order.entry, toward, row);
        }
        counters.slots[usize::from(slot)].passed.add(1);
        counters.ports[order.entry.fault.port].passed.add(1);
    }

    /// Counts a held frame of `port` that is lost.
    pub fn count_ended(&self, port: usize, row: usize) {
        self.counters.lcore(self.lcore).ports[port].ended[row].add(1);
    }

    /// Publishes the number of held frames.
    pub fn set_held(&self, held: usize) {
        self.counters.lcore(self.lcore).held.set(held as u64);
    }
}

fn count(counters: &LcoreCounters, entry: &Entry, toward: Toward, row: usize) {
    let (port, verb) = (entry.fault.port, entry.fault.kind.verb());
    counters.slots[usize::from(entry.slot)].hits[row].add(1);
    counters.ports[port].hits[verb as usize][toward as usize][row].add(1);
}
