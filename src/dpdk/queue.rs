//! The packet path of a port: one receive queue and one transmit queue, used by one thread.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::{rte_eth_fp_ops, rte_mbuf, rte_power_monitor_cond};

use crate::io::{Burst, Packet};
use crate::sync::{AtomicPtr, Ordering};
use crate::units::Ticks;

use super::Mbuf;
use super::device::Device;

/// A pair of queues of a started port. Each number has one value at a time, and the port cannot be stopped while it
/// exists.
///
/// It can be sent to the lcore that polls it, but not shared: two threads must not use a DPDK queue at once.
pub struct PortQueue {
    device: Arc<Device>,
    operations: NonNull<rte_eth_fp_ops>,
    number: u16,
    not_sync: PhantomData<std::cell::Cell<()>>,
}

// SAFETY: DPDK's queues are not bound to a thread. Each may be used by one thread at a time, and only one can have this
// value. The operations are static.
unsafe impl Send for PortQueue {}

impl PortQueue {
    /// Creates the pair of queues `number` of `device`.
    ///
    /// # Safety
    ///
    /// The device must be started with that queue and stay so while the value exists, and no other value for the queue
    /// may exist.
    pub(super) unsafe fn new(device: Arc<Device>, number: u16) -> Self {
        // SAFETY: the table has an element for each port number that DPDK assigns; only its address is taken.
        let operations = unsafe {
            NonNull::new_unchecked(
                (&raw mut dpdk_sys::rte_eth_fp_ops).cast::<rte_eth_fp_ops>().add(usize::from(device.id())),
            )
        };
        Self { device, operations, number, not_sync: PhantomData }
    }

    /// Returns the name of the port.
    #[must_use]
    pub fn name(&self) -> &str {
        self.device.name()
    }

    /// Receives frames into `out`, up to its free room. Returns how many frames it refused and freed because they had
    /// several segments or other owners.
    #[inline]
    pub fn rx(&mut self, out: &mut Burst<Mbuf>) -> usize {
        let start = out.len();
        let room = out.remaining_capacity() as u16;
        let queue = usize::from(self.number);
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
                    self.number,
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

    /// Returns the number of frames in the receive queue; `None` if the driver cannot count them.
    #[must_use]
    pub fn backlog(&self) -> Option<usize> {
        // SAFETY: while this value lives the port is started with this queue.
        unsafe { self.device.backlog(self.number) }
    }

    /// Waits in a light sleep of the CPU until a frame arrives or until `until`. Returns false at once if the driver or
    /// the CPU does not support it.
    pub(super) fn monitor(&self, until: Ticks) -> bool {
        let mut condition = rte_power_monitor_cond::default();
        // SAFETY: while this value exists the port is started with this queue, so the descriptor whose address the
        // driver returns stays valid. The condition is a local value, which the driver fills in unless it fails.
        unsafe {
            dpdk_sys::rte_eth_get_monitor_addr(self.device.id(), self.number, &mut condition) == 0
                && dpdk_sys::rte_power_monitor(&condition, until.0) == 0
        }
    }

    /// Passes `packets` to the port in order. The frames that the driver accepts are removed from the front.
    #[inline]
    pub fn tx(&mut self, packets: &mut Burst<Mbuf>) {
        let count = packets.len() as u16;
        if count == 0 {
            return;
        }
        let queue = usize::from(self.number);
        // SAFETY: as in `rx`. The burst has `count` elements laid out as pointers to mbufs without another owner. The
        // driver takes ownership of the first `sent` of them, and the burst forgets those below.
        let sent = unsafe {
            let operations = self.operations.as_ref();
            let pointers = packets.as_mut_ptr().cast::<*mut rte_mbuf>();
            let Some(transmit) = operations.tx_pkt_burst else { return };
            let mut offered = count;
            let callback = callback(operations.txq.clbk.add(queue));
            if !callback.is_null() {
                offered = dpdk_sys::rte_eth_call_tx_callbacks(self.device.id(), self.number, pointers, count, callback);
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

impl Drop for PortQueue {
    fn drop(&mut self) {
        self.device.take_back(self.number);
    }
}
