//! What was read of a machine.

use std::collections::BTreeMap;

/// A machine, as far as a switch on it is concerned. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its CPUs.
    pub cpus: Cpus,
    /// Its hugepages, a row for each node and size.
    pub pages: Vec<Pages>,
    /// Where hugetlbfs is mounted.
    pub huge_mounts: Vec<String>,
    /// Ordinary memory that is free, in KiB.
    pub available_kib: Option<u64>,
    /// Its network devices on PCI.
    pub nics: Vec<PciNic>,
    /// Whether the kernel has IOMMU groups.
    pub has_iommu: bool,
    /// Whether vfio works without an IOMMU here (`enable_unsafe_noiommu_mode`).
    pub noiommu: bool,
    /// `/dev/net/tun`.
    pub tun: Access,
    /// `/dev/vfio/*`, by name.
    pub vfio: BTreeMap<String, Access>,
    /// This process.
    pub process: Process,
    /// Drivers of DPDK's that are installed (`net_tap`); empty: where they are was not found.
    pub drivers: Vec<String>,
    /// DPDK's version, if it is built in.
    pub dpdk: Option<String>,
}

/// The CPUs of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Those that run.
    pub online: Vec<u16>,
    /// Those that this process may use.
    pub allowed: Vec<u16>,
    /// Those that the scheduler leaves alone.
    pub isolated: Vec<u16>,
    /// Those without a periodic tick while one program runs.
    pub nohz_full: Vec<u16>,
    /// Frequency governors; absent in most virtual machines.
    pub governors: BTreeMap<u16, String>,
    /// The node of each.
    pub nodes: BTreeMap<u16, u16>,
    /// The first CPU of each one's core: two with the same share its units.
    pub cores: BTreeMap<u16, u16>,
    /// Flags of the first one (x86).
    pub flags: Vec<String>,
    /// What the kernel tells the time by.
    pub clocksource: Option<String>,
}

/// Hugepages of one size on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// The node.
    pub node: u16,
    /// Size of a page in KiB.
    pub kib: u64,
    /// Pages.
    pub total: u64,
    /// Free ones.
    pub free: u64,
}

/// A network device on PCI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PciNic {
    /// Its address, `0000:3b:00.0`.
    pub address: String,
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
    /// The kernel's driver that it is bound to.
    pub driver: Option<String>,
    /// Its node; absent where the machine has one or does not say.
    pub node: Option<u16>,
    /// Its IOMMU group.
    pub group: Option<String>,
    /// Its interfaces in the kernel.
    pub interfaces: Vec<String>,
}

/// Whether this process may open a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// It is not there.
    #[default]
    Absent,
    /// It is there for others.
    Denied,
    /// It may be opened.
    Open,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its effective user.
    pub uid: u32,
    /// Its groups.
    pub gids: Vec<u32>,
    /// Its effective capabilities, as a mask; absent: not known.
    pub capabilities: Option<u64>,
    /// Those that the program's file gave it, as a mask: what it may have beyond its user's. None are seen where root looks.
    pub of_file: u64,
    /// Whether everybody may run the program's file.
    pub is_for_all: bool,
    /// Memory that it may lock, in bytes; absent: as much as it likes.
    pub memlock: Option<u64>,
}

impl Process {
    /// Whether it has the capability with this number, as far as is known.
    #[must_use]
    pub fn has(&self, capability: u32) -> bool {
        self.capabilities.is_none_or(|mask| mask >> capability & 1 == 1)
    }
}
