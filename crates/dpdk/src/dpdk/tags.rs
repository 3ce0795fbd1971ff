//! The outermost VLAN tag of frames that net_af_packet receives.
//!
//! The kernel takes this tag off and notes it in the slot of the frame. The driver puts it back with 81-00, even if its
//! TPID was another. So the TPIDs are read from the slots before the driver returns these to the kernel, and others
//! than 81-00 are written into the frames.

use std::ffi::c_void;
use std::ptr::NonNull;

use dpdk_sys::{eth_rx_burst_t, libc, rte_eth_fp_ops, rte_mbuf};

use super::Mbuf;
use crate::io::Packet;
use crate::sets::BURST;
use crate::sync::{AtomicU32, Ordering};

/// The TPID of the tag that the driver inserts, and its place in a frame.
const INSERTED: u16 = 0x8100;
const PLACE: usize = 12;

/// The begin of the driver's own receive queue (`struct pkt_rx_queue`), which is the same in all versions since 16.04.
#[repr(C)]
struct DriverQueue {
    socket: libc::c_int,
    /// The slots.
    slots: *const libc::iovec,
    /// The memory shared with the kernel, which begins with the first slot.
    memory: *const c_void,
    slot_count: libc::c_uint,
    /// The slot that is next.
    next: libc::c_uint,
}

/// A receive queue. It takes the place of the driver's queue in the table of operations.
struct Queue {
    driver: *mut c_void,
    receive: eth_rx_burst_t,
}

/// The operations of an af_packet port whose frames keep their TPIDs.
pub(super) struct Tagged {
    operations: rte_eth_fp_ops,
    /// The table to which the operations point, and the queues to which it points.
    _table: Vec<*mut c_void>,
    _queues: Vec<Queue>,
}

impl Tagged {
    /// Wraps `operations` of a port with so many receive queues; `None` if the driver's queues are not those that this
    /// module knows.
    ///
    /// # Safety
    ///
    /// The operations must be those of a started af_packet port with these queues, and the port must stay started while
    /// the value is in use. One thread may use it at a time.
    pub unsafe fn new(operations: &rte_eth_fp_ops, rx_queues: u16) -> Option<Self> {
        // SAFETY: the caller ensures that the table has the queues.
        let driver = |number: u16| unsafe { *operations.rxq.data.add(number.into()) };
        let queues: Vec<Queue> =
            (0..rx_queues).map(|number| Queue { driver: driver(number), receive: operations.rx_pkt_burst }).collect();
        // SAFETY: each is a queue of the driver, which is larger than the part that is read.
        if !queues.iter().all(|queue| unsafe { is_known(queue.driver.cast()) }) {
            return None;
        }
        let mut table: Vec<*mut c_void> = queues.iter().map(|queue| (&raw const *queue).cast_mut().cast()).collect();
        let mut operations = *operations;
        operations.rxq.data = table.as_mut_ptr();
        operations.rx_pkt_burst = Some(receive);
        Some(Self { operations, _table: table, _queues: queues })
    }

    pub fn operations(&self) -> &rte_eth_fp_ops {
        &self.operations
    }
}

/// Whether a queue of the driver begins as [`DriverQueue`] does.
///
/// # Safety
///
/// The pointer must be to a queue of a started af_packet port.
unsafe fn is_known(queue: *const DriverQueue) -> bool {
    // SAFETY: the caller ensures that there are that many bytes.
    let queue = unsafe { queue.read() };
    let (mut domain, mut size) = (0_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `size` bytes to a local value, and refuses a number that is no socket.
    let status = unsafe {
        libc::getsockopt(queue.socket, libc::SOL_SOCKET, libc::SO_DOMAIN, (&raw mut domain).cast(), &raw mut size)
    };
    status == 0
        && domain == libc::AF_PACKET
        && queue.next < queue.slot_count
        && !queue.slots.is_null()
        // SAFETY: the queue has a packet socket and a count where they are expected, so that the slots are there too.
        && unsafe { (*queue.slots).iov_base.cast_const() } == queue.memory
}

unsafe extern "C" fn receive(queue: *mut c_void, packets: *mut *mut rte_mbuf, most: u16) -> u16 {
    // SAFETY: the table of operations has only pointers to queues, which live as long as it.
    let queue = unsafe { &*queue.cast::<Queue>() };
    let Some(receive) = queue.receive else { return 0 };
    let mut tags = [0; BURST];
    // SAFETY: the queue is one of the driver's, known to begin so, and its thread is this one.
    let (ready, has_others) = unsafe { read_tags(&*queue.driver.cast(), &mut tags[..usize::from(most).min(BURST)]) };
    // SAFETY: the caller follows the rules of the driver's function, whose queue this is, and `ready` is no more than
    // the caller has room for.
    let received = unsafe { receive(queue.driver, packets, ready) };
    if has_others {
        for (index, tag) in tags[..usize::from(received)].iter().enumerate() {
            // SAFETY: the driver has returned so many buffers.
            unsafe { restore(*packets.add(index), *tag) };
        }
    }
    received
}

/// Reads the TPIDs of the frames that wait, 0 of those without a tag. Returns their number, and whether one is not
/// 81-00.
///
/// # Safety
///
/// The queue must be that of a started port, and no other thread may receive from it.
#[inline]
unsafe fn read_tags(queue: &DriverQueue, tags: &mut [u16]) -> (u16, bool) {
    const VALID: u32 = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
    let (mut slot, mut ready, mut has_others) = (queue.next, 0, false);
    for tag in tags {
        // SAFETY: `slot` is below the count of slots. Each begins with a header of TPACKET_V2, which the kernel wrote
        // before the status.
        unsafe {
            let header = (*queue.slots.add(slot as usize)).iov_base.cast::<libc::tpacket2_hdr>();
            let status = AtomicU32::from_ptr(&raw mut (*header).tp_status).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            if status & VALID == VALID {
                *tag = (*header).tp_vlan_tpid;
                has_others |= *tag != INSERTED;
            }
        }
        ready += 1;
        slot += 1;
        if slot >= queue.slot_count {
            slot = 0;
        }
    }
    (ready, has_others)
}

/// Writes the TPID `tag` over that of the tag that the driver has inserted.
///
/// # Safety
///
/// The buffer must be valid and have no other user.
#[cold]
unsafe fn restore(packet: *mut rte_mbuf, tag: u16) {
    if tag == 0 || tag == INSERTED {
        return;
    }
    // SAFETY: the caller ensures that the buffer is valid. The driver fills one segment, which no one else has.
    let mut packet = unsafe { Mbuf::from_raw(NonNull::new_unchecked(packet)) };
    if let Some(place) = packet.bytes_mut().get_mut(PLACE..PLACE + 2).filter(|place| **place == INSERTED.to_be_bytes())
    {
        place.copy_from_slice(&tag.to_be_bytes());
    }
}
