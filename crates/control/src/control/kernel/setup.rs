//! Opens a namespace's taps and sets how Linux routes there.

use std::fs;

use super::KernelError;
use crate::linux::Tap;
use crate::netlink::{KernelWriter, Namespace};
use crate::route::RoutingSpec;

/// Settings of the namespace, before interfaces are made: those below `default` are inherited.
///
/// - The switch routes, so Linux forwards, and replies by the interfaces that the routes name.
/// - It neither configures itself by router advertisements nor delays its addresses to detect duplicates: a tap has no
///   frames before the switch runs.
/// - An interface answers ARP for its own addresses only, as the switch does.
/// - A route whose interface has no link is not used.
const SETTINGS: [(&str, &str); 17] = [
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/default/forwarding", "1"),
    ("ipv6/conf/all/disable_ipv6", "0"),
    ("ipv6/conf/default/disable_ipv6", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/autoconf", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/addr_gen_mode", "0"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/default/arp_ignore", "1"),
    ("ipv4/conf/default/arp_announce", "2"),
    ("ipv4/conf/default/accept_redirects", "0"),
    ("ipv6/conf/default/accept_redirects", "0"),
    ("ipv4/conf/default/ignore_routes_with_linkdown", "1"),
    ("ipv6/conf/default/ignore_routes_with_linkdown", "1"),
];

/// The namespace, a way to change it, and a tap with the index of its link for each interface.
type Opened = (Namespace, KernelWriter, Vec<(Tap, u32)>);

/// Opens the namespace `name`, and makes taps for the interfaces of `spec`.
pub fn open(name: &str, spec: &RoutingSpec) -> Result<Opened, KernelError> {
    if let Some(interface) = spec.interfaces.iter().find(|interface| !Tap::is_name(&interface.name)) {
        return Err(KernelError::Name { name: interface.name.clone() });
    }
    let namespace = Namespace::open(name)?;
    let taps = namespace.run(|| {
        apply_settings(name)?;
        spec.interfaces.iter().map(|interface| open_tap(name, &interface.name)).collect::<Result<Vec<_>, _>>()
    })??;
    let mut writer = KernelWriter::open(&namespace)?;
    let lo = writer.link_index("lo")?;
    writer.set_up(lo, true)?;
    let mut opened = Vec::new();
    for (tap, interface) in taps.into_iter().zip(&spec.interfaces) {
        let index = writer.link_index(&interface.name)?;
        writer.set_mac(index, interface.mac)?;
        writer.set_mtu(index, interface.mtu.into())?;
        writer.set_up(index, true)?;
        for address in &interface.addresses {
            writer.add_address(index, *address)?;
        }
        opened.push((tap, index));
    }
    Ok((namespace, writer, opened))
}

/// Makes a tap without a link: the link state follows from the ports.
fn open_tap(namespace: &str, name: &str) -> Result<Tap, KernelError> {
    let failed = |error| KernelError::Tap { name: name.to_owned(), namespace: namespace.to_owned(), error };
    let tap = Tap::create(name).map_err(failed)?;
    tap.set_carrier(false).map_err(failed)?;
    Ok(tap)
}

/// Writes the settings that differ. In a container they may be read-only and right.
fn apply_settings(namespace: &str) -> Result<(), KernelError> {
    for (key, value) in SETTINGS {
        let path = format!("/proc/sys/net/{key}");
        if fs::read_to_string(&path).is_ok_and(|present| present.trim() == value) {
            continue;
        }
        match fs::write(&path, value) {
            // A kernel without IPv6 has no such files.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && key.starts_with("ipv6/") => {}
            Err(error) => {
                return Err(KernelError::Setting { path, namespace: namespace.to_owned(), value, error });
            }
            Ok(()) => {}
        }
    }
    Ok(())
}
