//! Queue admission: whether an egress queue takes a frame that the buffer has admitted.
//!
//! One rule for all callers. [`QueueAdmission::judge`] decides, [`QueueAdmission::admit`] adds the random draw of WRED,
//! [`QueueAdmission::admit_burst`] is its short path for bursts, and [`QueueAdmission::explain`] shows its terms.
//!
//! A lossless frame is never refused here: its priority group bounds it. A lossy frame is admitted within the reserve
//! of its queue; beyond, up to the queue's Dynamic Threshold over the lossy pool, and then WRED may drop it if it is
//! not ECN-capable. With ABM ([`AbmSpec`]) the queue may use a part of that threshold.

mod abm;
mod filter;
mod reserves;
#[cfg(test)]
mod tests;

pub use abm::{AbmSpec, CongestionSums, LimitPart};
pub use filter::DepthFilter;
pub use reserves::QueueReserves;

use super::QueueLimit;
use crate::qos::WredProfile;
use crate::qos::wred::CERTAIN;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Cells};

/// How one egress queue uses the lossy pool. A lossless queue has neither reserve nor limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueProfile {
    /// Cells of the lossy pool that stay free for the queue at each port.
    pub reserve: Cells,
    /// Limit of the depth beyond the reserve; `None`: unlimited.
    pub limit: Option<QueueLimit>,
    /// Early drop of frames that are not ECN-capable.
    pub wred: Option<WredProfile>,
}

/// A frame to be placed in a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueRequest {
    /// Size of the frame.
    pub cells: Cells,
    /// Whether the queue must accept the frame: it is lossless, or within the reserve of its priority group.
    pub must_accept: bool,
    /// Whether WRED drops the frame instead of marking it: an IP packet that is not ECN-capable.
    pub droppable: bool,
}

/// The depth of a queue before the frame.
#[derive(Debug, Clone, Copy)]
pub struct QueueDepth {
    /// Cells in the queue.
    pub cells: Cells,
    /// Bytes in the queue; WRED compares these.
    pub bytes: Bytes,
    /// With ABM, the drain rate of the queue.
    pub drain: LimitPart,
}

/// The lossy pool, already charged for the frame.
#[derive(Debug, Clone, Copy)]
pub struct LossyPool {
    /// Free cells.
    pub free: Cells,
    /// Cells of these that stay free for queues below their reserve.
    pub reserved: Cells,
}

impl LossyPool {
    /// Cells that queues beyond their reserve may use; `None` if the pool has fewer than are reserved.
    #[inline]
    fn unreserved(self) -> Option<Cells> {
        self.free.checked_sub(self.reserved)
    }
}

/// The decision on one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueVerdict {
    /// The queue accepts the frame.
    Accept,
    /// The queue would exceed its limit.
    OverLimit,
    /// WRED drops the frame with this probability, in parts of 2^32.
    Draw(u64),
}

/// Why a queue refused a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueRefusal {
    /// The queue would exceed its limit.
    OverLimit,
    /// WRED dropped the frame.
    Wred,
}

/// Sums of a burst in which the priority groups refuse no frame.
#[derive(Debug, Clone, Copy)]
pub struct BurstRequest {
    /// Cells of the lossy frames, not charged yet.
    pub lossy: Cells,
    /// Cells of all frames; lossless frames may share a queue with lossy ones.
    pub all: Cells,
    /// Queues of the lossy frames.
    pub queues: ClassSet,
    /// Whether some frame leaves by a port of another lcore.
    pub crosses: bool,
}

/// The terms of a decision, for `why-dropped` and the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueExplanation {
    /// Depth up to which the queue accepts lossy frames; `None`: unlimited.
    pub limit: Option<Cells>,
    /// Free cells of the lossy pool that are not reserved.
    pub free: Cells,
}

/// The admission rule of the eight queues; equal on every port.
#[derive(Debug, Clone)]
pub struct QueueAdmission {
    profiles: [QueueProfile; CLASSES],
    /// Queues with WRED, and the greatest depth at which none of them marks.
    wred_queues: ClassSet,
    unmarked: Bytes,
    /// With ABM, `1/n` for each queue.
    shares: [LimitPart; CLASSES],
}

impl QueueAdmission {
    /// The rule for queues with these profiles.
    #[must_use]
    pub fn new(profiles: [QueueProfile; CLASSES]) -> Self {
        let wred_queues = (0..CLASSES).filter(|&queue| profiles[queue].wred.is_some()).collect();
        let kmins = profiles.iter().filter_map(|profile| profile.wred.as_ref()).map(|wred| wred.kmin);
        let unmarked = kmins.min().unwrap_or(Bytes(u64::MAX));
        Self { profiles, wred_queues, unmarked, shares: [LimitPart::ONE; CLASSES] }
    }

    /// Replaces the profiles. The measurements of ABM stay.
    pub fn set_profiles(&mut self, profiles: [QueueProfile; CLASSES]) {
        *self = Self { shares: self.shares, ..Self::new(profiles) };
    }

    /// With ABM, sets `1/n` of `queue`.
    pub fn set_share(&mut self, queue: usize, share: LimitPart) {
        self.shares[queue] = share;
    }

    /// Returns `1/n` of `queue`.
    #[cfg(any(test, feature = "testing"))]
    pub fn share(&self, queue: usize) -> LimitPart {
        self.shares[queue]
    }

    /// Queues that ABM limits.
    #[must_use]
    pub fn abm_queues(&self) -> ClassSet {
        (0..CLASSES).filter(|&queue| self.profiles[queue].limit.is_some_and(|limit| limit.abm)).collect()
    }

    /// The depth up to which `limit` admits frames to `queue`, while `free` cells of the pool are unreserved.
    #[inline]
    fn limit(&self, queue: usize, limit: &QueueLimit, drain: LimitPart, free: Cells) -> Cells {
        let whole = limit.threshold.limit(free);
        if limit.abm { drain.of(self.shares[queue].of(whole)) } else { whole }
    }

    /// The profile of `queue`.
    #[must_use]
    pub fn profile(&self, queue: usize) -> &QueueProfile {
        &self.profiles[queue]
    }

    /// The WRED profile of `queue`.
    #[inline]
    #[must_use]
    pub fn wred(&self, queue: usize) -> Option<&WredProfile> {
        self.profiles[queue].wred.as_ref()
    }

    /// Queues with WRED.
    #[inline]
    #[must_use]
    pub fn wred_queues(&self) -> ClassSet {
        self.wred_queues
    }

    /// The greatest depth at which no queue marks or drops by WRED.
    #[inline]
    #[must_use]
    pub fn unmarked(&self) -> Bytes {
        self.unmarked
    }

    /// Decides on a frame for `queue`.
    #[inline]
    #[must_use]
    pub fn judge(&self, queue: usize, frame: QueueRequest, depth: QueueDepth, pool: LossyPool) -> QueueVerdict {
        self.decide(queue, frame, depth, pool, || Bytes(0))
    }

    /// Decides as [`QueueAdmission::judge`] does. WRED adds the bytes that `posted` returns to the depth.
    #[inline]
    fn decide(
        &self,
        queue: usize,
        frame: QueueRequest,
        depth: QueueDepth,
        pool: LossyPool,
        posted: impl FnOnce() -> Bytes,
    ) -> QueueVerdict {
        if frame.must_accept {
            return QueueVerdict::Accept;
        }
        let profile = &self.profiles[queue];
        let after = depth.cells + frame.cells;
        if after <= profile.reserve {
            return QueueVerdict::Accept;
        }
        if let Some(limit) = &profile.limit
            && pool.unreserved().is_none_or(|free| after > self.limit(queue, limit, depth.drain, free))
        {
            return QueueVerdict::OverLimit;
        }
        match &profile.wred {
            Some(wred) if frame.droppable => QueueVerdict::Draw(wred.probability(depth.bytes + posted())),
            _ => QueueVerdict::Accept,
        }
    }

    /// Decides on a frame for `queue`. WRED adds `posted`, the bytes before the queue on the wire, to its depth. Calls
    /// `draw` for a uniformly random number if the probability of WRED is between zero and one.
    ///
    /// # Errors
    /// The reason for which the queue refuses the frame.
    #[inline]
    pub fn admit(
        &self,
        queue: usize,
        frame: QueueRequest,
        depth: QueueDepth,
        pool: LossyPool,
        posted: impl FnOnce() -> Bytes,
        draw: impl FnOnce() -> u32,
    ) -> Result<(), QueueRefusal> {
        match self.decide(queue, frame, depth, pool, posted) {
            QueueVerdict::Accept | QueueVerdict::Draw(0) => Ok(()),
            QueueVerdict::OverLimit => Err(QueueRefusal::OverLimit),
            QueueVerdict::Draw(probability) if probability == CERTAIN || u64::from(draw()) < probability => {
                Err(QueueRefusal::Wred)
            }
            QueueVerdict::Draw(_) => Ok(()),
        }
    }

    /// Whether [`QueueAdmission::admit`] may need a random number for a lossy frame.
    #[inline]
    #[must_use]
    pub fn needs_wred_draw(&self, queue: usize, droppable: bool) -> bool {
        self.wred_queues.contains(queue) & droppable
    }

    /// Whether [`QueueAdmission::admit`] would accept every frame of a burst, in any order. `pool` is not charged for
    /// them yet. `deepest` returns the largest depth of a queue number among the burst's egress ports, and for ABM
    /// `slowest` returns their lowest drain rate. `draws` is whether some lossy frame needs a draw of WRED. True is
    /// exact for queues of this lcore: another lcore judges its own again. False may be pessimistic.
    #[inline(always)]
    #[must_use]
    pub fn admit_burst(
        &self,
        burst: BurstRequest,
        pool: LossyPool,
        draws: impl FnOnce() -> bool,
        deepest: impl Fn(usize) -> Cells,
        slowest: impl Fn(usize) -> LimitPart,
    ) -> bool {
        // Only frame by frame is it known which frames use a queue's reserve, and which of them may cross.
        let Some(free) = pool.unreserved().and_then(|free| free.checked_sub(burst.lossy)) else { return false };
        if burst.crosses && pool.reserved > Cells(0) || !(burst.queues & self.wred_queues).is_empty() && draws() {
            return false;
        }
        burst.queues.iter().all(|queue| {
            let limit = self.profiles[queue].limit.as_ref();
            let drain = |limit: &QueueLimit| if limit.abm { slowest(queue) } else { LimitPart::ONE };
            let limit = limit.map_or(Cells(u32::MAX), |limit| self.limit(queue, limit, drain(limit), free));
            deepest(queue) + burst.all <= limit
        })
    }

    /// The terms that decide for `queue` now; with ABM it drains at `drain`.
    #[must_use]
    pub fn explain(&self, queue: usize, drain: LimitPart, pool: LossyPool) -> QueueExplanation {
        let (profile, unreserved) = (&self.profiles[queue], pool.unreserved());
        let limit = profile.limit.as_ref().map(|limit| {
            unreserved.map_or(Cells(0), |free| self.limit(queue, limit, drain, free)).max(profile.reserve)
        });
        QueueExplanation { limit, free: unreserved.unwrap_or(Cells(0)) }
    }
}
