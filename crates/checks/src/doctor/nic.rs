//! The DPDK driver of each NIC, and the known facts about PFC through it.
//!
//! Device numbers are those in the drivers of DPDK 22.11 (their `PMD_INFO_STRING`), for Intel without virtual
//! functions. The facts about PFC were read in the sources of the drivers: docs/nics.md.

use super::facts::PciNic;

const INTEL: u16 = 0x8086;
const MELLANOX: u16 = 0x15b3;
const VIRTIO: u16 = 0x1af4;
const VMWARE: u16 = 0x15ad;
/// The only model of its driver.
const VMXNET3: u16 = 0x07b0;

#[rustfmt::skip]
const IXGBE: &[u16] = &[
    0x10b6, 0x10c6, 0x10c7, 0x10c8, 0x10db, 0x10dd, 0x10e1, 0x10ec, 0x10f1, 0x10f4, 0x10f7, 0x10f8, 0x10f9, 0x10fb, 0x10fc,
    0x1507, 0x1508, 0x150b, 0x1514, 0x1517, 0x151c, 0x1528, 0x1529, 0x152a, 0x154a, 0x154d, 0x1557, 0x1558, 0x155d, 0x1560,
    0x1563, 0x15aa, 0x15ab, 0x15ac, 0x15ad, 0x15ae, 0x15b0, 0x15c2, 0x15c3, 0x15c4, 0x15c6, 0x15c7, 0x15c8, 0x15ca, 0x15cc,
    0x15ce, 0x15d1, 0x15e4, 0x15e5,
];

#[rustfmt::skip]
const I40E: &[u16] = &[
    0x0cf8, 0x0d58, 0x101f, 0x104e, 0x104f, 0x1572, 0x1574, 0x1580, 0x1581, 0x1583, 0x1584, 0x1585, 0x1586, 0x1587, 0x1588,
    0x1589, 0x158a, 0x158b, 0x15ff, 0x374c, 0x37ce, 0x37cf, 0x37d0, 0x37d1, 0x37d2, 0x37d3,
];

#[rustfmt::skip]
const ICE: &[u16] = &[
    0x0dbd, 0x0dcd, 0x124c, 0x124d, 0x124e, 0x124f, 0x151d, 0x1591, 0x1592, 0x1593, 0x1599, 0x159a, 0x159b, 0x1888, 0x188a,
    0x188b, 0x188c, 0x188d, 0x188e, 0x1890, 0x1891, 0x1892, 0x1893, 0x1894, 0x1897, 0x1898, 0x1899, 0x189a, 0x579c, 0x579d,
    0x579e, 0x579f,
];

/// The em and igb drivers, which share one library.
#[rustfmt::skip]
const E1000: &[u16] = &[
    0x0438, 0x043a, 0x043c, 0x0440, 0x100e, 0x100f, 0x1010, 0x1011, 0x1012, 0x101d, 0x105e, 0x105f, 0x1060, 0x107d, 0x107e,
    0x107f, 0x109a, 0x10a4, 0x10a5, 0x10a7, 0x10a9, 0x10b9, 0x10bc, 0x10c9, 0x10d3, 0x10d5, 0x10d6, 0x10d9, 0x10da, 0x10e6,
    0x10e7, 0x10e8, 0x10f6, 0x1502, 0x150a, 0x150c, 0x150d, 0x150e, 0x150f, 0x1510, 0x1511, 0x1516, 0x1518, 0x1521, 0x1522,
    0x1523, 0x1524, 0x1526, 0x1527, 0x1533, 0x1534, 0x1535, 0x1536, 0x1537, 0x1538, 0x1539, 0x153a, 0x153b, 0x1546, 0x1559,
    0x155a, 0x156f, 0x1570, 0x157b, 0x157c, 0x15a0, 0x15a1, 0x15a2, 0x15a3, 0x15b7, 0x15b8, 0x15b9, 0x15bb, 0x15bc, 0x15bd,
    0x15be, 0x15d6, 0x15d7, 0x15d8, 0x15e3, 0x1f40, 0x1f41, 0x1f45,
];

#[rustfmt::skip]
const MLX5: &[u16] = &[
    0x1013, 0x1014, 0x1015, 0x1016, 0x1017, 0x1018, 0x1019, 0x101a, 0x101b, 0x101c, 0x101d, 0x101e, 0x101f, 0x1021, 0xa2d2,
    0xa2d3, 0xa2d6, 0xa2dc,
];

const IGC: &[u16] = &[0x0d9f, 0x125b, 0x125c, 0x125d, 0x125f, 0x15f2, 0x15f3, 0x15f8, 0x3100, 0x3102, 0x5503];

/// Kernel drivers and the family of their NICs.
const KERNEL: &[(&str, Family)] = &[
    ("ixgbe", Family::Ixgbe),
    ("i40e", Family::I40e),
    ("ice", Family::Ice),
    ("e1000", Family::E1000),
    ("e1000e", Family::E1000),
    ("igb", Family::E1000),
    ("igc", Family::Igc),
    ("mlx5_core", Family::Mlx5),
    ("virtio-pci", Family::Virtio),
    ("vmxnet3", Family::Vmxnet3),
];

/// Families of NICs, each with one DPDK driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// 82598, 82599, X520, X540, X550.
    Ixgbe,
    /// X710, XL710, XXV710, X722.
    I40e,
    /// E810, E822, E823.
    Ice,
    /// em and igb: I210, I350 and older.
    E1000,
    /// I225, I226.
    Igc,
    /// ConnectX-4 and newer, BlueField.
    Mlx5,
    /// The NIC of a virtual machine.
    Virtio,
    /// The NIC of a virtual machine of VMware.
    Vmxnet3,
    /// Any other NIC.
    Other,
}

/// The known behaviour of a port's driver towards PFC frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfcKnown {
    /// PFC frames are likely received, and nothing was found that prevents their transmission.
    Likely,
    /// The driver discards PFC frames that software sends.
    Discarded,
    /// The behaviour is not known.
    Unknown,
}

/// The support of a family's driver in DPDK 22.11 for two settings: flow control off, and MAC control frames passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowControlKnown {
    /// It supports both; the device starts with PAUSE on.
    TakesBothFromOn,
    /// It supports both; the device starts with PAUSE off.
    TakesBoth,
    /// It turns PAUSE off, and ignores the other setting.
    OffOnly,
    /// It has no functions for flow control.
    Cannot,
    /// The device has no flow control.
    None,
    /// Its source was not read.
    Unread,
}

impl Family {
    /// The family of `nic`, by its numbers or, if they are not listed, by its kernel driver.
    #[must_use]
    pub fn of(nic: &PciNic) -> Self {
        let by_number = match nic.vendor {
            INTEL => {
                [(IXGBE, Self::Ixgbe), (I40E, Self::I40e), (ICE, Self::Ice), (E1000, Self::E1000), (IGC, Self::Igc)]
                    .into_iter()
                    .find(|(numbers, _)| numbers.contains(&nic.device))
                    .map(|(_, family)| family)
            }
            MELLANOX if MLX5.contains(&nic.device) => Some(Self::Mlx5),
            VIRTIO => Some(Self::Virtio),
            VMWARE if nic.device == VMXNET3 => Some(Self::Vmxnet3),
            _ => None,
        };
        let by_driver =
            || KERNEL.iter().find(|(name, _)| Some(*name) == nic.driver.as_deref()).map(|(_, family)| *family);
        by_number.or_else(by_driver).unwrap_or(Self::Other)
    }

    /// The DPDK driver.
    #[must_use]
    pub fn driver(self) -> Option<&'static str> {
        Some(match self {
            Self::Ixgbe => "net_ixgbe",
            Self::I40e => "net_i40e",
            Self::Ice => "net_ice",
            Self::E1000 => "net_e1000",
            Self::Igc => "net_igc",
            Self::Mlx5 => "net_mlx5",
            Self::Virtio => "net_virtio",
            Self::Vmxnet3 => "net_vmxnet3",
            Self::Other => return None,
        })
    }

    /// Whether the kernel driver stays bound while DPDK uses the device.
    #[must_use]
    pub fn is_bifurcated(self) -> bool {
        self == Self::Mlx5
    }

    /// The known behaviour of its driver towards PFC frames.
    #[must_use]
    pub fn pfc(self) -> PfcKnown {
        match self {
            Self::Ixgbe | Self::E1000 | Self::Igc | Self::Virtio | Self::Vmxnet3 => PfcKnown::Likely,
            Self::I40e => PfcKnown::Discarded,
            Self::Ice | Self::Mlx5 | Self::Other => PfcKnown::Unknown,
        }
    }

    /// The behaviour of its driver when flow control is configured, according to its source.
    #[must_use]
    pub fn flow_control(self) -> FlowControlKnown {
        match self {
            Self::E1000 | Self::Igc => FlowControlKnown::TakesBothFromOn,
            Self::Ixgbe | Self::I40e => FlowControlKnown::TakesBoth,
            Self::Mlx5 => FlowControlKnown::OffOnly,
            Self::Ice => FlowControlKnown::Cannot,
            Self::Virtio | Self::Vmxnet3 => FlowControlKnown::None,
            Self::Other => FlowControlKnown::Unread,
        }
    }

    /// The `ethtool` flag of the firmware's own LLDP agent, and the value that stops the agent.
    #[must_use]
    pub fn lldp_flag(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::I40e => Some(("disable-fw-lldp", "on")),
            Self::Ice => Some(("fw-lldp-agent", "off")),
            _ => None,
        }
    }
}
