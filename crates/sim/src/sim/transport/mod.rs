//! Reliable transport between simulated hosts: ACKs, NAKs, timeouts, retransmission and windows, as RDMA queue pairs
//! have them.
//!
//! Frames of a flow have consecutive numbers, the packet sequence numbers of InfiniBand (volume 1, section 9.7), which
//! never wrap here. An ACK is cumulative: it names the first frame that is missing.

mod receiver;
mod sender;

pub use receiver::{Arrived, Receipt, Receiver};
pub use sender::{Frame, Sender};

use crate::units::{Bytes, Nanos};

/// Bytes of an ACK without the frame check sequence: Ethernet, IPv4, UDP, BTH, AETH, invariant CRC.
pub const ACK_LEN: u16 = 14 + 20 + 8 + 12 + 4 + 4;

/// How a flow recovers from a lost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// The receiver discards frames behind a gap. The sender goes back to the gap.
    #[default]
    GoBackN,
    /// The receiver keeps frames behind a gap. The sender sends only the missing ones (IRN, Mittal et al., SIGCOMM
    /// 2018, section 3.1).
    SelectiveRepeat,
    /// The receiver discards the whole message. The sender begins it again (Guo et al., SIGCOMM 2016, section 4.1).
    GoBack0,
}

/// The settings of a reliable flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportSpec {
    /// Recovery from a lost frame.
    pub recovery: Recovery,
    /// Frames between two ACKs. The last frame of a message is always acknowledged.
    pub ack_every: u32,
    /// Most bytes in flight; `None`: no limit.
    pub window: Option<Bytes>,
    /// Bytes of each frame that windows do not count. HPCC's simulator counts no headers.
    pub uncounted: Bytes,
    /// Whether the window shrinks with the rate of congestion control, as in HPCC's comparison.
    pub scales_window: bool,
    /// Time without progress after which frames in flight count as lost; `None`: a millisecond, or four round trips of
    /// the empty path if that is longer.
    pub timeout: Option<Nanos>,
    /// Timeouts and NAKs in a row without progress after which the flow fails. A queue pair then enters its error state
    /// (InfiniBand volume 1, section 9.9.2.1: at most 7). With go-back-0 NAKs do not count.
    pub retries: u32,
    /// Shortest time between two NAKs for one gap.
    pub nak_interval: Nanos,
    /// DSCP of ACKs; `None`: that of the data.
    pub ack_dscp: Option<u8>,
}

impl Default for TransportSpec {
    fn default() -> Self {
        Self {
            recovery: Recovery::GoBackN,
            ack_every: 1,
            window: None,
            uncounted: Bytes(0),
            scales_window: false,
            timeout: None,
            retries: 7,
            nak_interval: Nanos(500_000),
            ack_dscp: None,
        }
    }
}

/// An ACK or NAK, as the receiver sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Number of the first frame that the receiver misses.
    pub cumulative: u64,
    /// Whether it reports a gap.
    pub is_nak: bool,
    /// The frame that caused the reply, if the receiver has it; else the one before `cumulative`.
    pub cause: u64,
    /// Frames that arrived since the last reply, and those of them that were marked CE.
    pub frames: u16,
    /// Frames of these that were marked CE.
    pub marked: u16,
    /// Time at which the frame that caused the reply began to leave the sender.
    pub born_ps: u64,
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
