//! Writes the decision log: the state of the buffer at each logged decision.

use super::Telemetry;
use crate::dataplane::buffer::Buffer;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::handoff::mesh::HandoffFrame;
use crate::dataplane::port::Port;
use crate::mmu::{HeadroomPolicy, LimitPart, LossyPool, QueueAdmission};
use crate::plan::decision_log::{LoggedDecision, LoggedEvent, PauseCause};
use crate::plan::drops::DropReason;
use crate::sets::{ClassSet, PortSet};
use crate::units::Cells;

/// The state that led to a decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub ports: &'a [Port],
    /// The ports of this lcore.
    pub own: PortSet,
    pub buffer: &'a Buffer,
    pub rule: &'a QueueAdmission,
}

impl Standing<'_> {
    /// Limit on the share of the shared pool that group `group` of `port` has, and its free headroom.
    pub fn limits(self, port: usize, group: usize) -> (Cells, Cells) {
        let (ledger, pools) = (&self.ports[port].ledger, &self.buffer.pools);
        let (profile, held) = (ledger.profile(), ledger.group(group));
        let own = profile.groups[group].headroom.saturating_sub(held.headroom);
        match profile.policy {
            _ if !profile.groups[group].lossless => (ledger.threshold(group, pools), Cells(0)),
            HeadroomPolicy::Independent => (ledger.threshold(group, pools), own),
            HeadroomPolicy::SharedPool => (ledger.threshold(group, pools), own.min(pools.headroom.free())),
            HeadroomPolicy::Dynamic => {
                let left = profile.insurance.saturating_sub(ledger.insurance_used());
                (ledger.xoff_level(group, pools), left)
            }
        }
    }
}

impl Telemetry {
    /// Logs that `frame` was refused for `reason`; its drop counts at port `at`. At most one drop per poll and class is
    /// logged.
    #[cold]
    pub fn log_drop(&mut self, standing: Standing<'_>, at: usize, frame: RefusedFrame, reason: DropReason) {
        let polls = self.clock.polls();
        let logged = &mut self.logged_drops[at][usize::from(frame.class & 7)];
        if std::mem::replace(logged, polls) == polls {
            return;
        }
        self.logged_drops_changes += 1;
        let mut logged = self.describe(standing, frame.ports, frame.group.into(), LoggedEvent::Dropped(reason));
        (logged.class, logged.cells, logged.frame_bytes) = (frame.class, frame.cells, frame.bytes);
        if let Some(queue) = frame.queue {
            let explained = standing.rule.explain(queue.number, queue.drain, queue.pool);
            let limit = explained.limit.filter(|_| reason == DropReason::QueueThreshold);
            logged.queue_limit = limit.unwrap_or(Cells(u32::MAX));
            logged.depth = queue.depth.unwrap_or_default();
            logged.free = explained.free;
        }
        self.log_of(at).drops[usize::from(frame.class & 7)].note(logged.pack());
    }

    /// Logs that the peer of `port` gets XOFF for `groups`, which were not at XOFF before.
    #[cold]
    pub fn log_pauses(&mut self, standing: Standing<'_>, port: usize, groups: ClassSet) {
        let ledger = &standing.ports[port].ledger;
        let of_port = if ledger.is_port_xoff() { ledger.xoff() } else { ClassSet::EMPTY };
        for group in groups.iter() {
            let cause = match (ledger.groups_xoff().contains(group), of_port.contains(group)) {
                (true, _) => PauseCause::Group,
                (_, true) => PauseCause::Port,
                _ => PauseCause::Backlog,
            };
            let logged = self.describe(standing, [port as u8; 2], group, LoggedEvent::Stopped(cause));
            self.counters.decisions[port].pauses[group].note(logged.pack());
        }
    }

    /// Creates a record of a decision with the state of group `group` of `ports[0]`, as far as this lcore can see it.
    fn describe(&self, standing: Standing<'_>, ports: [u8; 2], group: usize, decision: LoggedEvent) -> LoggedDecision {
        let (limit, headroom_left) = standing.limits(ports[0].into(), group);
        let ledger = &standing.ports[usize::from(ports[0])].ledger;
        let (held, is_lossless) = (ledger.group(group), ledger.profile().groups[group].lossless);
        let is_own = standing.own.contains(ports[0].into());
        LoggedDecision {
            at: self.clock.last(),
            decision,
            ports,
            class: group as u8,
            group: group as u8,
            cells: Cells(0),
            frame_bytes: 0,
            // For a port of another lcore only the settings are visible.
            held: if is_own { [held.reserve, held.port_reserve, held.shared, held.headroom] } else { [Cells(0); 4] },
            limit,
            free: standing.buffer.pools.shared[usize::from(is_lossless)].free(),
            headroom_left,
            depth: Cells(0),
            queue_limit: Cells(u32::MAX),
            backlog: self.counters.ports[usize::from(ports[0])].backlog_frames.get() as u32,
        }
    }
}

/// A frame that was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusedFrame {
    /// Ingress port, and intended egress port.
    pub ports: [u8; 2],
    pub class: u8,
    pub group: u8,
    pub cells: Cells,
    /// Bytes of the frame, without its frame check sequence.
    pub bytes: u16,
    /// Whether the switch itself has made the frame.
    pub is_own: bool,
    /// The queue that refused the frame; `None` if no queue did.
    pub queue: Option<RefusingQueue>,
}

/// A queue that refused a frame, as it was then: other frames of the burst may change it before the refusal is logged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusingQueue {
    pub number: usize,
    /// Cells in the queue, including the frame and those at other lcores; `None` if another lcore owns the queue.
    pub depth: Option<Cells>,
    /// With ABM, its drain rate.
    pub drain: LimitPart,
    pub pool: LossyPool,
}

impl RefusingQueue {
    /// The queue of `desc` at `port`; `None` if another lcore owns the port.
    pub fn of(port: Option<&Port>, desc: FrameDesc, pool: LossyPool) -> Self {
        let number = desc.queue();
        Self {
            number,
            depth: port.map(|port| port.queues[number].cells() + port.elsewhere(number).cells + desc.cells()),
            drain: port.map_or(LimitPart::ONE, |port| port.drains[number]),
            pool,
        }
    }
}

impl RefusedFrame {
    /// A frame for `egress` that its priority group refused.
    pub fn by_group(desc: &FrameDesc, egress: usize) -> Self {
        let ports = [desc.ingress(), egress as u8];
        Self {
            ports,
            class: desc.class(),
            group: desc.group(),
            cells: desc.cells(),
            bytes: desc.frame_len(),
            is_own: desc.is_own(),
            queue: None,
        }
    }

    /// Frames of `class` and `group` that were shed at `port`, before an egress port was looked up.
    pub fn shed(port: usize, class: u8, group: u8) -> Self {
        Self { ports: [port as u8; 2], class, group, cells: Cells(0), bytes: 0, is_own: false, queue: None }
    }

    /// A frame that its queue refused.
    pub fn by_queue<P>(handed: &HandoffFrame<P>, queue: RefusingQueue) -> Self {
        Self { queue: Some(queue), ..Self::by_group(&handed.desc, handed.egress.into()) }
    }
}
