//! Specifications of virtual hosts and their flows.

use std::net::Ipv4Addr;

use crate::units::{BitRate, Nanos};
use crate::wire::MacAddr;

/// A host on an in-process port of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Name in tables and errors.
    pub name: String,
    /// Index of its switch port.
    pub port: usize,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Rate of its link: that of the switch port.
    pub rate: BitRate,
    /// Whether the host obeys PFC. One that does not is a broken host, to test its effect on others.
    pub obeys_pfc: bool,
    /// Transmit queues of the host. Priority n is sent by queue n, or by the last one if there are fewer.
    pub queues: u8,
    /// Whether frames that the switch does not receive stay in these queues, as with `pfc: queue`.
    pub keeps_frames: bool,
    /// Flows that the host sends.
    pub flows: Vec<FlowSpec>,
}

/// The receiver of a flow.
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

/// The shape of a flow's frames.
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
    /// Sends at its rate throughout.
    Steady,
    /// Sends at its rate for `on`, then is silent for `off`.
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
    /// Receiver of the flow.
    pub to: FlowTarget,
    /// Shape of the frames.
    pub kind: FlowKind,
    /// Rate on the wire, preamble and gap included.
    pub rate: BitRate,
    /// Bytes of each frame, without the frame check sequence. A length below [`super::frame::min_frame_len`] is raised
    /// to it. The maximum is the MTU plus 14, plus 4 with a tag.
    pub frame_len: u16,
    /// DSCP of its packets.
    pub dscp: u8,
    /// PCP of its frames if they carry a tag.
    pub pcp: u8,
    /// VLAN id, if the frames carry a tag.
    pub vlan: Option<u16>,
    /// Traffic class that the switch assigns to the frames.
    pub class: u8,
    /// PFC priority that the flow obeys: the priority group of its class.
    pub priority: u8,
    /// Whether its packets are ECN-capable (ECT(0)).
    pub ecn: bool,
    /// Pattern of sending over time.
    pub pattern: FlowPattern,
}
