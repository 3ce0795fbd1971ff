//! Data units of LACP and of its markers (IEEE 802.1AX-2014 clauses 6.4.2 and 6.5.3).
//!
//! A frame is `01-80-C2-00-00-02 | source | 88 09 | subtype | version | TLVs`, and has 124 bytes without its FCS. The
//! TLVs of LACP are actor (1), partner (2), collector (3) and the terminator (0).
//!
//! # Example
//!
//! ```
//! use holdfast_wire::wire::MacAddr;
//! use holdfast_wire::wire::lacp::{Lacpdu, Participant, SlowFrame, parse};
//!
//! let pdu = Lacpdu { actor: Participant { key: 7, port: 1, ..Participant::default() }, ..Lacpdu::default() };
//! assert_eq!(parse(&pdu.emit(MacAddr::local(0, 1))), Ok(SlowFrame::Lacp(pdu)));
//! ```

use super::MacAddr;
use super::parse::ETHERTYPE_SLOW;

/// Bytes of a frame without its FCS.
pub const FRAME: usize = 124;

/// Subtypes of slow protocols (802.3 annex 57A).
const LACP: u8 = 1;
const MARKER: u8 = 2;
const VERSION: u8 = 1;

const ACTOR: u8 = 1;
const PARTNER: u8 = 2;
const COLLECTOR: u8 = 3;
const PARTICIPANT_LEN: u8 = 20;
const COLLECTOR_LEN: u8 = 16;
const MARKER_INFORMATION: u8 = 1;
const MARKER_RESPONSE: u8 = 2;
const MARKER_LEN: u8 = 16;

/// Offset of the subtype, and of the TLVs behind the version.
const SUBTYPE: usize = 14;
const TLVS: usize = 16;

/// The state that a participant states of its port (clause 6.4.2.3): one bit each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortState(pub u8);

impl PortState {
    /// It sends data units of its own accord.
    pub const ACTIVE: Self = Self(1 << 0);
    /// It wants a data unit each second, and waits for three seconds (short timeout).
    pub const SHORT_TIMEOUT: Self = Self(1 << 1);
    /// Its link may be one of several.
    pub const AGGREGATION: Self = Self(1 << 2);
    /// Its link is in the right group.
    pub const SYNCHRONIZATION: Self = Self(1 << 3);
    /// It takes frames.
    pub const COLLECTING: Self = Self(1 << 4);
    /// It sends frames.
    pub const DISTRIBUTING: Self = Self(1 << 5);
    /// It has no data unit of its partner, and uses defaults.
    pub const DEFAULTED: Self = Self(1 << 6);
    /// The last data unit of its partner is too old.
    pub const EXPIRED: Self = Self(1 << 7);

    /// Every bit with its word.
    const WORDS: [(Self, &'static str); 8] = [
        (Self::ACTIVE, "active"),
        (Self::SHORT_TIMEOUT, "fast"),
        (Self::AGGREGATION, "aggregation"),
        (Self::SYNCHRONIZATION, "sync"),
        (Self::COLLECTING, "collecting"),
        (Self::DISTRIBUTING, "distributing"),
        (Self::DEFAULTED, "defaulted"),
        (Self::EXPIRED, "expired"),
    ];

    /// Whether all bits of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// The state with `bits` set or cleared.
    #[must_use]
    pub const fn with(self, bits: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | bits.0) } else { Self(self.0 & !bits.0) }
    }

    /// Whether both have the same values of `bits`.
    #[must_use]
    pub const fn agrees(self, other: Self, bits: Self) -> bool {
        (self.0 ^ other.0) & bits.0 == 0
    }

    /// The words of the bits that are set.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        Self::WORDS.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, word)| *word).collect()
    }
}

impl std::ops::BitOr for PortState {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One end of a link as a data unit states it: actor or partner.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Participant {
    /// Priority of the system; lower is better.
    pub system_priority: u16,
    /// Address of the system.
    pub system: MacAddr,
    /// Key: ports of a system with one key may form a group.
    pub key: u16,
    /// Priority of the port; lower is better.
    pub port_priority: u16,
    /// Number of the port.
    pub port: u16,
    /// State of the port.
    pub state: PortState,
}

/// A data unit of LACP.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Lacpdu {
    /// The sender.
    pub actor: Participant,
    /// The receiver, as the sender knows it.
    pub partner: Participant,
    /// Longest time that the sender may hold a received frame, in tens of microseconds.
    pub collector_max_delay: u16,
}

/// A frame of a slow protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowFrame {
    /// A data unit of LACP.
    Lacp(Lacpdu),
    /// A marker that wants an answer.
    Marker,
    /// The answer to a marker.
    MarkerResponse,
    /// Another slow protocol, such as OAM.
    Other,
}

/// Why a frame is no frame of LACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends too early.
    #[error("it has fewer than {FRAME} bytes")]
    Truncated,
    /// It has another destination or EtherType.
    #[error("it is no frame of a slow protocol")]
    Foreign,
    /// Its TLVs are not those of its protocol.
    #[error("a TLV has another length")]
    Tlv,
}

impl Participant {
    fn emit(&self, out: &mut [u8]) {
        out[..2].copy_from_slice(&self.system_priority.to_be_bytes());
        out[2..8].copy_from_slice(&self.system.0);
        out[8..10].copy_from_slice(&self.key.to_be_bytes());
        out[10..12].copy_from_slice(&self.port_priority.to_be_bytes());
        out[12..14].copy_from_slice(&self.port.to_be_bytes());
        out[14] = self.state.0;
    }

    fn read(bytes: &[u8; 18]) -> Self {
        let double = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Self {
            system_priority: double(0),
            system: MacAddr(std::array::from_fn(|at| bytes[2 + at])),
            key: double(8),
            port_priority: double(10),
            port: double(12),
            state: PortState(bytes[14]),
        }
    }
}

/// A frame with its addresses, subtype and version.
fn begin(source: MacAddr, subtype: u8) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[..6].copy_from_slice(&MacAddr::SLOW_PROTOCOLS.0);
    frame[6..12].copy_from_slice(&source.0);
    frame[12..14].copy_from_slice(&ETHERTYPE_SLOW.to_be_bytes());
    (frame[SUBTYPE], frame[SUBTYPE + 1]) = (subtype, VERSION);
    frame
}

impl Lacpdu {
    /// The frame of the data unit, from a port with the address `source`.
    #[must_use]
    pub fn emit(&self, source: MacAddr) -> [u8; FRAME] {
        let mut frame = begin(source, LACP);
        let (actor, partner, collector) = (TLVS, TLVS + 20, TLVS + 40);
        (frame[actor], frame[actor + 1]) = (ACTOR, PARTICIPANT_LEN);
        self.actor.emit(&mut frame[actor + 2..]);
        (frame[partner], frame[partner + 1]) = (PARTNER, PARTICIPANT_LEN);
        self.partner.emit(&mut frame[partner + 2..]);
        (frame[collector], frame[collector + 1]) = (COLLECTOR, COLLECTOR_LEN);
        frame[collector + 2..collector + 4].copy_from_slice(&self.collector_max_delay.to_be_bytes());
        frame
    }

    /// Reads a data unit. IEEE 802.1AX clause 6.4.12, in substance: a receiver validates neither version nor types of
    /// TLVs, which have fixed places, and may validate their lengths.
    fn read(frame: &[u8; FRAME]) -> Result<Self, Malformed> {
        let lengths = [(TLVS, PARTICIPANT_LEN), (TLVS + 20, PARTICIPANT_LEN), (TLVS + 40, COLLECTOR_LEN)];
        if lengths.iter().any(|&(at, len)| frame[at + 1] != len) {
            return Err(Malformed::Tlv);
        }
        let participant = |at: usize| Participant::read(&std::array::from_fn(|byte| frame[at + 2 + byte]));
        let collector_max_delay = u16::from_be_bytes([frame[TLVS + 42], frame[TLVS + 43]]);
        Ok(Self { actor: participant(TLVS), partner: participant(TLVS + 20), collector_max_delay })
    }
}

/// Reads a frame of a slow protocol. Frames may be longer than 124 bytes, as with padding or with later versions.
///
/// # Errors
/// The reason why it is none.
pub fn parse(frame: &[u8]) -> Result<SlowFrame, Malformed> {
    let is_slow = frame.get(..6) == Some(&MacAddr::SLOW_PROTOCOLS.0[..])
        && frame.get(12..14) == Some(&ETHERTYPE_SLOW.to_be_bytes()[..]);
    if !is_slow {
        return Err(Malformed::Foreign);
    }
    let subtype = *frame.get(SUBTYPE).ok_or(Malformed::Truncated)?;
    if subtype != LACP && subtype != MARKER {
        return Ok(SlowFrame::Other);
    }
    let frame: &[u8; FRAME] = frame.first_chunk().ok_or(Malformed::Truncated)?;
    if subtype == LACP {
        return Lacpdu::read(frame).map(SlowFrame::Lacp);
    }
    match (frame[TLVS], frame[TLVS + 1]) {
        (MARKER_INFORMATION, MARKER_LEN) => Ok(SlowFrame::Marker),
        (MARKER_RESPONSE, MARKER_LEN) => Ok(SlowFrame::MarkerResponse),
        _ => Err(Malformed::Tlv),
    }
}

/// The answer to a frame that [`parse`] knows as [`SlowFrame::Marker`], from a port with the address `source`: the
/// marker with another type (clause 6.5.4.2). `None` if the frame is too short.
#[must_use]
pub fn answer_marker(marker: &[u8], source: MacAddr) -> Option<[u8; FRAME]> {
    let marker: &[u8; FRAME] = marker.first_chunk()?;
    let mut frame = begin(source, MARKER);
    frame[TLVS..].copy_from_slice(&marker[TLVS..]);
    frame[TLVS] = MARKER_RESPONSE;
    Some(frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn participant(seed: u16) -> Participant {
        Participant {
            system_priority: seed,
            system: MacAddr::local(7, seed),
            key: seed + 1,
            port_priority: seed + 2,
            port: seed + 3,
            state: PortState(seed as u8),
        }
    }

    #[test]
    fn frame_has_the_layout_of_the_standard() {
        let pdu = Lacpdu { actor: participant(0x0102), partner: participant(0x0a0b), collector_max_delay: 0x1234 };
        let frame = pdu.emit(MacAddr::local(0, 9));
        assert_eq!(frame[..14], [1, 0x80, 0xc2, 0, 0, 2, 2, 0x48, 0x46, 0, 0, 9, 0x88, 0x09]);
        assert_eq!(frame[14..18], [1, 1, 1, 20]);
        // Priority, system, key, priority of the port, port, state, three reserved bytes.
        assert_eq!(frame[18..36], [1, 2, 2, 0x48, 0x46, 7, 1, 2, 1, 3, 1, 4, 1, 5, 2, 0, 0, 0]);
        assert_eq!(frame[36..38], [2, 20]);
        assert_eq!(frame[56..60], [3, 16, 0x12, 0x34]);
        assert_eq!(frame[72..], [0; 52], "the terminator and what is reserved");
        assert_eq!(parse(&frame), Ok(SlowFrame::Lacp(pdu)));
    }

    #[test]
    fn marker_is_answered_with_its_own_content() {
        let mut marker = begin(MacAddr::local(1, 1), MARKER);
        (marker[TLVS], marker[TLVS + 1]) = (MARKER_INFORMATION, MARKER_LEN);
        marker[18..32].copy_from_slice(&[0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 77, 0, 0]);
        assert_eq!(parse(&marker), Ok(SlowFrame::Marker));
        let answer = answer_marker(&marker, MacAddr::local(0, 3)).unwrap();
        assert_eq!(parse(&answer), Ok(SlowFrame::MarkerResponse));
        assert_eq!((&answer[6..12], &answer[18..]), (&MacAddr::local(0, 3).0[..], &marker[18..]));
        assert_eq!(answer_marker(&marker[..100], MacAddr::local(0, 3)), None);
    }

    #[test]
    fn slow_protocol_frame_that_is_no_lacpdu_is_told_apart() {
        let frame = Lacpdu::default().emit(MacAddr::local(0, 1));
        assert_eq!(parse(&frame[..123]), Err(Malformed::Truncated));
        assert_eq!(parse(&frame[..14]), Err(Malformed::Truncated));
        let changed = |at: usize, byte| {
            let mut frame = frame;
            frame[at] = byte;
            parse(&frame)
        };
        assert_eq!(changed(5, 3), Err(Malformed::Foreign));
        assert_eq!(changed(13, 0x0a), Err(Malformed::Foreign));
        assert_eq!(changed(14, 3), Ok(SlowFrame::Other), "OAM");
        assert_eq!(changed(15, 2), Ok(SlowFrame::Lacp(Lacpdu::default())), "a later version");
        assert!([17, 37, 57].iter().all(|&at| changed(at, 9) == Err(Malformed::Tlv)));
        assert!([16, 36, 56].iter().all(|&at| changed(at, 9) == Ok(SlowFrame::Lacp(Lacpdu::default()))), "types");
    }

    #[test]
    fn lacp_state_is_shown_in_words() {
        let state = PortState::ACTIVE | PortState::COLLECTING;
        assert_eq!(state.words(), ["active", "collecting"]);
        assert_eq!(state.with(PortState::ACTIVE, false), PortState::COLLECTING);
        assert!(state.agrees(PortState::ACTIVE, PortState::ACTIVE | PortState::EXPIRED));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), is_slow: bool) {
            let mut bytes = bytes;
            if is_slow && bytes.len() > 15 {
                bytes[..6].copy_from_slice(&MacAddr::SLOW_PROTOCOLS.0);
                bytes[12..14].copy_from_slice(&ETHERTYPE_SLOW.to_be_bytes());
                bytes[14] %= 4;
            }
            if let Ok(SlowFrame::Lacp(pdu)) = parse(&bytes) {
                prop_assert_eq!(parse(&pdu.emit(MacAddr::local(0, 1))), Ok(SlowFrame::Lacp(pdu)));
            }
        }
    }
}
