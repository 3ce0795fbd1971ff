//! Network namespaces, and netlink sockets inside them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use netlink_packet_core::{Emitable, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr, protocols};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::NetlinkError;
use super::frame;

/// Directory of the namespaces that `ip netns add` makes.
const NAMED: &str = "/run/netns";

/// Largest datagram that is received whole. The kernel's dumps use at most 32 KiB.
const DATAGRAM: usize = 256 * 1024;

/// A network namespace. The value keeps it alive.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// None: the namespace of the calling thread.
    file: Option<OwnedFd>,
}

impl Namespace {
    /// The namespace of the calling thread.
    #[must_use]
    pub fn current() -> Self {
        Self { name: "of the switch".to_owned(), file: None }
    }

    /// Opens the namespace `name` below /run/netns.
    ///
    /// # Errors
    /// If there is no such namespace.
    pub fn open(name: &str) -> Result<Self, NetlinkError> {
        let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        let file =
            if is_name { File::open(Path::new(NAMED).join(name)) } else { Err(io::ErrorKind::InvalidInput.into()) };
        let file = file.map_err(|error| NetlinkError::Namespace { name: name.to_owned(), error })?;
        Ok(Self { name: name.to_owned(), file: Some(file.into()) })
    }

    /// Represents the namespace that `file` refers to. `name` appears in errors.
    #[must_use]
    pub fn from_file(name: &str, file: OwnedFd) -> Self {
        Self { name: name.to_owned(), file: Some(file) }
    }

    /// Name for errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` inside the namespace, in a thread that ends with it. The calling thread enters no namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetlinkError> {
        let Some(file) = &self.file else { return Ok(work()) };
        let inside = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        let thread = |error: io::Error| NetlinkError::Namespace { name: self.name.clone(), error };
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("hf-namespace".to_owned());
            let handle = builder.spawn_scoped(scope, inside).map_err(thread)?;
            let result: Result<T, Errno> = match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            result.map_err(|error| thread(error.into()))
        })
    }
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A datagram of the kernel.
    Datagram,
    /// There is nothing to read.
    Nothing,
    /// Messages were lost: the receive buffer was full, or a datagram was too long.
    Overrun,
}

/// A netlink socket for routing tables. It stays in the namespace where it was opened. Reads do not block.
pub struct RouteSocket {
    socket: Socket,
    namespace: String,
    port: u32,
    sequence: u32,
}

impl RouteSocket {
    /// Opens a socket in `namespace` that receives events of `groups` (`RTNLGRP_*`). Groups that the kernel does not
    /// know are left out. `buffer` is the size of the receive buffer in bytes.
    pub fn open(namespace: &Namespace, groups: &[u32], buffer: usize) -> Result<Self, NetlinkError> {
        let name = namespace.name().to_owned();
        namespace
            .run(|| Self::open_here(groups, buffer))?
            .map_err(|(action, error)| NetlinkError::Socket { namespace: name.clone(), action, error })
            .map(|(socket, port)| Self { socket, namespace: name, port, sequence: 0 })
    }

    fn open_here(groups: &[u32], buffer: usize) -> Result<(Socket, u32), (&'static str, io::Error)> {
        let at = |action| move |error| (action, error);
        let mut socket = Socket::new(protocols::NETLINK_ROUTE).map_err(at("open a socket"))?;
        // The first needs CAP_NET_ADMIN and ignores the limit of the system.
        if sockopt::set_socket_recv_buffer_size_force(&socket, buffer).is_err() {
            let set = sockopt::set_socket_recv_buffer_size(&socket, buffer);
            set.map_err(|error| ("enlarge the receive buffer", error.into()))?;
        }
        let address = socket.bind_auto().map_err(at("bind a socket"))?;
        for group in groups {
            match socket.add_membership(*group) {
                Err(error) if error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) => {
                    return Err(("receive events", error));
                }
                _ => {}
            }
        }
        // Kernels before 4.20 lack some of these; dumps then have entries that the decoder ignores.
        let _ = socket.set_netlink_get_strict_chk(true);
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        socket.connect(&SocketAddr::new(0, 0)).map_err(at("address the kernel"))?;
        socket.set_non_blocking(true).map_err(at("make a socket non-blocking"))?;
        Ok((socket, address.port_number()))
    }

    /// Name of the namespace, for errors.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Port of the socket: messages with another are not answers to its requests.
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Sends a request and returns its sequence number.
    pub fn send(&mut self, kind: u16, flags: u16, content: &impl Emitable) -> Result<u32, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let bytes = frame::request(kind, flags | NLM_F_REQUEST, self.sequence, content);
        match self.socket.send(&bytes, 0) {
            Ok(_) => Ok(self.sequence),
            Err(error) => Err(self.failure("send a request", error)),
        }
    }

    /// Receives a datagram into `buffer`, which is cleared first.
    pub fn receive(&self, buffer: &mut Vec<u8>) -> Result<Received, NetlinkError> {
        buffer.clear();
        buffer.reserve(DATAGRAM);
        loop {
            // With this flag the length is that of the datagram, even if the buffer is shorter.
            let flags = i32::try_from(RecvFlags::TRUNC.bits()).unwrap_or_default();
            return match self.socket.recv_from(buffer, flags) {
                // Only the kernel's messages count. A privileged process could send others.
                Ok((_, sender)) if sender.port_number() != 0 => {
                    buffer.clear();
                    continue;
                }
                Ok((length, _)) if length > buffer.len() => Ok(Received::Overrun),
                Ok(_) => Ok(Received::Datagram),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => Ok(Received::Nothing),
                    Some(Errno::INTR) => continue,
                    Some(Errno::NOBUFS) => Ok(Received::Overrun),
                    _ => Err(self.failure("receive", error)),
                },
            };
        }
    }

    /// Describes a failure of this socket.
    pub fn failure(&self, action: &'static str, error: io::Error) -> NetlinkError {
        NetlinkError::Socket { namespace: self.namespace.clone(), action, error }
    }
}

impl AsFd for RouteSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until one of `files` can be read, or until `timeout` has passed. Returns which can be read.
pub fn wait<const N: usize>(files: [BorrowedFd<'_>; N], timeout: Duration) -> io::Result<[bool; N]> {
    let mut fds = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) => Ok(fds.map(|fd| !fd.revents().is_empty())),
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}
