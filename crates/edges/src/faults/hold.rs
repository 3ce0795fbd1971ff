//! Frames that an lcore holds: delayed ones until they are due, and those that are due until a port takes them.
//!
//! All memory is allocated at the start. A lane is one direction of a port, or one of its receive queues.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::counters::PFC_ROW;
use super::{HELD_FRAMES, HELD_PFC_FRAMES};
use crate::sets::{BURST, CLASSES};
use crate::units::Ticks;

/// Frames of each port that wait beside the delayed ones: a burst and its copies of each receive queue that did not fit
/// the burst of the switch, and sent ones that a device refused.
pub const SPARE_FRAMES: usize = (CLASSES + 2) * BURST;
const DELAYED: usize = HELD_FRAMES + HELD_PFC_FRAMES;
/// Tickets of data frames at most, with those of frames that left early.
const MOST_TICKETS: usize = 2 * HELD_FRAMES;
/// Marks the end of a list.
const NONE: u16 = u16::MAX;

/// Names a held frame until it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    number: u64,
    slot: u16,
}

#[derive(Debug)]
struct Slot<P> {
    frame: Option<P>,
    /// Number of its ticket; it is unique.
    number: u64,
    next: u16,
    /// Row of the counters.
    row: u8,
    /// Whether it waits for its time.
    is_delayed: bool,
}

/// Frames of a lane that are due, first to last.
#[derive(Debug, Clone, Copy)]
struct Lane {
    first: u16,
    last: u16,
    len: u16,
}

/// The held frames of one lcore.
#[derive(Debug)]
pub struct Hold<P> {
    slots: Box<[Slot<P>]>,
    free: u16,
    lanes: Box<[Lane]>,
    /// Instant, ticket and lane of each delayed frame. Entries of frames that left earlier stay until their instant.
    due: BinaryHeap<Reverse<(Ticks, Ticket, u16)>>,
    next_number: u64,
    delayed: usize,
    delayed_pfc: usize,
    ready: usize,
}

/// A frame that leaves, with its row and its lane.
pub struct Ended<P> {
    /// The frame.
    pub frame: P,
    /// Row of the counters.
    pub row: usize,
    /// Its lane.
    pub lane: usize,
}

impl<P> Hold<P> {
    /// Room for the frames of `ports` ports with `lanes` lanes in all.
    #[must_use]
    pub fn new(ports: usize, lanes: usize) -> Self {
        let slots = DELAYED + ports * SPARE_FRAMES;
        let next = |next: usize| if next == slots { NONE } else { next as u16 };
        let slot = |after| Slot { frame: None, number: 0, next: next(after), row: 0, is_delayed: false };
        Self {
            slots: (1..=slots).map(slot).collect(),
            free: 0,
            lanes: vec![Lane { first: NONE, last: NONE, len: 0 }; lanes].into(),
            due: BinaryHeap::with_capacity(MOST_TICKETS + HELD_PFC_FRAMES),
            next_number: 1,
            delayed: 0,
            delayed_pfc: 0,
            ready: 0,
        }
    }

    /// Number of frames that are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.delayed + self.delayed_pfc + self.ready
    }

    /// Whether no frame is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of frames of `lane` that are due.
    #[must_use]
    pub fn ready(&self, lane: usize) -> usize {
        self.lanes[lane].len.into()
    }

    /// Holds `frame` of `lane` until `due`. Data frames leave room for PFC frames, which never leave early.
    ///
    /// # Errors
    /// The frame, if too many are delayed.
    pub fn delay(&mut self, frame: P, lane: usize, row: usize, due: Ticks) -> Result<Ticket, P> {
        let is_pfc = row == PFC_ROW;
        let (data, tickets) = (self.delayed + self.ready, self.due.len() - self.delayed_pfc);
        let is_full =
            if is_pfc { self.delayed_pfc >= HELD_PFC_FRAMES } else { data >= HELD_FRAMES || tickets >= MOST_TICKETS };
        if is_full {
            return Err(frame);
        }
        let slot = self.take_slot(frame, row)?;
        let ticket = Ticket { number: self.next_number, slot };
        self.next_number += 1;
        let state = &mut self.slots[usize::from(slot)];
        (state.number, state.is_delayed) = (ticket.number, true);
        *self.delayed_count(row) += 1;
        self.due.push(Reverse((due, ticket, lane as u16)));
        Ok(ticket)
    }

    /// Whether the frame of `ticket` is still delayed.
    #[must_use]
    pub fn is_waiting(&self, ticket: Ticket) -> bool {
        let slot = &self.slots[usize::from(ticket.slot)];
        slot.is_delayed && slot.number == ticket.number
    }

    /// Makes the delayed frame of `ticket` due in `lane`, if it still waits.
    pub fn hasten(&mut self, ticket: Ticket, lane: usize) {
        if self.is_waiting(ticket) {
            self.make_ready(ticket.slot, lane);
        }
    }

    /// Makes the frames due whose instant has come by `now`.
    pub fn step(&mut self, now: Ticks) {
        while let Some(&Reverse((due, ticket, lane))) = self.due.peek() {
            if due > now {
                return;
            }
            self.due.pop();
            self.hasten(ticket, lane.into());
        }
    }

    /// Appends a frame to those of `lane` that are due.
    ///
    /// # Errors
    /// The frame, if there is no room.
    pub fn append(&mut self, frame: P, lane: usize, row: usize) -> Result<(), P> {
        let slot = self.take_slot(frame, row)?;
        self.link(slot, lane);
        self.ready += 1;
        Ok(())
    }

    /// Puts a frame in front of those of `lane` that are due.
    ///
    /// # Errors
    /// The frame, if there is no room.
    pub fn put_back(&mut self, frame: P, lane: usize, row: usize) -> Result<(), P> {
        let slot = self.take_slot(frame, row)?;
        let state = &mut self.lanes[lane];
        self.slots[usize::from(slot)].next = state.first;
        if state.last == NONE {
            state.last = slot;
        }
        (state.first, state.len) = (slot, state.len + 1);
        self.ready += 1;
        Ok(())
    }

    /// Takes the first due frame of `lane`, with its row.
    pub fn pop(&mut self, lane: usize) -> Option<(P, usize)> {
        let index = self.lanes[lane].first;
        if index == NONE {
            return None;
        }
        let slot = &mut self.slots[usize::from(index)];
        let (frame, row) = (slot.frame.take()?, slot.row.into());
        let state = &mut self.lanes[lane];
        (state.first, state.len) = (slot.next, state.len - 1);
        if state.first == NONE {
            state.last = NONE;
        }
        (slot.next, self.free) = (self.free, index);
        self.ready -= 1;
        Some((frame, row))
    }

    /// Takes any frame; frames that are due come first, lane by lane.
    pub fn take_any(&mut self) -> Option<Ended<P>> {
        if let Some(lane) = (0..self.lanes.len()).find(|&lane| self.lanes[lane].len > 0) {
            let (frame, row) = self.pop(lane)?;
            return Some(Ended { frame, row, lane });
        }
        // A ticket without a frame is that of a frame that left before its instant.
        while let Some(Reverse((_, ticket, lane))) = self.due.pop() {
            self.hasten(ticket, lane.into());
            if let Some((frame, row)) = self.pop(lane.into()) {
                return Some(Ended { frame, row, lane: lane.into() });
            }
        }
        None
    }

    fn take_slot(&mut self, frame: P, row: usize) -> Result<u16, P> {
        let index = self.free;
        if index == NONE {
            return Err(frame);
        }
        let slot = &mut self.slots[usize::from(index)];
        self.free = slot.next;
        (slot.frame, slot.row, slot.next, slot.is_delayed) = (Some(frame), row as u8, NONE, false);
        Ok(index)
    }

    fn make_ready(&mut self, index: u16, lane: usize) {
        let slot = &mut self.slots[usize::from(index)];
        slot.is_delayed = false;
        let row = slot.row.into();
        *self.delayed_count(row) -= 1;
        self.link(index, lane);
        self.ready += 1;
    }

    fn delayed_count(&mut self, row: usize) -> &mut usize {
        if row == PFC_ROW { &mut self.delayed_pfc } else { &mut self.delayed }
    }

    fn link(&mut self, index: u16, lane: usize) {
        self.slots[usize::from(index)].next = NONE;
        let state = &mut self.lanes[lane];
        match state.last {
            NONE => state.first = index,
            last => self.slots[usize::from(last)].next = index,
        }
        (state.last, state.len) = (index, state.len + 1);
    }
}
