//! Tap: a network interface of Linux whose frames a program reads and writes.
//!
//! # Example
//!
//! ```no_run
//! use holdfast_edges::linux::Tap;
//!
//! let tap = Tap::create("p1").expect("CAP_NET_ADMIN");
//! tap.set_carrier(false).unwrap();
//! let mut frame = [0; 2048];
//! assert_eq!(tap.read(&mut frame).unwrap(), None, "no frame yet");
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};

/// Longest name of a network interface: `IFNAMSIZ` less the zero at the end.
pub const LONGEST_NAME: usize = 15;

/// `IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL`: Ethernet frames, nothing before them, and an error if the interface exists.
const FLAGS: u16 = 0x0002 | 0x1000 | 0x8000;
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
const TUNSETCARRIER: Opcode = opcode::write::<i32>(b'T', 226);

/// `struct ifreq` with the flags of an interface, 40 bytes long.
#[repr(C)]
struct Request {
    name: [u8; LONGEST_NAME + 1],
    flags: u16,
    remaining: [u8; 22],
}

const _: () = assert!(size_of::<Request>() == 40);

/// An interface. It is removed with this value.
#[derive(Debug)]
pub struct Tap {
    file: OwnedFd,
}

impl Tap {
    /// Whether `name` can be the name of an interface.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        (1..=LONGEST_NAME).contains(&name.len())
            && name != "."
            && name != ".."
            && !name.bytes().any(|byte| byte == b'/' || byte == b':' || byte == b'%' || !byte.is_ascii_graphic())
    }

    /// Creates interface `name`, disabled, in the network namespace of the calling thread. Reads do not block.
    ///
    /// # Errors
    /// If there is an interface of this name, or without CAP_NET_ADMIN.
    pub fn create(name: &str) -> io::Result<Self> {
        if !Self::is_name(name) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
        let mut request = Request { name: [0; LONGEST_NAME + 1], flags: FLAGS, remaining: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: TUNSETIFF reads and writes a `struct ifreq`. Any bytes are valid in a `Request`.
        unsafe { ioctl(&file, Updater::<TUNSETIFF, Request>::new(&mut request)) }?;
        Ok(Self { file })
    }

    /// Sets whether the interface has a link.
    ///
    /// # Errors
    /// If the interface was removed.
    pub fn set_carrier(&self, has_carrier: bool) -> io::Result<()> {
        // SAFETY: TUNSETCARRIER reads an int.
        Ok(unsafe { ioctl(&self.file, Setter::<TUNSETCARRIER, i32>::new(has_carrier.into())) }?)
    }

    /// Takes a frame that Linux sends. Returns its length, or `None` if there is none. A longer frame than `buffer` is
    /// cut.
    ///
    /// # Errors
    /// If the interface was removed.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, buffer) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives Linux a frame as received.
    ///
    /// # Errors
    /// If the interface is disabled, or Linux has no room.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        Ok(rustix::io::write(&self.file, frame).map(|_| ())?)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_an_interface_is_short_and_plain() {
        for name in ["p1", "vlan10", "Ethernet0", "abcdefghijklmno"] {
            assert!(Tap::is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a b", "a/b", "a:b", "p%d", "abcdefghijklmnop", "\u{e9}"] {
            assert!(!Tap::is_name(name), "{name}");
        }
    }
}
