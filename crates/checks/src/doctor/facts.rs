//! The facts that are read of a machine.

use std::collections::BTreeMap;

use super::{Peer, Reach};
use crate::router::kernel::KernelLimits;

/// The facts of a machine that matter to a switch. Facts that cannot be read are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its CPUs.
    pub cpus: Cpus,
    /// Its hugepages, a row for each node and size.
    pub pages: Vec<Pages>,
    /// Mount points of hugetlbfs.
    pub huge_mounts: Vec<String>,
    /// Available ordinary memory, in KiB.
    pub available_kib: Option<u64>,
    /// Its network devices on the PCI bus.
    pub nics: Vec<PciNic>,
    /// Whether the kernel has IOMMU groups.
    pub has_iommu: bool,
    /// Whether vfio works without an IOMMU here (`enable_unsafe_noiommu_mode`).
    pub noiommu: bool,
    /// How the machine is reached.
    pub reach: Reach,
    /// Sizes of the kernel's tables of neighbours.
    pub neighbours: KernelLimits,
    /// Whether `/dev/net/tun` may be opened.
    pub tun: Access,
    /// Whether each file in `/dev/vfio` may be opened, by its name.
    pub vfio: BTreeMap<String, Access>,
    /// The facts of this process.
    pub process: Process,
    /// Installed drivers of DPDK (`net_tap`); empty if their directory was not found.
    pub drivers: Vec<String>,
    /// Number of the newest ABI of DPDK among these drivers (`25`), which Debian's packages have in their names.
    pub abi: u16,
    /// Whether these drivers are part of the program, so that no package adds one.
    pub drivers_are_linked: bool,
    /// The version of DPDK, if it is built in.
    pub dpdk: Option<String>,
    /// Whether a switch runs here and answers.
    pub has_switch: bool,
    /// Its peers.
    pub peers: Vec<Peer>,
}

impl Facts {
    /// Debian's package of a driver of DPDK (`net_tap`). A hyphen stands between a digit and the number of the ABI.
    #[must_use]
    pub fn package(&self, driver: &str) -> String {
        let hyphen = if driver.ends_with(|last: char| last.is_ascii_digit()) { "-" } else { "" };
        format!("librte-{}{hyphen}{}", driver.replace('_', "-"), self.abi)
    }
}

/// The CPUs of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs that are online.
    pub online: Vec<u16>,
    /// CPUs that this process may use.
    pub allowed: Vec<u16>,
    /// CPUs that the scheduler does not use for other work (`isolcpus`).
    pub isolated: Vec<u16>,
    /// CPUs without a periodic tick while one program runs (`nohz_full`).
    pub nohz_full: Vec<u16>,
    /// Frequency governor of each CPU; absent in most virtual machines.
    pub governors: BTreeMap<u16, String>,
    /// NUMA node of each CPU.
    pub nodes: BTreeMap<u16, u16>,
    /// The first CPU on the core of each CPU: two CPUs with the same value share a core.
    pub cores: BTreeMap<u16, u16>,
    /// Vendor of the first CPU (x86), such as `AuthenticAMD`.
    pub vendor: Option<String>,
    /// Feature flags of the first CPU (x86).
    pub flags: Vec<String>,
    /// The clock source of the kernel.
    pub clocksource: Option<String>,
}

/// Hugepages of one size on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// The NUMA node.
    pub node: u16,
    /// Size of a page in KiB.
    pub kib: u64,
    /// Number of pages.
    pub total: u64,
    /// Number of free pages.
    pub free: u64,
}

/// A network device on PCI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PciNic {
    /// Its address, `0000:3b:00.0`.
    pub address: String,
    /// Vendor number.
    pub vendor: u16,
    /// Device number.
    pub device: u16,
    /// The kernel driver that it is bound to.
    pub driver: Option<String>,
    /// Its NUMA node; absent if the machine has only one or does not report it.
    pub node: Option<u16>,
    /// Its IOMMU group.
    pub group: Option<String>,
    /// Names of its interfaces in the kernel.
    pub interfaces: Vec<String>,
    /// Names of interfaces on top of these: bonds, bridges, VLANs.
    pub uppers: Vec<String>,
}

/// Whether this process may open a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// The device does not exist.
    #[default]
    Absent,
    /// The device exists, but this process may not open it.
    Denied,
    /// This process may open the device.
    Open,
}

/// The facts of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its effective user ID.
    pub uid: u32,
    /// Its group IDs.
    pub gids: Vec<u32>,
    /// Its effective capabilities, as a mask; absent if they are not known.
    pub capabilities: Option<u64>,
    /// Capabilities from the program's file, as a mask, beyond those of the user. Zero for root, since root
    /// has all capabilities anyway.
    pub of_file: u64,
    /// Whether any user may run the program's file.
    pub is_for_all: bool,
    /// Memory that it may lock, in bytes; absent if there is no limit.
    pub memlock: Option<u64>,
}

impl Process {
    /// Whether it has the capability with this number; true if its capabilities are not known.
    #[must_use]
    pub fn has(&self, capability: u32) -> bool {
        self.capabilities.is_none_or(|mask| mask >> capability & 1 == 1)
    }
}
