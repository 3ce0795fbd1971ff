//! Congestion points of QCN: they sample the frames that join a queue, and send messages to the sources of these frames
//! (802.1Q clauses 30 to 33).
//!
//! This file has their state, `sample.rs` their work. If another lcore owns the port of a message, the message crosses
//! in a ring.

use crate::dataplane::egress::queue::QueuePlace;
use crate::dataplane::port::Port;
use crate::headroom::CONGESTION_MESSAGES;
use crate::plan::ring::{Consumer, Producer, lcore_pairs, ring};
use crate::plan::spec::SwitchSpec;
use crate::qos::qcn::CongestionPoint;
use crate::qos::wred::XorShift;
use crate::sets::{CLASSES, ClassSet, MAX_PORTS};
use crate::units::WIRE_OVERHEAD;
use crate::wire::cnm::MOST_FRAME;

/// Messages that may wait in a ring between two lcores.
const RING: usize = 64;
/// Messages that may leave by one port in a poll.
const MOST_AT_ONCE: u8 = 8;
/// Sampling must not follow the random numbers of WRED.
const SEED: u32 = 0x51c0_51c0;

/// The congestion points of one lcore.
#[derive(Debug)]
pub(crate) struct CongestionPoints {
    /// Queues that are congestion points, the same at each port.
    pub queues: ClassSet,
    /// By port and queue.
    pub points: Box<[[Option<Watched>; CLASSES]]>,
    pub rng: XorShift,
    /// Messages that have left by each port in this poll.
    sent: [u8; MAX_PORTS],
    /// Rings to and from the other lcores, by their numbers; `None` at the number of this one.
    pub peers: Vec<Option<Peer>>,
}

/// A congestion point, and the end of its queue at the last look.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub point: CongestionPoint,
    pub end: QueuePlace,
}

/// The rings to and from another lcore.
pub(crate) struct Peer {
    pub to: Producer<Notice>,
    pub from: Consumer<Notice>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

/// A message that is ready to leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notice {
    pub port: u8,
    pub len: u8,
    pub frame: [u8; MOST_FRAME],
    /// Whether it has a VLAN tag, and so a priority.
    pub is_tagged: bool,
}

const _: () = assert!(MOST_FRAME <= u8::MAX as usize, "the length fits its field");

/// A PFC frame may wait for the messages of a poll.
const _: () = assert!(
    MOST_AT_ONCE as u64 * (MOST_FRAME as u64 + WIRE_OVERHEAD as u64) <= CONGESTION_MESSAGES,
    "headroom has room for them"
);

impl CongestionPoints {
    /// Creates the congestion points of all lcores of `spec`; `None` each if no queue is one. `seed` is the switch's.
    pub fn fleet(spec: &SwitchSpec, seed: u32) -> Vec<Option<Box<Self>>> {
        let lcores = usize::from(spec.lcores);
        if !spec.has_congestion_points() {
            return (0..lcores).map(|_| None).collect();
        }
        let watched = |queue: usize| {
            let point = spec.congestion_points[queue].as_ref()?;
            Some(Watched { point: CongestionPoint::new(point), end: QueuePlace::START })
        };
        let of = |lcore: usize| Self {
            queues: (0..CLASSES).filter(|&queue| spec.congestion_points[queue].is_some()).collect(),
            points: spec.ports.iter().map(|_| std::array::from_fn(watched)).collect(),
            rng: XorShift::new(seed ^ SEED.rotate_left(lcore as u32)),
            sent: [0; MAX_PORTS],
            peers: (0..lcores).map(|_| None).collect(),
        };
        let mut fleet: Vec<Self> = (0..lcores).map(of).collect();
        for (one, other) in lcore_pairs(lcores) {
            let ((there, received), (back, returned)) = (ring(RING), ring(RING));
            fleet[one].peers[other] = Some(Peer { to: there, from: returned });
            fleet[other].peers[one] = Some(Peer { to: back, from: received });
        }
        fleet.into_iter().map(|congestion| Some(Box::new(congestion))).collect()
    }

    /// Whether no message of another lcore waits.
    pub fn is_at_rest(&mut self) -> bool {
        self.peers.iter_mut().flatten().all(|peer| peer.from.refresh() == 0)
    }

    /// Begins the work of a poll.
    pub fn begin(&mut self) {
        self.sent = [0; MAX_PORTS];
    }

    /// Whether another message may leave by `port` in this poll. It then counts as sent.
    pub fn may_send(&mut self, port: u8) -> bool {
        let sent = &mut self.sent[usize::from(port) % MAX_PORTS];
        let may = *sent < MOST_AT_ONCE;
        *sent += u8::from(may);
        may
    }

    /// Moves the ends of the queues of port `number` behind their last frames.
    pub fn note_ends(&mut self, number: usize, port: &Port) {
        for queue in self.queues.iter() {
            if let Some(watched) = &mut self.points[number][queue] {
                watched.end = port.queues[queue].end_place();
            }
        }
    }

    /// Hands a message to lcore `owner`, which owns its port. A full ring loses it.
    pub fn push_to_lcore(&mut self, owner: usize, notice: Notice) {
        if let Some(peer) = self.peers.get_mut(owner).and_then(Option::as_mut) {
            let _ = peer.to.push(notice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::CongestionPointSpec;

    #[test]
    fn few_messages_leave_by_a_port_in_a_poll() {
        let mut spec = crate::config::embedded().switch;
        spec.congestion_points[3] = Some(CongestionPointSpec::default());
        let mut points = CongestionPoints::fleet(&spec, 1).remove(0).expect("a queue is a congestion point");
        for _ in 0..2 {
            points.begin();
            let sent = (0..100).filter(|_| points.may_send(1)).count();
            assert_eq!((sent, points.may_send(2)), (usize::from(MOST_AT_ONCE), true));
        }
    }
}
