//! The packet path of a port: its receive and transmit queues, used by one thread.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use dpdk_sys::{rte_eth_fp_ops, rte_mbuf, rte_power_monitor_cond};

use crate::io::{Burst, Packet};
use crate::sets::ClassSet;
use crate::sync::{AtomicPtr, Ordering};
use crate::units::Ticks;

use super::Mbuf;
use super::class_pfc::Rings;
use super::device::Device;
use super::guard::Guarded;
use super::tags::Tagged;

/// Frames asked for in one call. Vector drivers of some NICs bring at most so many (`RTE_I40E_MAX_RX_BURST`), so a
/// shorter answer to a larger question would not show that the queue is empty.
const MOST_A_CALL: usize = 32;

/// Operations of this program around those of a driver. With a `Box`, a move would end the pointers to them.
enum Wrapped {
    Guarded(Rc<Guarded>),
    Tagged(Rc<Tagged>),
}

impl Wrapped {
    /// Wraps the operations of `device` if its driver needs it.
    ///
    /// # Safety
    ///
    /// The operations must be those of the device, started with so many receive and transmit queues. One thread may use
    /// them at a time.
    unsafe fn new(device: &Device, operations: &rte_eth_fp_ops, queues: [u16; 2]) -> Option<Self> {
        if device.driver.frees_queues_of_ended_peers() {
            // SAFETY: ensured by the caller.
            let guarded = unsafe { Guarded::new(device.id(), operations, queues) };
            Some(Self::Guarded(Rc::new(guarded)))
        } else if device.driver.inserts_tags() {
            // SAFETY: ensured by the caller.
            let tagged = unsafe { Tagged::new(operations, queues[0]) };
            tagged.map(|tagged| Self::Tagged(Rc::new(tagged)))
        } else {
            None
        }
    }

    fn operations(&self) -> &rte_eth_fp_ops {
        match self {
            Self::Guarded(guarded) => guarded.operations(),
            Self::Tagged(tagged) => tagged.operations(),
        }
    }
}

/// The queues of a started port, or a part of them. No two values have a queue in common, and the port cannot be
/// stopped while one exists.
///
/// It can be sent to the lcore that polls it, but not shared: two threads must not use a DPDK queue at once.
pub struct PortQueues {
    device: Arc<Device>,
    operations: NonNull<rte_eth_fp_ops>,
    /// The value to which `operations` points, if it is not DPDK's own.
    _wrapped: Option<Wrapped>,
    rx_queues: u16,
    /// The receive queue that is next, if frames are received from all in turn.
    turn: u16,
    tx_queues: Range<u16>,
    /// The queues of the priorities, if the device stops them by itself.
    by_class: Option<Box<Rings>>,
    not_sync: PhantomData<std::cell::Cell<()>>,
}

// SAFETY: DPDK's queues are not bound to a thread. Each may be used by one thread at a time, and only one can have this
// value. The operations are static, or owned by it.
unsafe impl Send for PortQueues {}

impl PortQueues {
    /// Creates the queues of `device`: the first `rx_queues` receive queues and the transmit queues `tx_queues`, at
    /// least one. Only a [`PortSender`] may have no receive queue.
    ///
    /// # Safety
    ///
    /// The device must be started with these queues and stay so while the value exists, and no other value for them may
    /// exist.
    pub(super) unsafe fn new(device: Arc<Device>, rx_queues: u16, tx_queues: Range<u16>) -> Self {
        // SAFETY: the table has an element for each port number that DPDK assigns; only its address is taken.
        let own = unsafe {
            NonNull::new_unchecked(
                (&raw mut dpdk_sys::rte_eth_fp_ops).cast::<rte_eth_fp_ops>().add(usize::from(device.id())),
            )
        };
        // SAFETY: the device is started with these queues and stays so. One thread has the value at a time.
        let wrapped = unsafe { Wrapped::new(&device, own.as_ref(), [rx_queues, tx_queues.end]) };
        let operations = wrapped.as_ref().map_or(own, |wrapped| NonNull::from(wrapped.operations()));
        Self {
            device,
            operations,
            _wrapped: wrapped,
            rx_queues,
            turn: 0,
            tx_queues,
            by_class: None,
            not_sync: PhantomData,
        }
    }

    /// Uses the queues of the priorities by `rings`, which the device must have, if there are any.
    pub(super) fn by_class(mut self, rings: Option<Rings>) -> Self {
        if let Some(rings) = rings {
            self.rx_queues = rings.rx.len() as u16;
            self.tx_queues = rings.control..rings.control + 1;
            self.by_class = Some(Box::new(rings));
        }
        self
    }

    /// The device's number of receive queue `queue`, which is below the number of receive queues.
    #[inline]
    fn rx_number(&self, queue: u16) -> usize {
        self.by_class.as_ref().map_or(queue, |rings| rings.rx[usize::from(queue)]).into()
    }

    /// Returns the name of the port.
    #[must_use]
    pub fn name(&self) -> &str {
        self.device.name()
    }

    /// Receives up to `most` frames of the receive queues in turn into `out`, up to its free room. Returns how many
    /// frames it refused and freed because they had several segments or other owners.
    #[inline]
    pub fn rx(&mut self, most: usize, out: &mut Burst<Mbuf>) -> usize {
        if self.rx_queues != 1 {
            return self.rx_in_turn(most, out);
        }
        let (mut left, mut refused) = (most.min(out.remaining_capacity()), 0);
        loop {
            let (asked, before) = (left.min(MOST_A_CALL), out.len());
            // SAFETY: the port has this queue.
            let refused_now = unsafe { self.receive(0, asked, out) };
            refused += refused_now;
            let received = out.len() - before + refused_now;
            left -= asked;
            if received < asked || left == 0 {
                return refused;
            }
        }
    }

    #[inline(never)]
    fn rx_in_turn(&mut self, most: usize, out: &mut Burst<Mbuf>) -> usize {
        let (mut left, mut refused, mut drained) = (most.min(out.remaining_capacity()), 0, 0);
        while left > 0 && drained < self.rx_queues {
            let (asked, before) = (left.min(MOST_A_CALL), out.len());
            // SAFETY: `turn` is below the number of receive queues.
            let refused_now = unsafe { self.receive(self.rx_number(self.turn), asked, out) };
            refused += refused_now;
            let received = out.len() - before + refused_now;
            left -= received;
            drained = if received < asked { drained + 1 } else { 0 };
            self.turn = (self.turn + 1) % self.rx_queues;
        }
        refused
    }

    /// Receives up to `most` frames of receive queue `queue`, like [`PortQueues::rx`].
    ///
    /// # Panics
    ///
    /// If the port has no such queue.
    #[inline]
    pub fn rx_queue(&mut self, queue: usize, most: usize, out: &mut Burst<Mbuf>) -> usize {
        assert!(queue < usize::from(self.rx_queues), "port {} has no receive queue {queue}", self.name());
        // SAFETY: the port has the queue.
        unsafe { self.receive(self.rx_number(queue as u16), most.min(out.remaining_capacity()), out) }
    }

    /// Receives up to `room` frames of receive queue `queue`.
    ///
    /// # Safety
    ///
    /// The port must have the queue, and `out` that much free room.
    #[inline(always)]
    unsafe fn receive(&mut self, queue: usize, room: usize, out: &mut Burst<Mbuf>) -> usize {
        let (start, room) = (out.len(), room as u16);
        // SAFETY: the table's entry is valid, and filled since the port is started; the queue is one of the port's. The
        // pointer is to the free part of the burst, which has `room` elements, each laid out as a pointer to an mbuf.
        // The driver writes mbufs there and gives up their ownership.
        let received = unsafe {
            let operations = self.operations.as_ref();
            let packets = out.as_mut_ptr().add(start).cast::<*mut rte_mbuf>();
            let Some(receive) = operations.rx_pkt_burst else { return 0 };
            let mut received = receive(*operations.rxq.data.add(queue), packets, room);
            let callback = callback(operations.rxq.clbk.add(queue));
            if !callback.is_null() {
                received = dpdk_sys::rte_eth_call_rx_callbacks(
                    self.device.id(),
                    queue as u16,
                    packets,
                    received,
                    room,
                    callback,
                );
            }
            out.set_len(start + usize::from(received.min(room)));
            received
        };
        if received == 0 {
            return 0;
        }
        let mut sole = true;
        for packet in &out[start..] {
            sole &= packet.is_sole();
            packet.prefetch_bytes();
        }
        if sole { 0 } else { refuse(out, start) }
    }

    /// Returns the number of frames in the receive queues `queues`; `None` if the driver cannot count them. The queues
    /// of priorities count as one.
    #[must_use]
    pub fn backlog(&self, queues: ClassSet) -> Option<usize> {
        let there = (0..self.rx_queues).filter(|&queue| self.by_class.is_some() || queues.contains(queue.into()));
        // SAFETY: while this value lives the port is started with these queues.
        there.map(|queue| unsafe { self.device.backlog(self.rx_number(queue) as u16) }).sum()
    }

    /// Whether the port has a single receive queue.
    pub(super) fn has_one_receive_queue(&self) -> bool {
        self.rx_queues == 1
    }

    /// Waits in a light sleep of the CPU until a frame arrives at the first receive queue or until `until`. Returns
    /// false at once if the driver or the CPU does not support it.
    pub(super) fn monitor(&self, until: Ticks) -> bool {
        let mut condition = rte_power_monitor_cond::default();
        // SAFETY: while this value exists the port is started with this queue, so the descriptor whose address the
        // driver returns stays valid. The condition is a local value, which the driver fills in unless it fails.
        unsafe {
            dpdk_sys::rte_eth_get_monitor_addr(self.device.id(), 0, &mut condition) == 0
                && dpdk_sys::rte_power_monitor(&condition, until.0) == 0
        }
    }

    /// Passes `packets` to the first transmit queue in order. The frames that the driver accepts are removed from the
    /// front.
    ///
    /// # Panics
    ///
    /// If a callback of the queue, which no part of this program sets, drops frames.
    #[inline]
    pub fn tx(&mut self, packets: &mut Burst<Mbuf>) {
        // SAFETY: there is at least one transmit queue.
        unsafe { self.transmit(self.tx_queues.start.into(), packets) }
    }

    /// Passes `packets` to transmit queue `queue`, like [`PortQueues::tx`]: to that of a priority, if the device stops
    /// these by itself.
    ///
    /// # Panics
    ///
    /// If the port has no such queue.
    #[inline]
    pub fn tx_queue(&mut self, queue: usize, packets: &mut Burst<Mbuf>) {
        if let Some(rings) = &self.by_class {
            // SAFETY: the device has the queue of each priority.
            return unsafe { self.transmit(rings.tx[queue].into(), packets) };
        }
        assert!(queue < self.tx_queues.len(), "port {} has no transmit queue {queue}", self.name());
        // SAFETY: the port has the queue.
        unsafe { self.transmit(usize::from(self.tx_queues.start) + queue, packets) }
    }

    /// Passes `packets` to transmit queue `queue`.
    ///
    /// # Safety
    ///
    /// The port must have the queue.
    #[inline(always)]
    unsafe fn transmit(&mut self, queue: usize, packets: &mut Burst<Mbuf>) {
        let count = packets.len() as u16;
        if count == 0 {
            return;
        }
        // SAFETY: as in `receive`. The burst has `count` elements laid out as pointers to mbufs without another owner.
        // The driver takes ownership of the first `sent` of them, and the burst forgets those below.
        let sent = unsafe {
            let operations = self.operations.as_ref();
            let pointers = packets.as_mut_ptr().cast::<*mut rte_mbuf>();
            let Some(transmit) = operations.tx_pkt_burst else { return };
            let mut offered = count;
            let callback = callback(operations.txq.clbk.add(queue));
            if !callback.is_null() {
                offered =
                    dpdk_sys::rte_eth_call_tx_callbacks(self.device.id(), queue as u16, pointers, count, callback);
                // A callback may change buffers in place. One that drops frees some, moves others and tells no one
                // which: the burst would have buffers of other owners, and the drop would be counted nowhere.
                assert!(offered == count, "port {}: a callback of a transmit queue dropped frames", self.name());
            }
            transmit(*operations.txq.data.add(queue), pointers, offered)
        };
        if sent >= count {
            // SAFETY: the new length is smaller. The driver owns the buffers, and Mbuf has no destructor.
            unsafe { packets.set_len(0) };
        } else {
            packets.drain(..usize::from(sent));
        }
    }
}

/// Returns the first callback of a queue, which packet capture and test generators set. It is usually null.
///
/// # Safety
///
/// `slot` must be an element of the port's table of callbacks.
#[inline]
unsafe fn callback(slot: *mut *mut std::ffi::c_void) -> *mut std::ffi::c_void {
    // SAFETY: DPDK sets the slot from other threads with an atomic store, so it is read with an atomic load.
    unsafe { AtomicPtr::from_ptr(slot) }.load(Ordering::Acquire)
}

/// Frees the frames of `out`, from `start` on, that have several segments or other owners. Rare: no port is set up to
/// deliver them.
#[cold]
fn refuse(out: &mut Burst<Mbuf>, start: usize) -> usize {
    let mut refused = 0;
    let mut index = start;
    while index < out.len() {
        if out[index].is_sole() {
            index += 1;
        } else {
            // Freeing follows the chain and releases one reference, which is right for both kinds.
            out.remove(index).free();
            refused += 1;
        }
    }
    refused
}

/// A transmit queue of a port, for a thread that does not receive from the port.
pub struct PortSender(PortQueues);

impl PortSender {
    pub(super) fn new(queues: PortQueues) -> Self {
        Self(queues)
    }

    /// Passes `packets` to the queue, like [`PortQueues::tx`].
    #[inline]
    pub fn tx(&mut self, packets: &mut Burst<Mbuf>) {
        self.0.tx(packets);
    }
}

impl Drop for PortQueues {
    fn drop(&mut self) {
        self.device.take_back();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
