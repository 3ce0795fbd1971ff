//! Inserts a VLAN tag into a frame, removes or replaces one, and changes its priority or its VLAN id.

use super::parse::ETHERTYPE_VLAN;
use crate::io::Packet;

const ADDRESSES_LEN: usize = 12;
/// Bytes of an 802.1Q tag.
pub const TAG_LEN: usize = 4;

/// Inserts a customer tag behind the addresses. Returns false if the buffer has no room in front, or the frame is too
/// short.
#[must_use]
pub fn insert(packet: &mut impl Packet, tci: u16) -> bool {
    if packet.len() < ADDRESSES_LEN || !packet.push_front(TAG_LEN) {
        return false;
    }
    let bytes = packet.bytes_mut();
    bytes.copy_within(TAG_LEN..TAG_LEN + ADDRESSES_LEN, 0);
    bytes[ADDRESSES_LEN..ADDRESSES_LEN + 2].copy_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
    bytes[ADDRESSES_LEN + 2..ADDRESSES_LEN + 4].copy_from_slice(&tci.to_be_bytes());
    true
}

/// Removes the outermost tag. The caller ensures that the frame has one. Returns false if the frame is too short for a
/// tag.
#[must_use]
pub fn remove(packet: &mut impl Packet) -> bool {
    if packet.len() < ADDRESSES_LEN + TAG_LEN {
        return false;
    }
    packet.bytes_mut().copy_within(..ADDRESSES_LEN, TAG_LEN);
    packet.pull_front(TAG_LEN)
}

/// Replaces the outermost tag by a customer tag. The caller ensures that the frame has a tag.
#[inline]
pub fn replace(packet: &mut impl Packet, tci: u16) {
    if let Some(tag) = packet.bytes_mut().get_mut(ADDRESSES_LEN..).and_then(|bytes| bytes.first_chunk_mut()) {
        *tag = (u32::from(ETHERTYPE_VLAN) << 16 | u32::from(tci)).to_be_bytes();
    }
}

/// Sets the priority of the outermost tag and keeps its other bits. The caller ensures that the frame has a tag.
///
/// IEEE 802.1Q YANG (clause 6.9.3): the encoding table "encodes the priority and drop-eligible parameters in the PCP
/// field of the VLAN tag." The drop eligible indicator (DEI) stays as received.
pub fn set_pcp(packet: &mut impl Packet, pcp: u8) {
    if let Some(high) = packet.bytes_mut().get_mut(ADDRESSES_LEN + 2) {
        *high = *high & 0x1f | pcp << 5;
    }
}

/// Sets the VLAN id of the outermost tag and keeps its other bits. The caller ensures that the frame has a tag.
pub fn set_id(packet: &mut impl Packet, vlan: u16) {
    if let Some(tci) = packet.bytes_mut().get_mut(ADDRESSES_LEN + 2..ADDRESSES_LEN + 4) {
        let [high, low] = vlan.to_be_bytes();
        tci[0] = tci[0] & 0xf0 | high & 0x0f;
        tci[1] = low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::memory::MemPacket;

    #[test]
    fn vlan_tag_is_inserted_and_removed() {
        let frame: Vec<u8> = (0..60).collect();
        let mut packet = MemPacket::new(&frame);
        assert!(insert(&mut packet, 3 << 13 | 100));
        assert_eq!(packet.len(), 64);
        assert_eq!(packet.bytes()[..12], frame[..12]);
        assert_eq!(packet.bytes()[12..16], [0x81, 0x00, 0x60, 100]);
        assert_eq!(packet.bytes()[16..], frame[12..]);
        set_id(&mut packet, 0x123);
        assert_eq!(packet.bytes()[14..16], [0x61, 0x23]);
        packet.bytes_mut()[12] = 0x88;
        replace(&mut packet, 5 << 13 | 0x456);
        assert_eq!(packet.bytes()[12..16], [0x81, 0x00, 0xa4, 0x56]);
        assert!(remove(&mut packet));
        assert_eq!(packet.bytes(), &frame[..]);
    }

    #[test]
    fn vlan_insert_fails_without_headroom() {
        let mut packet = MemPacket::new(&[0; 60]);
        let room = (0..).take_while(|_| insert(&mut packet, 1)).count();
        assert_eq!(packet.len(), 60 + room * TAG_LEN, "a refused tag leaves the frame as it was");
        assert!(!remove(&mut MemPacket::new(&[0; 15])));
    }
}
