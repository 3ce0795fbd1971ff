//! The origin of a frame, and the time at which it was complete at the switch.

/// Flow numbers that stand for a PFC frame of the peer: XON and XOFF.
const XON: u8 = 0xe;
const XOFF: u8 = 0xf;

/// The time in ticks at which a frame was complete at a port, the port, and the flow: one word, carried with the
/// packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival(u64);

impl Arrival {
    /// A frame of flow number `flow` (below 14) of the link at `port` (below 16). Ticks of 56 bits last about ten
    /// months.
    #[inline]
    pub fn new(at: u64, port: usize, flow: u8) -> Self {
        Self(at << 8 | (port as u64) << 4 | u64::from(flow))
    }

    /// A PFC frame of the peer at `port`.
    #[inline]
    pub fn pfc(at: u64, port: usize, xoff: bool) -> Self {
        Self::new(at, port, if xoff { XOFF } else { XON })
    }

    /// The time from which the frame could be received, in ticks.
    #[inline]
    pub fn at(self) -> u64 {
        self.0 >> 8
    }

    /// The ingress port.
    #[inline]
    pub fn port(self) -> usize {
        (self.0 >> 4 & 0xf) as usize
    }

    /// The flow, as an index of the link's flows.
    #[inline]
    pub fn flow(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// `Some(true)` for XOFF, `Some(false)` for XON, `None` for a data frame.
    #[inline]
    pub fn as_pfc(self) -> Option<bool> {
        match (self.0 & 0xf) as u8 {
            XON => Some(false),
            XOFF => Some(true),
            _ => None,
        }
    }
}
