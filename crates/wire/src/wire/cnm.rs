//! Congestion notification messages and tags of QCN (IEEE 802.1Qau; 802.1Q clause 33).
//!
//! A congestion point answers a sampled frame with a message to the frame's source:
//! `source | port's MAC | VLAN tag and CN-TAG as in the sampled frame | 22 E7 | PDU | zeros up to 60 bytes`.
//!
//! The PDU has 24 bytes and the beginning of the sampled frame, in network byte order:
//!
//! ```text
//! version (4 bits), reserved (6), quantised feedback (6) | CPID (8 bytes) | offset (2) | delta (2)
//! | encapsulated priority (3 bits), reserved (13) | encapsulated destination (6 bytes)
//! | encapsulated length (2) | encapsulated MSDU (0 to 64 bytes)
//! ```

use super::MacAddr;
use super::parse::{ETHERTYPE_SVLAN, ETHERTYPE_VLAN};
use crate::units::Bytes;

/// EtherType of congestion notification messages (802.1Q clause 33.3).
pub const ETHERTYPE: u16 = 0x22e7;
/// EtherType of the congestion notification tag, whose 16 bits name a flow of its sender (802.1Q clause 33.2).
pub const TAG_ETHERTYPE: u16 = 0x22e9;
/// The largest quantised feedback: the field has six bits.
pub const MOST_FEEDBACK: u8 = 63;
/// The most bytes of a sampled frame in a message.
pub const MOST_MSDU: usize = 64;
/// Unit of the offset and the delta.
pub const UNIT: Bytes = Bytes(64);
/// The longest frame of a message, with both tags.
pub const MOST_FRAME: usize = ADDRESSES_LEN + 2 * TAG_LEN + 2 + PDU_LEN + MOST_MSDU;

const ADDRESSES_LEN: usize = 12;
const TAG_LEN: usize = 4;
const PDU_LEN: usize = 24;
/// The shortest Ethernet frame without the frame check sequence.
const LEAST_FRAME: usize = 60;

/// The content of a congestion notification message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cnm<'a> {
    /// Quantised feedback, at most [`MOST_FEEDBACK`].
    pub feedback: u8,
    /// Identifier of the congestion point.
    pub point: [u8; 8],
    /// Queue length minus its set point, in units of 64 bytes.
    pub offset: i16,
    /// Queue length minus that of the last sample, in units of 64 bytes.
    pub delta: i16,
    /// Priority of the sampled frame.
    pub priority: u8,
    /// Destination of the sampled frame.
    pub dst: MacAddr,
    /// The sampled frame behind its tags, from the EtherType on; at most [`MOST_MSDU`] bytes count.
    pub msdu: &'a [u8],
}

/// The headers in front of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The station that gets the message: the source of the sampled frame.
    pub dst: MacAddr,
    /// The port of the congestion point.
    pub src: MacAddr,
    /// TCI of the VLAN tag; `None`: untagged.
    pub tci: Option<u16>,
    /// Flow of the CN-TAG; `None`: without the tag.
    pub flow: Option<u16>,
}

/// The parts of a data frame that a message repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled<'a> {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// TCI of the VLAN tag.
    pub tci: Option<u16>,
    /// Flow of the CN-TAG.
    pub flow: Option<u16>,
    /// The frame behind these tags, from the EtherType on.
    pub msdu: &'a [u8],
}

impl<'a> Sampled<'a> {
    /// Reads any frame; `None` if it is too short.
    #[must_use]
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let (dst, remaining) = frame.split_first_chunk()?;
        let (src, remaining) = remaining.split_first_chunk()?;
        let (tci, remaining) = match tag(remaining, &[ETHERTYPE_VLAN, ETHERTYPE_SVLAN]) {
            Some((tci, remaining)) => (Some(tci), remaining),
            None => (None, remaining),
        };
        let (flow, msdu) = match tag(remaining, &[TAG_ETHERTYPE]) {
            Some((flow, remaining)) => (Some(flow), remaining),
            None => (None, remaining),
        };
        (msdu.len() >= 2).then_some(Self { dst: MacAddr(*dst), src: MacAddr(*src), tci, flow, msdu })
    }

    /// Whether the frame is a congestion notification message itself.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        self.msdu.starts_with(&ETHERTYPE.to_be_bytes())
    }
}

/// Splits a tag with one of these EtherTypes off the front of `bytes`.
fn tag<'a>(bytes: &'a [u8], ethertypes: &[u16]) -> Option<(u16, &'a [u8])> {
    let ([high, low, first, second], remaining) = bytes.split_first_chunk()?;
    ethertypes
        .contains(&u16::from_be_bytes([*high, *low]))
        .then_some((u16::from_be_bytes([*first, *second]), remaining))
}

/// Reads the message of a frame with or without tags. `None` if it is no message, or cut short. A receiver ignores
/// reserved bits and the version.
#[must_use]
pub fn parse(frame: &[u8]) -> Option<(Envelope, Cnm<'_>)> {
    let Sampled { dst, src, tci, flow, msdu } = Sampled::read(frame)?;
    let pdu = msdu.strip_prefix(&ETHERTYPE.to_be_bytes())?;
    let (head, remaining) = pdu.split_first_chunk::<PDU_LEN>()?;
    let be16 = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let length = usize::from(be16(22));
    let encapsulated = if length <= MOST_MSDU { remaining.get(..length)? } else { return None };
    let cnm = Cnm {
        feedback: head[1] & MOST_FEEDBACK,
        point: *head[2..].first_chunk()?,
        offset: be16(10) as i16,
        delta: be16(12) as i16,
        priority: head[14] >> 5,
        dst: MacAddr(*head[16..].first_chunk()?),
        msdu: encapsulated,
    };
    Some((Envelope { dst, src, tci, flow }, cnm))
}

impl Cnm<'_> {
    /// Writes the frame of the message. Returns its length.
    #[must_use]
    pub fn write(&self, envelope: &Envelope, frame: &mut [u8; MOST_FRAME]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            frame[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&envelope.dst.0);
        put(&envelope.src.0);
        for (ethertype, value) in [(ETHERTYPE_VLAN, envelope.tci), (TAG_ETHERTYPE, envelope.flow)] {
            if let Some(value) = value {
                put(&ethertype.to_be_bytes());
                put(&value.to_be_bytes());
            }
        }
        put(&ETHERTYPE.to_be_bytes());
        // Version 0.
        put(&[0, self.feedback & MOST_FEEDBACK]);
        put(&self.point);
        put(&self.offset.to_be_bytes());
        put(&self.delta.to_be_bytes());
        put(&[self.priority << 5, 0]);
        put(&self.dst.0);
        let msdu = &self.msdu[..self.msdu.len().min(MOST_MSDU)];
        put(&(msdu.len() as u16).to_be_bytes());
        put(msdu);
        let padding = LEAST_FRAME.saturating_sub(at);
        frame[at..at + padding].fill(0);
        at + padding
    }
}

/// Bytes as an offset or a delta: in units of 64, rounded toward zero, within the range of the field.
#[must_use]
pub fn in_units(bytes: i64) -> i16 {
    (bytes / UNIT.0 as i64).clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSDU: [u8; 6] = [8, 0, 0x45, 0, 1, 2];

    fn cnm(msdu: &[u8]) -> Cnm<'_> {
        let point = [2, 0, 0, 0, 0, 9, 1, 3];
        Cnm { feedback: 37, point, offset: -2, delta: 300, priority: 3, dst: MacAddr([4; 6]), msdu }
    }

    fn envelope(tci: Option<u16>, flow: Option<u16>) -> Envelope {
        Envelope { dst: MacAddr([6; 6]), src: MacAddr([2, 0, 0, 0, 0, 9]), tci, flow }
    }

    #[test]
    fn cnm_has_the_layout_of_clause_33() {
        let mut frame = [0xff; MOST_FRAME];
        let len = cnm(&MSDU).write(&envelope(None, None), &mut frame);
        let expected = [
            6, 6, 6, 6, 6, 6, 2, 0, 0, 0, 0, 9, 0x22, 0xe7, // Ethernet
            0x00, 37, 2, 0, 0, 0, 0, 9, 1, 3, 0xff, 0xfe, 0x01, 0x2c, // version, feedback, CPID, offset, delta
            0x60, 0, 4, 4, 4, 4, 4, 4, 0, 6, 8, 0, 0x45, 0, 1, 2, // priority, destination, length, MSDU
        ];
        assert_eq!(frame[..expected.len()], expected);
        assert_eq!((len, &frame[expected.len()..len]), (60, &[0; 16][..]), "padded to the shortest frame");
    }

    #[test]
    fn tags_precede_the_message_and_are_read_back() {
        let mut frame = [0; MOST_FRAME];
        let sent = envelope(Some(0xc014), Some(0xbeef));
        let len = cnm(&[7; MOST_MSDU]).write(&sent, &mut frame);
        assert_eq!(len, MOST_FRAME);
        assert_eq!(frame[12..22], [0x81, 0, 0xc0, 0x14, 0x22, 0xe9, 0xbe, 0xef, 0x22, 0xe7]);
        assert_eq!(parse(&frame[..len]), Some((sent, cnm(&[7; MOST_MSDU]))));
        let sampled = Sampled::read(&frame[..len]).unwrap();
        assert!(sampled.is_notification());
        assert_eq!((sampled.tci, sampled.flow), (sent.tci, sent.flow));
    }

    #[test]
    fn cnm_offsets_round_toward_zero_and_saturate() {
        assert_eq!([0, 63, 64, -63, -64, -129].map(in_units), [0, 0, 1, 0, -1, -2]);
        assert_eq!([i64::MAX, i64::MIN].map(in_units), [i16::MAX, i16::MIN]);
    }

    #[test]
    fn other_frames_and_long_encapsulations_are_refused() {
        let mut frame = [0; MOST_FRAME];
        let len = cnm(&[7; 10]).write(&envelope(None, None), &mut frame);
        assert!(parse(&frame[..len]).is_some());
        let with = |at: usize, value: u8| {
            let mut changed = frame;
            changed[at] = value;
            parse(&changed[..len]).map(|(_, cnm)| cnm.msdu.len())
        };
        assert_eq!(with(12, 0x08), None, "another EtherType");
        assert_eq!(with(37, 65), None, "more than 64 bytes");
        assert_eq!(with(36, 1), None, "more than 64 bytes");
        assert_eq!(with(37, 60), None, "more than the frame has");
        assert_eq!(with(14, 0xf0), Some(10), "a receiver ignores the version");
    }

    proptest! {
        #[test]
        fn message_survives_a_round_trip(
            (feedback, priority) in (0..=MOST_FEEDBACK, 0_u8..8),
            (offset, delta) in any::<(i16, i16)>(),
            (point, dst) in any::<([u8; 8], [u8; 6])>(),
            (tci, flow) in any::<(Option<u16>, Option<u16>)>(),
            msdu in prop::collection::vec(any::<u8>(), 0..=MOST_MSDU),
        ) {
            let sent = Cnm { feedback, point, offset, delta, priority, dst: MacAddr(dst), msdu: &msdu };
            let (envelope, mut frame) = (envelope(tci, flow), [0xff; MOST_FRAME]);
            let len = sent.write(&envelope, &mut frame);
            prop_assert_eq!(parse(&frame[..len]), Some((envelope, sent)));
        }

        #[test]
        fn every_cut_message_is_refused(cut in 0_usize..MOST_FRAME) {
            let mut frame = [0; MOST_FRAME];
            let len = cnm(&[7; MOST_MSDU]).write(&envelope(Some(1), Some(2)), &mut frame);
            prop_assert_eq!(parse(&frame[..cut]), None);
            prop_assert!(parse(&frame[..len]).is_some());
        }

        #[test]
        fn random_bytes_are_never_out_of_bounds_of_the_cnm_reader(bytes in prop::collection::vec(any::<u8>(), 0..140)) {
            let _ = (parse(&bytes), Sampled::read(&bytes));
            let mut message = vec![0; 12];
            message.extend(ETHERTYPE.to_be_bytes());
            message.extend(bytes);
            let _ = parse(&message);
        }
    }
}
