//! Data frames built field by field, with every field that decides class, size or mark.

/// A UDP datagram in a frame, to an IP address that no host has.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Length in bytes, without the frame check sequence.
    pub len: usize,
    pub dscp: u8,
    /// ECN field of the IP header, two bits.
    pub ecn: u8,
    /// Whether the packet is IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Tag control information of the VLAN tag, if there is one.
    pub tci: Option<u16>,
}

/// Bytes of a buffer cell, which is also the length of the longest frame that takes one cell.
pub const CELL: usize = 208;

/// ECN field of an ECN-capable packet: ECT(0), the codepoint that senders use.
pub const ECT: u8 = 0b10;

/// ECN field of a marked packet: congestion experienced.
pub const CE: u8 = 0b11;

impl Frame {
    /// Returns a frame of one cell in `class`, not ECN-capable. DSCPs are class selectors here.
    pub fn of(class: u8) -> Self {
        Self::with_dscp(class << 3)
    }

    /// Returns a frame of one cell with this DSCP.
    pub fn with_dscp(dscp: u8) -> Self {
        Self { len: CELL, dscp, ecn: 0, ipv6: false, tci: None }
    }

    /// Sets the length of the frame to `len` bytes.
    pub fn len(self, len: usize) -> Self {
        Self { len, ..self }
    }

    /// Makes the frame ECN-capable.
    pub fn ect(self) -> Self {
        Self { ecn: ECT, ..self }
    }

    /// Makes the packet IPv6.
    pub fn ipv6(self) -> Self {
        Self { ipv6: true, ..self }
    }

    /// Adds a VLAN tag.
    pub fn tagged(self, pcp: u16, vlan: u16) -> Self {
        Self { tci: Some(pcp << 13 | vlan), ..self }
    }

    /// Returns the bytes of the frame.
    pub fn bytes(self, source: [u8; 6], destination: [u8; 6]) -> Vec<u8> {
        let mut frame = [destination, source].concat();
        if let Some(tci) = self.tci {
            frame.extend([0x81, 0x00]);
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(if self.ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        let field = |len: usize| u16::try_from(len).expect("a frame's length").to_be_bytes();
        let packet = self.len - frame.len();
        let class = self.dscp << 2 | self.ecn;
        let udp = if self.ipv6 {
            frame.extend([0x60 | class >> 4, class << 4, 0, 0]);
            frame.extend(field(packet - 40));
            frame.extend([17, 64]);
            for host in [98, 99] {
                frame.extend([0xfd, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            }
            packet - 40
        } else {
            let mut header = vec![0x45, class];
            header.extend(field(packet));
            header.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 48, 0, 98, 10, 48, 0, 99]);
            let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            frame.extend(header);
            packet - 20
        };
        frame.extend([0xc0, 0x00, 0x12, 0xb7]);
        frame.extend(field(udp));
        // No UDP checksum: the switch does not check it, and IPv6 tunnels may omit it too.
        frame.extend([0, 0]);
        frame.resize(self.len, 0x5a);
        frame
    }
}
