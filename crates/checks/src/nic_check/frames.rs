//! The frames of the check: UDP datagrams with a class, a flow and a number.

use etherparse::PacketBuilder;

use crate::wire::MacAddr;
use crate::wire::mac_control::ETHERTYPE;

/// UDP port of the frames: discard (RFC 863).
const PORT: u16 = 9;
/// Begins the payload of each frame.
const MAGIC: [u8; 4] = *b"HFNC";
/// Bytes of Ethernet, IPv4 and UDP headers before the payload.
const HEADERS: usize = 14 + 20 + 8;
/// Magic, priority, number.
const PAYLOAD: usize = 4 + 1 + 8;

/// The shortest frame of the check, without the frame check sequence.
pub const SHORTEST: usize = 60;

/// Builds numbered frames of one priority between two stations.
#[derive(Debug, Clone)]
pub struct Flow {
    bytes: Vec<u8>,
    priority: u8,
    next: u64,
}

/// A received frame of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// Its priority.
    pub priority: u8,
    /// Its number.
    pub number: u64,
}

impl Flow {
    /// Creates a flow of frames of `len` bytes, with the DSCP of class selector `priority`.
    ///
    /// # Panics
    /// If `len` is shorter than [`SHORTEST`] or does not fit an IPv4 packet, or if the priority is above 7.
    #[must_use]
    pub fn new(from: MacAddr, to: MacAddr, priority: u8, len: usize) -> Self {
        assert!(priority < 8 && (SHORTEST..=9700).contains(&len), "a frame of {len} bytes");
        let ip = etherparse::Ipv4Header {
            dscp: etherparse::IpDscp::try_new(priority * 8).expect("a class selector"),
            source: [10, 48, 255, 1],
            destination: [10, 48, 255, 2],
            time_to_live: 1,
            protocol: etherparse::IpNumber::UDP,
            ..etherparse::Ipv4Header::default()
        };
        let ip = etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default());
        let builder = PacketBuilder::ethernet2(from.0, to.0).ip(ip).udp(PORT, PORT);
        let mut payload = vec![0x5a; len - HEADERS];
        payload[..4].copy_from_slice(&MAGIC);
        payload[4] = priority;
        let mut bytes = Vec::with_capacity(len);
        builder.write(&mut bytes, &payload).expect("a vector takes all bytes");
        // Each frame has another number, and none a checksum: RFC 768 allows zero.
        bytes[HEADERS - 2..HEADERS].fill(0);
        Self { bytes, priority, next: 0 }
    }

    /// Returns the next frame. It has the number of frames before it.
    pub fn next_frame(&mut self) -> &[u8] {
        self.bytes[HEADERS + 5..HEADERS + PAYLOAD].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        &self.bytes
    }

    /// Takes back the last `frames` frames, which were not sent.
    pub fn take_back(&mut self, frames: u64) {
        self.next -= frames;
    }

    /// Frames built and not taken back.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Whether `frame` is a frame of this flow, byte by byte except for its number.
    #[must_use]
    pub fn owns(&self, frame: &[u8]) -> bool {
        let number = HEADERS + 5..HEADERS + PAYLOAD;
        frame.len() == self.bytes.len()
            && frame[..number.start] == self.bytes[..number.start]
            && frame[number.end..] == self.bytes[number.end..]
    }

    /// Priority of the flow.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }
}

/// Reads a frame of the check; `None`: it is another frame.
#[must_use]
pub fn read(frame: &[u8]) -> Option<Numbered> {
    let payload = frame.get(HEADERS..HEADERS + PAYLOAD)?;
    let number = u64::from_be_bytes(payload[5..].try_into().ok()?);
    (payload[..4] == MAGIC).then_some(Numbered { priority: payload[4], number })
}

/// Whether `frame` is a MAC control frame.
#[must_use]
pub fn is_control(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ETHERTYPE.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_valid_and_known_byte_by_byte() {
        let mut flow = Flow::new(MacAddr::local(0, 1), MacAddr::local(0, 2), 3, 100);
        let (first, second) = (flow.next_frame().to_vec(), flow.next_frame().to_vec());
        assert_eq!(
            [&first, &second].map(|frame| read(frame).map(|frame| (frame.priority, frame.number))),
            [Some((3, 0)), Some((3, 1))]
        );
        assert!(flow.owns(&first) && flow.owns(&second) && flow.sent() == 2);
        for damaged in [0, 15, 46, 99] {
            let mut frame = second.clone();
            frame[damaged] ^= 1;
            assert!(!flow.owns(&frame), "byte {damaged}");
        }
        let parsed = etherparse::SlicedPacket::from_ethernet(&first).expect("a frame");
        let Some(etherparse::NetSlice::Ipv4(ip)) = parsed.net else { panic!("IPv4") };
        assert_eq!((ip.header().dcp().value(), first.len()), (24, 100));
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
        flow.take_back(1);
        assert_eq!(read(flow.next_frame()).map(|frame| frame.number), Some(1));
        assert_eq!((read(&first[..50]), read(&[0; 100])), (None, None));
    }
}
