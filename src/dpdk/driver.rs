//! Properties of DPDK's drivers for virtual devices, and of the kernel's drivers behind them.
//!
//! A device may bear an alias of its driver (`eth_af_packet0`). So each question is asked of the driver, and names are
//! compared here alone. The properties were read in DPDK 22.11.

use std::path::Path;

/// A driver of DPDK that this crate knows something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    AfPacket,
    AfXdp,
    Memif,
    Null,
    Tap,
    Tun,
    Vhost,
    VirtioUser,
    Other,
}

/// Drivers by their names, and by those of their aliases.
const NAMES: [(&str, Driver); 13] = [
    ("net_af_packet", Driver::AfPacket),
    ("eth_af_packet", Driver::AfPacket),
    ("net_af_xdp", Driver::AfXdp),
    ("net_memif", Driver::Memif),
    ("net_null", Driver::Null),
    ("eth_null", Driver::Null),
    ("net_tap", Driver::Tap),
    ("eth_tap", Driver::Tap),
    ("net_tun", Driver::Tun),
    ("net_vhost", Driver::Vhost),
    ("eth_vhost", Driver::Vhost),
    ("net_virtio_user", Driver::VirtioUser),
    ("virtio_user", Driver::VirtioUser),
];

/// Drivers of Linux whose device has no MAC of its own, though it is on a bus.
const PARAVIRTUAL: [&str; 2] = ["virtio_net", "vmxnet3"];

impl Driver {
    /// The driver that calls itself `name`.
    pub fn named(name: &str) -> Self {
        NAMES.iter().find(|(known, _)| *known == name).map_or(Self::Other, |(_, driver)| *driver)
    }

    /// The driver that DPDK will give a device called `device`: the one whose name or alias the device's name begins with.
    pub fn of_device(device: &str) -> Self {
        NAMES.iter().find(|(known, _)| device.starts_with(known)).map_or(Self::Other, |(_, driver)| *driver)
    }

    /// Whether its device sends and receives by an interface of the kernel's that exists before it.
    pub fn is_on_interface(self) -> bool {
        matches!(self, Self::AfPacket | Self::AfXdp)
    }

    /// Whether the kernel's interface tells if frames can leave.
    pub fn has_interface_state(self) -> bool {
        matches!(self, Self::AfPacket | Self::Tap | Self::Tun)
    }

    /// Whether an interface without carrier, or not to be found, means that there is no link. The interface of a tap may be in
    /// another namespace, where frames pass.
    pub fn needs_carrier(self) -> bool {
        self == Self::AfPacket
    }

    /// Whether it knows by itself if there is a link.
    pub fn tells_link(self) -> bool {
        matches!(self, Self::Memif | Self::Vhost | Self::VirtioUser)
    }

    /// Whether it counts frames as errors that it does not take and gives back: one that waits is counted each time that it is
    /// offered. Such a driver loses none of the frames that it takes.
    pub fn counts_refusals(self) -> bool {
        matches!(self, Self::AfXdp | Self::Tap | Self::Tun)
    }

    /// Whether no frame is lost in front of its device.
    pub fn never_loses(self) -> bool {
        matches!(self, Self::Memif | Self::Null)
    }
}

/// Whether `interface` of the kernel's is that of a NIC with a MAC. `classes` is `/sys/class/net`.
pub(super) fn is_nic(classes: &Path, interface: &str) -> bool {
    // A network interface with hardware behind it has a link to that in sysfs; veth, tap and bridge have none.
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
        assert!(Driver::of_device("eth_vhost0").tells_link());
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
