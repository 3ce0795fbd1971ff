//! The places of the packet path at which frames are copied: refusals, drops at ingress, and samples.

use super::lcore::MirrorEvent;
use crate::dataplane::frame::meta::{Forwarding, Meta};
use crate::dataplane::ingress::shed_frames::class_of;
use crate::dataplane::pipeline::Pipeline;
use crate::dataplane::telemetry::log::{RefusedFrame, Standing};
use crate::io::{Burst, Packet};
use crate::plan::drops::DropReason;
use crate::plan::exception::ExceptionPort;
use crate::plan::mirror::CopyFrame;
use crate::plan::mirror::{CopyCause, MirrorSpec};
use crate::plan::mirror::{GroupState, QueueState};
use crate::sets::{BURST, CLASSES, ClassSet, FrameSet};

impl<P: Packet> Pipeline<P> {
    /// Attaches the thread of mirrors: it gets this lcore's copies, and copies for own outputs leave here.
    pub fn attach_mirror(&mut self, channel: ExceptionPort<CopyFrame>) {
        self.sampled = self.mirror.attach(channel);
        self.follow_special();
    }

    /// Replaces the sessions.
    pub(crate) fn set_mirror(&mut self, spec: &MirrorSpec) {
        self.sampled = self.mirror.set(spec);
        self.follow_special();
    }

    /// Copies a frame that its group or its queue has refused.
    #[cold]
    pub(crate) fn copy_refused(&mut self, bytes: &[u8], frame: RefusedFrame, reason: DropReason) {
        let [ingress, egress] = frame.ports;
        // A copy that finds no room at an output must not cause another one. No port has received an own frame.
        if frame.is_own || self.mirror.is_output(egress.into()) {
            return;
        }
        let (cause, class) = (CopyCause::Dropped(reason), Some(frame.class));
        let sessions = self.mirror.admit(cause, ingress, class, self.now);
        if sessions.is_empty() {
            return;
        }
        let queue = frame.queue.map(|queue| {
            let limit = self.queue_rule.explain(queue.number, queue.drain, queue.pool).limit;
            let limit = limit.filter(|_| reason == DropReason::QueueThreshold);
            QueueState { queue: queue.number as u8, depth: queue.depth, limit }
        });
        // A frame is shed before its egress port is looked up.
        let egress = (reason != DropReason::Shed).then_some(egress);
        let event = MirrorEvent { bytes, cause, ingress, egress, vlan: None, class, queue };
        let group = group_state(self.standing(), ingress, frame.group);
        self.mirror.copy(sessions, event, group, self.now);
    }

    /// Copies a frame that is dropped before it is admitted to the buffer.
    #[cold]
    pub(crate) fn copy_dropped(&mut self, bytes: &[u8], port: usize, meta: &Meta, reason: DropReason) {
        if meta.desc.is_own() {
            return;
        }
        let (cause, ingress, class) = (CopyCause::Dropped(reason), port as u8, meta.class());
        let sessions = self.mirror.admit(cause, ingress, class, self.now);
        if sessions.is_empty() {
            return;
        }
        let vlan = Some(meta.vlan()).filter(|&vlan| vlan != 0);
        let event = MirrorEvent { bytes, cause, ingress, egress: None, vlan, class, queue: None };
        let group = class.and_then(|_| group_state(self.standing(), ingress, meta.desc.group()));
        self.mirror.copy(sessions, event, group, self.now);
    }

    /// Copies a frame of each class of those `frames` of a burst of `port` that are shed. The others count as beyond
    /// the rate: an lcore that sheds has no time for them. `shed` is the number by class.
    #[cold]
    pub(crate) fn copy_shed(&mut self, burst: &Burst<P>, port: usize, frames: FrameSet, shed: [u64; CLASSES]) {
        let cause = CopyCause::Dropped(DropReason::Shed);
        let mut left: ClassSet = (0..CLASSES).filter(|&class| shed[class] > 0).collect();
        for class in left.iter() {
            self.mirror.refuse(cause, port as u8, Some(class as u8), shed[class] - 1);
        }
        for index in frames.iter() {
            let bytes = burst[index].bytes();
            let class = class_of(&self.ports[port].classifier, bytes);
            if !left.contains(class.into()) {
                continue;
            }
            left.remove(class.into());
            let group = self.ports[port].classifier.of_class(class.into()).desc.group();
            self.copy_refused(bytes, RefusedFrame::shed(port, class, group), DropReason::Shed);
            if left.is_empty() {
                break;
            }
        }
    }

    /// Copies the sampled frames of a burst of `port`, as they were received.
    #[inline(never)]
    pub(crate) fn stage_samples(&mut self, port: usize, burst: &Burst<P>, metas: &[Meta; BURST]) {
        self.telemetry.counters.ports[port].sample_pool.add(burst.len() as u64);
        self.mirror.sample(port, burst.len(), self.now, |index| {
            let meta = &metas[index];
            MirrorEvent {
                bytes: burst[index].bytes(),
                cause: CopyCause::Sampled,
                ingress: port as u8,
                egress: None,
                vlan: None,
                class: meta.class(),
                queue: None,
            }
        });
    }

    /// Adds to the sampled frames of a burst the ports by which they leave, and gives them to the thread of mirrors.
    #[inline]
    pub(crate) fn finish_samples(&mut self, metas: &[Meta; BURST]) {
        if !self.mirror.staged.is_empty() {
            self.give_staged(metas);
        }
    }

    #[cold]
    fn give_staged(&mut self, metas: &[Meta; BURST]) {
        for (index, mut frame) in std::mem::take(&mut self.mirror.staged) {
            let meta = &metas[usize::from(index)];
            frame.vlan = Some(meta.vlan()).filter(|&vlan| vlan != 0);
            if meta.class().is_some() {
                frame.group = group_state(self.standing(), frame.ingress, meta.desc.group());
            }
            if let Forwarding::Send(egress) = meta.forwarding() {
                frame.egress = Some(egress);
                let (number, port) = (meta.desc.queue(), &self.ports[usize::from(egress)]);
                let is_own = self.sends.contains(egress.into());
                let depth = is_own.then(|| port.queues[number].cells() + port.elsewhere(number).cells);
                frame.queue = Some(QueueState { queue: number as u8, depth, limit: None });
            }
            self.mirror.give(frame);
        }
    }

    fn standing(&self) -> Standing<'_> {
        Standing { ports: &self.ports, own: self.own, buffer: &self.buffer, rule: &self.queue_rule }
    }
}

/// State of a priority group at `port`; `None` if another lcore owns the port.
fn group_state(standing: Standing<'_>, port: u8, group: u8) -> Option<GroupState> {
    if !standing.own.contains(port.into()) {
        return None;
    }
    let (limit, headroom_left) = standing.limits(port.into(), group.into());
    let (ledger, pools) = (&standing.ports[usize::from(port)].ledger, &standing.buffer.pools);
    let pool = &pools.shared[usize::from(ledger.profile().groups[usize::from(group)].lossless)];
    let state = ledger.group(group.into());
    let (held, shared) = (state.held(), state.shared);
    Some(GroupState { group, held, shared, limit, pool_free: pool.free(), headroom_left })
}
