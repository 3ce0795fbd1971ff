//! An Ethernet device of DPDK's: claimed by one owner, set up, and closed with its last share.

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpdk_sys::{libc, rte_eth_conf, rte_eth_dev_info};

use super::driver::Driver;
use super::eal::Shared;
use super::error::errno_text;
use super::interface::Interface;
use super::kernel_ring::KernelRings;
use super::port::{PortConfig, VDEV};
use super::ring::{End, Rings};
use super::{Eal, Error, HEADROOM, Mempool, interface, log};

/// Bytes of a frame beyond its MTU: Ethernet header, two VLAN tags and the check sequence.
const OVERHEAD: usize = 14 + 2 * 4 + 4;

/// Bytes of a frame beyond its MTU as ethdev counts them: Ethernet header and check sequence.
const ETHDEV_OVERHEAD: u32 = 14 + 4;

/// The largest MTU that ethdev lets af_packet have, whose driver says that frames have at most 1518 B.
const AF_PACKET_ETHDEV_MTU: u16 = 1500;

/// State that a port and its queues share.
pub(super) struct Device {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) driver: Driver,
    state: Mutex<State>,
    pub(super) origin: Origin,
    /// The interface of the kernel's that it sends and receives by.
    pub(super) interface: Option<String>,
    /// The receive queue takes buffers from it until the port is closed.
    _pool: Mempool,
    eal: Arc<Shared>,
}

/// Origin of a device, and the things that are freed with it.
pub(super) enum Origin {
    /// Made by EAL, which also removes it.
    Eal,
    /// Made for this port.
    Plugged,
    /// Made of rings, which are freed after it.
    Rings(Arc<Rings>, End),
}

/// Whether the port runs, and who has its queues.
#[derive(Default)]
pub(super) struct State {
    pub started: bool,
    /// A bit for each queue that is out.
    pub queues_out: u64,
    /// The kernel's ring of received frames of an af_packet port.
    pub kernel: Option<KernelRings>,
    /// The interface behind a tap or an af_packet port.
    pub interface: Option<Interface>,
}

/// Queues of each kind.
pub(super) const QUEUES: u16 = 1;

/// A string of DPDK's, which may be missing.
fn text(string: *const std::ffi::c_char) -> String {
    if string.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: drivers give their names as strings with a zero at the end, which live as long as the driver.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

impl Device {
    /// Makes the caller the one owner of port `id`.
    pub(super) fn claim(eal: &Eal, id: u16, name: &str, origin: Origin, pool: &Mempool) -> Result<Self, Error> {
        let mut open = eal.shared().open_ports.lock().unwrap_or_else(PoisonError::into_inner);
        let bit = 1_u64.checked_shl(u32::from(id)).unwrap_or_default();
        if bit == 0 {
            return Err(Error::TooManyPorts { device: name.to_owned(), limit: u64::BITS as usize });
        }
        if *open & bit != 0 {
            return Err(Error::InUse {
                what: format!("port `{name}`"),
                remedy: "a port has one owner: drop the other first",
            });
        }
        *open |= bit;
        drop(open);
        let mut device = Self {
            id,
            name: name.to_owned(),
            driver: Driver::Other,
            state: Mutex::default(),
            origin,
            interface: None,
            _pool: pool.clone(),
            eal: Arc::clone(eal.shared()),
        };
        device.driver = Driver::named(&device.driver_name());
        Ok(device)
    }

    /// The name of its driver; `unknown` if DPDK does not say.
    pub(super) fn driver_name(&self) -> String {
        self.info().map_or_else(|_| "unknown".to_owned(), |info| text(info.driver_name))
    }

    /// Remembers the kernel's interface `name` if its driver has one.
    pub(super) fn find_interface(&mut self, name: Option<&str>) {
        let driver = self.driver;
        if driver.is_on_interface() {
            self.interface = name.map(str::to_owned);
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if driver == Driver::AfPacket {
            state.kernel = name.and_then(KernelRings::of);
        }
        if driver.has_interface_state() {
            state.interface = name.and_then(Interface::of);
        }
    }

    /// The interface of an af_packet port, whose driver tells ethdev of a smaller MTU than it takes.
    fn jumbo_interface(&self) -> Option<&str> {
        self.interface.as_deref().filter(|_| self.driver == Driver::AfPacket)
    }

    /// DPDK's number.
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// The device's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Frames that the port has received on queue `number` and that are not taken yet; `None` if the driver cannot tell.
    ///
    /// # Safety
    ///
    /// The port must be started with that queue.
    pub(super) unsafe fn backlog(&self, number: u16) -> Option<usize> {
        if let Origin::Rings(rings, end) = &self.origin {
            return Some(rings.waiting(*end));
        }
        // SAFETY: as the caller says; DPDK reads what the driver keeps for this very question.
        usize::try_from(unsafe { dpdk_sys::hf_rx_backlog(self.id, number) }).ok()
    }

    /// Takes queue `number` back.
    pub(super) fn take_back(&self, number: u16) {
        self.state().queues_out &= !(1 << number);
    }

    /// The state, and the right to make control calls on this port, which DPDK wants one at a time.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one of DPDK's calls, and makes its failure an error.
    pub(super) fn attempt(&self, step: &'static str, call: impl FnOnce() -> i32) -> Result<(), Error> {
        let mark = log::mark();
        match call() {
            0.. => Ok(()),
            status => {
                let log = log::since(mark, &errno_text(status));
                Err(Error::Port { device: self.name.clone(), step, log })
            }
        }
    }

    /// The driver's description of itself.
    pub(super) fn info(&self) -> Result<rte_eth_dev_info, Error> {
        let mut info = rte_eth_dev_info::default();
        // SAFETY: the port is open, and the information is written to a value that is ours.
        self.attempt("be asked for its limits", || unsafe { dpdk_sys::rte_eth_dev_info_get(self.id, &mut info) })?;
        Ok(info)
    }

    /// Sets up the port and its queues.
    pub(super) fn configure(&self, config: &PortConfig, pool: &Mempool) -> Result<(), Error> {
        let _state = self.state();
        let info = self.info()?;
        self.check_mtu(config.mtu, &info, pool)?;
        let mut conf = rte_eth_conf::default();
        // af_packet carries what its ring has room for, but tells ethdev of a bound that this would have to keep.
        let is_jumbo = self.jumbo_interface().is_some() && config.mtu > AF_PACKET_ETHDEV_MTU;
        let ethdev_mtu = if is_jumbo { AF_PACKET_ETHDEV_MTU } else { config.mtu };
        conf.rxmode.mtu = u32::from(ethdev_mtu);
        // SAFETY: the port is open, and the configuration, zero but for what is set here, is copied.
        self.attempt("be configured", || unsafe { dpdk_sys::rte_eth_dev_configure(self.id, QUEUES, QUEUES, &conf) })?;

        let (mut rx, mut tx) = (config.rx_descriptors, config.tx_descriptors);
        // SAFETY: the port is configured, and the numbers are ours.
        self.attempt("have so few or so many descriptors", || unsafe {
            dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(self.id, &mut rx, &mut tx)
        })?;
        // SAFETY: the port is open.
        let socket = unsafe { dpdk_sys::rte_eth_dev_socket_id(self.id) }.cast_unsigned();
        for queue in 0..QUEUES {
            // SAFETY: the port is configured with this queue; null asks for the driver's defaults; the pool outlives
            // the queue, since `self` holds it until the port is closed.
            self.attempt("set up its receive queue", || unsafe {
                dpdk_sys::rte_eth_rx_queue_setup(self.id, queue, rx, socket, std::ptr::null(), pool.as_ptr())
            })?;
            // SAFETY: as above.
            self.attempt("set up its transmit queue", || unsafe {
                dpdk_sys::rte_eth_tx_queue_setup(self.id, queue, tx, socket, std::ptr::null())
            })?;
        }
        // Configuring tells DPDK the MTU; this tells the device, where it can be told (a tap's interface, say).
        let unsupported = [-libc::ENOTSUP, -libc::ENOSYS];
        match self.jumbo_interface() {
            Some(interface) if is_jumbo => interface::set_mtu(interface, config.mtu).map_err(|error| Error::Mtu {
                device: self.name.clone(),
                mtu: config.mtu,
                limit: format!("the kernel refuses it for interface {interface} ({error})"),
            })?,
            _ => self.attempt("set its MTU", || {
                // SAFETY: the port is configured and stopped.
                let status = unsafe { dpdk_sys::rte_eth_dev_set_mtu(self.id, config.mtu) };
                if unsupported.contains(&status) { 0 } else { status }
            })?,
        }
        if config.promiscuous {
            self.attempt("receive frames for any address", || {
                // SAFETY: the port is configured.
                let status = unsafe { dpdk_sys::rte_eth_promiscuous_enable(self.id) };
                if unsupported.contains(&status) { 0 } else { status }
            })?;
        }
        Ok(())
    }

    /// Whether frames of that MTU fit the buffers, so that none comes in pieces, and the device.
    fn check_mtu(&self, mtu: u16, info: &rte_eth_dev_info, pool: &Mempool) -> Result<(), Error> {
        let error = |limit| Err(Error::Mtu { device: self.name.clone(), mtu, limit });
        let needed = HEADROOM + usize::from(mtu) + OVERHEAD;
        if needed > usize::from(pool.data_room()) {
            let have = pool.data_room();
            return error(format!("buffers of pool `{}` have {have} bytes and must have {needed}", pool.name()));
        }
        // Drivers that do not care leave these at zero.
        let most = most_of(info);
        if mtu < info.min_mtu || mtu > most && self.jumbo_interface().is_none() {
            return error(format!("its driver takes {} to {most}", info.min_mtu));
        }
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _one_at_a_time = self.eal.control.lock().unwrap_or_else(PoisonError::into_inner);
        let started = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).started;
        // SAFETY: the last share is going, so neither the port nor a queue of it is in use. Failures leave nothing to
        // be done: a device that is gone cannot be stopped. Promiscuous mode of a kernel interface (af_packet) would
        // stay on after the port. DPDK complains of stopping what is stopped.
        unsafe {
            dpdk_sys::rte_eth_promiscuous_disable(self.id);
            if started {
                dpdk_sys::rte_eth_dev_stop(self.id);
            }
            dpdk_sys::rte_eth_dev_close(self.id);
        }
        if !matches!(self.origin, Origin::Eal)
            && let Ok(name) = CString::new(self.name.as_str())
        {
            // SAFETY: both are strings with a zero at their ends; the port of the device is closed.
            unsafe { dpdk_sys::rte_eal_hotplug_remove(VDEV.as_ptr(), name.as_ptr()) };
        }
        *self.eal.open_ports.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << self.id);
    }
}

/// The largest MTU that ethdev lets a driver have: by what the driver says of MTUs and of frames.
fn most_of(info: &rte_eth_dev_info) -> u16 {
    let by_mtu = if info.max_mtu == 0 { u16::MAX } else { info.max_mtu };
    // `eth_dev_get_overhead_len` does the same: the difference of both bounds is what a driver counts beside the packet.
    let overhead = match by_mtu {
        u16::MAX => ETHDEV_OVERHEAD,
        most => info.max_rx_pktlen.checked_sub(most.into()).filter(|&extra| extra > 0).unwrap_or(ETHDEV_OVERHEAD),
    };
    let by_frame = u16::try_from(info.max_rx_pktlen.saturating_sub(overhead)).unwrap_or(u16::MAX);
    if info.max_rx_pktlen == 0 { by_mtu } else { by_mtu.min(by_frame) }
}
