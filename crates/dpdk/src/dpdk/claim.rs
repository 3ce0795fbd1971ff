//! Claims of devices: two switches with one interface would both start, each receive some of its frames, and leave the
//! other without a link at the end. Two with one PCI device would both set it up, and two clients of one socket wait
//! for a peer that serves the other.
//!
//! A claim is a listening socket with an abstract address. The kernel keeps these addresses apart by network namespace,
//! as it does interfaces, and frees them however the process ends.

use std::os::fd::{AsRawFd, OwnedFd};

use dpdk_sys::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

use super::check::{argument, arguments, device_name};
use super::driver::Driver;
use super::socket::DEFAULT_SOCKET;
use super::{Error, interface};

/// A thing that a port claims.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claimed {
    /// The kernel's side of an interface, as af_packet has.
    Kernel(String),
    /// The program's side, which a tap has. Another switch may have the kernel's side: the tap is then their cable.
    Program(String),
    /// The client of a socket whose server takes one.
    Client(String),
    /// The client's end of a memif: socket and number.
    Memif(String, String),
    /// A PCI device.
    Pci(String),
}

/// Longest end of an address, after its kind; Linux allows 107 bytes in all.
const LONGEST: usize = 80;

impl Claimed {
    /// The abstract address.
    fn address(&self) -> String {
        match self {
            // By its number, since an interface can have several names.
            Self::Kernel(name) => match interface::index(name) {
                Some(index) => format!("holdfast/interface/{index}"),
                None => format!("holdfast/interface/{name}"),
            },
            // By its name, since it may not exist yet.
            Self::Program(name) => format!("holdfast/tap/{name}"),
            Self::Client(path) => format!("holdfast/client/{}", short(path)),
            Self::Memif(socket, id) => format!("holdfast/memif/{id}/{}", short(socket)),
            Self::Pci(address) => format!("holdfast/pci/{address}"),
        }
    }

    /// Its kind and name, for errors.
    fn text(&self) -> String {
        match self {
            Self::Kernel(name) | Self::Program(name) => format!("interface {name}"),
            Self::Client(path) => format!("socket {path}"),
            Self::Memif(socket, id) => format!("client of memif {id} at {socket}"),
            Self::Pci(address) => format!("PCI device {address}"),
        }
    }
}

/// `path`, or a hash (FNV-1a) in place of one that no address could hold.
fn short(path: &str) -> String {
    if path.len() <= LONGEST {
        return path.to_owned();
    }
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", path.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The sole right of a process to one side of an interface, until the claim is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: OwnedFd,
}

/// Claims the interfaces and sockets in the arguments of a device. Interfaces that the kernel names are claimed by
/// [`named`] later.
///
/// # Errors
///
/// [`Error::InterfaceInUse`] if a switch has one of them.
pub(super) fn all_of(devargs: &str) -> Result<Vec<Claim>, Error> {
    claimed(devargs).iter().map(|claimed| Claim::new(device_name(devargs), claimed)).collect()
}

/// Claims a PCI device. Call it before DPDK starts, which sets the device up.
///
/// # Errors
///
/// [`Error::InterfaceInUse`] if a switch has it.
pub(super) fn of_pci(address: &str) -> Result<Claim, Error> {
    Claim::new(address, &Claimed::Pci(address.to_owned()))
}

/// Whether the kernel names the interface of the device, so that it is known when the device exists.
pub(super) fn is_named_by_kernel(devargs: &str) -> bool {
    let is_tap = matches!(Driver::of_device(device_name(devargs)), Driver::Tap | Driver::Tun);
    is_tap && argument(devargs, "iface").is_none_or(is_pattern)
}

/// Claims the interface that a tap got from the kernel.
pub(super) fn named(devargs: &str, interface: &str) -> Result<Claim, Error> {
    Claim::new(device_name(devargs), &Claimed::Program(interface.to_owned()))
}

/// Whether the kernel replaces a part of the name by a number.
fn is_pattern(name: &str) -> bool {
    name.contains('%')
}

/// The things that the arguments name, once each.
fn claimed(devargs: &str) -> Vec<Claimed> {
    let driver = Driver::of_device(device_name(devargs));
    let of = |(key, value): (&str, &str)| match (driver, key) {
        (Driver::Tap | Driver::Tun | Driver::VirtioUser, "iface") => Some(Claimed::Program(value.to_owned())),
        (Driver::Tap | Driver::Tun, "remote") | (Driver::AfPacket | Driver::AfXdp, "iface") => {
            Some(Claimed::Kernel(value.to_owned()))
        }
        (Driver::Pcap, "iface" | "rx_iface" | "rx_iface_in" | "tx_iface") => Some(Claimed::Kernel(value.to_owned())),
        _ => None,
    };
    let mut found = Vec::new();
    let named = arguments(devargs).filter(|(_, value)| !is_pattern(value)).filter_map(of);
    for claimed in named.chain(client_socket(devargs, driver)) {
        if !found.contains(&claimed) {
            found.push(claimed);
        }
    }
    found
}

/// The socket whose client the device is. The servers' own sockets are refused by their addresses.
fn client_socket(devargs: &str, driver: Driver) -> Option<Claimed> {
    let has = |key, value| argument(devargs, key) == Some(value);
    match driver {
        Driver::Memif => {
            let is_client = !has("role", "server") && !has("role", "master");
            let socket = argument(devargs, "socket").unwrap_or(DEFAULT_SOCKET);
            let id = argument(devargs, "id").unwrap_or("0");
            is_client.then(|| Claimed::Memif(socket.to_owned(), id.to_owned()))
        }
        Driver::Vhost if has("client", "1") => argument(devargs, "iface").map(|path| Claimed::Client(path.to_owned())),
        // /dev/vhost-net is a device for any number of programs.
        Driver::VirtioUser if !has("server", "1") => argument(devargs, "path")
            .filter(|path| !path.starts_with("/dev/"))
            .map(|path| Claimed::Client(path.to_owned())),
        _ => None,
    }
}

impl Claim {
    fn new(device: &str, claimed: &Claimed) -> Result<Self, Error> {
        let address = claimed.address();
        let failed = |error: Errno| Error::Invalid {
            what: format!("claiming the {} of `{device}` ({error})", claimed.text()),
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
                    device: device.to_owned(),
                    claimed: claimed.text(),
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
    fn each_client_of_a_socket_and_each_pci_device_has_one_switch() {
        let long = format!("/tmp/{}", "x".repeat(90));
        for (first, second, other) in [
            (
                "net_memif0,id=7,socket=/tmp/hf-claim",
                "net_memif3,socket=/tmp/hf-claim,id=7",
                "net_memif1,id=8,socket=/tmp/hf-claim",
            ),
            (
                "net_vhost0,iface=/tmp/hf-claim,client=1",
                "net_vhost1,iface=/tmp/hf-claim,client=1",
                "net_vhost1,iface=/tmp/hf-other,client=1",
            ),
            (
                "virtio_user0,path=/tmp/hf-claim-v",
                "virtio_user3,path=/tmp/hf-claim-v",
                "virtio_user3,path=/dev/vhost-net",
            ),
            (
                &format!("virtio_user0,path={long}"),
                &format!("virtio_user1,path={long}"),
                &format!("virtio_user1,path={long}y"),
            ),
        ] {
            let _first = all_of(first).unwrap();
            let error = all_of(second).unwrap_err().to_string();
            assert!(error.contains("this switch has it"), "{error}");
            all_of(other).unwrap();
        }
        // The two ends of a memif are a cable between switches.
        let _server = all_of("net_memif0,role=server,id=9").unwrap();
        all_of("net_memif0,role=client,id=9").unwrap();
        let _nic = of_pci("0000:fe:1f.7").unwrap();
        let error = of_pci("0000:fe:1f.7").unwrap_err().to_string();
        assert!(error.contains("PCI device 0000:fe:1f.7") && error.contains("this switch has it"), "{error}");
    }

    #[test]
    fn interfaces_are_found_in_the_arguments_of_each_driver() {
        let found = |devargs| claimed(devargs).iter().map(Claimed::text).collect::<Vec<_>>();
        assert_eq!(found("net_tap0,iface=a,remote=b"), ["interface a", "interface b"]);
        assert_eq!(found("net_pcap0,rx_iface=a,tx_iface=a,phy_mac=1"), ["interface a"]);
        assert_eq!(found("virtio_user0,path=/dev/vhost-net,iface=a"), ["interface a"]);
        assert_eq!(found("net_memif0,id=1"), ["client of memif 1 at /run/memif.sock"]);
        for without in ["net_vhost0,iface=/run/a.sock", "net_tap0", "net_tap0,iface=hf%d", "net_null0"] {
            assert_eq!(found(without), [""; 0], "{without}");
        }
        assert!(["net_tap0", "net_tun0,iface=hf%d"].iter().all(|devargs| is_named_by_kernel(devargs)));
        assert!(["net_tap0,iface=a", "net_null0"].iter().all(|devargs| !is_named_by_kernel(devargs)));
    }
}
