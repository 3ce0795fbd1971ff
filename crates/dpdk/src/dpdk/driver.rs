//! Properties of DPDK's drivers for virtual devices, and of the kernel drivers behind them.
//!
//! A device name may contain an alias of its driver (`eth_af_packet0`), so only this file compares names. The
//! properties were read from the source of DPDK 22.11.

use std::path::Path;

/// A DPDK driver with properties that this crate needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    AfPacket,
    AfXdp,
    Memif,
    Null,
    Pcap,
    Tap,
    Tun,
    Vhost,
    VirtioUser,
    /// The NICs of one driver, which differ in the sizes of buffers that they fill.
    Em,
    Igb,
    Igc,
    Ixgbe,
    Other,
}

/// Names and aliases of the drivers.
const NAMES: [(&str, Driver); 19] = [
    ("net_af_packet", Driver::AfPacket),
    ("eth_af_packet", Driver::AfPacket),
    ("net_af_xdp", Driver::AfXdp),
    ("net_memif", Driver::Memif),
    ("net_null", Driver::Null),
    ("eth_null", Driver::Null),
    ("net_pcap", Driver::Pcap),
    ("eth_pcap", Driver::Pcap),
    ("net_tap", Driver::Tap),
    ("eth_tap", Driver::Tap),
    ("net_tun", Driver::Tun),
    ("net_vhost", Driver::Vhost),
    ("eth_vhost", Driver::Vhost),
    ("net_virtio_user", Driver::VirtioUser),
    ("virtio_user", Driver::VirtioUser),
    ("net_e1000_em", Driver::Em),
    ("net_e1000_igb", Driver::Igb),
    ("net_igc", Driver::Igc),
    ("net_ixgbe", Driver::Ixgbe),
];

/// Linux drivers whose device has no MAC of its own, although it is on a bus.
const PARAVIRTUAL: [&str; 2] = ["virtio_net", "vmxnet3"];

impl Driver {
    /// Returns the driver whose own name is `name`.
    pub fn named(name: &str) -> Self {
        NAMES.iter().find(|(known, _)| *known == name).map_or(Self::Other, |(_, driver)| *driver)
    }

    /// Returns the driver that DPDK uses for a device called `device`. The device's name begins with the driver's name
    /// or alias.
    pub fn of_device(device: &str) -> Self {
        NAMES.iter().find(|(known, _)| device.starts_with(known)).map_or(Self::Other, |(_, driver)| *driver)
    }

    /// Whether the device sends and receives by an existing interface of the kernel.
    pub fn is_on_interface(self) -> bool {
        matches!(self, Self::AfPacket | Self::AfXdp)
    }

    /// Whether the state of a kernel interface shows if frames can leave.
    pub fn has_interface_state(self) -> bool {
        matches!(self, Self::AfPacket | Self::Tap | Self::Tun)
    }

    /// Whether an interface that is missing or has no carrier means that there is no link. The interface of a tap may
    /// be in another namespace, where frames pass.
    pub fn needs_carrier(self) -> bool {
        self == Self::AfPacket
    }

    /// Whether the driver itself reports the link.
    pub fn reports_link(self) -> bool {
        matches!(self, Self::Memif | Self::Vhost | Self::VirtioUser)
    }

    /// Returns how many bytes of a buffer with `room` bytes the device fills. A register holds the size in steps, so
    /// drivers round it down. They deliver a longer frame in several buffers, which the switch refuses.
    pub fn filled(self, room: usize) -> usize {
        match self {
            // RCTL.BSIZE with BSEX: a power of two from 256 to 16384.
            Self::Em => 1_usize.checked_shl(room.checked_ilog2().unwrap_or(0)).unwrap_or(0).min(16 << 10),
            // SRRCTL.BSIZEPACKET: in KiB.
            Self::Igb | Self::Igc | Self::Ixgbe => room & !1023,
            _ => room,
        }
    }

    /// Whether the driver counts frames that it refuses and returns as errors. A frame that waits is counted each time
    /// that it is offered. Such a driver loses none of the frames that it accepts.
    pub fn counts_refusals(self) -> bool {
        matches!(self, Self::AfXdp | Self::Tap | Self::Tun)
    }

    /// Whether the driver frees memory of its queues in EAL's interrupt thread, while an lcore may use them.
    pub fn frees_queues_of_ended_peers(self) -> bool {
        self == Self::Memif
    }

    /// Whether the driver inserts the outermost tag of received frames, which the kernel has taken off.
    pub fn inserts_tags(self) -> bool {
        self == Self::AfPacket
    }

    /// Whether no frame is lost in front of the device.
    pub fn never_loses(self) -> bool {
        matches!(self, Self::Memif | Self::Null | Self::Vhost)
    }
}

/// Whether the kernel interface `interface` belongs to a NIC with a MAC. `classes` is `/sys/class/net`.
pub(super) fn is_nic(classes: &Path, interface: &str) -> bool {
    // In sysfs, a network interface with hardware has a link to its device; veth, tap and bridge have none.
    let device = classes.join(interface).join("device");
    let driver = std::fs::read_link(device.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    device.exists() && driver.is_none_or(|driver| !PARAVIRTUAL.contains(&driver))
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn device_with_an_alias_of_its_driver_is_treated_alike() {
        for (own, alias) in [
            ("net_af_packet", "eth_af_packet0"),
            ("net_tap", "eth_tap1"),
            ("net_vhost", "eth_vhost2"),
            ("net_null", "eth_null3"),
            ("net_virtio_user", "virtio_user4"),
        ] {
            assert_ne!(Driver::named(own), Driver::Other);
            assert_eq!(Driver::of_device(alias), Driver::named(own), "{alias}");
            assert_eq!(Driver::of_device(&format!("{own}0")), Driver::named(own));
        }
        assert_eq!(Driver::of_device("net_ring_hf0s"), Driver::Other);
        assert!(Driver::of_device("eth_tap0").counts_refusals() && Driver::of_device("net_tun0").counts_refusals());
        assert!(Driver::of_device("eth_vhost0").reports_link());
    }

    #[test]
    fn part_of_a_buffer_that_a_nic_fills_is_its_registers_step() {
        let filled = |driver: &str| [2048, 9026, 9216, 16384].map(|room| Driver::named(driver).filled(room));
        assert_eq!(filled("net_e1000_em"), [2048, 8192, 8192, 16384]);
        for driver in ["net_e1000_igb", "net_igc", "net_ixgbe"] {
            assert_eq!(filled(driver), [2048, 8192, 9216, 16384], "{driver}");
        }
        assert_eq!(filled("net_vmxnet3"), [2048, 9026, 9216, 16384]);
        assert_eq!(Driver::Em.filled(0), 1);
    }

    #[test]
    fn interface_of_a_paravirtual_device_is_no_nic() {
        let classes = tempfile::tempdir().expect("a directory");
        let path = classes.path();
        for (interface, driver) in [("eth0", "virtio_net"), ("eth1", "vmxnet3"), ("eth2", "igb")] {
            create_dir_all(path.join("drivers").join(driver)).expect("a driver");
            create_dir_all(path.join(interface).join("device")).expect("a device");
            symlink(path.join("drivers").join(driver), path.join(interface).join("device/driver")).expect("a link");
        }
        create_dir_all(path.join("eth3/device")).expect("a device without a driver");
        create_dir_all(path.join("veth0")).expect("an interface without a device");
        let found = ["eth0", "eth1", "eth2", "eth3", "veth0"].map(|interface| is_nic(path, interface));
        assert_eq!(found, [false, false, true, true, false]);
    }
}
