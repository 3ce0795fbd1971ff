//! Chooses the frames of a burst: moves them out of the queues by scheduler, pacing and WRED.
//!
//! Frames leave in runs, each from one chunk of one queue. A run is decided as one frame would be: its sums are
//! compared with credit and pacing. Only where they do not fit, or the queue is long enough to be marked, is each frame
//! looked at. Both ways choose and mark the same frames.

use super::Egress;
use super::chosen::{ChargedRun, Chosen};
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::fast_path::{self, FastPath};
use crate::dataplane::frame::run::{Run, RunSums};
use crate::dataplane::port::Port;
use crate::io::Packet;
use crate::mmu::{QueueAdmission, QueueReserves};
use crate::plan::counters::PortCounters;
use crate::qos::scheduler::Credit;
use crate::qos::shaper::{LimitedPace, Pace, Pacing};
use crate::qos::wred::{CERTAIN, WredProfile, WredVerdict};
use crate::sets::{ClassSet, FrameSet};
use crate::units::{Bytes, Cells, Ticks};

impl Port {
    /// Counts the time for which maximum rates held queues.
    pub(super) fn count_held(&mut self, counters: &PortCounters, now: Ticks) {
        for queue in self.max_rates.count_held(now).iter() {
            counters.max_rate_held_ns[queue].set(self.max_rates.held_time(queue).0);
        }
    }
}

impl<P: Packet> Egress<P> {
    /// Moves frames out of the queues until the wire is busy, the burst is full or no queue may send.
    #[inline]
    pub(super) fn schedule(
        &mut self,
        number: usize,
        port: &mut Port,
        reserves: &QueueReserves,
        rule: &QueueAdmission,
        now: Ticks,
        chosen: &mut Chosen,
    ) {
        // IEEE 802.1Q clause 8.6.8: "a frame of priority n is not available for transmission if that priority is
        // paused".
        let mut ready = port.waiting - port.discarding - port.stopped_queues(now);
        if ready.is_empty() {
            return;
        }
        chosen.begin(port.posted(now));
        let Some(mut pace) = port.pace(ready, self.burst, now) else { return };
        if let Some(after) = all_fit(port, ready, rule, pace, self.burst, chosen.posted) {
            self.serve_all(number, port, reserves, ready, chosen);
            port.keep_pace(after, true, now);
            return;
        }
        while !ready.is_empty() && self.posted.len() < self.burst && pace.is_free() {
            let Port { queues, scheduler, .. } = port;
            let Some(queue) = scheduler.choose(ready, |queue| queues[queue].head_len(&self.slab).0 as u32) else {
                break;
            };
            let (before, posted) = (port.queues[queue].cells(), self.posted.len());
            self.serve(port, queue, ready, rule.wred(queue), &mut pace, chosen);
            if self.posted.len() == posted {
                break;
            }
            reserves.update(number, queue, before, port.queues[queue].cells());
            if port.queues[queue].is_empty() {
                ready.remove(queue);
                port.waiting.remove(queue);
                port.scheduler.emptied(queue);
            }
        }
        port.keep_pace(pace, !self.posted.is_empty(), now);
    }

    /// Does the work of [`Egress::schedule`] at a port with queues that have a maximum rate. A queue at its maximum is
    /// not ready, like one that is paused: others use the wire, and the queue forfeits its deficit.
    #[inline(never)]
    pub(super) fn schedule_limited(
        &mut self,
        number: usize,
        port: &mut Port,
        reserves: &QueueReserves,
        rule: &QueueAdmission,
        now: Ticks,
        chosen: &mut Chosen,
    ) {
        let available = port.waiting - port.discarding - port.stopped_queues(now);
        chosen.begin(port.posted(now));
        let mut ready = available - port.max_rates.exhausted(available, now);
        if let Some(mut pace) = (!ready.is_empty()).then(|| port.pace(ready, self.burst, now)).flatten() {
            while !ready.is_empty() && self.posted.len() < self.burst && pace.is_free() {
                let Port { queues, scheduler, .. } = port;
                let Some(queue) = scheduler.choose(ready, |queue| queues[queue].head_len(&self.slab).0 as u32) else {
                    break;
                };
                let (before, posted) = (port.queues[queue].cells(), self.posted.len());
                if let Some(limit) = port.max_rates.pace(queue, now) {
                    let mut both = LimitedPace { port: pace, queue: limit };
                    self.serve(port, queue, ready, rule.wred(queue), &mut both, chosen);
                    pace = both.port;
                    port.max_rates.keep(queue, both.queue, now);
                } else {
                    self.serve(port, queue, ready, rule.wred(queue), &mut pace, chosen);
                }
                if self.posted.len() == posted {
                    break;
                }
                reserves.update(number, queue, before, port.queues[queue].cells());
                ready -= port.max_rates.exhausted(ClassSet::only(queue), now);
                if port.queues[queue].is_empty() {
                    ready.remove(queue);
                    port.waiting.remove(queue);
                    port.scheduler.emptied(queue);
                }
            }
            port.keep_pace(pace, !self.posted.is_empty(), now);
        }
        let held = port.max_rates.exhausted(available & port.waiting, now);
        port.max_rates.note_held(held, now);
    }

    /// Moves all frames out of the queues `ready`, for which [`all_fit`] holds. Turns would only change the order of
    /// frames that start at one instant.
    #[inline]
    fn serve_all(
        &mut self,
        number: usize,
        port: &mut Port,
        reserves: &QueueReserves,
        ready: ClassSet,
        chosen: &mut Chosen,
    ) {
        fast_path::hit(FastPath::AllSent);
        let mut left = ready;
        while let Some(queue) = port.scheduler.next_of_all(left) {
            left.remove(queue);
            let frames = &mut port.queues[queue];
            let Some((run, desc)) = frames.as_one_run() else { unreachable!("all frames fit as one run") };
            let before = frames.cells();
            frames.take_all(&mut self.slab, &mut self.posted, &mut self.charges);
            chosen.add(queue, run);
            chosen.runs.push(ChargedRun { desc, cells: run.cells() });
            reserves.update(number, queue, before, Cells(0));
            port.scheduler.emptied(queue);
        }
        port.waiting -= ready;
    }

    /// Moves frames out of `queue`, which the scheduler chose among the queues `ready`, as long as its turn lasts.
    #[inline]
    fn serve(
        &mut self,
        port: &mut Port,
        queue: usize,
        ready: ClassSet,
        wred: Option<&WredProfile>,
        pace: &mut impl Pacing,
        chosen: &mut Chosen,
    ) {
        let elsewhere = port.elsewhere(queue).bytes;
        let Port { queues, scheduler, .. } = port;
        let frames = &mut queues[queue];
        let mut credit = scheduler.credit(queue, frames.head_len(&self.slab).0 as u32, ready);
        loop {
            let here = frames.first(&self.slab);
            // All up to the last frame of the queue. A queue without bursts would have this depth now, so it is that of
            // each frame of the run.
            let (posted, depth) = (self.posted.len(), frames.bytes() + elsewhere + chosen.ahead);
            let descs = &here[..here.len().min(self.burst - self.posted.len())];
            let wred = wred.filter(|wred| wred.probability(depth) > 0);
            // The packets of a long queue have left the cache, and so have their headers, to which a mark is written.
            let is_short = wred.is_none();
            frames.look_ahead(&self.slab, |packet| if is_short { packet.prefetch() } else { packet.prefetch_ahead() });
            let sums = RunSums::of(descs);
            let is_whole = whole_run(descs, &sums, &mut credit, pace);
            let run = if is_whole { sums.run } else { begin_of_run(descs, &mut credit, pace) };
            let (descs, is_cut) = (&descs[..run.frames as usize], (run.frames as usize) < here.len());
            if let Some(wred) = wred.filter(|_| sums.has_markable()) {
                let congested = if P::EMULATES && self.marks_after {
                    judge_after(descs, wred, depth, || self.rng.roll())
                } else if sums.is_all_markable()
                    && wred.probability(depth) == CERTAIN
                    && !fast_path::is_off(FastPath::AllMarked)
                {
                    fast_path::hit(FastPath::AllMarked);
                    FrameSet::first(descs.len())
                } else {
                    judge_run(descs, wred, depth, || self.rng.roll())
                };
                chosen.congested |= FrameSet::from_bits(congested.bits() << posted);
                chosen.marked[queue] += congested.len() as u32;
            }
            chosen.charge(descs, run, sums.is_one_charge());
            frames.take(&mut self.slab, run, &mut self.posted, &mut self.charges);
            chosen.add(queue, run);
            if is_cut || frames.is_empty() || self.posted.len() >= self.burst {
                break;
            }
        }
        scheduler.keep_credit(queue, credit);
    }
}

/// The pace after all frames of the queues `ready`, if they can leave at once: they fit a burst of `burst` frames, and
/// the wire is free for all of them. The wire has to send `posted` bytes before. No queue needs a look at each frame,
/// and the device took all of the burst before.
#[inline]
fn all_fit(
    port: &Port,
    ready: ClassSet,
    rule: &QueueAdmission,
    pace: Pace,
    burst: usize,
    posted: Bytes,
) -> Option<Pace> {
    // A device that takes a part would leave the same queues behind each time.
    if !port.takes_all || fast_path::is_off(FastPath::AllSent) {
        return None;
    }
    let (mut frames, mut bytes) = (0, Bytes(0));
    for queue in ready.iter() {
        let (run, _) = port.queues[queue].as_one_run()?;
        (frames, bytes) = (frames + run.frames, bytes + run.bytes());
        if frames as usize > burst {
            return None;
        }
    }
    let is_short = posted + bytes <= rule.unmarked() && port.waiting_elsewhere().is_empty();
    let depth = |queue: usize| posted + bytes + port.elsewhere(queue).bytes;
    let may_mark = |queue: usize| rule.wred(queue).is_some_and(|wred| wred.probability(depth(queue)) > 0);
    if !is_short && (ready & rule.wred_queues()).iter().any(may_mark) {
        return None;
    }
    // Without a last frame: the wire must be free for each of them to its end.
    pace.after_run(frames, bytes, 0)
}

/// Takes the whole run `descs` from credit and pacing, if both suffice. Returns whether they do.
#[inline]
fn whole_run(descs: &[FrameDesc], sums: &RunSums, credit: &mut Credit, pace: &mut impl Pacing) -> bool {
    if fast_path::is_off(FastPath::WholeRun) {
        return false;
    }
    let Some(last) = descs.last().filter(|_| !sums.has_padded()) else { return false };
    let Some(after) = pace.after_run(sums.run.frames, sums.run.bytes(), last.frame_len().into()) else { return false };
    let is_whole = credit.spend(sums.run.bytes().0 as u32);
    if is_whole {
        fast_path::hit(FastPath::WholeRun);
        *pace = after;
    }
    is_whole
}

/// Takes the first frames of `descs` from credit and pacing, one by one, as far as these suffice.
#[inline(never)]
fn begin_of_run(descs: &[FrameDesc], credit: &mut Credit, pace: &mut impl Pacing) -> Run {
    let mut run = Run::default();
    for &desc in descs {
        let len = u32::from(desc.frame_len());
        if !pace.is_free() || !credit.spend(len) {
            break;
        }
        pace.charge(len);
        run = run.and(desc);
    }
    run
}

/// The frames of a run that meet congestion. `depth` is that of the queue with the run, and all that the wire has to
/// send before.
///
/// RFC 3168 section 5: "the router should first check to see if the ECT codepoint is set". The depth is the
/// instantaneous one at dequeue, including the leaving frame.
#[inline(never)]
fn judge_run(descs: &[FrameDesc], wred: &WredProfile, depth: Bytes, mut draw: impl FnMut() -> u32) -> FrameSet {
    let mut congested = FrameSet::EMPTY;
    for (index, &desc) in descs.iter().enumerate() {
        // One draw for each frame, so that marks do not depend on the size of bursts.
        if desc.is_markable() && wred.judge(depth, &mut draw) == WredVerdict::Congested {
            congested.insert(index);
        }
    }
    congested
}

/// Judges a run as [`judge_run`] does, but by the depth without the departing frame, as HPCC's simulator does.
#[cold]
fn judge_after(descs: &[FrameDesc], wred: &WredProfile, depth: Bytes, mut draw: impl FnMut() -> u32) -> FrameSet {
    let mut congested = FrameSet::EMPTY;
    for (index, &desc) in descs.iter().enumerate() {
        let depth = depth - Bytes(desc.frame_len().into());
        if desc.is_markable() && wred.judge(depth, &mut draw) == WredVerdict::Congested {
            congested.insert(index);
        }
    }
    congested
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
