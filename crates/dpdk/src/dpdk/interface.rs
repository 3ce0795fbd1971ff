//! Kernel network interfaces behind taps and af_packet ports: their state and their MTU.
//!
//! The link state of the drivers is useless: the link of af_packet is always up. A tap looks up its interface by name,
//! so one in another namespace is always down.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use dpdk_sys::libc;

/// An interface, by its number, because names change.
#[derive(Debug)]
pub(super) struct Interface {
    index: libc::c_uint,
    /// A socket for requests to the kernel. It belongs to the namespace in which the port was made.
    socket: OwnedFd,
}

/// Request for the carrier of an interface (linux/ethtool.h).
const ETHTOOL_GLINK: u32 = 0x0a;

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// State of an interface in the namespace of its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterfaceState {
    /// The interface is missing: deleted, or in another namespace.
    Absent,
    /// The interface is set down and accepts no frames.
    Down,
    /// The interface is set up and has no carrier.
    NoCarrier,
    /// The interface is set up and has a carrier.
    Up,
}

impl Interface {
    /// Opens the interface of this name; `None` if there is none.
    pub(super) fn of(name: &str) -> Option<Self> {
        let index = index(name)?;
        // SAFETY: takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return None;
        }
        // SAFETY: a descriptor made just now, which has no other owner.
        Some(Self { index, socket: unsafe { OwnedFd::from_raw_fd(socket) } })
    }

    /// Returns the current state; `None` if the kernel does not report it.
    pub(super) fn state(&self) -> Option<InterfaceState> {
        // SAFETY: a struct of numbers, for which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_ifru.ifru_ifindex = self.index.cast_signed();
        if !self.ask(libc::SIOCGIFNAME, &mut request) {
            let error = std::io::Error::last_os_error().raw_os_error();
            return (error == Some(libc::ENODEV)).then_some(InterfaceState::Absent);
        }
        if !self.ask(libc::SIOCGIFFLAGS, &mut request) {
            return None;
        }
        // SAFETY: the kernel has just written the flags.
        let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
        let has_carrier = self.carrier(&mut request).unwrap_or(flags & libc::IFF_RUNNING != 0);
        Some(match (flags & libc::IFF_UP != 0, has_carrier) {
            (false, _) => InterfaceState::Down,
            (true, false) => InterfaceState::NoCarrier,
            (true, true) => InterfaceState::Up,
        })
    }

    /// Whether the interface in `request` has a carrier, which the kernel knows at once; `IFF_RUNNING` may follow a
    /// second later. Returns `None` if its driver does not report it.
    fn carrier(&self, request: &mut libc::ifreq) -> Option<bool> {
        let mut link = EthtoolValue { command: ETHTOOL_GLINK, data: 0 };
        request.ifr_ifru.ifru_data = (&raw mut link).cast();
        let is_told = self.ask(libc::SIOCETHTOOL as libc::Ioctl, request);
        is_told.then_some(link.data != 0)
    }

    fn ask(&self, what: libc::Ioctl, request: &mut libc::ifreq) -> bool {
        // SAFETY: the socket is open. All requests read and write one `ifreq`, which is a local value of the caller.
        // The carrier request also writes an `EthtoolValue`, whose address its caller has set.
        unsafe { libc::ioctl(self.socket.as_raw_fd(), what, &raw mut *request) == 0 }
    }
}

/// Whether this network namespace has an interface called `name`.
#[must_use]
pub fn exists(name: &str) -> bool {
    index(name).is_some()
}

/// The number of the interface called `name` in this network namespace; `None` if there is none.
pub(super) fn index(name: &str) -> Option<libc::c_uint> {
    // /sys/class/net is unsuitable: it shows the interfaces of the namespace in which it was mounted, which may be
    // another.
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a string with a zero at its end, and is only read.
    Some(unsafe { libc::if_nametoindex(name.as_ptr()) }).filter(|&index| index != 0)
}

/// The name of the interface with this number in this network namespace; `None` if there is none.
pub(super) fn name(index: libc::c_uint) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the kernel's name has at most so many bytes with its zero, and is written to a local value.
    let found = unsafe { !libc::if_indextoname(index, name.as_mut_ptr().cast()).is_null() };
    let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| found)?;
    Some(name.to_string_lossy().into_owned())
}

/// Sets the MTU of interface `name` of this network namespace.
pub(super) fn set_mtu(name: &str, mtu: u16) -> io::Result<()> {
    // SAFETY: an interface request without a name is all zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_mtu = i32::from(mtu);
    // SAFETY: creates a socket without another owner, and accesses no memory.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the socket is open; the request has a name that ends in a zero byte and an MTU, and is only read.
    let status = unsafe { libc::ioctl(socket, libc::SIOCSIFMTU, &request) };
    let result = if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: the socket is open, has no other owner, and is not used any more.
    unsafe { libc::close(socket) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_no_interface_leaves_no_socket_open() {
        // Other tests of this process open and close descriptors too, so the test repeats with many lookups.
        let open = || std::fs::read_dir("/proc/self/fd").expect("the kernel's list").count();
        let before = open();
        assert!((0..200).all(|_| Interface::of("hf-none").is_none()));
        assert!(open() < before + 100, "{before} descriptors before, {} after", open());
    }

    #[test]
    fn interface_lookup_finds_loopback_and_no_unknown_name() {
        let loopback = Interface::of("lo").expect("every machine has one");
        assert!(matches!(loopback.state(), Some(InterfaceState::Up | InterfaceState::Down)));
        assert!(Interface::of("hf-none").is_none());
        assert!(Interface::of("a\0b").is_none());
        let gone = Interface { index: 0x7fff_fff0, ..loopback };
        assert_eq!(gone.state(), Some(InterfaceState::Absent));
    }
}
