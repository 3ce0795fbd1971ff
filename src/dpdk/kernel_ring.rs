//! What the kernel loses in front of an af_packet port.
//!
//! The kernel puts received frames into a ring until the port is polled, and drops what finds it full. It counts that for
//! the socket alone: no counter of the interface has it, and DPDK 22.11's driver does not ask. But the socket is one of
//! this process, so it can be found and asked.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use dpdk_sys::libc;

/// The sockets of one port, by descriptors of our own, and what they have lost.
pub(super) struct KernelRings {
    sockets: Vec<OwnedFd>,
    lost: u64,
}

impl KernelRings {
    /// The packet sockets of this process on `interface`; `None` if there is none.
    pub(super) fn of(interface: &str) -> Option<Self> {
        let name = CString::new(interface).ok()?;
        // SAFETY: the name is a string with a zero at its end, and is only read.
        let index = i32::try_from(unsafe { libc::if_nametoindex(name.as_ptr()) }).ok().filter(|index| *index > 0)?;
        let open = std::fs::read_dir("/proc/self/fd").ok()?;
        let numbers: Vec<RawFd> = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        let sockets: Vec<OwnedFd> =
            numbers.into_iter().filter_map(duplicate).filter(|socket| interface_of(socket) == Some(index)).collect();
        (!sockets.is_empty()).then_some(Self { sockets, lost: 0 })
    }

    /// Frames that have found a ring full since [`KernelRings::forget`]. The kernel counts from zero after each answer,
    /// so that a driver that asks too and reports its part leaves the sum right.
    pub(super) fn lost(&mut self) -> u64 {
        self.lost += self.sockets.iter().map(drops).sum::<u64>();
        self.lost
    }

    /// Begins anew.
    pub(super) fn forget(&mut self) {
        self.lost();
        self.lost = 0;
    }

    /// Lets the sockets go, which would outlive the port otherwise; what they have lost stays known.
    pub(super) fn release(&mut self) {
        self.lost();
        self.sockets.clear();
    }
}

/// A descriptor of our own for what `number` is.
fn duplicate(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: takes numbers only, and fails for one that is not open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    // SAFETY: a descriptor made just now, which nobody else knows.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The number of the interface that a packet socket is bound to; `None` for anything else.
fn interface_of(socket: &OwnedFd) -> Option<i32> {
    // SAFETY: a struct of numbers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the descriptor is open; the address is ours, and no more than `length` bytes of it are written.
    let status = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    let is_packet = status == 0 && i32::from(address.sll_family) == libc::AF_PACKET;
    is_packet.then_some(address.sll_ifindex)
}

/// Frames that a socket has lost since it was last asked.
fn drops(socket: &OwnedFd) -> u64 {
    // `struct tpacket_stats`: frames seen, and of these the ones dropped.
    let mut counts = [0_u32; 2];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the descriptor is open; the counts are ours, and no more than `length` bytes of them are written.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status == 0 { u64::from(counts[1]) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packet_sockets_on_the_interface_count() {
        let _other = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        assert!(KernelRings::of("lo").is_none(), "no packet socket is open");
        assert!(KernelRings::of("hf-none").is_none());
        assert!(KernelRings::of("a\0b").is_none());
    }

    /// Nobody reads the socket below, so that its buffer, as small as can be, overflows.
    #[test]
    fn what_a_socket_loses_is_seen_once() {
        // SAFETY: takes numbers only.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(0x0003_u16.to_be())) };
        if raw < 0 {
            return eprintln!("skipped: only root may open packet sockets");
        }
        // SAFETY: made just now, and nobody else knows it.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: a struct of numbers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = 0x0003_u16.to_be();
        // SAFETY: the name has a zero at its end.
        address.sll_ifindex = unsafe { libc::if_nametoindex(c"lo".as_ptr()) }.cast_signed();
        let least = 0_i32;
        // SAFETY: both calls read a value of ours of the length they are told.
        unsafe {
            let length = size_of_val(&address) as libc::socklen_t;
            assert_eq!(libc::bind(raw, (&raw const address).cast(), length), 0);
            let (option, length) = ((&raw const least).cast(), size_of_val(&least) as libc::socklen_t);
            assert_eq!(libc::setsockopt(raw, libc::SOL_SOCKET, libc::SO_RCVBUF, option, length), 0);
        }
        let mut rings = KernelRings::of("lo").expect("the socket above");
        rings.forget();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to = sender.local_addr().expect("an address");
        for _ in 0..100 {
            sender.send_to(&[0; 1000], to).expect("sent");
        }
        let lost = rings.lost();
        assert!(lost >= 50, "{lost} of 100 and more");
        rings.release();
        drop(socket);
        assert_eq!(rings.lost(), lost);
    }
}
