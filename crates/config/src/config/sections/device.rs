//! `device:` and `queues:` of a port.

use super::lcores::MAX_LCORES;
use super::{vdev, vhost};
use crate::config::model::DeviceKind;
use crate::config::yaml::names::Unique;
use crate::config::yaml::read::{Fields, Item};
use crate::pfc::PfcMode;
use crate::sets::CLASSES;

/// Reads `queues:`, the number of receive queues. With `pfc: queue` the default is one for each priority.
pub fn read_queues(fields: &Fields<'_>, kind: &DeviceKind, pfc: PfcMode) -> u8 {
    let default = if pfc == PfcMode::Queue && has_queues(kind) && keeps_frames(kind) { CLASSES as u8 } else { 1 };
    let written = fields.get("queues").and_then(|item| Some((item.number("a count of queues", 1..=8)?, item)));
    let of_device = match kind {
        DeviceKind::Vdev(devargs) => vdev::queues(devargs),
        _ => None,
    };
    match (written, of_device) {
        (Some((written, item)), Some(of_device)) if written != of_device => {
            item.fail(format!("`{written}` differs from `queues={of_device}` of the device; leave one of them out"));
            written
        }
        (Some((written, item)), None) if written > 1 && !has_queues(kind) => {
            item.fail(format!("{NO_QUEUES}; write `queues: 1`"));
            1
        }
        (written, of_device) => written.map(|(count, _)| count).or(of_device).unwrap_or(default),
    }
}

/// Reads `tx_queues:`, the number of transmit queues: one, or one for each of `lcores`. The device has `queues` receive
/// queues.
pub fn read_tx_queues(fields: &Fields<'_>, kind: &DeviceKind, queues: u8, lcores: u8) -> Option<u8> {
    let item = fields.get("tx_queues")?;
    let written = item.number::<u8>("a count of queues", 1..=MAX_LCORES.into())?;
    if written > 1 && written < lcores {
        item.fail(format!(
            "`{written}` queues are too few for {lcores} lcores: either each lcore has its own, or the port's lcore sends \
             for all; write `{lcores}` or `1`"
        ));
    }
    let needed = written.min(lcores);
    let is_vhost = !matches!(kind, DeviceKind::Ring | DeviceKind::Pci(_)) && has_queues(kind);
    if is_vhost && needed > queues {
        item.fail(format!(
            "a guest that receives by {needed} queues also sends by them, and the switch polls {queues}; write `queues: \
             {needed}` too"
        ));
    }
    if written > 1 && !has_queues(kind) {
        item.fail(format!("{ONE_TX_QUEUE}; write `tx_queues: 1`"));
    }
    Some(needed)
}

/// The transmit queues of a device with `lcores` lcores, unless they are written. A guest may leave queues of a vhost
/// port unused, and frames for them would wait without end. So it has one unless the user knows better.
pub fn default_tx_queues(kind: &DeviceKind, pfc: PfcMode, lcores: u8) -> u8 {
    match kind {
        DeviceKind::Pci(_) if pfc == PfcMode::Nic => 1,
        DeviceKind::Ring | DeviceKind::Pci(_) => lcores,
        DeviceKind::Vhost(_) | DeviceKind::Vdev(_) | DeviceKind::Absent => 1,
    }
}

/// Reason why a device has one transmit queue. The driver of taps has as many receive queues as transmit queues.
const ONE_TX_QUEUE: &str = "only NICs by PCI address, vhost and `device: ring` have several transmit queues";

/// Reason why a device has one receive queue.
const NO_QUEUES: &str = "only NICs by PCI address, vhost and `device: ring` have several receive queues";

/// Whether the device can have several receive queues. memif has one: its driver reads rings that the peer has not
/// made.
fn has_queues(kind: &DeviceKind) -> bool {
    match kind {
        DeviceKind::Ring | DeviceKind::Vhost(_) | DeviceKind::Pci(_) => true,
        DeviceKind::Vdev(devargs) => vdev::is_vhost(devargs),
        DeviceKind::Absent => false,
    }
}

/// Whether the device, not the sender of a frame, chooses its receive queue.
pub fn chooses_queues(kind: &DeviceKind) -> bool {
    matches!(kind, DeviceKind::Pci(_))
}

/// Whether a frame stays with its sender until the switch receives it, so that a queue that is not polled stops the
/// sender.
fn keeps_frames(kind: &DeviceKind) -> bool {
    match kind {
        DeviceKind::Ring | DeviceKind::Vhost(_) => true,
        DeviceKind::Vdev(devargs) => vdev::keeps_frames(devargs),
        DeviceKind::Pci(_) | DeviceKind::Absent => false,
    }
}

/// Refuses `pfc: queue` for devices that lose the frames of a queue that is not polled. `item` is the mode.
pub fn check_queue_mode(item: &Item<'_>, kind: &DeviceKind, queues: u8) {
    if !keeps_frames(kind) {
        return item.fail(format!(
            "`queue` stops no sender at `{kind}`: its receive queue overflows while it is not polled; write `pfc: \
             software`, or use `device: ring`, vhost or net_memif"
        ));
    }
    if queues == 1 {
        let stops = "with one receive queue, XOFF of a lossless class stops all classes of this port";
        item.warn(if has_queues(kind) {
            format!("{stops}; write `queues: 8`, and give each priority a transmit queue of its own at the other end")
        } else {
            format!("{stops}; use a vhost port if that is too much")
        });
    }
}

/// Refuses a device whose peer could end the switch, unless `trust_peer:` says that the peer may.
pub fn check_trust(fields: &Fields<'_>, kind: &DeviceKind) {
    let written = fields.get("trust_peer");
    let is_trusted = written.as_ref().and_then(|item| item.flag());
    let devargs = match kind {
        DeviceKind::Vdev(devargs) if vdev::needs_trust(devargs) => devargs,
        _ => {
            if let Some(item) = written {
                item.fail("only net_memif and net_virtio_user follow a peer without a check; remove it");
            }
            return;
        }
    };
    if is_trusted == Some(true) || written.is_some() && is_trusted.is_none() {
        return;
    }
    if let Some(item) = written.or_else(|| fields.get("device")) {
        let name = devargs.split(',').next().unwrap_or_default();
        item.fail(format!(
            "the driver of `{name}` follows the descriptors of its peer without a check, so wrong ones end the switch; \
             write `trust_peer: true` if this peer is as trusted as the switch, or use `vhost:`, which checks them"
        ));
    }
}

/// Reads `device:`. `devices` are those of the ports before.
pub fn read(item: &Item<'_>, devices: &mut Unique) -> Option<DeviceKind> {
    let text = item.text("a device; write e.g. `ring`")?;
    if text == "ring" {
        return Some(DeviceKind::Ring);
    }
    if text == "none" {
        return Some(DeviceKind::Absent);
    }
    if let Some(path) = vhost::path(text) {
        devices.claim(item, &format!("iface={path}"));
        return vhost::read(item, path);
    }
    // The text before the first comma names the device; the rest are its arguments.
    let name = text.split(',').next().unwrap_or_default();
    let kind = if let Some(address) = pci_address(name) {
        devices.claim(item, &address);
        DeviceKind::Pci(format!("{address}{}", &text[name.len()..]))
    } else if is_vdev(name) {
        devices.claim(item, name);
        // Two ports on one interface would both start, and each would receive some of its frames.
        if let Some(interface) = text.split(',').find_map(|argument| argument.strip_prefix("iface=")) {
            devices.claim(item, &format!("iface={interface}"));
        }
        vdev::check(item, text);
        DeviceKind::Vdev(text.to_owned())
    } else {
        let remedy = "a PCI address such as \"0000:3b:00.0\", a virtual device of DPDK such as \"net_tap0,iface=hf0\", \
             \"vhost:/run/holdfast/vm1.sock\", ring or none";
        return item.refuse(format!("`{}` is not a device; write {remedy}", item.shown()));
    };
    Some(kind)
}

/// Returns a PCI address with its domain, from one with or without a domain.
fn pci_address(text: &str) -> Option<String> {
    let is_hex = |part: &str, len: usize| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let (domain, bus, device, function) = match parts[..] {
        [domain, bus, device, function] => (domain, bus, device, function),
        [bus, device, function] => ("0000", bus, device, function),
        _ => return None,
    };
    let right =
        is_hex(domain, 4) && is_hex(bus, 2) && is_hex(device, 2) && matches!(function.as_bytes(), [b'0'..=b'7']);
    let address = format!("{domain}:{bus}:{device}.{function}").to_ascii_lowercase();
    (right && address.ends_with(&text.to_ascii_lowercase())).then_some(address)
}

/// Whether a name is that of a DPDK network vdev: a driver's name and a number.
fn is_vdev(name: &str) -> bool {
    let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let known = ["net_", "eth_"].iter().any(|prefix| driver.len() > prefix.len() && driver.starts_with(prefix));
    (known || driver == "virtio_user") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
