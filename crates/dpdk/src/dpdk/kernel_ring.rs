//! Counts the frames that the kernel drops in front of an af_packet port.
//!
//! The kernel puts received frames into a ring until the port is polled, and drops frames that find the ring full. It
//! counts them only for the socket: no counter of the interface includes them, and DPDK's driver reads them
//! since 25.11 only. The socket belongs to this process, so it can be found and read here. A reading resets the
//! count, so each drop is in one of the two.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use dpdk_sys::libc;

/// The sockets of one port, by duplicated descriptors, and the frames that they have dropped.
pub(super) struct KernelRings {
    sockets: Vec<OwnedFd>,
    lost: u64,
}

impl KernelRings {
    /// Returns the packet sockets of this process on `interface`; `None` if there are none.
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

    /// Returns the number of frames that found a ring full since [`KernelRings::forget`]. The kernel resets its count
    /// at each read. The sum stays right if the driver also reads the count and reports its part.
    pub(super) fn lost(&mut self) -> u64 {
        self.lost += self.sockets.iter().map(drops).sum::<u64>();
        self.lost
    }

    /// Restarts the count from zero.
    pub(super) fn forget(&mut self) {
        self.lost();
        self.lost = 0;
    }

    /// Closes the sockets, which would otherwise outlive the port. The count stays known.
    pub(super) fn release(&mut self) {
        self.lost();
        self.sockets.clear();
    }
}

/// Duplicates the descriptor `number`.
fn duplicate(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: takes numbers only, and fails if the descriptor is not open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    // SAFETY: a descriptor made just now, which has no other owner.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Returns the number of the interface that a packet socket is bound to; `None` for anything else.
fn interface_of(socket: &OwnedFd) -> Option<i32> {
    // SAFETY: a struct of numbers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the descriptor is open. The address is a local value, and no more than `length` bytes of it are written.
    let status = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    let is_packet = status == 0 && i32::from(address.sll_family) == libc::AF_PACKET;
    is_packet.then_some(address.sll_ifindex)
}

/// Returns the number of frames that a socket has dropped since the previous call.
fn drops(socket: &OwnedFd) -> u64 {
    // `struct tpacket_stats`: frames seen, and the dropped ones among them.
    let mut counts = [0_u32; 2];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the descriptor is open. The counts are local values, and no more than `length` bytes of them are written.
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

    /// No thread reads the socket below, so its buffer of minimal size overflows.
    #[test]
    fn packet_socket_losses_are_counted_once() {
        // SAFETY: takes numbers only.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(0x0003_u16.to_be())) };
        if raw < 0 {
            return eprintln!("skipped: only root may open packet sockets");
        }
        // SAFETY: made just now, and it has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: a struct of numbers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = 0x0003_u16.to_be();
        // SAFETY: the name has a zero at its end.
        address.sll_ifindex = unsafe { libc::if_nametoindex(c"lo".as_ptr()) }.cast_signed();
        let least = 0_i32;
        // SAFETY: both calls read a local value of the given length.
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
