//! Virtual devices of DPDK: the arguments of their drivers, and the largest packets that they support.
//!
//! The facts are from the drivers of DPDK 22.11 (`valid_arguments`, `max_rx_pktlen`). A driver that is not listed is
//! not checked; DPDK then reports errors at the start.

use crate::config::yaml::read::{Item, nearest};

/// Longest name of a network interface in Linux: `IFNAMSIZ` less its zero byte.
const INTERFACE_MAX: usize = 15;

/// The longest header before an IP packet: Ethernet and two VLAN tags.
const HEADERS: u32 = 14 + 2 * 4;

/// Bytes that ethdev adds to an MTU: Ethernet header and check sequence.
const ETHDEV_OVERHEAD: u16 = 14 + 4;

/// Largest MTU of af_xdp (`eth_dev_info`): a page of 4 KiB less four parts. They are the mempool's object header
/// (24 B), the mbuf (128 B), its headroom (128 B) and `XDP_PACKET_HEADROOM` (256 B).
const AF_XDP_MTU: u16 = 4096 - 24 - 128 - 128 - 256;

/// Bytes before a frame in its slot of an af_packet ring, written by the kernel (`tp_mac` of `TPACKET_V2`).
const SLOT_HEADER: u32 = 66;
/// Bytes of a slot that the driver does not count as data of a frame: the aligned `struct tpacket2_hdr`.
const SLOT_RESERVED: u32 = 32;
/// Slot size of the driver, unless `framesz` sets another.
const DEFAULT_SLOT: u32 = 2048;
/// Slots of a ring in the driver, unless `framecnt` sets another number.
const DEFAULT_SLOTS: u32 = 512;
/// Slot sizes that this crate chooses are multiples of this, so that four slots fill whole pages.
const SLOT_STEP: u32 = 1024;
/// Slots in a block that this crate chooses.
const SLOTS_PER_BLOCK: u32 = 4;
/// The kernel maps memory in multiples of this.
const PAGE: u32 = 4096;
/// Largest slot, so that a packet buffer can hold one.
const LARGEST_SLOT: u32 = 32_768;

/// Facts about a driver.
struct Driver {
    /// Its name and aliases.
    names: &'static [&'static str],
    /// Arguments that it accepts.
    arguments: &'static [&'static str],
    /// The arguments that name a network interface.
    interfaces: &'static [&'static str],
    /// Longest frame that it reports, with header and check sequence; `None`: longer than any configurable MTU needs.
    largest_frame: Option<u16>,
}

/// DPDK chooses the first driver whose name is a prefix of the device's name, so longer names come first.
#[rustfmt::skip]
const DRIVERS: [Driver; 10] = [
    Driver {
        names: &["net_virtio_user", "virtio_user"],
        arguments: &[
            "queues", "cq", "mac", "path", "queue_size", "iface", "server", "mrg_rxbuf", "in_order", "packed_vq", "speed",
            "vectorized",
        ],
        interfaces: &["iface"],
        largest_frame: None,
    },
    Driver {
        names: &["net_af_packet", "eth_af_packet"],
        arguments: &["iface", "qpairs", "blocksz", "framesz", "framecnt", "qdisc_bypass"],
        interfaces: &["iface"],
        largest_frame: None,
    },
    Driver {
        names: &["net_af_xdp"],
        arguments: &["iface", "start_queue", "queue_count", "shared_umem", "xdp_prog", "busy_budget", "force_copy"],
        interfaces: &["iface"],
        largest_frame: Some(AF_XDP_MTU + ETHDEV_OVERHEAD),
    },
    Driver {
        names: &["net_tap", "eth_tap"],
        arguments: &["iface", "remote", "mac", "persist"],
        interfaces: &["iface", "remote"],
        largest_frame: Some(1522),
    },
    Driver {
        names: &["net_tun"],
        arguments: &["iface", "remote", "mac", "persist"],
        interfaces: &["iface"],
        largest_frame: Some(1522),
    },
    Driver {
        names: &["net_memif"],
        arguments: &["id", "role", "bsize", "rsize", "socket", "socket-abstract", "mac", "zero-copy", "secret"],
        interfaces: &[],
        largest_frame: Some(1518),
    },
    Driver {
        names: &["net_null", "eth_null"],
        arguments: &["size", "copy", "no-rx"],
        interfaces: &[],
        largest_frame: None,
    },
    Driver {
        names: &["net_pcap", "eth_pcap"],
        arguments: &["rx_pcap", "tx_pcap", "rx_iface", "rx_iface_in", "tx_iface", "iface", "phy_mac", "infinite_rx"],
        interfaces: &["rx_iface", "rx_iface_in", "tx_iface", "iface"],
        largest_frame: None,
    },
    Driver {
        names: &["net_ring", "eth_ring"],
        arguments: &["nodeaction", "internal"],
        interfaces: &[],
        largest_frame: None,
    },
    Driver {
        names: &["net_vhost", "eth_vhost"],
        // For vhost `iface` is the path of a socket.
        arguments: &[
            "iface", "queues", "client", "iommu-support", "postcopy-support", "tso", "linear-buffer", "ext-buffer",
            "legacy-ol-flags",
        ],
        interfaces: &[],
        largest_frame: None,
    },
];

impl Driver {
    fn of(devargs: &str) -> Option<&'static Self> {
        let name = device_name(devargs);
        DRIVERS.iter().find(|driver| driver.names.iter().any(|driver| name.starts_with(driver)))
    }
}

fn device_name(devargs: &str) -> &str {
    devargs.split(',').next().unwrap_or_default()
}

/// The number of queue pairs that the arguments of a vhost device set.
pub fn queues(devargs: &str) -> Option<u8> {
    argument(devargs, "queues").filter(|_| is_vhost(devargs))?.parse().ok().filter(|queues| (1..=8).contains(queues))
}

/// Whether the sender keeps a frame until the switch receives it.
pub fn keeps_frames(devargs: &str) -> bool {
    Driver::of(devargs).is_some_and(|driver| ["net_vhost", "net_memif"].contains(&driver.names[0]))
}

/// Whether the driver follows the descriptors of its peer in shared memory without a check. The kernel as the peer
/// (`/dev/vhost-net`) writes no wrong ones, and net_vhost checks all that it reads.
pub fn needs_trust(devargs: &str) -> bool {
    let is_kernel = || argument(devargs, "path").is_some_and(|path| path.starts_with("/dev/vhost"));
    Driver::of(devargs).is_some_and(|driver| match driver.names[0] {
        "net_memif" => true,
        "net_virtio_user" => !is_kernel(),
        _ => false,
    })
}

/// Whether the device is a vhost port.
pub fn is_vhost(devargs: &str) -> bool {
    Driver::of(devargs).is_some_and(|driver| driver.names.contains(&"net_vhost"))
}

fn is_af_packet(devargs: &str) -> bool {
    Driver::of(devargs).is_some_and(|driver| driver.names.contains(&"net_af_packet"))
}

/// The arguments with their values.
fn arguments(devargs: &str) -> impl Iterator<Item = (&str, &str)> {
    devargs.split(',').skip(1).map(|argument| argument.split_once('=').unwrap_or((argument, "")))
}

fn argument<'a>(devargs: &'a str, key: &str) -> Option<&'a str> {
    arguments(devargs).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Refuses arguments that the driver of `devargs` does not accept, and interface names that Linux does not allow.
pub fn check(item: &Item<'_>, devargs: &str) {
    let Some(driver) = Driver::of(devargs) else { return };
    let name = device_name(devargs).escape_debug();
    for (key, value) in arguments(devargs) {
        if !driver.arguments.contains(&key) {
            let remedy = match nearest(key, driver.arguments) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it takes {}", driver.arguments.join(", ")),
            };
            item.fail(format!("`{}` is not an argument of `{name}`; {remedy}", key.escape_debug()));
        } else if driver.interfaces.contains(&key) {
            check_interface(item, key, value);
        }
    }
    if let Some(queues) = argument(devargs, "queues").filter(|_| is_vhost(devargs))
        && !matches!(queues.parse(), Ok(1..=8))
    {
        let queues = queues.escape_debug();
        item.fail(format!("`queues={queues}` is not a number of queues that a port can have; write 1 to 8"));
    }
    if is_af_packet(devargs) {
        if argument(devargs, "iface").is_none() {
            item.fail(format!("`{name}` has no interface; write one that exists, e.g. `{name},iface=eth0`"));
        }
        check_slots(item, devargs);
    }
}

fn check_interface(item: &Item<'_>, key: &str, value: &str) {
    let shown = value.escape_debug();
    let is_possible = |c: char| !c.is_whitespace() && !c.is_control() && c != '/' && c != ':';
    if value.is_empty() || value.len() > INTERFACE_MAX {
        let bytes = value.len();
        item.fail(format!(
            "`{key}={shown}` is not a network interface: the name has {bytes} bytes; write 1 to {INTERFACE_MAX}"
        ));
    } else if !value.chars().all(is_possible) || value == "." || value == ".." {
        item.fail(format!("`{key}={shown}` is not a network interface; write a name without spaces, `/` and `:`"));
    }
}

/// The ring of an af_packet port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slots {
    /// Bytes of one slot.
    size: u32,
    /// Bytes of a block of slots.
    block: u32,
    count: u32,
}

impl Slots {
    /// The slots that the driver would create for `devargs`; `None` if a number is invalid.
    fn of(devargs: &str) -> Option<Self> {
        let number = |key, default| argument(devargs, key).map_or(Some(default), |value| value.parse().ok());
        Some(Self {
            size: number("framesz", DEFAULT_SLOT)?,
            block: number("blocksz", PAGE)?,
            count: number("framecnt", DEFAULT_SLOTS)?,
        })
    }

    /// The largest IP packet that fits a slot, with Ethernet header and two VLAN tags.
    fn largest_mtu(self) -> u16 {
        let left = self.size.saturating_sub(SLOT_HEADER + HEADERS);
        u16::try_from(left).unwrap_or(u16::MAX)
    }

    /// The reason why the kernel or the driver would refuse these slots, with a remedy.
    fn fault(self) -> Option<String> {
        let Self { size, block, count } = self;
        if size == 0 || !size.is_multiple_of(16) || size > LARGEST_SLOT {
            return Some(format!("`framesz={size}` is not possible; write a multiple of 16 up to {LARGEST_SLOT}"));
        }
        // The driver treats all slots as one array, but the kernel starts anew in each block. So slots must fill blocks
        // exactly.
        if block == 0 || !block.is_multiple_of(PAGE) || !block.is_multiple_of(size) {
            let least = (size * PAGE) >> size.trailing_zeros().min(PAGE.trailing_zeros());
            return Some(format!(
                "`blocksz={block}` is not a multiple of both {PAGE} and `framesz` ({size}); write e.g. \
                 `blocksz={least}`"
            ));
        }
        let each = block / size;
        if count == 0 || !count.is_multiple_of(each) {
            let near = count.max(1).next_multiple_of(each);
            return Some(format!(
                "`framecnt={count}` is not a multiple of the {each} frames of a block; write e.g. `framecnt={near}`"
            ));
        }
        None
    }
}

/// Whether `devargs` of af_packet set the size of slots, so that this crate must not choose it.
fn has_own_slots(devargs: &str) -> bool {
    argument(devargs, "framesz").is_some() || argument(devargs, "blocksz").is_some()
}

fn check_slots(item: &Item<'_>, devargs: &str) {
    for key in ["framesz", "blocksz", "framecnt"] {
        if let Some(value) = argument(devargs, key).filter(|value| value.parse::<u32>().is_err()) {
            let value = value.escape_debug();
            item.fail(format!("`{key}={value}` is not a number; write a whole number (sizes in bytes)"));
        }
    }
    if let Some(fault) = Slots::of(devargs).and_then(Slots::fault) {
        item.fail(fault);
    }
}

/// Refuses an MTU that the device cannot have. `item` is the MTU if it `is_written`, otherwise the device.
pub fn check_mtu(item: &Item<'_>, devargs: &str, mtu: u16, is_written: bool) {
    let Some((most, why, other)) = bound_of(devargs).filter(|(most, ..)| mtu > *most) else { return };
    let name = device_name(devargs);
    item.fail(if is_written {
        format!("`{mtu}` is too large for `{name}`{why}; write at most {most}, or {other}")
    } else {
        format!("the `mtu` of {mtu} is too large for `{name}`{why}; write `mtu: {most}` or less, or {other}")
    });
}

/// The largest MTU of a device, the reason, and a remedy other than a smaller MTU; `None` if there is no bound.
fn bound_of(devargs: &str) -> Option<(u16, String, &'static str)> {
    let driver = Driver::of(devargs)?;
    if let Some(frame) = driver.largest_frame {
        let why = format!(": its driver takes frames of at most {frame} B");
        return Some((frame - ETHDEV_OVERHEAD, why, "use net_af_packet, which takes jumbo frames"));
    }
    let slots = Slots::of(devargs).filter(|_| is_af_packet(devargs) && has_own_slots(devargs))?;
    let why = format!(" with `framesz={}`", slots.size);
    Some((slots.largest_mtu(), why, "leave `framesz` and `blocksz` to Holdfast"))
}

/// Returns `devargs` for DPDK. For af_packet it adds slots that hold a frame of `mtu`, unless slots are given. For
/// vhost it adds the number of queue pairs.
#[must_use]
pub fn complete(devargs: &str, mtu: u16, queues: u16) -> String {
    if queues > 1 && is_vhost(devargs) && argument(devargs, "queues").is_none() {
        return format!("{devargs},queues={queues}");
    }
    let slots = slots_for(devargs, mtu);
    match slots {
        Some(slots) if !has_own_slots(devargs) && slots.size != DEFAULT_SLOT => {
            let Slots { size, block, count } = slots;
            let others: Vec<&str> = devargs.split(',').filter(|part| !part.starts_with("framecnt=")).collect();
            format!("{},framesz={size},blocksz={block},framecnt={count}", others.join(","))
        }
        _ => devargs.to_owned(),
    }
}

/// Slots of an af_packet port with `mtu`; `None` for other devices.
fn slots_for(devargs: &str, mtu: u16) -> Option<Slots> {
    let written = Slots::of(devargs).filter(|_| is_af_packet(devargs))?;
    if has_own_slots(devargs) || written.largest_mtu() >= mtu {
        return Some(written);
    }
    let size = (u32::from(mtu) + HEADERS + SLOT_HEADER).next_multiple_of(SLOT_STEP);
    Some(Slots { size, block: size * SLOTS_PER_BLOCK, count: written.count.next_multiple_of(SLOTS_PER_BLOCK) })
}

/// Least data bytes of a packet buffer for this device, since its driver refuses smaller buffers. Zero if only the MTU
/// decides.
#[must_use]
pub fn least_buffer(devargs: &str, mtu: u16) -> u16 {
    let least = slots_for(devargs, mtu).map_or(0, |slots| slots.size.saturating_sub(SLOT_RESERVED));
    u16::try_from(least).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn af_packet_devargs_get_slots_that_hold_the_mtu() {
        assert_eq!(complete("net_af_packet0,iface=e", 1500, 1), "net_af_packet0,iface=e");
        assert_eq!(complete("net_tap0,iface=e", 9000, 1), "net_tap0,iface=e");
        let completed = complete("net_af_packet0,iface=e,framecnt=510,qdisc_bypass=0", 9000, 1);
        assert_eq!(completed, "net_af_packet0,iface=e,qdisc_bypass=0,framesz=9216,blocksz=36864,framecnt=512");
        let own = "net_af_packet0,iface=e,framesz=16384,blocksz=16384";
        assert_eq!(complete(own, 9000, 1), own);
        for mtu in (256..=9600).chain([1960, 1961]) {
            let slots = slots_for("net_af_packet0,iface=e", mtu).unwrap();
            assert_eq!(slots.fault(), None, "{mtu}");
            assert!(slots.largest_mtu() >= mtu, "{mtu}: {slots:?}");
        }
    }

    #[test]
    fn vhost_devargs_get_the_number_of_queues() {
        assert_eq!(complete("net_vhost0,iface=/run/a.sock", 1500, 8), "net_vhost0,iface=/run/a.sock,queues=8");
        assert_eq!(complete("net_vhost0,iface=/run/a.sock", 1500, 1), "net_vhost0,iface=/run/a.sock");
        let own = "eth_vhost0,iface=/run/a.sock,queues=4";
        assert_eq!((complete(own, 1500, 4), queues(own)), (own.to_owned(), Some(4)));
        assert_eq!((complete("net_memif0", 1500, 8), queues("net_memif0")), ("net_memif0".to_owned(), None));
    }

    #[test]
    fn least_buffer_follows_driver_frame_size_and_mtu() {
        assert_eq!(least_buffer("net_af_packet0,iface=e", 1500), 2016);
        assert_eq!(least_buffer("net_af_packet0,iface=e", 9000), 9184);
        assert_eq!(least_buffer("net_af_packet0,iface=e,framesz=4096", 1500), 4064);
        assert_eq!(least_buffer("net_tap0", 1500), 0);
    }

    #[test]
    fn inconsistent_ring_sizes_are_refused_with_a_valid_suggestion() {
        let fault = |devargs: &str| Slots::of(devargs).unwrap().fault();
        assert_eq!(fault("net_af_packet0,framesz=16384,blocksz=16384"), None);
        assert_eq!(fault("net_af_packet0,framesz=9216,blocksz=36864,framecnt=512"), None);
        let text = fault("net_af_packet0,framesz=9216,blocksz=16384").unwrap();
        assert!(text.ends_with("write e.g. `blocksz=36864`"), "{text}");
        let text = fault("net_af_packet0,framecnt=511").unwrap();
        assert!(text.ends_with("write e.g. `framecnt=512`"), "{text}");
        assert!(fault("net_af_packet0,framesz=2000").is_some());
        assert!(fault("net_af_packet0,framesz=0").is_some());
    }

    #[test]
    fn a_driver_is_found_by_the_longest_name_that_a_device_begins_with() {
        let known = |devargs: &str| Driver::of(devargs).map(|driver| driver.names[0]);
        assert_eq!(known("net_tap3,iface=a"), Some("net_tap"));
        assert_eq!(known("virtio_user0"), Some("net_virtio_user"));
        assert_eq!(known("eth_af_packet0"), Some("net_af_packet"));
        assert_eq!(known("net_bonding0"), None);
    }
}
