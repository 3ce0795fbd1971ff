//! In-band telemetry in RoCEv2 packets: each hop notes its queue when the packet leaves.
//!
//! The sender reserves [`LEN`] bytes behind the base transport header and marks the packet with [`MARK`]. So the
//! length of a packet never changes, and no payload of other packets is touched. The layout is that of the simulator
//! of HPCC (Li et al., SIGCOMM 2019; figure 7 of the paper is alike): five words of 64 bits, little endian, then the
//! number of hops in 16 bits. A sixth hop overwrites the first.
//!
//! | bits of a word | meaning |
//! |---|---|
//! | 0 to 2 | rate of the port: 25, 50, 100, 200, 400 Gbit/s; and, beyond HPCC, 10, 40 and 800 |
//! | 3 to 26 | time at which the packet begins to leave, in nanoseconds |
//! | 27 to 46 | bytes that the port has sent before it, in units of 128 |
//! | 47 to 63 | bytes that wait behind it in its queue, in units of 80 |

use super::parse::{UDP, UDP_LEN};
use super::roce::{ACKNOWLEDGE, PORT, TRANSPORT_LEN};
use crate::units::BitRate;

/// Bytes of the field.
pub const LEN: usize = 8 * HOPS + 2;
/// Hops that fit.
pub const HOPS: usize = 5;
/// Value of the six reserved bits behind FECN and BECN in the base transport header that says that the field follows.
pub const MARK: u8 = 0x2a;

const RATES_GBPS: [u64; 8] = [25, 50, 100, 200, 400, 10, 40, 800];
const TIME_BITS: u32 = 24;
const BYTES_BITS: u32 = 20;
const QUEUE_BITS: u32 = 17;
const BYTES_UNIT: u64 = 128;
const QUEUE_UNIT: u64 = 80;

/// Offsets in the base transport header: opcode, and the byte of the reserved bits.
const OPCODE: usize = 0;
const RESERVED: usize = 4;
const ROCE_PORT: [u8; 2] = PORT.to_be_bytes();

/// The note of one hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hop(u64);

impl Hop {
    /// The note of a port whose rate has this code ([`rate_code`]). A packet begins to leave at `time_ns`, after
    /// `sent_bytes` of the port, with `queue_bytes` behind it.
    #[inline]
    #[must_use]
    pub fn new(rate_code: u8, time_ns: u64, sent_bytes: u64, queue_bytes: u64) -> Self {
        let field = |value: u64, bits: u32| value & ((1 << bits) - 1);
        let queue = (queue_bytes / QUEUE_UNIT).min((1 << QUEUE_BITS) - 1);
        Self(
            u64::from(rate_code & 7)
                | field(time_ns, TIME_BITS) << 3
                | field(sent_bytes / BYTES_UNIT, BYTES_BITS) << (3 + TIME_BITS)
                | queue << (3 + TIME_BITS + BYTES_BITS),
        )
    }

    /// Rate of the port.
    #[must_use]
    pub fn rate(self) -> BitRate {
        BitRate(RATES_GBPS[(self.0 & 7) as usize] * 1_000_000_000)
    }

    /// Bytes that waited in the queue.
    #[must_use]
    pub fn queue_bytes(self) -> u64 {
        (self.0 >> (3 + TIME_BITS + BYTES_BITS)) * QUEUE_UNIT
    }

    /// Nanoseconds since the note `before`, if fewer than 2^24 have passed.
    #[must_use]
    pub fn ns_since(self, before: Self) -> u64 {
        let time = |hop: Self| hop.0 >> 3;
        time(self).wrapping_sub(time(before)) & ((1 << TIME_BITS) - 1)
    }

    /// Bytes that the port has sent since the note `before`, if fewer than 128 MiB.
    #[must_use]
    pub fn bytes_since(self, before: Self) -> u64 {
        let bytes = |hop: Self| hop.0 >> (3 + TIME_BITS);
        (bytes(self).wrapping_sub(bytes(before)) & ((1 << BYTES_BITS) - 1)) * BYTES_UNIT
    }
}

/// The code of `rate`: that of the highest known rate up to it. Rates below 10 Gbit/s have the code of 10 Gbit/s.
#[must_use]
pub fn rate_code(rate: BitRate) -> u8 {
    let below = (0..RATES_GBPS.len()).filter(|&code| RATES_GBPS[code] * 1_000_000_000 <= rate.0);
    let lowest = 5;
    below.max_by_key(|&code| RATES_GBPS[code]).unwrap_or(lowest) as u8
}

/// The notes in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hops {
    hops: [Hop; HOPS],
    len: usize,
}

impl Hops {
    /// Reads a field. Beyond five hops the first are overwritten, so none is returned.
    #[must_use]
    pub fn read(field: &[u8; LEN]) -> Self {
        let mut hops = Self { len: count(field).into(), ..Self::default() };
        if hops.len > HOPS {
            return Self::default();
        }
        for (hop, bytes) in hops.hops[..hops.len].iter_mut().zip(field.chunks_exact(8)) {
            *hop = Hop(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        }
        hops
    }

    /// The notes, in the order of the hops.
    #[must_use]
    pub fn as_slice(&self) -> &[Hop] {
        &self.hops[..self.len]
    }
}

#[inline]
fn count(field: &[u8; LEN]) -> u16 {
    u16::from_le_bytes([field[LEN - 2], field[LEN - 1]])
}

/// The field of a marked packet whose network header is at `l3`; `None` if it has none.
///
/// Only data of RoCEv2 without a UDP checksum is marked: a checksum would be wrong after a note.
#[inline]
#[must_use]
pub fn find(frame: &mut [u8], l3: usize) -> Option<&mut [u8; LEN]> {
    let network = frame.get(l3..)?;
    let (protocol, udp) = match network.first()? {
        0x45 => (*network.get(9)?, l3 + 20),
        first if first >> 4 == 6 => (*network.get(6)?, l3 + 40),
        _ => return None,
    };
    let base = udp + UDP_LEN;
    let headers: &[u8; UDP_LEN + TRANSPORT_LEN] = frame.get(udp..base + TRANSPORT_LEN)?.first_chunk()?;
    let transport = &headers[UDP_LEN..];
    let is_marked = protocol == UDP
        && headers[2..4] == ROCE_PORT
        && headers[6..8] == [0; 2]
        && transport[RESERVED] & 0x3f == MARK
        && transport[OPCODE] & 0x1f != ACKNOWLEDGE;
    let field = base + TRANSPORT_LEN;
    if is_marked { frame.get_mut(field..field + LEN)?.first_chunk_mut() } else { None }
}

/// Adds a note.
#[inline]
pub fn push(field: &mut [u8; LEN], hop: Hop) {
    let hops = count(field);
    let at = usize::from(hops) % HOPS * 8;
    field[at..at + 8].copy_from_slice(&hop.0.to_le_bytes());
    field[LEN - 2..].copy_from_slice(&hops.wrapping_add(1).to_le_bytes());
}

/// Takes the last note back.
#[inline]
pub fn pop(field: &mut [u8; LEN]) {
    let hops = count(field).saturating_sub(1);
    field[LEN - 2..].copy_from_slice(&hops.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A RoCEv2 packet over IPv4 or IPv6 behind `tags`, with an empty field.
    fn packet(tags: usize, is_v4: bool, mark: u8, opcode: u8) -> (Vec<u8>, usize) {
        let l3 = 14 + 4 * tags;
        let mut frame = vec![0; l3];
        if is_v4 {
            frame.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, UDP, 0, 0]);
            frame.extend([0; 8]);
        } else {
            frame.extend([0x60, 0, 0, 0, 0, 0, UDP, 64]);
            frame.extend([0; 32]);
        }
        frame.extend([0xc0, 0, ROCE_PORT[0], ROCE_PORT[1], 0, 0, 0, 0]);
        frame.extend([opcode, 0, 0xff, 0xff, mark, 0, 0, 1, 0, 0, 0, 0]);
        frame.extend([0; LEN]);
        (frame, l3)
    }

    #[test]
    fn field_is_found_only_in_marked_data_of_roce() {
        for (tags, is_v4) in [(0, true), (1, true), (2, false), (0, false)] {
            let (mut frame, l3) = packet(tags, is_v4, MARK, 0x04);
            let end = frame.len();
            let field = find(&mut frame, l3).expect("it is marked");
            field[0] = 7;
            assert_eq!(frame[end - LEN], 7);
            assert!(find(&mut frame[..end - 1], l3).is_none(), "too short");
        }
        let changed = |at: usize, value: u8| {
            let (mut frame, l3) = packet(0, true, MARK, 0x04);
            frame[at] = value;
            find(&mut frame, l3).is_some()
        };
        assert!(changed(46, 0xc0 | MARK), "FECN and BECN are other bits");
        // Options, another protocol, another port, a UDP checksum, no mark, an ACK.
        for (at, value) in [(14, 0x46), (23, 6), (37, 0), (41, 1), (46, 0), (46, MARK ^ 1), (42, 0x11)] {
            assert!(!changed(at, value), "byte {at} is {value}");
        }
    }

    #[test]
    fn telemetry_header_has_the_layout_of_hpcc() {
        let mut field = [0; LEN];
        // 100 Gbit/s is code 2: 2 | 5 << 3 | 7 << 27 | 9 << 47.
        push(&mut field, Hop::new(rate_code(BitRate(100_000_000_000)), 5, 7 * 128, 9 * 80));
        assert_eq!(field[..8], (2 | 5 << 3 | 7 << 27 | 9_u64 << 47).to_le_bytes());
        assert_eq!(field[LEN - 2..], [1, 0]);
    }

    #[test]
    fn differences_survive_wraps_and_long_queues_saturate() {
        let before = Hop::new(0, (1 << 24) - 10, (128 << 20) - 256, 0);
        let after = Hop::new(0, (1 << 24) + 20, (128 << 20) + 512, 1 << 40);
        assert_eq!((after.ns_since(before), after.bytes_since(before)), (30, 768));
        assert_eq!(after.queue_bytes(), ((1 << 17) - 1) * 80);
    }

    #[test]
    fn unknown_rates_round_down() {
        let rate = |gbps: u64| Hop::new(rate_code(BitRate(gbps * 1_000_000_000)), 0, 0, 0).rate().0 / 1_000_000_000;
        assert_eq!([1, 10, 24, 40, 99, 100, 400, 1600].map(rate), [10, 10, 10, 40, 50, 100, 400, 800]);
    }

    proptest! {
        #[test]
        fn hops_are_read_in_order_and_taken_back(notes in prop::collection::vec((0_u8..8, any::<u64>(), any::<u64>(), 0_u64..9_000_000), 0..7)) {
            let mut field = [0; LEN];
            let hops: Vec<Hop> = notes.iter().map(|&(rate, time, sent, queue)| Hop::new(rate, time, sent, queue)).collect();
            for hop in &hops {
                push(&mut field, *hop);
            }
            let expected: &[Hop] = if hops.len() > HOPS { &[] } else { &hops };
            let read = Hops::read(&field);
            prop_assert_eq!(read.as_slice(), expected);
            let before = field;
            push(&mut field, Hop::new(1, 2, 3, 4));
            pop(&mut field);
            if hops.len() < HOPS {
                prop_assert_eq!(Hops::read(&field), Hops::read(&before));
            }
        }

        #[test]
        fn random_bytes_are_never_out_of_bounds_of_the_telemetry_reader(mut bytes in prop::collection::vec(any::<u8>(), 0..120), l3 in 0_usize..64) {
            let _ = find(&mut bytes, l3);
        }
    }
}
