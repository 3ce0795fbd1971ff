//! The sockets to the collectors.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::mirror::board::CollectorView;

/// Sends each datagram to all collectors, by a socket for each family of addresses.
#[derive(Debug, Default)]
pub struct Sender {
    collectors: Vec<Collector>,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

#[derive(Debug)]
struct Collector {
    address: SocketAddr,
    datagrams: u64,
    errors: u64,
    error: Option<String>,
}

impl Sender {
    /// Sends to `collectors` from now on. Those that were there before keep their counts.
    pub fn configure(&mut self, collectors: &[SocketAddr]) {
        let mut before = std::mem::take(&mut self.collectors);
        self.collectors = collectors
            .iter()
            .map(|&address| match before.iter().position(|old| old.address == address) {
                Some(at) => before.swap_remove(at),
                None => Collector { address, datagrams: 0, errors: 0, error: None },
            })
            .collect();
    }

    /// Sends a datagram. Errors are counted; the datagram is not sent again.
    pub fn send(&mut self, datagram: &[u8]) {
        for collector in &mut self.collectors {
            let socket = if collector.address.is_ipv4() { &mut self.v4 } else { &mut self.v6 };
            match send(socket, datagram, collector.address) {
                Ok(()) => {
                    collector.datagrams += 1;
                    collector.error = None;
                }
                Err(error) => {
                    collector.errors += 1;
                    collector.error = Some(explain(&error, collector.address));
                }
            }
        }
    }

    /// The state of the collectors.
    #[must_use]
    pub fn view(&self) -> Vec<CollectorView> {
        let view = |collector: &Collector| CollectorView {
            address: collector.address.to_string(),
            datagrams: collector.datagrams,
            errors: collector.errors,
            error: collector.error.clone(),
        };
        self.collectors.iter().map(view).collect()
    }
}

/// Sends by `socket`, which is opened if it is not.
fn send(socket: &mut Option<UdpSocket>, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
    let socket = match socket {
        Some(socket) => socket,
        None => {
            let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let opened = UdpSocket::bind((any, 0))?;
            opened.set_nonblocking(true)?;
            socket.insert(opened)
        }
    };
    socket.send_to(datagram, to).map(|_| ())
}

/// The error with its remedy.
fn explain(error: &io::Error, to: SocketAddr) -> String {
    let (address, kind) = (to.ip(), error.kind());
    match kind {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            format!("{to}: {kind}; add a route to {address} on this machine")
        }
        io::ErrorKind::WouldBlock => {
            format!("{to}: the socket's buffer is full; sample fewer frames, or raise net.core.wmem_default")
        }
        io::ErrorKind::PermissionDenied => format!("{to}: {kind}; let the machine's firewall pass UDP to it"),
        _ => format!("{to}: {kind}; check the address and the network of this machine"),
    }
}
