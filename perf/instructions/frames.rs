//! Frames and ports in memory whose own work is not counted: collection is off inside every function called
//! `uncounted_*`.

use holdfast::io::{Burst, Packet, Ports};
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;
use holdfast::wire::mac_control::{self, MacControl};

#[path = "../template.rs"]
mod template;

pub use template::Headers;

/// Ports of every measured switch.
pub const PORTS: usize = 4;
/// The lossless class of the embedded configuration. `MARKS` are bytes of DSCP and ECN, with ECT(0), that lead to a
/// lossy class and to this one.
pub const LOSSLESS: usize = 3;
const MARKS: [u8; 2] = [0x02, 26 << 2 | 2];
/// The VLAN of tagged frames.
pub const VLAN: u16 = 10;

/// Bursts that arrive after XOFF: frames on the wire, and frames that the peer has posted.
const LATE: u32 = 3;

/// Room in front of a frame, as in DPDK's mbufs, and room for the frame.
const FRONT: usize = 128;
const ROOM: usize = 128;
/// Bytes of a frame without VLAN tag.
const LEN: usize = 64;

struct Buffer {
    start: u16,
    len: u16,
    bytes: [u8; FRONT + ROOM],
}

impl Buffer {
    /// The place of the frame: one check of bounds. An mbuf needs none.
    #[inline]
    fn place(&self) -> std::ops::Range<usize> {
        let start = usize::from(self.start);
        start..start + usize::from(self.len)
    }
}

/// Stands for an mbuf: a pointer without a destructor. Buffers are allocated once and never freed.
pub struct Frame(&'static mut Buffer);

impl Packet for Frame {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.0.bytes[self.0.place()]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let place = self.0.place();
        &mut self.0.bytes[place]
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.0.len)
    }

    #[inline]
    fn push_front(&mut self, n: usize) -> bool {
        let Some(start) = self.0.start.checked_sub(n as u16) else { return false };
        (self.0.start, self.0.len) = (start, self.0.len + n as u16);
        true
    }

    #[inline]
    fn pull_front(&mut self, n: usize) -> bool {
        let Some(len) = self.0.len.checked_sub(n as u16) else { return false };
        (self.0.start, self.0.len) = (self.0.start + n as u16, len);
        true
    }
}

/// The traffic that arrives.
#[derive(Clone, Copy)]
pub struct Traffic {
    /// Stations behind each port.
    pub flows: u32,
    pub pattern: Pattern,
    pub headers: Headers,
    /// Ports on whose wire frames have a VLAN tag.
    pub tagged: PortSet,
    /// Whether all frames are lossy.
    pub is_lossy: bool,
    /// Changes each frame of a station, given its port and the port and number of its destination.
    pub address: Option<Address>,
}

pub type Address = fn(&mut [u8], usize, (usize, u32));

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Every port sends to the next one, half of it lossless; no queue grows.
    Next,
    /// Every port but the last sends lossless frames to the last. A port stops a few bursts after XOFF.
    Incast,
    /// No frames.
    Silence,
}

impl Default for Traffic {
    fn default() -> Self {
        let (headers, tagged) = (Headers::Udp, PortSet::EMPTY);
        Self { flows: 1024, pattern: Pattern::Next, headers, tagged, is_lossy: false, address: None }
    }
}

/// Ports that receive `traffic` and send all frames at once. Every run has the same frames in the same order.
pub struct Wires {
    idle: Vec<Frame>,
    pub traffic: Traffic,
    /// By class (lossy, lossless), without and with a VLAN tag; addresses are filled in.
    templates: [[Vec<u8>; 2]; 2],
    state: u32,
    /// Whether each port's peer is paused, and (`late`) the bursts that it still sends.
    paused: [bool; PORTS],
    late: [u32; PORTS],
    /// Whether instructions are being counted.
    pub is_counting: bool,
    /// Data frames that were sent, and (`pfc`) PFC frames.
    pub sent: u64,
    pub pfc: u64,
}

impl Wires {
    pub fn new(traffic: Traffic, buffers: usize) -> Self {
        let buffer = |_| Frame(Box::leak(Box::new(Buffer { start: 0, len: 0, bytes: [0; FRONT + ROOM] })));
        let template = |mark, tag| template(traffic.headers, mark, tag);
        let templates = MARKS.map(|mark| [template(mark, None), template(mark, Some(VLAN))]);
        let idle = (0..buffers).map(buffer).collect();
        Self {
            idle,
            traffic,
            templates,
            state: 0,
            paused: [false; PORTS],
            late: [0; PORTS],
            is_counting: false,
            sent: 0,
            pfc: 0,
        }
    }

    /// Number of ports whose peer is paused.
    pub fn paused(&self) -> usize {
        self.paused.iter().filter(|&&paused| paused).count()
    }

    fn write(&mut self, port: usize, frame: &mut Frame) {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let station = (self.state >> 8) % self.traffic.flows;
        let (to, lossless) = match self.traffic.pattern {
            Pattern::Incast => (PORTS - 1, true),
            _ => ((port + 1) % PORTS, (station as usize + port) & 1 == 1 && !self.traffic.is_lossy),
        };
        let tagged = usize::from(self.traffic.tagged.contains(port));
        let template = &self.templates[usize::from(lossless)][tagged];
        (frame.0.start, frame.0.len) = (FRONT as u16, template.len() as u16);
        let bytes = frame.bytes_mut();
        bytes.copy_from_slice(template);
        bytes[..6].copy_from_slice(&mac(to, station).0);
        bytes[6..12].copy_from_slice(&mac(port, station).0);
        if let Some(address) = self.traffic.address {
            address(bytes, port, (to, station));
        }
    }

    fn give(&mut self, port: usize, most: usize, out: &mut Burst<Frame>) {
        let is_silent = match self.traffic.pattern {
            Pattern::Next => false,
            Pattern::Incast => port == PORTS - 1 || self.paused[port] && self.late[port] == 0,
            Pattern::Silence => true,
        };
        if self.paused[port] {
            self.late[port] = self.late[port].saturating_sub(1);
        }
        for _ in 0..if is_silent { 0 } else { most } {
            let mut frame = self.idle.pop().expect("enough buffers for what waits");
            self.write(port, &mut frame);
            out.push(frame);
        }
    }

    fn take(&mut self, port: usize, frames: &mut Burst<Frame>) {
        for frame in frames.iter() {
            match mac_control::parse(frame.bytes()) {
                Some(MacControl::Pfc(pfc)) if frame.bytes()[12..14] == mac_control::ETHERTYPE.to_be_bytes() => {
                    let is_paused = pfc.quanta[LOSSLESS].0 > 0;
                    // A refresh of XOFF changes no state.
                    if is_paused && !self.paused[port] {
                        self.late[port] = LATE;
                    }
                    self.paused[port] = is_paused;
                    self.pfc += 1;
                }
                _ => self.sent += 1,
            }
        }
        self.idle.extend(frames.drain(..));
    }

    fn fill(&mut self, bytes: &[u8]) -> Option<Frame> {
        let mut frame = self.idle.pop()?;
        (frame.0.start, frame.0.len) = (FRONT as u16, bytes.len() as u16);
        frame.bytes_mut().copy_from_slice(bytes);
        Some(frame)
    }

    /// Does the work of the ports. Entering and leaving this function toggles collection, so it is called only while
    /// counting.
    #[inline(never)]
    fn uncounted_work(&mut self, work: Work) -> Option<Frame> {
        self.work(work)
    }

    #[inline(never)]
    fn work(&mut self, work: Work) -> Option<Frame> {
        match work {
            Work::Give((port, most), out) => self.give(port, most, out),
            Work::Take(port, frames) => self.take(port, frames),
            Work::Free(frames) => self.idle.extend(frames.drain(..)),
            Work::Fill(bytes) => return self.fill(bytes),
        }
        None
    }

    fn ask(&mut self, work: Work) -> Option<Frame> {
        if self.is_counting { self.uncounted_work(work) } else { self.work(work) }
    }
}

/// The work that the switch requests of ports.
enum Work<'a> {
    /// At most so many frames of a port.
    Give((usize, usize), &'a mut Burst<Frame>),
    Take(usize, &'a mut Burst<Frame>),
    Free(&'a mut Burst<Frame>),
    Fill(&'a [u8]),
}

impl Ports for Wires {
    type Pkt = Frame;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Frame>) {
        self.ask(Work::Give((port, most), out));
    }

    fn tx(&mut self, port: usize, frames: &mut Burst<Frame>) {
        self.ask(Work::Take(port, frames));
    }

    fn free(&mut self, frames: &mut Burst<Frame>) {
        self.ask(Work::Free(frames));
    }

    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        self.ask(Work::Fill(frame.bytes()))
    }

    fn make(&mut self, frame: &[u8]) -> Option<Frame> {
        self.ask(Work::Fill(frame))
    }
}

/// The address of station `station` behind `port`.
pub fn mac(port: usize, station: u32) -> MacAddr {
    let [_, a, b, c] = station.to_be_bytes();
    MacAddr([2, port as u8, 0, a, b, c])
}

/// A frame of [`LEN`] bytes, and four more with a VLAN tag.
pub fn template(headers: Headers, mark: u8, tag: Option<u16>) -> Vec<u8> {
    template::template(headers, mark, tag, LEN + if tag.is_some() { 4 } else { 0 })
}
