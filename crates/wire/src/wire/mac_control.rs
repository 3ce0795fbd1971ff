//! MAC control frames: PFC (IEEE 802.1Q clause 36, 802.3 annex 31D) and classic PAUSE (802.3 annexes 31A and 31B).
//!
//! The frames are always untagged and have 60 bytes plus the frame check sequence:
//! `01:80:c2:00:00:01 | source | 88 08 | opcode | PFC: 00 e[7..0], 8 x u16 time | PAUSE: u16 time | zeros`.

use super::MacAddr;
use crate::sets::{CLASSES, ClassSet};
use crate::units::Quanta;

/// EtherType of MAC control.
pub const ETHERTYPE: u16 = 0x8808;
/// Bytes of a MAC control frame without the frame check sequence.
pub const FRAME_LEN: usize = 60;

/// IEEE 802.3 annex 31A assigns the opcode of PAUSE.
const OPCODE_PAUSE: u16 = 0x0001;
/// IEEE 802.3 annex 31D names the opcode of PFC.
const OPCODE_PFC: u16 = 0x0101;
const OPCODE_AT: usize = 14;
const VECTOR_AT: usize = 16;
const TIMES_AT: usize = 18;
const PFC_LEN: usize = TIMES_AT + 2 * CLASSES;

/// A MAC control frame that the switch parses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacControl {
    /// Priority-based flow control.
    Pfc(PfcFrame),
    /// Classic PAUSE of the whole link.
    Pause(Quanta),
}

/// Whether a MAC control frame is addressed to the other end of its link.
///
/// IEEE 802.3 annex 31D, in substance: the destination of every PFC frame is the globally assigned group address
/// 01-80-C2-00-00-01. Bridges never relay this address. A frame with another destination may come from a station
/// behind the peer, and this port must not obey it.
#[must_use]
pub fn is_to_link_peer(frame: &[u8]) -> bool {
    frame.starts_with(&MacAddr::MAC_CONTROL.0)
}

/// The content of a PFC frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PfcFrame {
    /// Priorities whose time counts. IEEE 802.1Q clause 36, in substance: the time of priority n counts only if bit
    /// e\[n\] of the vector is 1.
    pub enabled: ClassSet,
    /// Pause time of each priority, in quanta of 512 bit times (IEEE 802.3 annex 31B.2). Zero is XON.
    pub quanta: [Quanta; CLASSES],
}

/// Reads a frame whose EtherType is [`ETHERTYPE`]. `None` if it is too short or has another opcode.
#[must_use]
pub fn parse(frame: &[u8]) -> Option<MacControl> {
    match be16(frame, OPCODE_AT)? {
        OPCODE_PFC if frame.len() >= PFC_LEN => {
            let mut pfc = PfcFrame { enabled: ClassSet::from_bits(frame[VECTOR_AT + 1]), ..PfcFrame::default() };
            for (priority, quanta) in pfc.quanta.iter_mut().enumerate() {
                *quanta = Quanta(be16(frame, TIMES_AT + 2 * priority)?);
            }
            Some(MacControl::Pfc(pfc))
        }
        OPCODE_PAUSE => Some(MacControl::Pause(Quanta(be16(frame, VECTOR_AT)?))),
        _ => None,
    }
}

fn be16(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl PfcFrame {
    /// Returns the frame as a port with the address `source` sends it.
    ///
    /// IEEE 802.3 annex 31D, in substance: the source is the address of the port, and zeros fill the frame to its
    /// minimum length.
    #[must_use]
    pub fn emit(&self, source: MacAddr) -> [u8; FRAME_LEN] {
        let mut frame = [0; FRAME_LEN];
        frame[..6].copy_from_slice(&MacAddr::MAC_CONTROL.0);
        frame[6..12].copy_from_slice(&source.0);
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        frame[OPCODE_AT..VECTOR_AT].copy_from_slice(&OPCODE_PFC.to_be_bytes());
        // The upper byte of the vector is reserved and zero.
        frame[VECTOR_AT + 1] = self.enabled.bits();
        for (priority, quanta) in self.quanta.iter().enumerate() {
            let at = TIMES_AT + 2 * priority;
            frame[at..at + 2].copy_from_slice(&quanta.0.to_be_bytes());
        }
        frame
    }
}

/// A classic PAUSE frame of the whole link (IEEE 802.3 annex 31B). The switch sends none; checks of devices do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseFrame {
    /// Pause time.
    pub quanta: Quanta,
}

impl PauseFrame {
    /// Returns the frame as a port with the address `source` would send it.
    #[must_use]
    pub fn emit(self, source: MacAddr) -> [u8; FRAME_LEN] {
        let mut frame = PfcFrame::default().emit(source);
        frame[OPCODE_AT..VECTOR_AT].copy_from_slice(&OPCODE_PAUSE.to_be_bytes());
        frame[VECTOR_AT..TIMES_AT].copy_from_slice(&self.quanta.0.to_be_bytes());
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCE: MacAddr = MacAddr::local(0, 1);

    #[test]
    fn xoff_of_3_and_4_is_the_standards_frame() {
        let mut pfc = PfcFrame { enabled: ClassSet::from_bits(0x18), ..PfcFrame::default() };
        pfc.quanta[3] = Quanta(0xffff);
        pfc.quanta[4] = Quanta(0xffff);
        let frame = pfc.emit(SOURCE);
        let expected = [
            0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x48, 0x46, 0x00, 0x00, 0x01, 0x88, 0x08, 0x01, 0x01, 0x00, 0x18,
            0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(frame[..34], expected);
        assert_eq!(frame[34..], [0; 26]);
    }

    #[test]
    fn only_the_standards_destination_is_the_link_peer() {
        let mut frame = PfcFrame::default().emit(SOURCE);
        assert!(is_to_link_peer(&frame));
        for (at, byte) in [(0, 0x02), (0, 0x00), (4, 0x01), (5, 0x00), (5, 0x0e)] {
            let right = std::mem::replace(&mut frame[at], byte);
            assert!(!is_to_link_peer(&frame), "{:02x?}", &frame[..6]);
            frame[at] = right;
        }
        frame[..6].fill(0xff);
        assert!(!is_to_link_peer(&frame), "broadcast");
        assert!(!is_to_link_peer(&MacAddr::MAC_CONTROL.0[..5]));
    }

    #[test]
    fn pause_is_parsed_and_an_unknown_opcode_is_not() {
        let mut frame = PfcFrame::default().emit(SOURCE);
        frame[14..18].copy_from_slice(&[0, 1, 0, 7]);
        assert_eq!(parse(&frame), Some(MacControl::Pause(Quanta(7))));
        frame[15] = 2;
        assert_eq!(parse(&frame), None);
    }

    proptest! {
        #[test]
        fn emitted_pfc_frame_is_parsed_back(enabled: u8, times: [u16; 8]) {
            let pfc = PfcFrame { enabled: ClassSet::from_bits(enabled), quanta: times.map(Quanta) };
            prop_assert_eq!(parse(&pfc.emit(SOURCE)), Some(MacControl::Pfc(pfc)));
        }

        #[test]
        fn any_prefix_parses_or_not_but_never_panics(len in 0_usize..60, enabled: u8) {
            let frame = PfcFrame { enabled: ClassSet::from_bits(enabled), ..PfcFrame::default() }.emit(SOURCE);
            prop_assert_eq!(parse(&frame[..len]).is_some(), len >= PFC_LEN);
        }
    }
}
