//! Datagrams of sFlow version 5: a header and samples.

use std::net::IpAddr;

use super::xdr::Xdr;
use crate::units::Nanos;

/// The longest datagram: it fits an MTU of 1500 with the headers of tunnels (sFlow version 5, section 4).
pub const MOST_BYTES: usize = 1400;
/// Bytes of the longest header.
const HEADER: usize = 40;

const VERSION: u32 = 5;
/// Types of addresses.
const IPV4: u32 = 1;
const IPV6: u32 = 2;
/// The switch has one instance of sFlow.
const SUB_AGENT: u32 = 0;

/// The datagram that is being filled.
#[derive(Debug)]
pub struct Datagrams {
    agent: IpAddr,
    sequence: u32,
    samples: Vec<u8>,
    count: u32,
    datagram: Vec<u8>,
}

impl Datagrams {
    /// Creates the datagrams of `agent`.
    #[must_use]
    pub fn new(agent: IpAddr) -> Self {
        Self { agent, sequence: 0, samples: Vec::new(), count: 0, datagram: Vec::new() }
    }

    /// Adds a sample. A datagram without room for it is passed to `send` before. Returns false if no datagram has room.
    pub fn add(&mut self, sample: &[u8], now: Nanos, send: &mut impl FnMut(&[u8])) -> bool {
        if sample.len() > MOST_BYTES - HEADER {
            return false;
        }
        if self.samples.len() + sample.len() > MOST_BYTES - HEADER {
            self.flush(now, send);
        }
        self.samples.extend_from_slice(sample);
        self.count += 1;
        true
    }

    /// Passes the datagram to `send`, unless it has no sample.
    pub fn flush(&mut self, now: Nanos, send: &mut impl FnMut(&[u8])) {
        if self.count == 0 {
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.datagram.clear();
        let mut header = Xdr(&mut self.datagram);
        header.u32(VERSION);
        match self.agent {
            IpAddr::V4(address) => header.u32(IPV4).0.extend(address.octets()),
            IpAddr::V6(address) => header.u32(IPV6).0.extend(address.octets()),
        }
        header.u32(SUB_AGENT).u32(self.sequence).count(now.0 / 1_000_000).u32(self.count);
        self.datagram.extend_from_slice(&self.samples);
        send(&self.datagram);
        self.samples.clear();
        self.count = 0;
    }
}
