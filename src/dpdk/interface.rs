//! Network interfaces of the kernel, where a driver cannot be told what they are to do.

use std::io;

use dpdk_sys::libc;

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
    // SAFETY: creates a socket that belongs to nobody else, and takes no memory of ours.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the socket is open; the request has a name that ends in a zero byte and an MTU, and is only read.
    let status = unsafe { libc::ioctl(socket, libc::SIOCSIFMTU, &request) };
    let result = if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: the socket is open, ours, and not used any more.
    unsafe { libc::close(socket) };
    result
}
