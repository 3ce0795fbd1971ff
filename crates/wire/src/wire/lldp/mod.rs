//! LLDP data units (IEEE 802.1AB-2016), with the organisationally specific TLVs of 802.1Q annex D and 802.3 clause 79.
//!
//! A frame is `destination | source | 88 CC | TLVs`. A TLV has a header of 7 bits of type and 9 bits of length, then
//! its information string (clause 8.4). Chassis ID, port ID and TTL come first, in this order.
//!
//! # Example
//!
//! ```
//! use holdfast_wire::wire::MacAddr;
//! use holdfast_wire::wire::lldp::{self, ChassisId, Lldpdu, PortId};
//!
//! let mac = MacAddr::local(0, 1);
//! let pdu = Lldpdu::new(ChassisId::mac(mac), PortId::name("p1"), 121);
//! let frame = pdu.emit(mac).frame;
//! assert_eq!(lldp::parse(&frame).expect("it is LLDP").pdu, pdu);
//! ```

mod build;
pub mod dcb;
mod identity;
mod parse;
mod text;

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

pub use build::Emitted;
pub use dcb::{
    Algorithm, Application, CongestionNotification, EtsConfiguration, EtsRecommendation, EtsTable, PfcConfiguration,
    Selector,
};
pub use identity::{Capabilities, ChassisId, ManagementAddress, PortId};
pub use parse::{Parsed, Refusal, is_lldp, parse};
pub use text::Text;

/// The longest string of a TLV, in bytes.
pub const MOST_STRING: usize = 255;
/// Management addresses that are kept of a data unit.
pub const MOST_ADDRESSES: usize = 8;
/// VLAN names that are kept of a data unit.
pub const MOST_VLANS: usize = 32;
/// The longest name of a VLAN (802.1Q D.2.3).
pub const MOST_VLAN_NAME: usize = 32;

/// Types of TLVs (802.1AB table 8-1).
mod kind {
    pub const END: u8 = 0;
    pub const CHASSIS_ID: u8 = 1;
    pub const PORT_ID: u8 = 2;
    pub const TTL: u8 = 3;
    pub const PORT_DESCRIPTION: u8 = 4;
    pub const SYSTEM_NAME: u8 = 5;
    pub const SYSTEM_DESCRIPTION: u8 = 6;
    pub const CAPABILITIES: u8 = 7;
    pub const MANAGEMENT_ADDRESS: u8 = 8;
    pub const ORGANISATION: u8 = 127;
}

/// Organisations and the subtypes of their TLVs.
mod organisation {
    /// IEEE 802.1.
    pub const DOT1: [u8; 3] = [0x00, 0x80, 0xc2];
    pub const PORT_VLAN: u8 = 0x01;
    pub const VLAN_NAME: u8 = 0x03;
    pub const AGGREGATION: u8 = 0x07;
    pub const CONGESTION: u8 = 0x08;
    pub const ETS_CONFIGURATION: u8 = 0x09;
    pub const ETS_RECOMMENDATION: u8 = 0x0a;
    pub const PFC: u8 = 0x0b;
    pub const APPLICATION: u8 = 0x0c;

    /// IEEE 802.3.
    pub const DOT3: [u8; 3] = [0x00, 0x12, 0x0f];
    pub const MAC_PHY: u8 = 0x01;
    pub const DOT3_AGGREGATION: u8 = 0x03;
    pub const MAX_FRAME: u8 = 0x04;

    /// Holdfast: a locally administered identifier, since it has no registered one.
    pub const HOLDFAST: [u8; 3] = [0x02, 0x48, 0x46];
    pub const INSTANCE: u8 = 0x01;

    /// DCBX of the Converged Enhanced Ethernet authors, before 802.1Qaz.
    pub const CEE: [u8; 3] = [0x00, 0x1b, 0x21];
    pub const CEE_DCBX: u8 = 0x02;
}

/// A link aggregation TLV (802.1AX; the older form of 802.3 has the same layout).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Aggregation {
    /// Whether the link can be aggregated.
    pub is_capable: bool,
    /// Whether the link is aggregated.
    pub is_enabled: bool,
    /// Identifier of the aggregated port; zero without aggregation.
    pub port: u32,
}

/// A MAC/PHY configuration TLV (802.3 clause 79.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacPhy {
    /// Whether the port has auto-negotiation.
    pub has_autonegotiation: bool,
    /// Whether auto-negotiation is on.
    pub autonegotiates: bool,
    /// Bits of the advertised capabilities.
    pub advertised: u16,
    /// Operational MAU type of the IETF's list.
    pub mau: u16,
}

/// The name of a VLAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VlanName {
    /// VLAN id.
    pub vlan: u16,
    /// Name.
    pub name: Text,
}

/// TLVs of 802.1 (802.1Q annex D).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Dot1 {
    /// VLAN of untagged frames; `Some(0)`: the port has none (D.2.1).
    pub port_vlan: Option<u16>,
    /// Names of VLANs, at most [`MOST_VLANS`] (D.2.3).
    pub vlan_names: Vec<VlanName>,
    /// Link aggregation.
    pub aggregation: Option<Aggregation>,
    /// Congestion notification (D.2.7).
    pub congestion: Option<CongestionNotification>,
    /// ETS configuration (D.2.8).
    pub ets: Option<EtsConfiguration>,
    /// ETS recommendation (D.2.9).
    pub ets_recommendation: Option<EtsRecommendation>,
    /// PFC configuration (D.2.10).
    pub pfc: Option<PfcConfiguration>,
    /// Application priorities (D.2.11).
    pub applications: Option<Vec<Application>>,
}

/// TLVs of 802.3 (802.3 clause 79).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Dot3 {
    /// MAC and PHY.
    pub mac_phy: Option<MacPhy>,
    /// Link aggregation in its older form.
    pub aggregation: Option<Aggregation>,
    /// The longest frame with header and frame check sequence, in bytes.
    ///
    /// 802.3 clause 79.3.4, in substance: 1518 for a port with basic frames only, 1522 with Q-tagged ones, 2000 with
    /// envelope frames, and the supported size of any other port.
    pub max_frame: Option<u16>,
}

/// An LLDP data unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lldpdu {
    /// Chassis of the sender.
    pub chassis: ChassisId,
    /// Port of the sender.
    pub port: PortId,
    /// Seconds for which the information holds. Zero: the sender stops, and sends no other TLVs.
    pub ttl: u16,
    /// Description of the port.
    pub port_description: Option<Text>,
    /// Name of the system.
    pub system_name: Option<Text>,
    /// Description of the system.
    pub system_description: Option<Text>,
    /// Capabilities of the system.
    pub capabilities: Option<Capabilities>,
    /// Addresses for management, at most [`MOST_ADDRESSES`].
    pub management: Vec<ManagementAddress>,
    /// TLVs of 802.1.
    pub dot1: Dot1,
    /// TLVs of 802.3.
    pub dot3: Dot3,
    /// Number of the port in the present run of its switch, which recognizes its own data units by it. Equal addresses
    /// and names do not suffice: switches without configured addresses share them. Its TLV has a locally administered
    /// identifier.
    pub instance: Option<u64>,
    /// Whether the sender speaks the pre-standard DCBX of CEE, which is recognized and not obeyed. Never sent.
    pub speaks_cee: bool,
}

impl Lldpdu {
    /// Creates a data unit of the mandatory TLVs alone.
    #[must_use]
    pub fn new(chassis: ChassisId, port: PortId, ttl: u16) -> Self {
        Self {
            chassis,
            port,
            ttl,
            port_description: None,
            system_name: None,
            system_description: None,
            capabilities: None,
            management: Vec::new(),
            dot1: Dot1::default(),
            dot3: Dot3::default(),
            instance: None,
            speaks_cee: false,
        }
    }

    /// Whether both data units are from the same port of the same chassis (the MSAP identifier, clause 8.5).
    #[must_use]
    pub fn is_same_sender(&self, other: &Self) -> bool {
        self.chassis == other.chassis && self.port == other.port
    }
}
