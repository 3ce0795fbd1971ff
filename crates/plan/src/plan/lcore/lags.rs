//! The members of link aggregation groups, as the control plane tells them to the lcores.

use crate::forward::LagState;
use crate::sets::PortSet;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// A [`LagState`] for all lcores, and a request to them.
#[derive(Debug)]
pub(super) struct LagControl {
    /// Whether a state was told.
    is_told: AtomicBool,
    collecting: AtomicU64,
    distributing: AtomicU64,
    closed: AtomicU64,
    /// Number of the last request to note the frames that members hold, and these members.
    asked: AtomicU64,
    asked_of: AtomicU64,
    answers: Box<[Answer]>,
}

/// The answer of an lcore.
#[derive(Debug, Default)]
struct Answer {
    /// The last request for which it has noted the frames.
    number: AtomicU64,
    /// Members at which noted frames still wait.
    pending: AtomicU64,
}

/// A request: its number, and the members whose frames are to be noted.
#[derive(Debug, Default, Clone, Copy)]
pub struct DrainRequest {
    /// Counts up; zero: nothing was requested yet.
    pub number: u64,
    /// The members.
    pub ports: PortSet,
}

impl LagControl {
    pub fn new(lcores: usize) -> Self {
        Self {
            is_told: AtomicBool::new(false),
            collecting: AtomicU64::new(0),
            distributing: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            asked_of: AtomicU64::new(0),
            answers: (0..lcores).map(|_| Answer::default()).collect(),
        }
    }

    /// Sets the state. Returns whether it has changed.
    pub fn set(&self, state: LagState) -> bool {
        if self.state() == Some(state) {
            return false;
        }
        self.collecting.store(state.collecting.bits(), Ordering::Relaxed);
        // An lcore that sees a new member must see that it is closed.
        self.closed.store(state.closed.bits(), Ordering::Relaxed);
        self.distributing.store(state.distributing.bits(), Ordering::Release);
        self.is_told.store(true, Ordering::Release);
        true
    }

    /// The state; `None` if none was told yet.
    pub fn state(&self) -> Option<LagState> {
        if !self.is_told.load(Ordering::Acquire) {
            return None;
        }
        let distributing = PortSet::from_bits(self.distributing.load(Ordering::Acquire));
        let [collecting, closed] =
            [&self.collecting, &self.closed].map(|set| PortSet::from_bits(set.load(Ordering::Relaxed)));
        Some(LagState { collecting, distributing, closed })
    }

    /// Makes a request, unless an lcore has not taken the one before. Returns its number.
    pub fn request_drain(&self, ports: PortSet) -> Option<u64> {
        let number = self.asked.load(Ordering::Relaxed);
        if self.answers.iter().any(|answer| answer.number.load(Ordering::Acquire) != number) {
            return None;
        }
        self.asked_of.store(ports.bits(), Ordering::Relaxed);
        self.asked.store(number + 1, Ordering::Release);
        Some(number + 1)
    }

    /// The last request. Number zero: there was none.
    pub fn asked(&self) -> DrainRequest {
        let number = self.asked.load(Ordering::Acquire);
        DrainRequest { number, ports: PortSet::from_bits(self.asked_of.load(Ordering::Relaxed)) }
    }

    /// Says that `lcore` has noted the frames of request `number`, and that some wait at the members `pending`.
    pub fn answer(&self, lcore: usize, number: u64, pending: PortSet) {
        self.answers[lcore].pending.store(pending.bits(), Ordering::Relaxed);
        self.answers[lcore].number.store(number, Ordering::Release);
    }

    /// Whether all lcores have noted the frames of request `number`, or a later one, and none waits at `ports`.
    pub fn is_drained(&self, number: u64, ports: PortSet) -> bool {
        self.answers.iter().all(|answer| {
            let has_noted = answer.number.load(Ordering::Acquire) >= number;
            has_noted && (PortSet::from_bits(answer.pending.load(Ordering::Relaxed)) & ports).is_empty()
        })
    }
}
