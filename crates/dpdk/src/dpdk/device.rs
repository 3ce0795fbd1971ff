//! An Ethernet device of DPDK: claimed by one owner, set up, and closed with its last share.

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpdk_sys::{libc, rte_eth_conf, rte_eth_dev_info};

use super::claim::Claim;
use super::class_pfc::{self, ClassPfc, Ethdev, Obedient, Rings as ClassRings};
use super::driver::Driver;
use super::eal::Shared;
use super::error::errno_text;
use super::guard::Listeners;
use super::interface::Interface;
use super::kernel_ring::KernelRings;
use super::port::{PortConfig, VDEV};
use super::ring::{End, Rings};
use super::{Eal, Error, HEADROOM, Mempool, guard, interface, log};
use crate::sets::{ClassSet, MAX_PORTS};

/// Bytes of a frame beyond its MTU: Ethernet header, two VLAN tags and the frame check sequence.
const OVERHEAD: usize = 14 + 2 * 4 + 4;

/// Bytes of a frame beyond its MTU in the calculation of ethdev: Ethernet header and frame check sequence.
const ETHDEV_OVERHEAD: u32 = 14 + 4;

/// The largest MTU that ethdev allows for af_packet, whose driver declares a frame length of at most 1518 B.
const AF_PACKET_ETHDEV_MTU: u16 = 1500;

/// Descriptors of a queue that a device has to have and that carries no frame.
pub(super) const UNUSED_DESCRIPTORS: u16 = 64;

/// State shared by a port and its queues.
pub(super) struct Device {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) driver: Driver,
    state: Mutex<State>,
    pub(super) origin: Origin,
    /// The kernel interface by which the device sends and receives.
    pub(super) interface: Option<String>,
    /// The right to its interfaces, which outlives the use of them.
    pub(super) claims: Vec<Claim>,
    /// Pool of the receive queue, which takes buffers from it until the port is closed.
    _pool: Mempool,
    eal: Arc<Shared>,
}

/// Origin of a device, and the resources that are freed with it.
pub(super) enum Origin {
    /// Created by EAL, which also removes it.
    Eal,
    /// Created for this port.
    Plugged,
    /// Created from rings, which are freed after it.
    Rings(Arc<Rings>, End),
}

/// State of a port.
#[derive(Default)]
pub(super) struct State {
    pub started: bool,
    /// Number of parts of the queues that are out.
    pub queues_out: u16,
    /// Receive and transmit queues that are set up.
    pub rx_queues: u16,
    pub tx_queues: u16,
    /// The queues of the priorities, if the device obeys PFC by itself, and the priorities that it obeys.
    pub by_class: Option<ByClass>,
    /// The kernel's ring of received frames of an af_packet port.
    pub kernel: Option<KernelRings>,
    /// The interface behind a tap or an af_packet port.
    pub interface: Option<Interface>,
}

/// A device that obeys PFC by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByClass {
    pub driver: Obedient,
    pub rings: ClassRings,
    pub obeyed: ClassSet,
}

/// Converts a string of DPDK, which may be null.
pub(super) fn text(string: *const std::ffi::c_char) -> String {
    if string.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: drivers give their names as strings with a zero at the end, which live as long as the driver.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

impl Device {
    /// Makes the caller the only owner of port `id`.
    pub(super) fn claim(eal: &Eal, id: u16, name: &str, origin: Origin, pool: &Mempool) -> Result<Self, Error> {
        let mut open = eal.shared().open_ports.lock().unwrap_or_else(PoisonError::into_inner);
        if usize::from(id) >= MAX_PORTS {
            return Err(Error::TooManyPorts { device: name.to_owned(), limit: MAX_PORTS });
        }
        if open.contains(id.into()) {
            return Err(Error::InUse { what: format!("port `{name}`"), remedy: "drop its other owner first" });
        }
        open.insert(id.into());
        drop(open);
        let mut device = Self {
            id,
            name: name.to_owned(),
            driver: Driver::Other,
            state: Mutex::default(),
            origin,
            interface: None,
            claims: Vec::new(),
            _pool: pool.clone(),
            eal: Arc::clone(eal.shared()),
        };
        device.driver = Driver::named(&device.driver_name());
        Ok(device)
    }

    /// DPDK, which outlives the device.
    pub(super) fn eal(&self) -> &Arc<Shared> {
        &self.eal
    }

    /// Guards the device if its driver needs that. The listeners are those that its probe has registered.
    pub(super) fn guarded(self, listeners: Option<Listeners>) -> Result<Self, Error> {
        if !self.driver.frees_queues_of_ended_peers() {
            return Ok(self);
        }
        guard::watch(self.id, listeners);
        if !guard::is_linked() {
            return Err(Error::Invalid {
                what: format!("port `{}` of a program that is linked without this project's build.rs", self.name),
                remedy: "link it with the arguments of `surround_interrupts` there".into(),
            });
        }
        Ok(self)
    }

    /// Returns the name of the driver; `unknown` if DPDK does not report it.
    pub(super) fn driver_name(&self) -> String {
        self.info().map_or_else(|_| "unknown".to_owned(), |info| text(info.driver_name))
    }

    /// Returns the name of the kernel interface that the driver reports, in this network namespace.
    pub(super) fn kernel_name(&self) -> Option<String> {
        interface::name(self.info().ok()?.if_index)
    }

    /// Stores the kernel interface `name` if the driver uses one.
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

    /// Returns the interface of an af_packet port. Its driver declares a smaller MTU to ethdev than it supports.
    fn jumbo_interface(&self) -> Option<&str> {
        self.interface.as_deref().filter(|_| self.driver == Driver::AfPacket)
    }

    /// Returns DPDK's number of the device.
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// Returns the name of the device.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of frames in receive queue `number`; `None` if the driver cannot count them.
    ///
    /// # Safety
    ///
    /// The port must be started with that queue.
    pub(super) unsafe fn backlog(&self, number: u16) -> Option<usize> {
        if let Origin::Rings(rings, end) = &self.origin {
            return Some(rings.waiting(*end, number.into()));
        }
        // SAFETY: the caller ensures that the queue is started. DPDK reads state that the driver keeps for this call.
        usize::try_from(unsafe { dpdk_sys::hf_rx_backlog(self.id, number) }).ok()
    }

    /// Marks a part of the queues as returned.
    pub(super) fn take_back(&self) {
        self.state().queues_out -= 1;
    }

    /// Locks the state. The lock also grants control calls on this port, of which DPDK allows one at a time.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one DPDK call and converts its failure to an error.
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

    /// Returns the driver's description of the device.
    pub(super) fn info(&self) -> Result<rte_eth_dev_info, Error> {
        let mut info = rte_eth_dev_info::default();
        // SAFETY: the port is open, and the information is written to a local value.
        self.attempt("report its limits", || unsafe { dpdk_sys::rte_eth_dev_info_get(self.id, &mut info) })?;
        Ok(info)
    }

    /// Sets up the port and its queues.
    pub(super) fn configure(&self, config: &PortConfig, pool: &Mempool) -> Result<(), Error> {
        let obedient = if config.obeyed.is_empty() { None } else { Some(Obedient::of(self)?) };
        let [rx_queues, tx_queues] = obedient.map_or([config.rx_queues, config.tx_queues], |driver| driver.queues);
        let config = &PortConfig { rx_queues, tx_queues, ..*config };
        let mut state = self.state();
        let info = self.info()?;
        self.check_queues(config, &info)?;
        self.check_mtu(config.mtu, &info, pool)?;
        let mut conf = rte_eth_conf::default();
        // af_packet carries frames up to the size of its ring's slots, but declares a lower limit, which ethdev would
        // enforce.
        let is_jumbo = self.jumbo_interface().is_some() && config.mtu > AF_PACKET_ETHDEV_MTU;
        let ethdev_mtu = if is_jumbo { AF_PACKET_ETHDEV_MTU } else { config.mtu };
        conf.rxmode.mtu = u32::from(ethdev_mtu);
        if obedient.is_some() {
            class_pfc::divide(&mut conf);
        }
        // SAFETY: the port is open. DPDK copies the configuration, which is zero except for the fields set here.
        self.attempt("be configured", || unsafe {
            dpdk_sys::rte_eth_dev_configure(self.id, config.rx_queues, config.tx_queues, &conf)
        })?;
        (state.rx_queues, state.tx_queues) = (config.rx_queues, config.tx_queues);
        if let Some(driver) = obedient {
            let rings = driver.rings(self, config.obeyed)?;
            state.by_class = Some(ByClass { driver, rings, obeyed: config.obeyed });
        }

        let (mut rx, mut tx) = (config.rx_descriptors, config.tx_descriptors);
        // SAFETY: the port is configured, and the numbers are local values.
        self.attempt("use this number of descriptors", || unsafe {
            dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(self.id, &mut rx, &mut tx)
        })?;
        self.set_up_queues(config, [rx, tx], state.by_class.map(|by_class| by_class.rings), pool)?;
        // Configuring sets the MTU in DPDK. This call sets it in the device, where that is supported (a tap's
        // interface, for example).
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

    /// Lets the device obey PFC by itself, and returns its answer; `None`: it is not opened for that.
    pub(super) fn obey(&self, state: &State) -> Option<Result<ClassPfc, i32>> {
        let ByClass { driver, obeyed, .. } = state.by_class?;
        Some(class_pfc::obey(&mut Ethdev { device: self, driver }, obeyed))
    }

    /// Reads whether the device obeys PFC by itself; `None`: it is not opened for that.
    pub(super) fn class_pfc(&self) -> Option<ClassPfc> {
        let state = self.state();
        Some(class_pfc::read(&mut Ethdev { device: self, driver: state.by_class?.driver }))
    }

    /// Ends the device's own obedience, before it stops.
    pub(super) fn release(&self, state: &State) {
        if let Some(ByClass { driver, obeyed, .. }) = state.by_class.filter(|_| state.started) {
            class_pfc::release(&mut Ethdev { device: self, driver }, obeyed);
        }
    }

    /// Sets up all queues of the configured port. `descriptors` are those of a receive and a transmit queue. With
    /// `rings` the others are unused, and the shortest that a driver takes.
    fn set_up_queues(
        &self,
        config: &PortConfig,
        descriptors: [u16; 2],
        rings: Option<ClassRings>,
        pool: &Mempool,
    ) -> Result<(), Error> {
        let [long_rx, long_tx] = descriptors;
        let is_used = |numbers: fn(&ClassRings) -> &[u16; 8], queue: u16| {
            rings.as_ref().is_none_or(|rings| numbers(rings).contains(&queue))
        };
        // SAFETY: the port is open.
        let socket = unsafe { dpdk_sys::rte_eth_dev_socket_id(self.id) }.cast_unsigned();
        for queue in 0..config.rx_queues {
            let rx = if is_used(|rings| &rings.rx, queue) { long_rx } else { UNUSED_DESCRIPTORS.min(long_rx) };
            // SAFETY: the port is configured with this queue; null selects the driver's defaults. The pool outlives the
            // queue, since `self` holds it until the port is closed.
            self.attempt("set up its receive queue", || unsafe {
                dpdk_sys::rte_eth_rx_queue_setup(self.id, queue, rx, socket, std::ptr::null(), pool.as_ptr())
            })?;
        }
        for queue in 0..config.tx_queues {
            let tx = if is_used(|rings| &rings.tx, queue) { long_tx } else { UNUSED_DESCRIPTORS.min(long_tx) };
            // SAFETY: as above.
            self.attempt("set up its transmit queue", || unsafe {
                dpdk_sys::rte_eth_tx_queue_setup(self.id, queue, tx, socket, std::ptr::null())
            })?;
        }
        Ok(())
    }

    /// Checks that the device has as many queues.
    fn check_queues(&self, config: &PortConfig, info: &rte_eth_dev_info) -> Result<(), Error> {
        for (kind, wanted, most) in
            [("receive", config.rx_queues, info.max_rx_queues), ("transmit", config.tx_queues, info.max_tx_queues)]
        {
            if !(1..=most).contains(&wanted) {
                return Err(Error::Invalid {
                    what: format!("port `{}` with {wanted} {kind} queues", self.name),
                    remedy: format!("its device has at most {most}"),
                });
            }
        }
        Ok(())
    }

    /// Checks that frames of that MTU fit the device, and fit one buffer each.
    fn check_mtu(&self, mtu: u16, info: &rte_eth_dev_info, pool: &Mempool) -> Result<(), Error> {
        let error = |limit| Err(Error::Mtu { device: self.name.clone(), mtu, limit });
        let needed = HEADROOM + usize::from(mtu) + OVERHEAD;
        if needed > usize::from(pool.data_room()) {
            let have = pool.data_room();
            return error(format!("buffers of pool `{}` have {have} bytes and must have {needed}", pool.name()));
        }
        let filled = self.driver.filled(usize::from(pool.data_room()) - HEADROOM);
        if needed > HEADROOM + filled {
            let most = filled.saturating_sub(OVERHEAD);
            return error(format!("this device fills {filled} bytes of a buffer, so its MTU is {most} at most"));
        }
        // Drivers without such limits leave these fields at zero.
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
        let state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.release(&state);
        let started = state.started;
        guard::forget(self.id);
        // SAFETY: the last share is dropped, so neither the port nor a queue of it is in use. Failures are ignored: a
        // device that is gone cannot be stopped. Promiscuous mode of a kernel interface (af_packet) would stay on after
        // the port. A stopped port is not stopped again, because DPDK would log a complaint.
        let close = || unsafe {
            dpdk_sys::rte_eth_promiscuous_disable(self.id);
            if started {
                dpdk_sys::rte_eth_dev_stop(self.id);
            }
            dpdk_sys::rte_eth_dev_close(self.id);
        };
        guard::calling(self.driver.frees_queues_of_ended_peers(), close);
        if !matches!(self.origin, Origin::Eal)
            && let Ok(name) = CString::new(self.name.as_str())
        {
            // SAFETY: both are strings with a zero at their ends; the port of the device is closed.
            unsafe { dpdk_sys::rte_eal_hotplug_remove(VDEV.as_ptr(), name.as_ptr()) };
        }
        self.eal.open_ports.lock().unwrap_or_else(PoisonError::into_inner).remove(self.id.into());
    }
}

/// Returns the largest MTU that ethdev allows a driver, from the driver's limits on MTU and frame length.
fn most_of(info: &rte_eth_dev_info) -> u16 {
    let by_mtu = if info.max_mtu == 0 { u16::MAX } else { info.max_mtu };
    // Like `eth_dev_get_overhead_len`: the difference of both limits is the overhead that the driver counts.
    let overhead = match by_mtu {
        u16::MAX => ETHDEV_OVERHEAD,
        most => info.max_rx_pktlen.checked_sub(most.into()).filter(|&extra| extra > 0).unwrap_or(ETHDEV_OVERHEAD),
    };
    let by_frame = u16::try_from(info.max_rx_pktlen.saturating_sub(overhead)).unwrap_or(u16::MAX);
    if info.max_rx_pktlen == 0 { by_mtu } else { by_mtu.min(by_frame) }
}
