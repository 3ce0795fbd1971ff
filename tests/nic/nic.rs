//! The rows of the table: models of NICs that QEMU emulates, and ways to give one to DPDK.

/// A model of NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nic {
    E1000,
    E1000e,
    /// 82576. QEMU has it since version 8.
    Igb,
    Vmxnet3,
    Virtio,
}

/// The kernel driver that gives a NIC to DPDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Vfio,
    Uio,
}

impl Nic {
    /// Name of the model in QEMU.
    pub fn model(self) -> &'static str {
        match self {
            Self::E1000 => "e1000",
            Self::E1000e => "e1000e",
            Self::Igb => "igb",
            Self::Vmxnet3 => "vmxnet3",
            Self::Virtio => "virtio-net-pci",
        }
    }

    /// Further properties of the device in QEMU. A virtio device does not use the IOMMU unless it is told to.
    pub fn options(self) -> &'static str {
        match self {
            Self::Virtio => ",disable-legacy=on,iommu_platform=on,rx_queue_size=1024",
            Self::Igb => ",romfile=",
            _ => "",
        }
    }

    /// Bus address of the guest's NIC `number`. One with functions for virtual machines has a root port of its own.
    pub fn address(self, number: usize) -> String {
        match self {
            Self::Igb => format!("0000:{:02x}:00.0", 1 + number),
            _ => format!("0000:00:{:02x}.0", 0x10 + number),
        }
    }

    /// CPUs of the switch's lcores. With two, each sends by a transmit queue of its own at every port.
    pub fn lcores(self) -> &'static [u8] {
        if self == Self::Igb { &[1, 2] } else { &[1] }
    }

    /// The kernel's own driver of the NIC.
    pub fn kernel_driver(self) -> &'static str {
        match self {
            Self::E1000 => "e1000",
            Self::E1000e => "e1000e",
            Self::Igb => "igb",
            Self::Vmxnet3 => "vmxnet3",
            Self::Virtio => "virtio-pci",
        }
    }

    /// Result of turning the device's flow control off.
    pub fn flow_control(self) -> &'static str {
        match self {
            Self::E1000 | Self::E1000e | Self::Igb => "off",
            Self::Vmxnet3 | Self::Virtio => "none",
        }
    }

    /// Largest MTU. The first two fill 8192 bytes of a buffer of nine KiB.
    pub fn mtu(self) -> u16 {
        match self {
            Self::E1000 | Self::E1000e => 8192 - 26,
            Self::Igb | Self::Vmxnet3 | Self::Virtio => 9000,
        }
    }

    /// Receive queues. em has one; QEMU's virtio has as many as its wire, which is one socket.
    pub fn queues(self) -> u8 {
        match self {
            Self::Igb => 4,
            Self::Vmxnet3 => 2,
            _ => 1,
        }
    }

    /// Descriptors of the receive ring. QEMU keeps frames until the ring has room, but not for vmxnet3. There the ring
    /// has to hold what arrives while the guest has no CPU, 1.7 s of it.
    pub fn rx_descriptors(self) -> u16 {
        match self {
            Self::Vmxnet3 => 2048,
            _ => 512,
        }
    }
}

impl Access {
    /// Name of the kernel driver.
    pub fn driver(self) -> &'static str {
        match self {
            Self::Vfio => "vfio-pci",
            Self::Uio => "uio_pci_generic",
        }
    }

    /// Whether the guest needs an IOMMU. With uio it must have none: devices use physical addresses there.
    pub fn needs_iommu(self) -> bool {
        self == Self::Vfio
    }
}
