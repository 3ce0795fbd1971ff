//! Drain of link aggregation groups: whether the frames that members held at an instant have left.
//!
//! A member that becomes active takes flows over from others. Its own frames wait until theirs have left, so that no
//! flow is reordered. The control plane asks for that; the lcores look when they are told to, and not in each poll.

use crate::dataplane::port::Port;
use crate::plan::counters::PortCounters;
use crate::sets::{CLASSES, ClassSet, MAX_PORTS, PortSet};

/// The frames of one lcore that must leave.
#[derive(Debug)]
pub(crate) struct LagDrain {
    /// Ports and queues with such frames.
    ports: PortSet,
    queues: [ClassSet; MAX_PORTS],
    /// By port and queue: the frames ever sent when the last of them has left.
    marks: Box<[[u64; CLASSES]; MAX_PORTS]>,
}

impl LagDrain {
    pub fn new() -> Self {
        let marks = Box::new([[0; CLASSES]; MAX_PORTS]);
        Self { ports: PortSet::EMPTY, queues: [ClassSet::EMPTY; MAX_PORTS], marks }
    }

    /// Notes the frames that wait at port `number`, instead of those that were noted before.
    pub fn note(&mut self, number: usize, port: &Port, counters: &PortCounters) {
        for queue in port.waiting.iter() {
            self.marks[number][queue] = counters.tx_frames[queue].get() + u64::from(port.queues[queue].frames());
        }
        self.queues[number] = port.waiting;
        self.ports.set(number, !port.waiting.is_empty());
    }

    /// Ports at which noted frames still wait.
    pub fn pending<'a>(&mut self, ports: &[Port], counters: impl Fn(usize) -> &'a PortCounters) -> PortSet {
        for number in self.ports.iter() {
            let (port, sent) = (&ports[number], &counters(number).tx_frames);
            // Frames that are dropped are not counted, but then the queue empties.
            let marks = &self.marks[number];
            let has_old = |&queue: &usize| port.waiting.contains(queue) && sent[queue].get() < marks[queue];
            let left: ClassSet = self.queues[number].iter().filter(has_old).collect();
            self.queues[number] = left;
            self.ports.set(number, !left.is_empty());
        }
        self.ports
    }
}
