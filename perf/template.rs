//! Frames for benchmarks; the addresses are filled in later.

/// The headers of a frame behind its addresses and its VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// UDP over IPv4.
    Udp,
    /// TCP over IPv4.
    Tcp,
    /// UDP over IPv6.
    Ipv6,
}

/// A frame of `len` bytes with zero addresses and `mark` as DSCP and ECN. With `tag`, it is in that VLAN, and its PCP
/// is the class that the DSCP selects.
pub fn template(headers: Headers, mark: u8, tag: Option<u16>, len: usize) -> Vec<u8> {
    let mut frame = vec![0; 12];
    if let Some(vlan) = tag {
        frame.extend(0x8100_u16.to_be_bytes());
        frame.extend((u16::from(mark >> 5) << 13 | vlan).to_be_bytes());
    }
    // Bytes behind the EtherType.
    let packet = (len - frame.len() - 2) as u16;
    if headers == Headers::Ipv6 {
        let [upper, lower] = (packet - 40).to_be_bytes();
        frame.extend([0x86, 0xdd, 0x60 | mark >> 4, mark << 4, 0, 0, upper, lower, 17, 64]);
        frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        frame.extend([0xc0, 0, 0x12, 0xb7, upper, lower, 0, 0]);
    } else {
        let protocol = if headers == Headers::Tcp { 6 } else { 17 };
        let ([upper, lower], [udp_upper, udp_lower]) = (packet.to_be_bytes(), (packet - 20).to_be_bytes());
        frame.extend([8, 0, 0x45, mark, upper, lower, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        // UDP header, or the TCP header: a sequence number and a header length of five words.
        frame.extend([0xc0, 0, 0x12, 0xb7, udp_upper, udp_lower, 0, 0, 0, 0, 0, 0, 0x50, 0x10]);
    }
    frame.resize(len, 0);
    frame
}
