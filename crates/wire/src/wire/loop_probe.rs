//! Probes of the loop guard: frames that bridges flood, so that one that comes back shows a loop.
//!
//! A probe is a reply of the Configuration Testing Protocol (Ethernet 2.0, section 8), which ends where it is received.
//! The group address of that protocol is none of those that bridges must not relay. The numbers of the protocol are
//! little-endian, those of the data are big-endian:
//!
//! | bytes behind the EtherType | field |
//! |---|---|
//! | 0, 1 | skip count 0 |
//! | 2, 3 | function 1: reply |
//! | 4, 5 | receipt number: the low bits of the sequence number |
//! | 6 to 9 | `HFLP` |
//! | 10, 11 | version 1, flags 0 |
//! | 12 to 19 | identity of the run of the switch |
//! | 20, 21 | port |
//! | 22, 23 | VLAN |
//! | 24 to 27 | sequence number |
//! | 28 to 35 | seal |

use super::MacAddr;
use super::parse::{ETHERNET_LEN, ETHERTYPE_LOOPBACK, ETHERTYPE_VLAN, parse};
use super::vlan_tag::TAG_LEN;

/// Shortest Ethernet frame without the frame check sequence.
const SHORTEST: usize = 60;
/// Skip count 0 and function 1.
const REPLY: [u8; 4] = [0, 0, 1, 0];
/// Magic, version and flags.
const MAGIC: [u8; 6] = *b"HFLP\x01\x00";

/// A probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopProbe {
    /// Random number of the run of the switch that has sent the probe.
    pub identity: u64,
    /// Index of the port that has sent it.
    pub port: u16,
    /// VLAN in which it was sent.
    pub vlan: u16,
    /// Number of the round.
    pub sequence: u32,
    /// A keyed hash of port, VLAN and sequence number, so that no other can make a probe of a port.
    pub seal: u64,
}

/// The rounds whose probes count: the newest, and some before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentRounds {
    /// Number of the newest round.
    pub newest: u32,
    /// Number of rounds up to the newest; zero: no probe counts.
    pub count: u32,
}

impl RecentRounds {
    /// Whether probes with this sequence number count.
    #[must_use]
    pub const fn contains(self, sequence: u32) -> bool {
        self.newest.wrapping_sub(sequence) < self.count
    }

    /// Both numbers in one word.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.newest as u64) << 32 | self.count as u64
    }

    /// The inverse of [`RecentRounds::to_bits`].
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self { newest: (bits >> 32) as u32, count: bits as u32 }
    }
}

/// A received probe with the VLAN tag of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedProbe {
    /// VLAN id of the outermost tag; `None`: untagged, or only a priority.
    pub tag: Option<u16>,
    /// The probe.
    pub probe: LoopProbe,
}

impl LoopProbe {
    /// Builds the frame that the port of address `source` sends, with a tag for VLAN `tag` if there is one.
    #[must_use]
    pub fn emit(&self, source: MacAddr, tag: Option<u16>) -> Vec<u8> {
        let mut frame = [MacAddr::LOOPBACK_ASSISTANCE.0, source.0].concat();
        if let Some(vlan) = tag {
            frame.extend(ETHERTYPE_VLAN.to_be_bytes());
            frame.extend(vlan.to_be_bytes());
        }
        frame.extend(ETHERTYPE_LOOPBACK.to_be_bytes());
        frame.extend(REPLY);
        frame.extend((self.sequence as u16).to_le_bytes());
        frame.extend(MAGIC);
        frame.extend(self.identity.to_be_bytes());
        frame.extend(self.port.to_be_bytes());
        frame.extend(self.vlan.to_be_bytes());
        frame.extend(self.sequence.to_be_bytes());
        frame.extend(self.seal.to_be_bytes());
        // A bridge that removes the tag need not pad the frame.
        frame.resize(SHORTEST + if tag.is_some() { TAG_LEN } else { 0 }, 0);
        frame
    }

    /// Reads a probe from `payload`, which begins behind the EtherType; `None` if it is something else.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let payload = payload.strip_prefix(&REPLY)?;
        let (_receipt, payload) = payload.split_first_chunk::<2>()?;
        let payload = payload.strip_prefix(&MAGIC)?;
        let (identity, payload) = payload.split_first_chunk()?;
        let (port, payload) = payload.split_first_chunk()?;
        let (vlan, payload) = payload.split_first_chunk()?;
        let (sequence, payload) = payload.split_first_chunk()?;
        let (seal, _padding) = payload.split_first_chunk()?;
        Some(Self {
            identity: u64::from_be_bytes(*identity),
            port: u16::from_be_bytes(*port),
            vlan: u16::from_be_bytes(*vlan),
            sequence: u32::from_be_bytes(*sequence),
            seal: u64::from_be_bytes(*seal),
        })
    }

    /// Reads a probe from a frame whose payload begins at `offset`, behind any tags; `None` if it is something else.
    #[must_use]
    pub fn read_at(frame: &[u8], offset: usize) -> Option<Self> {
        let ethertype = frame.get(offset.checked_sub(2)?..offset)?;
        let is_probe = frame.starts_with(&MacAddr::LOOPBACK_ASSISTANCE.0) && offset >= ETHERNET_LEN;
        if !is_probe || ethertype != ETHERTYPE_LOOPBACK.to_be_bytes() {
            return None;
        }
        Self::read(&frame[offset..])
    }
}

impl ReceivedProbe {
    /// Reads a received frame; `None` if it is no probe.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let headers = parse(frame).ok()?;
        let probe = LoopProbe::read_at(frame, headers.l3_offset.into())?;
        Some(Self { tag: headers.vlan().filter(|&vlan| vlan != 0), probe })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::lldp::fuzz::{Dice, setting};

    const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn probe(dice: &mut Dice) -> LoopProbe {
        LoopProbe {
            identity: dice.next(),
            port: dice.next() as u16,
            vlan: 1 + dice.below(4094) as u16,
            sequence: dice.next() as u32,
            seal: dice.next(),
        }
    }

    #[test]
    fn loop_probe_has_the_documented_bytes() {
        let probe = LoopProbe {
            identity: 0x0102_0304_0506_0708,
            port: 5,
            vlan: 20,
            sequence: 0x0a0b_0c0d,
            seal: 0x1112_1314_1516_1718,
        };
        let mut expected = vec![0xcf, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x90, 0, 0, 0, 1, 0, 0x0d, 0x0c];
        expected.extend(b"HFLP\x01\x00\x01\x02\x03\x04\x05\x06\x07\x08\x00\x05\x00\x14\x0a\x0b\x0c\x0d");
        expected.extend([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        expected.resize(60, 0);
        assert_eq!(probe.emit(SOURCE, None), expected);
        expected.splice(12..12, [0x81, 0, 0, 20]);
        assert_eq!(probe.emit(SOURCE, Some(20)), expected);
        assert_eq!(expected.len(), 64);
    }

    #[test]
    fn probe_is_read_behind_any_tags() {
        let probe = probe(&mut Dice(7));
        for (tags, tag) in [
            (&[][..], None),
            (&[0x81, 0, 0, 20], Some(20)),
            (&[0x81, 0, 0xe0, 0], None),
            (&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 20], Some(7)),
        ] {
            let mut frame = probe.emit(SOURCE, None);
            frame.splice(12..12, tags.iter().copied());
            assert_eq!(ReceivedProbe::parse(&frame), Some(ReceivedProbe { tag, probe }));
        }
    }

    #[test]
    fn recent_probe_rounds_contain_the_newest_and_those_before_it() {
        for newest in [0, 2, 7, u32::MAX] {
            let rounds = RecentRounds { newest, count: 3 };
            assert_eq!(RecentRounds::from_bits(rounds.to_bits()), rounds);
            let contains = |age: u32| rounds.contains(newest.wrapping_sub(age));
            assert_eq!([u32::MAX, 0, 1, 2, 3, 1000].map(contains), [false, true, true, true, false, false]);
        }
        assert!(!RecentRounds { newest: 7, count: 0 }.contains(7));
    }

    #[test]
    fn other_frames_are_no_probes() {
        let valid = probe(&mut Dice(7)).emit(SOURCE, None);
        let length = 14 + 36;
        assert!(ReceivedProbe::parse(&valid[..length]).is_some(), "padding is not needed");
        assert!((0..length).all(|length| ReceivedProbe::parse(&valid[..length]).is_none()));
        // Destination, EtherType, skip count, function, magic, version, flags.
        for at in (0..6).chain(12..18).chain(20..26) {
            let mut frame = valid.clone();
            frame[at] ^= 1;
            assert_eq!(ReceivedProbe::parse(&frame), None, "byte {at}");
        }
    }

    #[test]
    fn random_and_mutated_frames_do_not_panic_and_read_as_they_are_written() {
        let mut dice = Dice(setting("HOLDFAST_FUZZ_SEED", 0x900d_1009));
        let frames = setting("HOLDFAST_FUZZ_FRAMES", 50_000);
        let mut read = 0;
        for _ in 0..frames {
            let written = probe(&mut dice);
            let mut frame = written.emit(SOURCE, (dice.below(2) == 0).then(|| 1 + dice.below(4094) as u16));
            match dice.below(8) {
                0 => assert_eq!(ReceivedProbe::parse(&frame).map(|received| received.probe), Some(written)),
                1 => frame.truncate(dice.below(frame.len() + 1)),
                2 => frame = (0..dice.below(200)).map(|_| dice.next() as u8).collect(),
                _ => (0..1 + dice.below(6)).for_each(|_| {
                    let at = dice.below(frame.len());
                    frame[at] ^= 1 << dice.below(8);
                }),
            }
            read += u64::from(ReceivedProbe::parse(&frame).is_some());
            let _ = LoopProbe::read_at(&frame, dice.below(300));
        }
        println!("{read} of {frames} read");
        assert!(frames < 10_000 || (frames / 8..frames).contains(&read), "{read}");
    }
}
