//! Pauses, depths and pacing of a port, joint or not.

use super::HEADERS;
use super::told::Depth;
use crate::dataplane::egress::chosen::Chosen;
use crate::dataplane::port::Port;
use crate::mutant::{self, Mutant};
use crate::qos::joint_pacer::WireShare;
use crate::qos::shaper::{MIN_FRAME, Pace};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Ticks, WIRE_OVERHEAD};

impl Port {
    /// Queues that may not send at `now`.
    #[inline]
    pub fn stopped_queues(&mut self, now: Ticks) -> ClassSet {
        match &self.joint {
            Some(joint) if !joint.is_owner && mutant::is(Mutant::GuestIgnoresPauses) => ClassSet::EMPTY,
            Some(joint) if !joint.is_owner => joint.told.stopped(joint.number),
            _ => self.pfc.stopped_queues(now),
        }
    }

    /// Queues whose frames the watchdog drops.
    #[inline]
    pub fn dropping(&self) -> ClassSet {
        self.pfc.dropping() | self.joint.as_ref().map_or(ClassSet::EMPTY, |joint| joint.dropping)
    }

    /// Whether frames wait here that will leave. The probes of a stuck port must not hold the frames of other lcores.
    #[inline]
    pub fn is_standing(&self) -> bool {
        !self.waiting.is_empty() && !self.progress.is_stuck()
    }

    /// The depth of `queue` as the other lcores are told it.
    #[inline]
    pub fn told_depth(&self, queue: usize) -> Depth {
        let frames = &self.queues[queue % CLASSES];
        if self.is_standing() { Depth { cells: frames.cells(), bytes: frames.bytes() } } else { Depth::default() }
    }

    /// The frames that other lcores hold in `queue`.
    #[inline]
    pub fn elsewhere(&self, queue: usize) -> Depth {
        self.joint.as_ref().map_or(Depth::default(), |joint| joint.elsewhere[queue % CLASSES])
    }

    /// Queues in which other lcores hold frames.
    pub fn waiting_elsewhere(&self) -> ClassSet {
        self.joint.as_ref().map_or(ClassSet::EMPTY, |joint| joint.queues)
    }

    /// Bytes on the wire that the device has and the wire has not sent at `now`, by any lcore, rounded up.
    #[inline]
    pub fn posted(&self, now: Ticks) -> Bytes {
        let posted = match &self.joint {
            None => self.shaper.posted(now),
            Some(joint) => joint.pacer.posted(now),
        };
        if mutant::is(Mutant::PostedIsForgotten) { Bytes(0) } else { posted }
    }

    /// The part of [`Port::posted`] that counts as depth of `queue`: all of it, if frames of the queue are among it or
    /// wait behind it.
    pub fn posted_of(&self, queue: usize, now: Ticks) -> Bytes {
        let is_behind = self.posted_queues.contains(queue) || !self.queues[queue % CLASSES].is_empty();
        if is_behind { self.posted(now) } else { Bytes(0) }
    }

    /// Notes the queues of the frames `chosen`, which are posted.
    #[inline]
    pub(in crate::dataplane::egress) fn note_posted(&mut self, chosen: &Chosen) {
        let before = if chosen.posted == Bytes(0) { ClassSet::EMPTY } else { self.posted_queues };
        self.posted_queues = before | chosen.queues;
    }

    /// Posts frames up to `slack` ticks ahead of the wire from now on. A joint port keeps the largest slack: lcores
    /// share its wire by the time that they leave unused.
    pub fn set_slack(&mut self, slack: u64) {
        self.shaper.set_slack(slack);
    }

    /// The pace of a burst of at most `burst` frames of the queues `ready` at `now`; `None` if no frame may start.
    /// [`Port::keep_pace`] must follow.
    #[inline]
    pub fn pace(&mut self, ready: ClassSet, burst: usize, now: Ticks) -> Option<Pace> {
        if self.joint.is_none() { self.shaper.pace(now) } else { self.joint_pace(ready, burst, now) }
    }

    #[inline(never)]
    fn joint_pace(&mut self, ready: ClassSet, burst: usize, now: Ticks) -> Option<Pace> {
        let Self { joint: Some(joint), queues, scheduler, mtu, .. } = self else { unreachable!("a joint port") };
        let of_queue = |queue: usize| queues[queue].bytes().0 + u64::from(queues[queue].frames() * WIRE_OVERHEAD);
        let most = burst as u64 * (mtu.0 + u64::from(HEADERS) + u64::from(WIRE_OVERHEAD));
        let wanted = ready.iter().map(of_queue).sum::<u64>().min(most);
        let share = (!joint.queues.is_empty()).then(|| {
            // A queue that is stopped at this port waits for no wire, whichever lcore holds its frames.
            let others = joint.queues - joint.told.stopped(joint.number);
            let parts = |queue: usize| (queues[queue].bytes().0, joint.elsewhere[queue].bytes.0);
            WireShare(scheduler.share(ready, others, parts))
        });
        joint.pacer.take(wanted, share, now)
    }

    /// Stores `pace`, to which the frames sent at `now` were charged, if any.
    #[inline]
    pub fn keep_pace(&mut self, pace: Pace, is_sent: bool, now: Ticks) {
        match &mut self.joint {
            Some(joint) => joint.pacer.settle(pace),
            None if is_sent => self.shaper.keep(pace, now),
            None => {}
        }
    }

    /// Gives back the wire time of `bytes` on the wire that the device did not take. A port of one lcore keeps it
    /// charged: its device is full.
    pub fn give_back(&mut self, bytes: u64) {
        if let Some(joint) = &mut self.joint {
            joint.pacer.give_back(bytes);
        }
    }

    /// Charges a PFC frame that is sent now.
    pub fn charge_pfc(&mut self, now: Ticks) {
        self.charge_control(MIN_FRAME, now);
    }

    /// Charges a frame of `len` bytes that is sent now past the queues. It bypasses pacing, but not the wire.
    pub fn charge_control(&mut self, len: u32, now: Ticks) {
        match &self.joint {
            Some(joint) => joint.pacer.charge(len, now),
            None => self.shaper.charge(len, now),
        }
    }
}
