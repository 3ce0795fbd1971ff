//! Calls of a driver that frees memory of its queues in EAL's interrupt thread, as net_memif does.
//!
//! When a peer of memif ends, the driver unmaps the rings in a callback, and does not ask if an lcore reads them. So an
//! lcore passes a [`Gate`] at each call of such a port, and callbacks of such drivers run while all gates are closed.
//! `ffi/interrupts.c` surrounds them; a slow callback of another driver closes nothing.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use dpdk_sys::{eth_rx_burst_t, eth_tx_burst_t, rte_eth_fp_ops, rte_mbuf};

use super::gate::Gate;

/// The gates of all guarded ports.
struct Gates {
    gates: Vec<Weak<Gate>>,
    /// A callback runs.
    are_closed: bool,
}

static GATES: Mutex<Gates> = Mutex::new(Gates { gates: Vec::new(), are_closed: false });

/// Marks all gates as closed or open from now on, and returns those in use.
fn mark_all(are_closed: bool) -> Vec<Arc<Gate>> {
    let mut all = GATES.lock().unwrap_or_else(PoisonError::into_inner);
    all.are_closed = are_closed;
    all.gates.retain(|gate| gate.strong_count() > 0);
    all.gates.iter().filter_map(Weak::upgrade).collect()
}

/// Waits until no lcore is in a guarded driver. An lcore is inside for the time of a burst, unless the kernel has taken
/// its CPU for another thread.
extern "C" fn close_all() {
    for gate in mark_all(true) {
        gate.close(|| std::thread::sleep(Duration::from_micros(20)));
    }
}

extern "C" fn open_all() {
    for gate in mark_all(false) {
        gate.open();
    }
}

/// Sets the functions around callbacks. To be called before EAL starts.
pub(super) fn set_up() {
    // SAFETY: the functions are static, take no arguments and may be called by any thread.
    unsafe { dpdk_sys::hf_surround_interrupts(Some(close_all), Some(open_all)) };
}

/// Whether drivers register their callbacks with this program. A program that links the library in its own way may miss
/// the arguments that `build.rs` gives to the linker.
pub(super) fn is_linked() -> bool {
    // SAFETY: the function asks the linker, and has no preconditions.
    unsafe { dpdk_sys::hf_surrounds_interrupts() == 1 }
}

/// Calls `driver`. If `is_guarded`, callbacks that it registers run between the gates, and those that these register.
pub(super) fn registering<R>(is_guarded: bool, driver: impl FnOnce() -> R) -> R {
    // SAFETY: the function sets a variable of this thread.
    unsafe { dpdk_sys::hf_choose_interrupts(is_guarded.into()) };
    let result = driver();
    // SAFETY: as above.
    unsafe { dpdk_sys::hf_choose_interrupts(0) };
    result
}

/// A queue of a guarded port. It takes the place of the driver's queue in the table of operations.
struct Queue {
    gate: Arc<Gate>,
    driver: *mut c_void,
    receive: eth_rx_burst_t,
    transmit: eth_tx_burst_t,
}

/// The operations of a port whose driver is called between gates.
pub(super) struct Guarded {
    operations: rte_eth_fp_ops,
    /// The tables to which the operations point, and the queues to which those point.
    _tables: [Vec<*mut c_void>; 2],
    _queues: [Vec<Queue>; 2],
}

impl Guarded {
    /// Guards `operations` of a port with so many receive and transmit queues.
    ///
    /// # Safety
    ///
    /// The operations must be those of a started port with these queues, and the port must stay started while the value
    /// is in use. One thread may use it at a time.
    pub unsafe fn new(operations: &rte_eth_fp_ops, [rx_queues, tx_queues]: [u16; 2]) -> Self {
        let mut all = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = Arc::new(Gate::new(all.are_closed));
        all.gates.push(Arc::downgrade(&gate));
        drop(all);
        let queues = [(operations.rxq.data, rx_queues), (operations.txq.data, tx_queues)].map(|(table, queues)| {
            let queue = |number: u16| Queue {
                gate: Arc::clone(&gate),
                // SAFETY: the caller ensures that the table has the queue.
                driver: unsafe { *table.add(number.into()) },
                receive: operations.rx_pkt_burst,
                transmit: operations.tx_pkt_burst,
            };
            (0..queues).map(queue).collect::<Vec<Queue>>()
        });
        let mut tables =
            queues.each_ref().map(|queues| queues.iter().map(|queue| (&raw const *queue).cast_mut().cast()).collect());
        let mut operations = *operations;
        let [rx, tx]: &mut [Vec<*mut c_void>; 2] = &mut tables;
        (operations.rxq.data, operations.txq.data) = (rx.as_mut_ptr(), tx.as_mut_ptr());
        operations.rx_pkt_burst = Some(receive);
        operations.tx_pkt_burst = Some(transmit);
        Self { operations, _tables: tables, _queues: queues }
    }

    pub fn operations(&self) -> &rte_eth_fp_ops {
        &self.operations
    }
}

unsafe extern "C" fn receive(queue: *mut c_void, packets: *mut *mut rte_mbuf, most: u16) -> u16 {
    // SAFETY: the table of operations has only pointers to queues, which live as long as it.
    let queue = unsafe { &*queue.cast::<Queue>() };
    let Some(receive) = queue.receive else { return 0 };
    if !queue.gate.enter() {
        return 0;
    }
    // SAFETY: the caller follows the rules of the driver's function, whose queue this is.
    let received = unsafe { receive(queue.driver, packets, most) };
    queue.gate.leave();
    received
}

unsafe extern "C" fn transmit(queue: *mut c_void, packets: *mut *mut rte_mbuf, frames: u16) -> u16 {
    // SAFETY: as in `receive`.
    let queue = unsafe { &*queue.cast::<Queue>() };
    let Some(transmit) = queue.transmit else { return 0 };
    if !queue.gate.enter() {
        return 0;
    }
    // SAFETY: as in `receive`.
    let sent = unsafe { transmit(queue.driver, packets, frames) };
    queue.gate.leave();
    sent
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
