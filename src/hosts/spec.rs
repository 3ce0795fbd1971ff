//! What virtual hosts there are and what they send.

use std::net::Ipv4Addr;

use crate::units::{BitRate, Nanos};
use crate::wire::MacAddr;

/// A host on an in-process port of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Name in tables and errors.
    pub name: String,
    /// Index of the switch port it hangs on.
    pub port: usize,
    /// Its address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Rate of its link: that of the switch port.
    pub rate: BitRate,
    /// Whether it stops when PFC tells it to. One that does not is a broken host, to see what it harms.
    pub obeys_pfc: bool,
    /// What it sends.
    pub flows: Vec<FlowSpec>,
}

/// Where a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowTarget {
    /// Another virtual host, by index.
    Host(usize),
    /// A station outside, e.g. a Linux host behind a tap.
    Station {
        /// Its MAC address.
        mac: MacAddr,
        /// Its IPv4 address.
        ip: Ipv4Addr,
    },
}

/// What the frames of a flow look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowKind {
    /// RoCEv2-shaped: UDP destination port 4791, source port by queue pair, a base transport header with a packet
    /// sequence number.
    Roce,
    /// Plain UDP.
    Udp,
}

/// How a flow spreads its frames over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowPattern {
    /// At its rate throughout.
    Steady,
    /// At its rate for `on`, then silent for `off`.
    OnOff {
        /// Time sending.
        on: Nanos,
        /// Time silent.
        off: Nanos,
    },
}

/// One flow from a virtual host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSpec {
    /// Where to.
    pub to: FlowTarget,
    /// Frames' shape.
    pub kind: FlowKind,
    /// Rate on the wire, preamble and gap included.
    pub rate: BitRate,
    /// Bytes of each frame, without the frame check sequence; from [`super::frame::min_frame_len`] (a shorter one is
    /// raised to it) to the MTU plus 14, plus 4 with a tag.
    pub frame_len: u16,
    /// DSCP of its packets.
    pub dscp: u8,
    /// PCP of its frames if they carry a tag.
    pub pcp: u8,
    /// VLAN tag, if the frames carry one.
    pub vlan: Option<u16>,
    /// Traffic class that the switch will find for it.
    pub class: u8,
    /// PFC priority that it obeys: the priority group of that class.
    pub priority: u8,
    /// Whether its packets are ECN-capable (ECT(0)).
    pub ecn: bool,
    /// Spread over time.
    pub pattern: FlowPattern,
}
