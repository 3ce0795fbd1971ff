//! Claims of network interfaces: two switches with one interface would both start, each receive some of its frames, and
//! leave the other without a link at the end.
//!
//! A claim is a listening socket with an abstract address. The kernel keeps these addresses apart by network namespace,
//! as it does interfaces, and frees them however the process ends.

use std::os::fd::{AsRawFd, OwnedFd};

use dpdk_sys::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

use super::check::{argument, arguments, device_name};
use super::driver::Driver;
use super::{Error, interface};

/// The side of an interface that a port has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The kernel's side, as af_packet has.
    Kernel,
    /// The program's side, which a tap has. Another switch may have the kernel's side: the tap is then their cable.
    Program,
}

/// The sole right of a process to one side of an interface, until the claim is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: OwnedFd,
}

/// Claims the interfaces in the arguments of a device. Those that the kernel names are claimed by [`named`] later.
///
/// # Errors
///
/// [`Error::InterfaceInUse`] if a switch has one of them.
pub(super) fn all_of(devargs: &str) -> Result<Vec<Claim>, Error> {
    sides(devargs).into_iter().map(|(side, interface)| Claim::new(devargs, side, interface)).collect()
}

/// Whether the kernel names the interface of the device, so that it is known when the device exists.
pub(super) fn is_named_by_kernel(devargs: &str) -> bool {
    let is_tap = matches!(Driver::of_device(device_name(devargs)), Driver::Tap | Driver::Tun);
    is_tap && argument(devargs, "iface").is_none_or(is_pattern)
}

/// Claims the interface that a tap got from the kernel.
pub(super) fn named(devargs: &str, interface: &str) -> Result<Claim, Error> {
    Claim::new(devargs, Side::Program, interface)
}

/// Whether the kernel replaces a part of the name by a number.
fn is_pattern(name: &str) -> bool {
    name.contains('%')
}

/// The interfaces that the arguments name, once each.
fn sides(devargs: &str) -> Vec<(Side, &str)> {
    let side_of = |key: &str| match (Driver::of_device(device_name(devargs)), key) {
        (Driver::Tap | Driver::Tun | Driver::VirtioUser, "iface") => Some(Side::Program),
        (Driver::Tap | Driver::Tun, "remote") | (Driver::AfPacket | Driver::AfXdp, "iface") => Some(Side::Kernel),
        (Driver::Pcap, "iface" | "rx_iface" | "rx_iface_in" | "tx_iface") => Some(Side::Kernel),
        _ => None,
    };
    let mut found = Vec::new();
    for (key, name) in arguments(devargs) {
        if let Some(side) = side_of(key).filter(|_| !is_pattern(name))
            && !found.contains(&(side, name))
        {
            found.push((side, name));
        }
    }
    found
}

impl Claim {
    fn new(devargs: &str, side: Side, interface: &str) -> Result<Self, Error> {
        let address = match (side, interface::index(interface)) {
            // By its number, since an interface can have several names.
            (Side::Kernel, Some(index)) => format!("holdfast/interface/{index}"),
            (Side::Kernel, None) => format!("holdfast/interface/{interface}"),
            // By its name, since it may not exist yet.
            (Side::Program, _) => format!("holdfast/tap/{interface}"),
        };
        let failed = |error: Errno| Error::Invalid {
            what: format!("claiming the interface {interface} of `{}` ({error})", device_name(devargs)),
            remedy: "let this process open sockets of AF_UNIX".to_owned(),
        };
        let address = SocketAddrUnix::new_abstract_name(address.as_bytes()).map_err(failed)?;
        let socket = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)
        };
        let own = socket()?;
        match bind(&own, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                let other = socket()?;
                let process = connect(&other, &address).ok().and_then(|()| peer(&other));
                return Err(Error::InterfaceInUse {
                    device: device_name(devargs).to_owned(),
                    interface: interface.to_owned(),
                    holder: match process {
                        Some(process) if process == std::process::id() => "this switch".to_owned(),
                        Some(process) => format!("process {process}"),
                        None => "a process that is not visible here".to_owned(),
                    },
                });
            }
            Err(error) => return Err(failed(error)),
        }
        // Nothing accepts the connections of those that ask for the process.
        listen(&own, libc::SOMAXCONN).map_err(failed)?;
        Ok(Self { _socket: own })
    }
}

/// The process that listens at the other end; `None` if it is not in this namespace of processes.
fn peer(socket: &OwnedFd) -> Option<u32> {
    let mut holder = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the socket is open. The kernel writes at most `size` bytes to the local value.
    let status = unsafe {
        let holder = (&raw mut holder).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, holder, &raw mut size)
    };
    u32::try_from(holder.pid).ok().filter(|&process| status == 0 && process != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_that_a_port_has_is_refused_with_the_process_until_the_port_is_gone() {
        let first = all_of("net_tap0,iface=hf-claim").unwrap();
        for second in ["net_tap7,iface=hf-claim", "eth_tap1,iface=hf-claim,mac=fixed", "net_tun0,iface=hf-claim"] {
            let error = all_of(second).unwrap_err().to_string();
            assert!(error.contains("interface hf-claim") && error.contains("this switch has it"), "{error}");
        }
        drop(first);
        all_of("net_tap7,iface=hf-claim").unwrap();
    }

    #[test]
    fn af_packet_and_af_xdp_share_no_interface_and_the_tap_behind_it_is_the_cable() {
        let _first = all_of("net_af_packet0,iface=hf-none").unwrap();
        for second in [
            "net_af_xdp0,iface=hf-none",
            "eth_af_packet1,iface=hf-none",
            "net_pcap0,tx_iface=hf-none",
            "net_tap0,remote=hf-none",
        ] {
            assert!(matches!(all_of(second), Err(Error::InterfaceInUse { .. })), "{second}");
        }
        all_of("net_tap0,iface=hf-none").unwrap();
    }

    #[test]
    fn interfaces_are_found_in_the_arguments_of_each_driver() {
        let found = |devargs| sides(devargs).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(found("net_tap0,iface=a,remote=b"), ["a", "b"]);
        assert_eq!(found("net_pcap0,rx_iface=a,tx_iface=a,phy_mac=1"), ["a"]);
        assert_eq!(found("virtio_user0,path=/dev/vhost-net,iface=a"), ["a"]);
        for without in
            ["net_vhost0,iface=/run/a.sock", "net_memif0,id=1", "net_tap0", "net_tap0,iface=hf%d", "net_null0"]
        {
            assert_eq!(found(without), [""; 0], "{without}");
        }
        assert!(["net_tap0", "net_tun0,iface=hf%d"].iter().all(|devargs| is_named_by_kernel(devargs)));
        assert!(["net_tap0,iface=a", "net_null0"].iter().all(|devargs| !is_named_by_kernel(devargs)));
    }
}
