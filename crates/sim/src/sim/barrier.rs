//! Meeting point of the threads of a run after each window, and the frames that they pass to one another. Loom does not
//! model it: it has no `Mutex` of loom, and its order is that of one counter.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::frame::SimPacket;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Polls of the meeting point before a thread lets others have its CPU: about 20 us.
const SPINS: u32 = 10_000;

/// Frames that were sent on a wire, each with the time of its arrival.
pub type Frames = (usize, VecDeque<(u64, SimPacket)>);

/// Places that the threads share. Windows alternate between two sets of them, so that one barrier suffices for each.
#[derive(Debug)]
pub struct Exchange {
    threads: usize,
    arrived: AtomicU64,
    /// Whether a thread has panicked: no other must wait for it.
    is_over: AtomicBool,
    sides: [Side; 2],
}

/// The places of every other window.
#[derive(Debug)]
struct Side {
    /// By thread.
    notes: Vec<Note>,
    /// By sending and receiving thread.
    frames: Vec<Mutex<Vec<Frames>>>,
}

/// Facts that a thread states after a window.
#[derive(Debug, Default)]
struct Note {
    next_ps: AtomicU64,
    handled: AtomicU64,
    is_broken: AtomicBool,
}

/// Facts about all threads after a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Time of the next event, or of an earlier arrival at a switch that rests.
    pub next_ps: u64,
    /// Events handled so far.
    pub handled: u64,
    /// Whether an invariant was violated.
    pub is_broken: bool,
}

impl Exchange {
    /// Returns the meeting point of these threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let side = || Side {
            notes: (0..threads).map(|_| Note::default()).collect(),
            frames: (0..threads * threads).map(|_| Mutex::default()).collect(),
        };
        Self { threads, arrived: AtomicU64::new(0), is_over: AtomicBool::new(false), sides: [side(), side()] }
    }

    /// Leaves frames for thread `to`, before [`Exchange::meet`] of the same `round`.
    pub fn leave(&self, round: u64, from: usize, to: usize, frames: &mut Vec<Frames>) {
        let place = &self.sides[round as usize % 2].frames[from * self.threads + to];
        std::mem::swap(&mut *place.lock().unwrap_or_else(PoisonError::into_inner), frames);
    }

    /// Passes the frames for thread `to` to `take`, after [`Exchange::meet`] of the same `round`.
    pub fn take(&self, round: u64, to: usize, mut take: impl FnMut(usize, VecDeque<(u64, SimPacket)>)) {
        for from in 0..self.threads {
            let place = &self.sides[round as usize % 2].frames[from * self.threads + to];
            let mut frames = place.lock().unwrap_or_else(PoisonError::into_inner);
            frames.drain(..).for_each(|(wire, frames)| take(wire, frames));
        }
    }

    /// States the facts of thread `own`, waits for all threads, and returns the facts of all. Rounds count from one.
    ///
    /// # Panics
    /// If another thread has panicked.
    pub fn meet(&self, round: u64, own: usize, facts: Summary) -> Summary {
        let notes = &self.sides[round as usize % 2].notes;
        notes[own].next_ps.store(facts.next_ps, Ordering::Relaxed);
        notes[own].handled.store(facts.handled, Ordering::Relaxed);
        notes[own].is_broken.store(facts.is_broken, Ordering::Relaxed);
        // Releases the facts and frames of this thread, and acquires those of the others.
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < round * self.threads as u64 {
            assert!(!self.is_over.load(Ordering::Relaxed), "another thread of the run has panicked");
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        Summary {
            next_ps: notes.iter().map(|note| note.next_ps.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX),
            handled: notes.iter().map(|note| note.handled.load(Ordering::Relaxed)).sum(),
            is_broken: notes.iter().any(|note| note.is_broken.load(Ordering::Relaxed)),
        }
    }

    /// Returns a guard that frees waiting threads if this one panics.
    #[must_use]
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

/// Frees waiting threads if its own panics.
#[derive(Debug)]
pub struct Guard<'a>(&'a Exchange);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_over.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_that_panics_frees_the_others() {
        let exchange = Exchange::new(2);
        let facts = Summary { next_ps: 0, handled: 0, is_broken: false };
        let ends = std::thread::scope(|scope| {
            let waits = scope.spawn(|| exchange.meet(1, 0, facts));
            let panics = scope.spawn(|| {
                let _guard = exchange.guard();
                panic!("a test of panics");
            });
            [waits.join().is_err(), panics.join().is_err()]
        });
        assert_eq!(ends, [true; 2]);
    }

    #[test]
    fn threads_meet_and_take_what_others_left_in_the_same_round() {
        const ROUNDS: u64 = 2_000;
        let exchange = Exchange::new(3);
        std::thread::scope(|scope| {
            for own in 0..3_usize {
                let exchange = &exchange;
                scope.spawn(move || {
                    let _guard = exchange.guard();
                    for round in 1..=ROUNDS {
                        for to in (0..3).filter(|to| *to != own) {
                            let wire = (round as usize * 3 + own) * 3 + to;
                            exchange.leave(round, own, to, &mut vec![(wire, VecDeque::new())]);
                        }
                        let facts = Summary { next_ps: round * 10 + own as u64, handled: round, is_broken: false };
                        let all = exchange.meet(round, own, facts);
                        assert_eq!(all, Summary { next_ps: round * 10, handled: 3 * round, is_broken: false });
                        let mut wires = Vec::new();
                        exchange.take(round, own, |wire, _| wires.push(wire));
                        let others = (0..3).filter(|from| *from != own);
                        let expected: Vec<_> = others.map(|from| (round as usize * 3 + from) * 3 + own).collect();
                        assert_eq!(wires, expected);
                    }
                });
            }
        });
    }
}
