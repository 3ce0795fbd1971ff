//! Ethernet ports: physical, virtual and in-process ones alike.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use dpdk_sys::{HF_MAX_ETHPORTS, rte_eth_fc_conf, rte_eth_stats, rte_ether_addr};

use super::check::{argument, check_vdev, pci_address, plug_error};
use super::device::{Device, Origin, QUEUES};
use super::error::errno_text;
use super::interface::{Interface, InterfaceState};
use super::kernel_ring::KernelRings;
use super::{Eal, Error, Mempool, PortQueue, driver, log};

/// The bus of virtual devices.
pub(super) const VDEV: &CStr = c"vdev";

/// How a port is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortConfig {
    /// Descriptors of the receive queue; the driver may adjust them.
    pub rx_descriptors: u16,
    /// Descriptors of the transmit queue; the driver may adjust them. What is posted drains even while the peer
    /// pauses the port, so a lossless port has few.
    pub tx_descriptors: u16,
    /// Largest payload of a frame.
    pub mtu: u16,
    /// Receive frames for any address, as a switch must; virtual ports that cannot be asked do so anyway.
    pub promiscuous: bool,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self { rx_descriptors: 512, tx_descriptors: 512, mtu: 1500, promiscuous: true }
    }
}

/// Flow control of a device, with settings that this crate only passes on (`autoneg`, water marks, pause time).
#[derive(Clone, Copy)]
pub struct FlowControl(rte_eth_fc_conf);

impl FlowControl {
    /// Whether the device sends or obeys classic PAUSE.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.mode != dpdk_sys::RTE_ETH_FC_NONE
    }

    /// Whether MAC control frames are said to reach software.
    #[must_use]
    pub fn passes_control(&self) -> bool {
        self.0.mac_ctrl_frame_fwd != 0
    }

    /// The same settings with PAUSE off both ways, and MAC control frames passed to software or not.
    #[must_use]
    pub fn off(mut self, pass_control: bool) -> Self {
        self.0.mode = dpdk_sys::RTE_ETH_FC_NONE;
        self.0.mac_ctrl_frame_fwd = u8::from(pass_control);
        self
    }
}

/// State of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Whether frames can pass.
    pub up: bool,
    /// Speed in Mb/s where the driver knows it; for virtual ports a made-up number.
    pub speed_mbps: Option<u32>,
}

/// What the driver has counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub ipackets: u64,
    /// Their bytes, where the driver counts them.
    pub ibytes: u64,
    /// Frames lost since the receive queue was full, or the kernel's ring before it: loss before any admission, where it
    /// is seen ([`EthPort::sees_receive_loss`]).
    pub imissed: u64,
    /// Frames received with errors.
    pub ierrors: u64,
    /// Frames lost since the pool was empty.
    pub rx_nombuf: u64,
    /// Frames sent.
    pub opackets: u64,
    /// Their bytes, where the driver counts them.
    pub obytes: u64,
    /// Frames that the driver took and could not send. A count of frames that it did not take, as net_tap's, is left out:
    /// these are offered again, and again counted.
    pub oerrors: u64,
}

/// A port, closed when it and all its queues are dropped.
pub struct EthPort(Arc<Device>);

impl EthPort {
    /// Opens a device that EAL knows, by its name (`net_tap0`) or PCI address, and sets it up, stopped.
    ///
    /// `pool` is where received frames go.
    ///
    /// # Errors
    ///
    /// What hinders it; [`Error::InUse`] if it is open already.
    pub fn open(eal: &Eal, name: &str, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        let name = pci_address(name);
        let mark = log::mark();
        let Some(id) = find(&name) else {
            return Err(Error::NoSuchPort { device: name, log: log::since(mark, "it knows none of that name") });
        };
        Self::from_device(Device::claim(eal, id, &name, Origin::Eal, pool)?, config, pool)
    }

    /// Makes a virtual device from its name and arguments (`net_tap0,iface=tap0`) and opens it; the device goes
    /// when the port is closed.
    ///
    /// # Errors
    ///
    /// What hinders it.
    pub fn plug(eal: &Eal, devargs: &str, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        check_vdev(devargs)?;
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
        // SAFETY: EAL runs, and the three strings have a zero at their ends; DPDK copies them.
        let status = unsafe { dpdk_sys::rte_eal_hotplug_add(VDEV.as_ptr(), c_name.as_ptr(), c_arguments.as_ptr()) };
        if status != 0 {
            return Err(plug_error(status, devargs, &log::since(mark, &errno_text(status))));
        }
        let Some(id) = find(name) else {
            // SAFETY: as above; the device was made just now.
            unsafe { dpdk_sys::rte_eal_hotplug_remove(VDEV.as_ptr(), c_name.as_ptr()) };
            return Err(Error::NoSuchPort {
                device: name.to_owned(),
                log: "its driver makes no Ethernet port".to_owned(),
            });
        };
        drop(guard);
        let mut device = Device::claim(eal, id, name, Origin::Plugged, pool)?;
        device.find_interface(argument(devargs, "iface"));
        Self::from_device(device, config, pool)
    }

    /// Sets a device up.
    pub(super) fn from_device(device: Device, config: &PortConfig, pool: &Mempool) -> Result<Self, Error> {
        device.configure(config, pool)?;
        Ok(Self(Arc::new(device)))
    }

    /// Starts it: frames arrive from here on.
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
        // SAFETY: the port is configured and owned by `device`; the lock keeps other control calls on it away.
        device.attempt("start", || unsafe { dpdk_sys::rte_eth_dev_start(device.id) })?;
        state.started = true;
        if let Some(kernel) = &mut state.kernel {
            // What came while nobody could have taken it is no loss of this port.
            kernel.forget();
        }
        Ok(())
    }

    /// Takes out queue `number`, which is 0 as long as ports have one queue.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if it is out already, [`Error::Invalid`] if there is none, or the port is not started.
    pub fn queue(&mut self, number: u16) -> Result<PortQueue, Error> {
        let device = &self.0;
        let mut state = device.state();
        if number >= QUEUES || !state.started {
            let remedy = if state.started { "ports have queue 0 only" } else { "start the port first" };
            return Err(Error::Invalid {
                what: format!("queue {number} of port `{}`", device.name),
                remedy: remedy.into(),
            });
        }
        if state.queues_out & 1 << number != 0 {
            let what = format!("queue {number} of port `{}`", device.name);
            return Err(Error::InUse { what, remedy: "a queue has one owner: drop the other first" });
        }
        state.queues_out |= 1 << number;
        // SAFETY: the port is started and has the queue, and its bit says that this is the only value for it; `stop`
        // refuses while the bit is set, and the device is closed only when the value has dropped its share.
        Ok(unsafe { PortQueue::new(Arc::clone(device), number) })
    }

    /// Stops it; frames in its queues may be lost.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while a queue is out, [`Error::Port`] with the driver's reason.
    pub fn stop(&mut self) -> Result<(), Error> {
        let device = &*self.0;
        let mut state = device.state();
        if state.queues_out != 0 {
            let what = format!("port `{}`", device.name);
            return Err(Error::InUse { what, remedy: "drop its queues before stopping it" });
        }
        if state.started {
            // SAFETY: the port is owned by `device`, and no queue of it is in use: checked above, under the lock.
            device.attempt("stop", || unsafe { dpdk_sys::rte_eth_dev_stop(device.id) })?;
            state.started = false;
            if let Some(kernel) = &mut state.kernel {
                kernel.release();
            }
        }
        Ok(())
    }

    /// Stops and closes it, which dropping does too, but silently.
    ///
    /// # Errors
    ///
    /// As [`EthPort::stop`].
    pub fn close(mut self) -> Result<(), Error> {
        self.stop()
    }

    /// The name it was opened by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it was opened by a PCI address, as a NIC is: its word on its link counts.
    #[must_use]
    pub fn is_physical(&self) -> bool {
        // `0000:3b:00.0`: no virtual device's name has colons, since DPDK splits devargs at them.
        self.name().matches(':').count() == 2
    }

    /// Whether it is a virtual port on the kernel's interface of a NIC with a MAC, as af_packet's can be.
    #[must_use]
    pub fn is_on_a_nic(&self) -> bool {
        self.0.interface.as_ref().is_some_and(|name| driver::is_nic(Path::new("/sys/class/net"), name))
    }

    /// DPDK's number for it.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.0.id
    }

    /// Its MAC address; all zero for in-process ports, whose driver has none.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn mac(&self) -> Result<[u8; 6], Error> {
        let mut address = rte_ether_addr::default();
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the address is written to a value that is ours.
        device.attempt("tell its MAC address", || unsafe { dpdk_sys::rte_eth_macaddr_get(device.id, &mut address) })?;
        Ok(address.addr_bytes)
    }

    /// The link as it is, without waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn link(&self) -> Result<LinkState, Error> {
        let (mut speed, mut up) = (0, 0);
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the results are written to values that are ours.
        device.attempt("tell its link state", || unsafe { dpdk_sys::hf_link(device.id, &mut speed, &mut up) })?;
        Ok(LinkState { up: up != 0, speed_mbps: (speed != 0).then_some(speed) })
    }

    /// Whether frames can leave by it, as far as anything tells: the driver of a NIC and those of memif, vhost and virtio-user
    /// do, and of the interface behind an af_packet port the kernel does. A virtio-user port that listens connects again only
    /// when it is asked. A tap that is set down takes nothing. One that is not to be found may be in another namespace, where
    /// frames pass. Other ports count as up.
    #[must_use]
    pub fn has_link(&self) -> bool {
        let of = self.0.driver;
        if self.is_physical() || of.tells_link() {
            return self.link().map_or(true, |link| link.up);
        }
        match self.0.state().interface.as_ref().and_then(Interface::state) {
            None | Some(InterfaceState::Up) => true,
            Some(InterfaceState::Down) => false,
            Some(InterfaceState::Absent | InterfaceState::NoCarrier) => !of.needs_carrier(),
        }
    }

    /// Its counters; another thread may poll the queues meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn stats(&self) -> Result<PortStats, Error> {
        let mut stats = rte_eth_stats::default();
        let device = &*self.0;
        let mut state = device.state();
        // SAFETY: the port is open, and the counters are written to a value that is ours.
        device.attempt("tell its counters", || unsafe { dpdk_sys::rte_eth_stats_get(device.id, &mut stats) })?;
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

    /// Sets its counters to zero; while another thread polls the queues, some drivers lose that.
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

    /// Whether frames that are lost in front of it, since it was polled too late, are counted as missed. NICs count them,
    /// in-process links lose none, nor does memif, whose sender keeps what finds no room in the memory between the two; and
    /// af_packet's are asked for here. Of other virtual ports it is not known.
    #[must_use]
    pub fn sees_receive_loss(&self) -> bool {
        let device = &*self.0;
        let never_loses = matches!(device.origin, Origin::Rings(..)) || device.driver.never_loses();
        never_loses || self.is_physical() || device.state().kernel.is_some()
    }

    /// The MTU in force.
    ///
    /// # Errors
    ///
    /// [`Error::Port`] with the driver's reason.
    pub fn mtu(&self) -> Result<u16, Error> {
        let mut mtu = 0;
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the MTU is written to a value that is ours.
        device.attempt("tell its MTU", || unsafe { dpdk_sys::rte_eth_dev_get_mtu(device.id, &mut mtu) })?;
        Ok(mtu)
    }

    /// Flow control that its device does by itself, and all settings that go with it.
    ///
    /// # Errors
    ///
    /// The driver's error number, negative: `-ENOTSUP` where it has no such function.
    pub fn flow_control(&self) -> Result<FlowControl, i32> {
        let mut settings = rte_eth_fc_conf::default();
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open, and the settings are written to a value that is ours.
        match unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_get(device.id, &mut settings) } {
            0.. => Ok(FlowControl(settings)),
            status => Err(status),
        }
    }

    /// Tells its device what to do of flow control by itself.
    ///
    /// # Errors
    ///
    /// The driver's error number, negative.
    pub fn set_flow_control(&self, wanted: &FlowControl) -> Result<(), i32> {
        let mut settings = wanted.0;
        let device = &*self.0;
        let _state = device.state();
        // SAFETY: the port is open; the driver reads a value that is ours.
        match unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_set(device.id, &mut settings) } {
            0.. => Ok(()),
            status => Err(status),
        }
    }

    /// The NUMA node it is on; `None` where that means nothing.
    #[must_use]
    pub fn socket(&self) -> Option<u32> {
        // SAFETY: the port is open.
        u32::try_from(unsafe { dpdk_sys::rte_eth_dev_socket_id(self.0.id) }).ok()
    }

    /// Name of its driver, e.g. `net_tap`.
    #[must_use]
    pub fn driver(&self) -> String {
        let _state = self.0.state();
        self.0.driver_name()
    }
}

/// The number of the port called `name`.
pub(super) fn find(name: &str) -> Option<u16> {
    let name = CString::new(name).ok()?;
    let mut id = 0;
    // SAFETY: the name is a string with a zero at its end, and the number is written to a value that is ours.
    let status = unsafe { dpdk_sys::rte_eth_dev_get_port_by_name(name.as_ptr(), &mut id) };
    (status == 0).then_some(id)
}

/// Whether DPDK can have one port more.
pub(super) fn check_room_for(device: &str) -> Result<(), Error> {
    let limit = HF_MAX_ETHPORTS as usize;
    // SAFETY: only counts.
    let there = unsafe { dpdk_sys::rte_eth_dev_count_total() };
    if usize::from(there) < limit { Ok(()) } else { Err(Error::TooManyPorts { device: device.to_owned(), limit }) }
}
