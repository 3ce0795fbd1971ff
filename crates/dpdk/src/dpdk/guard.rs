//! Calls of a driver that frees memory of its queues in EAL's interrupt thread, as net_memif does.
//!
//! When a peer of memif ends, the driver unmaps the rings in a callback, and does not ask if an lcore reads them. So an
//! lcore passes a [`Gate`] at each call of such a port, and callbacks of such drivers run while the gate of their port
//! is closed. `ffi/interrupts.c` surrounds them; a slow callback of another driver closes nothing.
//!
//! Nor does the driver expect that a port is closed while a callback is about it. So control functions of such a driver
//! and its callbacks exclude each other.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dpdk_sys::{eth_rx_burst_t, eth_tx_burst_t, hf_interrupts, hf_listener, rte_eth_fp_ops, rte_mbuf};

use super::gate::Gate;

/// The guarded ports that are open.
static PORTS: Mutex<Ports> = Mutex::new(Ports::new());

/// The guarded ports, with the gates of their queues.
///
/// A peer has a channel of its own, which is the argument of its callback, and the driver frees only what this channel
/// has connected. So a callback closes the port of its channel and those without a connection, whose frames wait in any
/// case: a peer that connects and ends without pause does not stop the ports of others.
#[derive(Debug)]
struct Ports {
    ports: Vec<Guard>,
    /// A callback runs.
    is_busy: bool,
    /// Those of devices in the arguments of EAL.
    listeners: Option<Listeners>,
}

/// A guarded port.
#[derive(Debug)]
struct Guard {
    port: u16,
    /// Whether it had a link before the last callback.
    was_up: bool,
    /// The channel in whose callback the link came up; `None` without a link, or if it came up unseen.
    channel: Option<usize>,
    /// A callback runs that may free memory of this port.
    is_closed: bool,
    gates: Vec<Weak<Gate>>,
    _listeners: Option<Listeners>,
}

/// Callbacks of listening sockets, which net_memif never takes back: it would hand a peer that connects after the port
/// has ended to freed memory. They end with this value.
#[derive(Debug)]
pub(super) struct Listeners(NonNull<hf_listener>);

// SAFETY: the list has one owner, and none of its functions asks for a certain thread.
unsafe impl Send for Listeners {}

impl Drop for Listeners {
    fn drop(&mut self) {
        // SAFETY: the list is from `hf_listeners` and is closed once. No callback of a driver owns such a value.
        unsafe { dpdk_sys::hf_close_listeners(self.0.as_ptr()) };
    }
}

impl Ports {
    const fn new() -> Self {
        Self { ports: Vec::new(), is_busy: false, listeners: None }
    }

    fn add(&mut self, port: u16, listeners: Option<Listeners>) {
        // A callback that runs now may be for this port.
        let is_closed = self.is_busy;
        let (was_up, channel, gates) = (false, None, Vec::new());
        self.ports.push(Guard { port, was_up, channel, is_closed, gates, _listeners: listeners });
    }

    /// Removes a port. Returns its guard, and the listeners of EAL's arguments, which serve any port.
    fn remove(&mut self, port: u16) -> (Option<Guard>, Option<Listeners>) {
        let found = self.ports.iter().position(|guard| guard.port == port);
        let listeners = found.and_then(|_| self.listeners.take());
        (found.map(|place| self.ports.swap_remove(place)), listeners)
    }

    /// A new gate of a port.
    fn gate(&mut self, port: u16) -> Arc<Gate> {
        let guard = self.ports.iter_mut().find(|guard| guard.port == port);
        let gate = Arc::new(Gate::new(guard.as_ref().is_some_and(|guard| guard.is_closed)));
        if let Some(guard) = guard {
            guard.gates.retain(|gate| gate.strong_count() > 0);
            guard.gates.push(Arc::downgrade(&gate));
        }
        gate
    }

    /// Marks the ports whose memory a callback of `channel` may free. Returns their gates, which are to be closed.
    fn before(&mut self, channel: usize, is_up: impl Fn(u16) -> bool) -> Vec<Arc<Gate>> {
        self.is_busy = true;
        for guard in &mut self.ports {
            guard.was_up = is_up(guard.port);
            guard.channel = guard.channel.filter(|_| guard.was_up);
            guard.is_closed = guard.channel.is_none_or(|own| own == channel);
        }
        self.closed()
    }

    /// Takes note of the links that `channel` has changed. Returns the gates to be opened.
    fn after(&mut self, channel: usize, is_up: impl Fn(u16) -> bool) -> Vec<Arc<Gate>> {
        let gates = self.closed();
        self.is_busy = false;
        for guard in &mut self.ports {
            guard.is_closed = false;
            if is_up(guard.port) && !guard.was_up {
                guard.channel = Some(channel);
            }
        }
        gates
    }

    fn closed(&self) -> Vec<Arc<Gate>> {
        let closed = self.ports.iter().filter(|guard| guard.is_closed);
        closed.flat_map(|guard| &guard.gates).filter_map(Weak::upgrade).collect()
    }
}

fn ports() -> MutexGuard<'static, Ports> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guards a port that is open from now on. A port is guarded before it starts, so that no link comes up unseen. The
/// listeners are those that its device has registered; other ports of the same socket have none.
pub(super) fn watch(port: u16, listeners: Option<Listeners>) {
    ports().add(port, listeners);
}

/// Ends the guard of a port that is to be closed, and its listeners.
pub(super) fn forget(port: u16) {
    let removed = ports().remove(port);
    // A callback that runs takes the lock of the ports, so that the wait for its end is outside of it.
    drop(removed);
}

/// Whether a guarded port has a link.
fn has_link(port: u16) -> bool {
    let (mut speed, mut up) = (0, 0);
    // SAFETY: the port is open: it is guarded, and the caller has the lock without which it is not closed. The driver's
    // function has no effect in this process, so that no lock of the port is needed.
    let status = unsafe { dpdk_sys::hf_link(port, &mut speed, &mut up) };
    status >= 0 && up != 0
}

/// Waits until no lcore is in the driver for a port of this channel. An lcore is inside for the time of a burst, unless
/// the kernel has taken its CPU for another thread.
extern "C" fn close(channel: *mut c_void) {
    // The wait is not under the lock, which threads that open ports take.
    let gates = ports().before(channel.addr(), has_link);
    for gate in gates {
        gate.close(|| std::thread::sleep(Duration::from_micros(20)));
    }
}

extern "C" fn open(channel: *mut c_void) {
    let gates = ports().after(channel.addr(), has_link);
    for gate in gates {
        gate.open();
    }
}

/// Sets the functions around callbacks. To be called before EAL starts.
pub(super) fn set_up() {
    // SAFETY: the functions are static, read nothing by their argument, and may be called by any thread.
    unsafe { dpdk_sys::hf_surround_interrupts(Some(close), Some(open)) };
}

/// Whether drivers register their callbacks with this program. A program that links the library in its own way may miss
/// the arguments that `build.rs` gives to the linker.
pub(super) fn is_linked() -> bool {
    // SAFETY: the function asks the linker, and has no preconditions.
    unsafe { dpdk_sys::hf_surrounds_interrupts() == 1 }
}

/// Calls a control function of a driver. If `is_guarded`, no guarded callback runs meanwhile, and callbacks that it
/// registers are guarded, and those that these register.
pub(super) fn calling<R>(is_guarded: bool, driver: impl FnOnce() -> R) -> R {
    choosing(if is_guarded { dpdk_sys::HF_SURROUNDED } else { dpdk_sys::HF_PLAIN }, driver)
}

/// Like [`calling`], for the probe of a device. Returns its listeners too, if it is guarded.
pub(super) fn probing<R>(is_guarded: bool, driver: impl FnOnce() -> R) -> (R, Option<Listeners>) {
    let result = choosing(if is_guarded { dpdk_sys::HF_LISTENERS } else { dpdk_sys::HF_PLAIN }, driver);
    // SAFETY: the function takes a list of this thread.
    let listeners = unsafe { dpdk_sys::hf_listeners() };
    (result, NonNull::new(listeners).map(Listeners))
}

/// Like [`probing`], for devices in the arguments of EAL.
pub(super) fn starting<R>(is_guarded: bool, driver: impl FnOnce() -> R) -> R {
    let (result, listeners) = probing(is_guarded, driver);
    ports().listeners = listeners;
    result
}

fn choosing<R>(kind: hf_interrupts, driver: impl FnOnce() -> R) -> R {
    // SAFETY: the function sets a variable of this thread.
    unsafe { dpdk_sys::hf_choose_interrupts(kind) };
    let result = driver();
    // SAFETY: as above.
    unsafe { dpdk_sys::hf_choose_interrupts(dpdk_sys::HF_PLAIN) };
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
    /// Guards `operations` of `port`. `queues` are the numbers of its receive and transmit queues.
    ///
    /// # Safety
    ///
    /// The operations must be those of a started port with these queues, and the port must stay started while the value
    /// is in use. One thread may use it at a time.
    pub unsafe fn new(port: u16, operations: &rte_eth_fp_ops, queues: [u16; 2]) -> Self {
        let gate = ports().gate(port);
        let drivers = [(operations.rxq.data, queues[0]), (operations.txq.data, queues[1])];
        let queues = drivers.map(|(table, queues)| {
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
