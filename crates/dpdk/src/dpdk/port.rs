//! Ethernet ports: physical, virtual and in-process.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use dpdk_sys::{HF_MAX_ETHPORTS, rte_eth_fc_conf, rte_eth_stats, rte_ether_addr};

use crate::sets::ClassSet;

use super::check::{argument, check_pci, check_vdev, device_name, pci_address, plug_error};
use super::device::{self, Device, Origin};
use super::driver::Driver;
use super::error::errno_text;
use super::interface::{Interface, InterfaceState};
use super::kernel_ring::KernelRings;
use super::{ClassPfc, Eal, Error, Mempool, PortQueues, PortSender, claim, driver, guard, log};

/// The bus of virtual devices.
pub(super) const VDEV: &CStr = c"vdev";
/// The bus of PCI devices.
const PCI: &CStr = c"pci";

/// Settings of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortConfig {
    /// Receive queues.
    pub rx_queues: u16,
    /// Transmit queues.
    pub tx_queues: u16,
    /// Descriptors of each receive queue; the driver may adjust them.
    pub rx_descriptors: u16,
    /// Descriptors of each transmit queue; the driver may adjust them. Posted frames are sent even while the peer
    /// pauses the port, so a lossless port has few descriptors.
    pub tx_descriptors: u16,
    /// Largest payload of a frame in bytes.
    pub mtu: u16,
    /// Whether to receive frames for any address, as a switch must. Virtual ports without this setting do so anyway.
    pub promiscuous: bool,
    /// Priorities whose pauses the device obeys by itself; none: the device obeys none. With any, it has the queues of
    /// DCB mode instead of the numbers above.
    pub obeyed: ClassSet,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            rx_descriptors: 512,
            tx_descriptors: 512,
            mtu: 1500,
            promiscuous: true,
            obeyed: ClassSet::EMPTY,
        }
    }
}

/// Flow control settings of a device. This crate passes some of them on unchanged (`autoneg`, water marks, pause time).
#[derive(Clone, Copy)]
pub struct FlowControl(rte_eth_fc_conf);

impl FlowControl {
    /// Whether the device sends or obeys classic PAUSE.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.mode != dpdk_sys::RTE_ETH_FC_NONE
    }

    /// Whether the device reports that it passes MAC control frames to software.
    #[must_use]
    pub fn passes_control(&self) -> bool {
        self.0.mac_ctrl_frame_fwd != 0
    }

    /// Returns the settings with PAUSE off in both directions. `pass_control` is whether MAC control frames pass to
    /// software.
    #[must_use]
    pub fn off(mut self, pass_control: bool) -> Self {
        self.0.mode = dpdk_sys::RTE_ETH_FC_NONE;
        self.0.mac_ctrl_frame_fwd = u8::from(pass_control);
        self
    }
}

/// State of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Whether frames can pass.
    pub up: bool,
    /// Speed in Mb/s if the driver knows it. Virtual ports report an arbitrary number.
    pub speed_mbps: Option<u32>,
}

/// Counters of the driver.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub ipackets: u64,
    /// Bytes received, if the driver counts them.
    pub ibytes: u64,
    /// Frames lost because the receive queue, or the kernel's ring before it, was full. This is loss before admission,
    /// where it can be seen ([`EthPort::sees_receive_loss`]).
    pub imissed: u64,
    /// Frames received with errors.
    pub ierrors: u64,
    /// Frames lost because the pool was empty.
    pub rx_nombuf: u64,
    /// Frames sent.
    pub opackets: u64,
    /// Bytes sent, if the driver counts them.
    pub obytes: u64,
    /// Frames that the driver accepted and could not send. Counts of refused frames, like those of net_tap, are left
    /// out: refused frames are offered again, and counted again.
    pub oerrors: u64,
}

impl PortStats {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            ipackets: self.ipackets + other.ipackets,
            ibytes: self.ibytes + other.ibytes,
            imissed: self.imissed + other.imissed,
            ierrors: self.ierrors + other.ierrors,
            rx_nombuf: self.rx_nombuf + other.rx_nombuf,
            opackets: self.opackets + other.opackets,
            obytes: self.obytes + other.obytes,
            oerrors: self.oerrors + other.oerrors,
        }
    }
}

/// A port, closed when it and all its queues are dropped.
pub struct EthPort(Arc<Device>);

impl EthPort {
    /// Lets DPDK find the NIC at a PCI address, which may have arguments of its driver after a comma. A NIC that it has
    /// found stays as it is.
    ///
    /// # Errors
    ///
    /// Returns the cause if the NIC is not there, not bound, in use, or refused by its driver.
    pub fn probe(eal: &Eal, devargs: &str) -> Result<(), Error> {
        let (address, shared) = (pci_address(device_name(devargs)), eal.shared());
        let arguments = devargs.split_once(',').map_or("", |(_, arguments)| arguments);
        if find(&address).is_some() {
            return Ok(());
        }
        let what = || format!("the NIC {address}");
        if !shared.has_pci {
            let remedy = "restart: DPDK looks for NICs only if the switch has one at its start".into();
            return Err(Error::Invalid { what: what(), remedy });
        }
        check_pci(&address)?;
        let (Ok(c_address), Ok(c_arguments)) = (CString::new(address.as_str()), CString::new(arguments)) else {
            return Err(Error::Invalid { what: what(), remedy: "leave out zero bytes".into() });
        };
        let claim = claim::of_pci(&address)?;
        let _one_at_a_time = shared.control.lock().unwrap_or_else(PoisonError::into_inner);
        check_room_for(&address)?;
        let mark = log::mark();
        // SAFETY: EAL runs, and the three strings have a zero at their ends; DPDK copies them.
        let status = unsafe { dpdk_sys::rte_eal_hotplug_add(PCI.as_ptr(), c_address.as_ptr(), c_arguments.as_ptr()) };
        if status != 0 {
            return Err(plug_error(status, devargs, &log::since(mark, &errno_text(status))));
        }
        shared.nics.lock().unwrap_or_else(PoisonError::into_inner).insert(address.clone(), claim);
        if find(&address).is_some() {
            return Ok(());
        }
        Err(Error::NoSuchPort { device: address, log: log::since(mark, "no driver for it is installed") })
    }

    /// Opens and sets up a device that EAL has probed, by its name (`net_tap0`) or PCI address. The port is stopped.
    ///
    /// Received frames use buffers of `pool`.
    ///
    /// # Errors
    ///
    /// Returns the cause if the port cannot be opened; [`Error::InUse`] if it is open already.
    pub fn open(eal: &Eal, name: &str, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        let name = pci_address(device_name(name));
        let mark = log::mark();
        let Some(id) = find(&name) else {
            return Err(Error::NoSuchPort { device: name, log: log::since(mark, "no port has this name") });
        };
        Self::from_device(Device::claim(eal, id, &name, Origin::Eal, pool)?.guarded(None)?, config, pool)
    }

    /// Creates a virtual device from its name and arguments (`net_tap0,iface=tap0`) and opens it. The device is removed
    /// when the port is closed.
    ///
    /// # Errors
    ///
    /// Returns the cause if the device cannot be created or opened.
    pub fn plug(eal: &Eal, devargs: &str, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        check_vdev(devargs)?;
        let claims = claim::all_of(devargs)?;
        let (name, arguments) = devargs.split_once(',').unwrap_or((devargs, ""));
        let (Ok(c_name), Ok(c_arguments)) = (CString::new(name), CString::new(arguments)) else {
            return Err(Error::Invalid {
                what: format!("the device {devargs:?}"),
                remedy: "leave out zero bytes".into(),
            });
        };
        let guard = eal.shared().control.lock().unwrap_or_else(PoisonError::into_inner);
        if find(name).is_some() {
            return Err(Error::DeviceExists { device: name.to_owned() });
        }
        check_room_for(name)?;
        let mark = log::mark();
        let is_guarded = Driver::of_device(name).frees_queues_of_ended_peers();
        // SAFETY: EAL runs, and the three strings have a zero at their ends; DPDK copies them.
        let plug = || unsafe { dpdk_sys::rte_eal_hotplug_add(VDEV.as_ptr(), c_name.as_ptr(), c_arguments.as_ptr()) };
        let (status, listeners) = guard::probing(is_guarded, plug);
        if status != 0 {
            return Err(plug_error(status, devargs, &log::since(mark, &errno_text(status))));
        }
        let Some(id) = find(name) else {
            // SAFETY: as above; the device was made just now.
            unsafe { dpdk_sys::rte_eal_hotplug_remove(VDEV.as_ptr(), c_name.as_ptr()) };
            return Err(Error::NoSuchPort {
                device: name.to_owned(),
                log: "its driver creates no Ethernet port".to_owned(),
            });
        };
        drop(guard);
        let mut device = Device::claim(eal, id, name, Origin::Plugged, pool)?.guarded(listeners)?;
        device.claims = claims;
        if claim::is_named_by_kernel(devargs)
            && let Some(interface) = device.kernel_name()
        {
            device.claims.push(claim::named(devargs, &interface)?);
        }
        device.find_interface(argument(devargs, "iface"));
        Self::from_device(device, config, pool)
    }

    /// Configures `device` and makes a port of it.
    pub(super) fn from_device(device: Device, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        device.configure(config, pool)?;
        Ok(Self(Arc::new(device)))
    }

    /// Returns the number of transmit queues that the probed device `name` can have beside `rx_queues` receive queues;
    /// `None` if there is no such device.
    #[must_use]
    pub fn most_tx_queues(_: &Eal, name: &str, rx_queues: u16) -> Option<u16> {
        let id = find(&pci_address(device_name(name)))?;
        let mut info = dpdk_sys::rte_eth_dev_info::default();
        // SAFETY: EAL runs, the port exists, and the information is written to a local value.
        if unsafe { dpdk_sys::rte_eth_dev_info_get(id, &mut info) } != 0 {
            return None;
        }
        // The driver enables pairs of queues. The host would put frames into receive queues that nobody polls.
        let is_paired = device::text(info.driver_name) == "net_virtio";
        Some(if is_paired { info.max_tx_queues.min(rx_queues) } else { info.max_tx_queues })
    }

    /// Returns the device of the port.
    pub(super) fn device(&self) -> &Device {
        &self.0
    }

    /// Starts the port: from here on it receives frames.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn start(&mut self) -> Result<(), Error> {
        let device = &*self.0;
        let mut state = device.state();
        if state.started {
            return Ok(());
        }
        // SAFETY: the port is configured and owned by `device`; the lock excludes other control calls on it.
        let start = || unsafe { dpdk_sys::rte_eth_dev_start(device.id) };
        let is_guarded = device.driver.frees_queues_of_ended_peers();
        device.attempt("start", || guard::calling(is_guarded, start))?;
        state.started = true;
        // After the start, which resets flow control in some drivers.
        if let Some(Err(status)) = device.obey(&state) {
            // SAFETY: the port is owned by `device`, and no queue of it is out.
            device.attempt("stop", || unsafe { dpdk_sys::rte_eth_dev_stop(device.id) })?;
            state.started = false;
            device.attempt("obey PFC by itself (`pfc: software` does not need that)", || status)?;
        }
        if let Some(kernel) = &mut state.kernel {
            // Frames that the kernel dropped before the port could be polled are not losses of this port.
            kernel.forget();
        }
        Ok(())
    }

    /// Takes out the queues of the port, receive and transmit.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if the queues are out already; [`Error::Invalid`] if the port is not started.
    pub fn queues(&mut self) -> Result<PortQueues, Error> {
        let tx_queues = self.tx_queues();
        self.take_queues(&[tx_queues]).map(|mut parts| parts.remove(0))
    }

    /// Transmit queues that can be taken out.
    fn tx_queues(&self) -> u16 {
        let state = self.0.state();
        if state.by_class.is_some() { 1 } else { state.tx_queues }
    }

    /// Takes out the queues of the port for `lcores` threads: the receive queues and a transmit queue for the first,
    /// a transmit queue for each other one.
    ///
    /// # Errors
    ///
    /// Those of [`EthPort::queues`], and [`Error::Invalid`] if there are fewer transmit queues.
    pub fn queues_for(&mut self, lcores: u16) -> Result<(PortQueues, Vec<PortSender>), Error> {
        let mut parts = self.take_queues(&vec![1; usize::from(lcores.max(1))])?;
        let owner = parts.remove(0);
        Ok((owner, parts.into_iter().map(PortSender::new).collect()))
    }

    /// Takes out the queues in parts with these numbers of transmit queues. The first part has the receive queues.
    fn take_queues(&mut self, tx_queues: &[u16]) -> Result<Vec<PortQueues>, Error> {
        let (device, there) = (&self.0, self.tx_queues());
        let mut state = device.state();
        let what = || format!("the queues of port `{}`", device.name);
        if !state.started {
            return Err(Error::Invalid { what: what(), remedy: "start the port first".into() });
        }
        if state.queues_out > 0 {
            return Err(Error::InUse { what: what(), remedy: "drop their other owner first" });
        }
        if tx_queues.iter().sum::<u16>() > there {
            let remedy = format!("it has {there}; use one for all lcores");
            return Err(Error::Invalid {
                what: format!("{} transmit queues of port `{}`", tx_queues.len(), device.name),
                remedy,
            });
        }
        state.queues_out = tx_queues.len() as u16;
        let rings = state.by_class.map(|by_class| by_class.rings);
        let mut first = 0;
        let part = |(index, &count): (usize, &u16)| {
            let rx_queues = if index == 0 { state.rx_queues } else { 0 };
            let tx_queues = first..first + count;
            first += count;
            // SAFETY: the port is started with these queues. The count ensures that these are the only values for
            // them, and no two parts have a queue in common. `stop` refuses while a part is out, and the device is
            // closed only when each has dropped its share.
            unsafe { PortQueues::new(Arc::clone(device), rx_queues, tx_queues).by_class(rings) }
        };
        Ok(tx_queues.iter().enumerate().map(part).collect())
    }

    /// Stops the port. Frames in its queues may be lost.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while its queues are out, [`Error::Port`] with the driver's reason.
    pub fn stop(&mut self) -> Result<(), Error> {
        let device = &*self.0;
        let mut state = device.state();
        if state.queues_out > 0 {
            let what = format!("port `{}`", device.name);
            return Err(Error::InUse { what, remedy: "drop its queues before stopping the port" });
        }
        if state.started {
            device.release(&state);
            // SAFETY: the port is owned by `device`, and no queue of it is in use: checked above, under the lock.
            let stop = || unsafe { dpdk_sys::rte_eth_dev_stop(device.id) };
            let is_guarded = device.driver.frees_queues_of_ended_peers();
            device.attempt("stop", || guard::calling(is_guarded, stop))?;
            state.started = false;
            if let Some(kernel) = &mut state.kernel {
                kernel.release();
            }
        }
        Ok(())
    }

    /// Stops and closes the port. Dropping the port does the same, but ignores errors.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`EthPort::stop`].
    pub fn close(mut self) -> Result<(), Error> {
        self.stop()
    }

    /// Closes the port for good: another program may use its device from then on.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`EthPort::stop`].
    pub fn remove(mut self) -> Result<(), Error> {
        self.stop()?;
        let (name, is_nic, eal) = (self.name().to_owned(), self.is_physical(), self.0.eal().clone());
        drop(self);
        if is_nic && let Ok(c_name) = CString::new(name.as_str()) {
            let _one_at_a_time = eal.control.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: both are strings with a zero at their ends; no queue was out, so the port is closed.
            unsafe { dpdk_sys::rte_eal_hotplug_remove(PCI.as_ptr(), c_name.as_ptr()) };
            eal.nics.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        }
        Ok(())
    }

    /// Returns the name by which the port was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether the port was opened by a PCI address, as a NIC is. The link state of such a port is valid.
    #[must_use]
    pub fn is_physical(&self) -> bool {
        // A PCI address is like `0000:3b:00.0`. No virtual device has colons in its name, since DPDK splits devargs at
        // them.
        self.name().matches(':').count() == 2
    }

    /// Whether the port is a virtual one on the kernel interface of a NIC with a MAC, as af_packet ports can be.
    #[must_use]
    pub fn is_on_a_nic(&self) -> bool {
        self.0.interface.as_ref().is_some_and(|name| driver::is_nic(Path::new("/sys/class/net"), name))
    }

    /// Returns DPDK's number of the port.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.0.id
    }

    /// Returns the MAC address of the port. It is all zero for in-process ports, whose driver has none.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn mac(&self) -> Result<[u8; 6], Error> {
        let mut address = rte_ether_addr::default();
        let device = &*self.0;
        let _state = device.state();
        device.attempt("report its MAC address", || {
            // SAFETY: the port is open, and the address is written to a local value.
            unsafe { dpdk_sys::rte_eth_macaddr_get(device.id, &mut address) }
        })?;
        Ok(address.addr_bytes)
    }

    /// Returns the current state of the link, without waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn link(&self) -> Result<LinkState, Error> {
        let (mut speed, mut up) = (0, 0);
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the results are written to local values.
        device.attempt("report its link state", || unsafe { dpdk_sys::hf_link(device.id, &mut speed, &mut up) })?;
        Ok(LinkState { up: up != 0, speed_mbps: (speed != 0).then_some(speed) })
    }

    /// Whether frames can leave by the port, as far as it is known. The drivers of NICs, memif, vhost and virtio-user
    /// report the link; reading it also makes a listening virtio-user port connect again. For an af_packet port the
    /// state of its kernel interface decides. A tap that is set down accepts no frames; a missing one may be in another
    /// namespace, where frames pass. All other ports count as up.
    #[must_use]
    pub fn has_link(&self) -> bool {
        let of = self.0.driver;
        if self.is_physical() || of.reports_link() {
            return self.link().map_or(true, |link| link.up);
        }
        match self.0.state().interface.as_ref().and_then(Interface::state) {
            None | Some(InterfaceState::Up) => true,
            Some(InterfaceState::Down) => false,
            Some(InterfaceState::Absent | InterfaceState::NoCarrier) => !of.needs_carrier(),
        }
    }

    /// Takes the link of the device down, or up again.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason; many drivers of virtual devices cannot do it.
    pub fn set_link(&self, up: bool) -> Result<(), Error> {
        let device = &*self.0;
        let _state = device.state();
        let id = device.id;
        // SAFETY: the port is open, and drivers allow both while its queues are polled.
        device.attempt("set its link", || unsafe {
            if up { dpdk_sys::rte_eth_dev_set_link_up(id) } else { dpdk_sys::rte_eth_dev_set_link_down(id) }
        })
    }

    /// Whether the other end of the link is a process or a machine that learns of the link by itself.
    pub fn has_far_end(&self) -> bool {
        self.is_physical() || self.0.driver.reports_link()
    }

    /// Returns the counters of the port. Another thread may poll the queues meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn stats(&self) -> Result<PortStats, Error> {
        let mut stats = rte_eth_stats::default();
        let device = &*self.0;
        let mut state = device.state();
        // SAFETY: the port is open, and the counters are written to a local value.
        device.attempt("report its counters", || unsafe { dpdk_sys::rte_eth_stats_get(device.id, &mut stats) })?;
        Ok(PortStats {
            ipackets: stats.ipackets,
            ibytes: stats.ibytes,
            imissed: stats.imissed.saturating_add(state.kernel.as_mut().map_or(0, KernelRings::lost)),
            ierrors: stats.ierrors,
            rx_nombuf: stats.rx_nombuf,
            opackets: stats.opackets,
            obytes: stats.obytes,
            oerrors: if device.driver.counts_refusals() { 0 } else { stats.oerrors },
        })
    }

    /// Sets the counters to zero. Some drivers lose the reset if another thread polls the queues meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn reset_stats(&self) -> Result<(), Error> {
        let device = &*self.0;
        let mut state = device.state();
        if let Some(kernel) = &mut state.kernel {
            kernel.forget();
        }
        // SAFETY: the port is open.
        device.attempt("reset its counters", || unsafe { dpdk_sys::rte_eth_stats_reset(device.id) })
    }

    /// Whether frames that are lost in front of the port, because it was polled too late, are counted as missed. NICs
    /// count them. In-process links lose none, and neither does memif, whose sender keeps frames that do not fit the
    /// shared memory. For af_packet ports the kernel's count is added here. For other virtual ports it is unknown.
    #[must_use]
    pub fn sees_receive_loss(&self) -> bool {
        let device = &*self.0;
        let never_loses = matches!(device.origin, Origin::Rings(..)) || device.driver.never_loses();
        never_loses || self.is_physical() || device.state().kernel.is_some()
    }

    /// Returns the MTU in force.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn mtu(&self) -> Result<u16, Error> {
        let mut mtu = 0;
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the MTU is written to a local value.
        device.attempt("report its MTU", || unsafe { dpdk_sys::rte_eth_dev_get_mtu(device.id, &mut mtu) })?;
        Ok(mtu)
    }

    /// Returns the flow control that the device does by itself, with all settings that belong to it.
    ///
    /// # Errors
    ///
    /// The driver's error number, negative: `-ENOTSUP` if the driver has no such function.
    pub fn flow_control(&self) -> Result<FlowControl, i32> {
        let mut settings = rte_eth_fc_conf::default();
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the settings are written to a local value.
        match unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_get(device.id, &mut settings) } {
            0.. => Ok(FlowControl(settings)),
            status => Err(status),
        }
    }

    /// Sets the flow control that the device does by itself.
    ///
    /// # Errors
    ///
    /// The driver's error number, negative.
    pub fn set_flow_control(&self, wanted: &FlowControl) -> Result<(), i32> {
        let mut settings = wanted.0;
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open; the driver reads a local value.
        match unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_set(device.id, &mut settings) } {
            0.. => Ok(()),
            status => Err(status),
        }
    }

    /// Lets the device obey PFC again for the priorities that the port was opened with, and returns its answer; `None`:
    /// it was opened with none.
    #[must_use]
    pub fn obey(&self) -> Option<Result<ClassPfc, i32>> {
        self.0.obey(&self.0.state())
    }

    /// Reads whether the device obeys PFC by itself; `None`: it was not opened for that.
    #[must_use]
    pub fn class_pfc(&self) -> Option<ClassPfc> {
        self.0.class_pfc()
    }

    /// Returns the NUMA node of the device; `None` if it has none.
    #[must_use]
    pub fn socket(&self) -> Option<u32> {
        // SAFETY: the port is open.
        u32::try_from(unsafe { dpdk_sys::rte_eth_dev_socket_id(self.0.id) }).ok()
    }

    /// Returns the name of the driver, e.g. `net_tap`.
    #[must_use]
    pub fn driver(&self) -> String {
        let _state = self.0.state();
        self.0.driver_name()
    }
}

/// Returns the number of the port called `name`.
pub(super) fn find(name: &str) -> Option<u16> {
    let name = CString::new(name).ok()?;
    let mut id = 0;
    // SAFETY: the name is a string with a zero at its end, and the number is written to a local value.
    let status = unsafe { dpdk_sys::rte_eth_dev_get_port_by_name(name.as_ptr(), &mut id) };
    (status == 0).then_some(id)
}

/// Checks that DPDK has room for one more port.
pub(super) fn check_room_for(device: &str) -> Result<(), Error> {
    let limit = HF_MAX_ETHPORTS as usize;
    // SAFETY: the function only counts ports.
    let there = unsafe { dpdk_sys::rte_eth_dev_count_total() };
    if usize::from(there) < limit { Ok(()) } else { Err(Error::TooManyPorts { device: device.to_owned(), limit }) }
}
