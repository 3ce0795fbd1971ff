//! The demands of a configuration on the machine.

use crate::config::Config;
use crate::config::model::{DeviceKind, IdleWait, MemoryMode};
use crate::sets::PortSet;

/// The needs of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Its ports.
    pub devices: Vec<DeviceNeed>,
    /// Its dataplane lcores, in order.
    pub lcores: Vec<LcoreNeed>,
    /// The CPU of its control thread, if it is configured.
    pub control: Option<u16>,
    /// Whether its memory consists of hugepages.
    pub huge: bool,
    /// The amount of memory in MiB, if it is known.
    pub memory_mib: Option<u32>,
    /// Its routed ports with Linux beside the router; 0: Linux has no part in it.
    pub linux_ports: usize,
}

/// A port's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceNeed {
    /// The port.
    pub port: String,
    /// The device behind the port.
    pub kind: DeviceKind,
    /// The lcore that polls it.
    pub lcore: usize,
    /// Whether PFC is on and the port has lossless classes.
    pub lossless: bool,
    /// Whether the operator asserts that PFC works.
    pub proven: bool,
}

/// A dataplane lcore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LcoreNeed {
    /// Its CPU, if it is configured.
    pub cpu: Option<u16>,
    /// Whether it rests by `umwait`.
    pub umwait: bool,
}

impl Needs {
    /// The needs of `config`. `memory_mib` is an argument, because only DPDK can calculate it.
    #[must_use]
    pub fn new(config: &Config, memory_mib: Option<u32>) -> Self {
        let ports = config.devices.iter().zip(&config.switch.ports);
        let devices: Vec<DeviceNeed> = ports
            .map(|(device, port)| DeviceNeed {
                port: port.name.clone(),
                // Arguments of the driver may follow a PCI address.
                kind: device.kind.clone(),
                lcore: port.lcore.into(),
                lossless: port.pfc.is_on() && !port.lossless_groups().is_empty(),
                proven: device.pfc_proven,
            })
            .collect();
        let lcore = |number: usize| LcoreNeed {
            cpu: config.lcores.dataplane.get(number).copied(),
            umwait: config.idle_of(number).is_some_and(|idle| idle.wait == IdleWait::Umwait),
        };
        let has_pci = devices.iter().any(|device| device.pci().is_some());
        Self {
            lcores: (0..usize::from(config.switch.lcores)).map(lcore).collect(),
            control: config.lcores.control,
            huge: config.eal.memory == MemoryMode::Huge || has_pci,
            memory_mib,
            linux_ports: config.switch.routing.as_ref().filter(|spec| spec.linux.is_some()).map_or(0, |spec| {
                let ports = spec.interfaces.iter().flat_map(|interface| interface.ports.iter());
                ports.map(|port| config.switch.lags.bridge_port(port)).collect::<PortSet>().iter().count()
            }),
            devices,
        }
    }

    /// Ports on devices of the DPDK driver `driver`.
    pub(super) fn on<'a>(&'a self, driver: &'a str) -> impl Iterator<Item = &'a DeviceNeed> {
        self.devices.iter().filter(move |device| device.driver() == Some(driver))
    }
}

impl DeviceNeed {
    /// The PCI address in the format of sysfs.
    pub(super) fn pci(&self) -> Option<String> {
        let DeviceKind::Pci(device) = &self.kind else { return None };
        let address = device.split(',').next().unwrap_or_default().to_lowercase();
        Some(if address.matches(':').count() == 1 { format!("0000:{address}") } else { address })
    }

    /// The DPDK driver of a virtual device: `net_tap` of `net_tap0,iface=x`.
    pub(super) fn driver(&self) -> Option<&str> {
        match &self.kind {
            DeviceKind::Vdev(devargs) => {
                Some(devargs.split(',').next()?.trim_end_matches(|c: char| c.is_ascii_digit()))
            }
            DeviceKind::Vhost(_) => Some("net_vhost"),
            DeviceKind::Ring => Some("net_ring"),
            DeviceKind::Pci(_) | DeviceKind::Absent => None,
        }
    }
}
