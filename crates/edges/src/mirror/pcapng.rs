//! Blocks of pcapng files (draft-ietf-opsawg-pcapng), in little-endian order.
//!
//! A section has one interface for each port of the switch, and times in nanoseconds. Its packets have a comment, the
//! direction, and the number of copies of the port that the file misses since the packet before.

use super::facts::SwitchFacts;

/// Types of blocks (section 4).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// The order of the bytes, which readers recognise by this number.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;

/// Options of all blocks (section 3.5).
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Options of the section header.
const HARDWARE: u16 = 2;
const OS: u16 = 3;
const APPLICATION: u16 = 4;
/// Options of an interface.
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
/// Options of a packet.
const FLAGS: u16 = 2;
const DROP_COUNT: u16 = 4;
/// Value of [`FLAGS`]: the packet was received.
const INBOUND: u32 = 1;
/// Value of [`IF_TSRESOL`]: times in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Port that received the frame, which is the number of the interface.
    pub port: u8,
    /// Nanoseconds since 1970 in UTC.
    pub at: u64,
    /// The first bytes of the frame.
    pub bytes: &'a [u8],
    /// Length of the frame.
    pub len: u16,
    /// Event and state.
    pub comment: &'a str,
}

/// Whether a file that begins with `bytes` begins with a section header. Its number is the same in both orders.
#[must_use]
pub fn is_section(bytes: &[u8]) -> bool {
    bytes.starts_with(&SECTION_HEADER.to_le_bytes())
}

/// Appends the section header and the interfaces of the switch. Packets have at most `snap` bytes.
pub fn section(into: &mut Vec<u8>, facts: &SwitchFacts, snap: u16) {
    block(into, SECTION_HEADER, |body| {
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0, and a section of unknown length.
        body.extend([1, 0, 0, 0]);
        body.extend((-1_i64).to_le_bytes());
        option(body, HARDWARE, std::env::consts::ARCH.as_bytes());
        option(body, OS, std::env::consts::OS.as_bytes());
        option(body, APPLICATION, facts.program.as_bytes());
        option(body, END_OF_OPTIONS, &[]);
    });
    for port in &facts.ports {
        block(into, INTERFACE_DESCRIPTION, |body| {
            body.extend(ETHERNET.to_le_bytes());
            body.extend([0; 2]);
            body.extend(u32::from(snap).to_le_bytes());
            option(body, IF_NAME, port.name.as_bytes());
            option(body, IF_DESCRIPTION, format!("{} of {}", port.name, facts.system).as_bytes());
            option(body, IF_SPEED, &port.rate.0.to_le_bytes());
            option(body, IF_TSRESOL, &[NANOSECONDS]);
            option(body, END_OF_OPTIONS, &[]);
        });
    }
}

/// Appends a packet. The file misses `lost` copies of its port since the packet before.
pub fn packet(into: &mut Vec<u8>, packet: &Packet<'_>, lost: u64) {
    block(into, ENHANCED_PACKET, |body| {
        body.extend(u32::from(packet.port).to_le_bytes());
        body.extend(((packet.at >> 32) as u32).to_le_bytes());
        body.extend((packet.at as u32).to_le_bytes());
        body.extend((packet.bytes.len() as u32).to_le_bytes());
        body.extend((packet.bytes.len() as u32).max(packet.len.into()).to_le_bytes());
        body.extend(packet.bytes);
        pad(body);
        option(body, COMMENT, packet.comment.as_bytes());
        option(body, FLAGS, &INBOUND.to_le_bytes());
        if lost > 0 {
            option(body, DROP_COUNT, &lost.to_le_bytes());
        }
        option(body, END_OF_OPTIONS, &[]);
    });
}

/// Appends a block. `fill` appends its body, of a multiple of four bytes.
fn block(into: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend(kind.to_le_bytes());
    into.extend([0; 4]);
    fill(into);
    let len = ((into.len() - start + 4) as u32).to_le_bytes();
    into.extend(len);
    into[start + 4..start + 8].copy_from_slice(&len);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Pads to a multiple of four bytes. All blocks before have such lengths.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::testing::pcapng_reader::{Block, read};
    use crate::mirror::tests::{any_copy, facts};
    use crate::mirror::text::describe;
    use proptest::prelude::*;

    #[test]
    fn a_packet_has_the_bytes_of_the_draft() {
        let mut bytes = Vec::new();
        let sent = Packet { port: 2, at: 0x0000_0001_0000_0002, bytes: &[0xaa; 5], len: 64, comment: "hi" };
        packet(&mut bytes, &sent, 0);
        let words: [u32; 14] = [6, 60, 2, 1, 2, 5, 64, 0xaaaa_aaaa, 0xaa, 0x0002_0001, 0x6968, 0x0004_0002, 1, 0];
        let mut wanted: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        wanted.extend(60_u32.to_le_bytes());
        assert_eq!(bytes, wanted);
    }

    #[test]
    fn a_section_names_the_ports_with_their_speeds() {
        let mut bytes = Vec::new();
        section(&mut bytes, &facts(), 128);
        let blocks = read(&bytes).expect("a section");
        assert_eq!(blocks.len(), 5);
        assert!(matches!(&blocks[0], Block::Section { application } if application == "Holdfast"));
        let Block::Interface { name, speed, resolution, snap } = &blocks[4] else { panic!("{blocks:?}") };
        assert_eq!((name.as_str(), *speed, *resolution, *snap), ("p3", 25_000_000_000, 9, 128));
    }

    proptest! {
        #[test]
        fn any_copy_is_read_back_from_its_pcapng_block(copies in prop::collection::vec((any_copy(), any::<u64>(), any::<u64>()), 0..8)) {
            let facts = facts();
            let (mut bytes, mut wanted) = (Vec::new(), Vec::new());
            section(&mut bytes, &facts, u16::MAX);
            for (copy, at, lost) in &copies {
                let mut comment = String::new();
                describe(copy, &facts, &mut comment);
                let port = copy.ingress % 4;
                let sent = Packet { port, at: *at, bytes: &copy.bytes, len: copy.len, comment: &comment };
                packet(&mut bytes, &sent, *lost);
                wanted.push(Block::Packet {
                    port: u32::from(port),
                    at: *at,
                    bytes: copy.bytes.clone(),
                    len: u32::from(copy.len),
                    comment: comment.clone(),
                    is_inbound: true,
                    lost: *lost,
                });
            }
            let blocks = read(&bytes);
            prop_assert_eq!(blocks.as_ref().map(|blocks| &blocks[5..]), Ok(&wanted[..]));
            // A file that ends inside a block is not read.
            for end in [bytes.len() - 1, bytes.len() - 4] {
                prop_assert!(read(&bytes[..end]).is_err());
            }
        }
    }
}
