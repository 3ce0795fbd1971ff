//! `device: vhost:PATH`, a socket at which a virtual machine connects, and `socket:`, its access rights.

use std::path::PathBuf;

use super::api::MAX_SOCKET_PATH;
use crate::config::model::{DeviceKind, SocketAccess};
use crate::config::yaml::read::{Fields, Item};

/// The prefix of such a device.
const PREFIX: &str = "vhost:";

/// Returns the text after `vhost:`.
pub fn path(device: &str) -> Option<&str> {
    device.strip_prefix(PREFIX)
}

/// Reads the path of the socket.
pub fn read(item: &Item<'_>, path: &str) -> Option<DeviceKind> {
    if !path.starts_with('/') || path.ends_with('/') {
        return item.refuse(format!(
            "`{}` names no absolute path of a socket; write e.g. \"vhost:/run/holdfast/vm1.sock\"",
            item.shown()
        ));
    }
    // DPDK splits the arguments of a device at commas.
    if path.contains(',') {
        return item.refuse(format!("`{}` has a comma in its path; choose another path", item.shown()));
    }
    if path.len() > MAX_SOCKET_PATH {
        return item.refuse(format!(
            "{} bytes are too many for the path of a socket; write at most {MAX_SOCKET_PATH}",
            path.len()
        ));
    }
    Some(DeviceKind::Vhost(PathBuf::from(path)))
}

/// Reads `socket:` of a port.
pub fn read_access(fields: &Fields<'_>, kind: &DeviceKind) -> SocketAccess {
    let Some(item) = fields.get("socket") else { return SocketAccess::default() };
    let fields = item.fields(&["owner", "group", "mode"]);
    if !matches!(kind, DeviceKind::Vhost(_)) {
        item.fail("only a port with `device: vhost:PATH` has a socket; remove it");
        return SocketAccess::default();
    }
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let name = |key, example: &str| get(key).and_then(|item| Some(item.text(example)?.to_owned()));
    let group = name("group", "a group; write e.g. kvm, or 104");
    let default = if group.is_some() { 0o660 } else { 0o600 };
    SocketAccess {
        owner: name("owner", "a user; write e.g. libvirt-qemu, or 64055"),
        group,
        mode: get("mode").and_then(|item| read_mode(&item)).unwrap_or(default),
    }
}

fn read_mode(item: &Item<'_>) -> Option<u32> {
    let text = item.text("a mode in octal; write e.g. \"0660\"")?;
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && text.len() >= 3 => Some(mode),
        _ => item.refuse(format!("`{}` is not a mode in octal; write e.g. \"0660\"", item.shown())),
    }
}
