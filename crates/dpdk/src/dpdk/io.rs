//! The ports of one lcore, as the [`Ports`] of its pipeline.

use crate::io::{Burst, Packet, Ports};
use crate::sets::ClassSet;
use crate::units::Ticks;

use super::{Mbuf, Mempool, PortQueues, PortSender};

/// Ports by index, and the pools for frames that the switch itself makes.
///
/// It belongs to the lcore that polls it: it can be sent to that lcore, but not shared.
pub struct EthIo {
    /// Queues by port index; `None` for a port of another lcore.
    queues: Vec<Option<PortQueues>>,
    /// Transmit queues at ports of other lcores, by port index.
    senders: Vec<Option<PortSender>>,
    data: Mempool,
    control: Mempool,
    refused: u64,
}

impl EthIo {
    /// Creates the ports of an lcore. `queues` are indexed by port, with `None` for a port of another lcore. `data` is
    /// the pool for copies of frames, and `control` the pool for control frames.
    #[must_use]
    pub fn new(queues: Vec<Option<PortQueues>>, data: Mempool, control: Mempool) -> Self {
        let senders = queues.iter().map(|_| None).collect();
        Self { queues, senders, data, control, refused: 0 }
    }

    /// Adds transmit queues at ports of other lcores, by port index.
    #[must_use]
    pub fn with_senders(self, senders: Vec<Option<PortSender>>) -> Self {
        Self { senders, ..self }
    }

    /// Exchanges the queues of `port`, a port of this lcore, by `queues`. Without queues it has no frames, and takes
    /// none.
    pub fn exchange(&mut self, port: usize, queues: &mut Option<PortQueues>) {
        std::mem::swap(&mut self.queues[port], queues);
    }

    /// Returns the number of ports.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether there are no ports.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the number of received frames that were freed because they had several segments or other owners. The
    /// drivers set up here never deliver such frames, so a number above zero is a fault to report.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the queues if the lcore has exactly one receive queue.
    pub(super) fn only_queue(&self) -> Option<&PortQueues> {
        let mut queues = self.queues.iter().flatten();
        queues.next().filter(|_| queues.next().is_none()).filter(|queues| queues.has_one_receive_queue())
    }

    /// Returns the queues, so that their ports can be stopped.
    #[must_use]
    pub fn into_queues(self) -> Vec<PortQueues> {
        self.queues.into_iter().flatten().collect()
    }
}

impl Ports for EthIo {
    type Pkt = Mbuf;

    #[inline]
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Mbuf>) {
        if let Some(queue) = &mut self.queues[port] {
            self.refused += queue.rx(most, out) as u64;
        }
    }

    #[inline]
    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<Mbuf>) {
        if let Some(queues) = &mut self.queues[port] {
            self.refused += queues.rx_queue(queue, most, out) as u64;
        }
    }

    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        self.queues[port].as_ref()?.backlog(queues)
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        Some(super::now())
    }

    #[inline]
    fn tx(&mut self, port: usize, packets: &mut Burst<Mbuf>) {
        if let Some(queues) = &mut self.queues[port] {
            queues.tx(packets);
        } else if let Some(sender) = &mut self.senders[port] {
            sender.tx(packets);
        }
    }

    #[inline]
    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<Mbuf>) {
        if let Some(queues) = &mut self.queues[port] {
            queues.tx_queue(queue, packets);
        }
    }

    #[inline]
    fn free(&mut self, packets: &mut Burst<Mbuf>) {
        Mbuf::free_all(packets);
    }

    #[inline]
    fn copy(&mut self, packet: &Mbuf) -> Option<Mbuf> {
        self.data.alloc_with(packet.bytes())
    }

    #[inline]
    fn make(&mut self, frame: &[u8]) -> Option<Mbuf> {
        self.control.alloc_with(frame)
    }

    #[inline]
    fn build(&mut self, frame: &[u8]) -> Option<Mbuf> {
        self.data.alloc_with(frame)
    }
}
