//! The wires of the guest's NICs: a datagram on a Unix socket is a frame.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use holdfast::io::memory::MemPacket;
use holdfast::io::{Burst, Packet, Ports};
use holdfast::wire::mac_control;

use crate::guest::Guest;

/// The largest frame that a NIC here sends.
const LARGEST: usize = 16 << 10;

/// The far ends of the wires, as ports of virtual hosts.
pub struct Wires {
    ends: Vec<End>,
    buffer: Box<[u8]>,
}

/// The far end of one wire.
struct End {
    socket: UnixDatagram,
    guest: PathBuf,
    seen: Seen,
}

/// Frames that came out of a NIC.
#[derive(Default)]
pub struct Seen {
    /// MAC control frames.
    pub control: Vec<Vec<u8>>,
    /// Frames with an 802.1Q tag, by their VLAN.
    pub tagged: Vec<u16>,
    /// Frames that a test looks for: those with [`crate::talk::EXPERIMENTAL`], ARP and ICMP.
    pub others: Vec<Vec<u8>>,
    /// Length of the longest frame.
    pub longest: usize,
}

impl Wires {
    /// Takes the far end of each wire.
    pub fn of(guest: &Guest, wires: usize) -> Self {
        let end = |number| {
            let (guest, host) = guest.wire(number);
            let socket = UnixDatagram::bind(host).expect("a socket");
            socket.set_nonblocking(true).expect("a socket that does not block");
            End { socket, guest, seen: Seen::default() }
        };
        Self { ends: (0..wires).map(end).collect(), buffer: vec![0; LARGEST].into() }
    }

    /// The frames that came out of NIC `port` since [`Self::forget`].
    pub fn seen(&self, port: usize) -> &Seen {
        &self.ends[port].seen
    }

    /// Forgets the frames seen so far.
    pub fn forget(&mut self) {
        self.ends.iter_mut().for_each(|end| end.seen = Seen::default());
    }

    /// Sends `frame` into NIC `port`. Returns false while the wire is full.
    pub fn send(&mut self, port: usize, frame: &[u8]) -> bool {
        let end = &self.ends[port];
        match end.socket.send_to(frame, &end.guest) {
            Ok(_) => true,
            // QEMU stops reading while the NIC has no receive buffer. The sender waits.
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("wire {port}: {error}"),
        }
    }
}

impl Seen {
    fn record(&mut self, frame: &[u8]) {
        self.longest = self.longest.max(frame.len());
        let word = |at: usize| frame.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        match word(12) {
            mac_control::ETHERTYPE => self.control.push(frame.to_vec()),
            0x8100 => self.tagged.push(word(14) & 0xfff),
            0x0806 | crate::talk::EXPERIMENTAL => self.others.push(frame.to_vec()),
            0x0800 if frame.get(23) == Some(&1) => self.others.push(frame.to_vec()),
            _ => {}
        }
    }
}

impl Ports for Wires {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        let end = &mut self.ends[port];
        let until = out.capacity().min(out.len() + most);
        while out.len() < until {
            match end.socket.recv(&mut self.buffer) {
                Ok(len) => {
                    end.seen.record(&self.buffer[..len]);
                    out.push(MemPacket::new(&self.buffer[..len]));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("wire {port}: {error}"),
            }
        }
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        let sent = packets.iter().take_while(|packet| self.send(port, packet.bytes())).count();
        packets.drain(..sent);
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        packets.clear();
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        self.make(packet.bytes())
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        Some(MemPacket::new(frame))
    }
}
