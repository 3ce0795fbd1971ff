//! The ports of one lcore as the pipeline sees them.

use crate::packet::{Burst, Packet, Ports};
use crate::units::Ticks;

use super::{Mbuf, Mempool, PortQueue};

/// Ports by index, and the pools for frames that the switch makes itself.
///
/// It belongs to the lcore that polls it: it can be sent there, but not shared.
pub struct EthIo {
    /// By port index; `None` where a port is another lcore's.
    queues: Vec<Option<PortQueue>>,
    data: Mempool,
    control: Mempool,
    refused: u64,
}

impl EthIo {
    /// The queues by the indices of their ports, `None` for a port that another lcore polls; `data` for copies of frames and `control` for control frames.
    #[must_use]
    pub fn new(queues: Vec<Option<PortQueue>>, data: Mempool, control: Mempool) -> Self {
        Self { queues, data, control, refused: 0 }
    }

    /// Ports.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether there is no port.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Received frames that were freed because they came in several pieces or with other owners: no driver set up
    /// here does that, so anything but zero is a fault to report.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The queue, if there is one and no other.
    pub(super) fn only_queue(&self) -> Option<&PortQueue> {
        let mut queues = self.queues.iter().flatten();
        queues.next().filter(|_| queues.next().is_none())
    }

    /// The queues again, to stop their ports.
    #[must_use]
    pub fn into_queues(self) -> Vec<PortQueue> {
        self.queues.into_iter().flatten().collect()
    }
}

impl Ports for EthIo {
    type Pkt = Mbuf;

    #[inline]
    fn rx(&mut self, port: usize, out: &mut Burst<Mbuf>) {
        if let Some(queue) = &mut self.queues[port] {
            self.refused += queue.rx(out) as u64;
        }
    }

    fn backlog(&mut self, port: usize) -> Option<usize> {
        self.queues[port].as_ref()?.backlog()
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        Some(super::now())
    }

    #[inline]
    fn tx(&mut self, port: usize, packets: &mut Burst<Mbuf>) {
        if let Some(queue) = &mut self.queues[port] {
            queue.tx(packets);
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
}
