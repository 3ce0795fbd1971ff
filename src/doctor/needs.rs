//! What a configuration wants of the machine.

use crate::config::Config;
use crate::config::model::{DeviceKind, IdleWait, MemoryMode};

/// What a switch needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Its ports.
    pub devices: Vec<DeviceNeed>,
    /// Its dataplane lcores, in order.
    pub lcores: Vec<LcoreNeed>,
    /// The CPU of its control thread, if the configuration says which.
    pub control: Option<u16>,
    /// Whether its memory is made of hugepages.
    pub huge: bool,
    /// How much memory, in MiB, where that is known.
    pub memory_mib: Option<u32>,
}

/// A port's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceNeed {
    /// The port.
    pub port: String,
    /// What is behind it.
    pub kind: DeviceKind,
    /// The lcore that polls it.
    pub lcore: usize,
    /// Whether frames of a lossless class may come by it, and PFC is on.
    pub lossless: bool,
    /// Whether the operator says that PFC works.
    pub proven: bool,
}

/// A dataplane lcore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LcoreNeed {
    /// Its CPU, if the configuration says which.
    pub cpu: Option<u16>,
    /// Whether it rests by `umwait`.
    pub umwait: bool,
}

impl Needs {
    /// Those of `config`. How much memory it takes only DPDK can say.
    #[must_use]
    pub fn new(config: &Config, memory_mib: Option<u32>) -> Self {
        let ports = config.devices.iter().zip(&config.switch.ports);
        let devices: Vec<DeviceNeed> = ports
            .map(|(device, port)| DeviceNeed {
                port: port.name.clone(),
                // Driver's arguments may follow an address.
                kind: device.kind.clone(),
                lcore: port.lcore.into(),
                lossless: port.pfc.is_on() && port.lossless_groups() != 0,
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
            devices,
        }
    }

    /// Ports on virtual devices of the driver `driver`.
    pub(super) fn on<'a>(&'a self, driver: &'a str) -> impl Iterator<Item = &'a DeviceNeed> {
        self.devices.iter().filter(move |device| device.driver() == Some(driver))
    }
}

impl DeviceNeed {
    /// The PCI address, as sysfs has it.
    pub(super) fn pci(&self) -> Option<String> {
        let DeviceKind::Pci(device) = &self.kind else { return None };
        let address = device.split(',').next().unwrap_or_default().to_lowercase();
        Some(if address.matches(':').count() == 1 { format!("0000:{address}") } else { address })
    }

    /// DPDK's driver of a virtual device: `net_tap` of `net_tap0,iface=x`.
    pub(super) fn driver(&self) -> Option<&str> {
        match &self.kind {
            DeviceKind::Vdev(devargs) => {
                Some(devargs.split(',').next()?.trim_end_matches(|c: char| c.is_ascii_digit()))
            }
            DeviceKind::Ring => Some("net_ring"),
            DeviceKind::Pci(_) => None,
        }
    }
}
