//! Reads LLDP data units by the rules of 802.1AB clause 9.2.7.7.

use std::ops::RangeInclusive;

use super::dcb::{CongestionNotification, EtsConfiguration, EtsRecommendation, PfcConfiguration, read_applications};
use super::{
    Aggregation, Capabilities, ChassisId, Lldpdu, MOST_ADDRESSES, MOST_STRING, MOST_VLAN_NAME, MOST_VLANS, MacPhy,
    ManagementAddress, PortId, Text, VlanName, kind, organisation,
};
use crate::wire::MacAddr;
use crate::wire::parse::ETHERTYPE_LLDP;

/// Bytes of an Ethernet header.
const HEADER_LEN: usize = 14;
/// Information strings of the chassis ID and the port ID: a subtype and 1 to 255 bytes.
const ID_LENGTHS: RangeInclusive<usize> = 2..=256;
/// Information strings of a TTL TLV. Bytes beyond the second are ignored.
const TTL_LENGTHS: RangeInclusive<usize> = 2..=511;

/// A data unit that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The data unit.
    pub pdu: Lldpdu,
    /// Source address of the frame.
    pub source: MacAddr,
    /// TLVs that were discarded for an error (statsTLVsDiscardedTotal, clause 9.2.6.5).
    pub discarded: u32,
    /// TLVs of unknown types or organisations (statsTLVsUnrecognizedTotal, clause 9.2.6.6).
    pub unrecognized: u32,
}

/// The reason why a frame is no LLDP, or why its whole data unit is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The frame has another EtherType or destination than the nearest bridge.
    #[error("not LLDP for this port")]
    NotLldp,
    /// The first TLV is no valid chassis ID.
    #[error("the first TLV is no valid chassis ID")]
    ChassisId,
    /// The second TLV is no valid port ID.
    #[error("the second TLV is no valid port ID")]
    PortId,
    /// The third TLV is no valid TTL.
    #[error("the third TLV is no valid TTL")]
    Ttl,
    /// One of these three TLVs occurs again.
    #[error("a mandatory TLV occurs twice")]
    Repeated,
}

/// Whether a frame is untagged LLDP to the nearest bridge, the only group address that this agent listens to.
#[must_use]
pub fn is_lldp(frame: &[u8]) -> bool {
    frame.starts_with(&MacAddr::LLDP.0) && frame.get(12..HEADER_LEN) == Some(&ETHERTYPE_LLDP.to_be_bytes())
}

/// Reads the data unit of a frame.
///
/// Clause 9.2.7.7, in substance: the first three TLVs must be chassis ID, port ID and TTL, in this order, each once and
/// of a valid length; otherwise the data unit is discarded. TTL 0 ends the reading: the sender stops. Another TLV
/// with an error is discarded alone. TLVs that the receiver does not know are counted and skipped.
///
/// # Errors
/// The reason why the frame is ignored or its data unit discarded.
pub fn parse(frame: &[u8]) -> Result<Parsed, Refusal> {
    let source = match frame.get(6..12).and_then(<[u8]>::first_chunk) {
        Some(source) if is_lldp(frame) => MacAddr(*source),
        _ => return Err(Refusal::NotLldp),
    };
    let mut remaining = &frame[HEADER_LEN..];
    let chassis = mandatory(&mut remaining, kind::CHASSIS_ID, ID_LENGTHS, Refusal::ChassisId)?;
    let port = mandatory(&mut remaining, kind::PORT_ID, ID_LENGTHS, Refusal::PortId)?;
    let ttl = mandatory(&mut remaining, kind::TTL, TTL_LENGTHS, Refusal::Ttl)?;
    let chassis = ChassisId { subtype: chassis[0], id: chassis[1..].to_vec() };
    let port = PortId { subtype: port[0], id: port[1..].to_vec() };
    let pdu = Lldpdu::new(chassis, port, u16::from_be_bytes([ttl[0], ttl[1]]));
    let mut parsed = Parsed { pdu, source, discarded: 0, unrecognized: 0 };
    if parsed.pdu.ttl > 0 {
        parsed.read_optional(remaining)?;
    }
    Ok(parsed)
}

/// A TLV at the front of the remaining bytes.
enum Next<'a> {
    /// No bytes are left.
    None,
    /// The TLV extends past the end of the frame.
    Cut,
    /// A whole TLV, and the bytes behind it.
    Tlv(u8, &'a [u8], &'a [u8]),
}

/// Splits the first TLV off `bytes` (clause 8.4).
fn next(bytes: &[u8]) -> Next<'_> {
    if bytes.is_empty() {
        return Next::None;
    }
    let Some(([high, low], remaining)) = bytes.split_first_chunk() else { return Next::Cut };
    let length = usize::from(high & 1) << 8 | usize::from(*low);
    match remaining.split_at_checked(length) {
        Some((value, remaining)) => Next::Tlv(high >> 1, value, remaining),
        None => Next::Cut,
    }
}

/// Reads a mandatory TLV and returns its information string, whose length is one of `lengths`.
fn mandatory<'a>(
    remaining: &mut &'a [u8],
    kind: u8,
    lengths: RangeInclusive<usize>,
    refusal: Refusal,
) -> Result<&'a [u8], Refusal> {
    match next(remaining) {
        Next::Tlv(found, value, behind) if found == kind && lengths.contains(&value.len()) => {
            *remaining = behind;
            Ok(value)
        }
        _ => Err(refusal),
    }
}

/// The treatment of one TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treated {
    Taken,
    Discarded,
    Unrecognized,
}

impl Parsed {
    /// Reads the TLVs behind the mandatory ones. Bytes behind the end of the data unit are padding.
    fn read_optional(&mut self, mut remaining: &[u8]) -> Result<(), Refusal> {
        loop {
            let treated = match next(remaining) {
                Next::None | Next::Tlv(kind::END, [], _) => return Ok(()),
                // Nothing behind it can be found.
                Next::Cut | Next::Tlv(kind::END, ..) => {
                    self.discarded += 1;
                    return Ok(());
                }
                Next::Tlv(kind::CHASSIS_ID | kind::PORT_ID | kind::TTL, ..) => return Err(Refusal::Repeated),
                Next::Tlv(kind, value, behind) => {
                    remaining = behind;
                    self.pdu.take(kind, value)
                }
            };
            self.discarded += u32::from(treated == Treated::Discarded);
            self.unrecognized += u32::from(treated == Treated::Unrecognized);
        }
    }
}

/// Stores a value. Without a value, which is an error, or if there is one already, the TLV is discarded: each of these
/// TLVs may occur once (clauses 8.5.5 to 8.5.8, 802.1Q annex D, 802.3 clause 79).
fn set<T>(place: &mut Option<T>, value: Option<T>) -> Treated {
    match value {
        Some(value) if place.is_none() => {
            *place = Some(value);
            Treated::Taken
        }
        _ => Treated::Discarded,
    }
}

/// Adds a value to a list of at most `most`. Further ones are valid and not kept.
fn add<T>(list: &mut Vec<T>, most: usize, value: Option<T>) -> Treated {
    let Some(value) = value else { return Treated::Discarded };
    if list.len() < most {
        list.push(value);
    }
    Treated::Taken
}

fn string(value: &[u8]) -> Option<Text> {
    (value.len() <= MOST_STRING).then(|| Text::from_wire(value))
}

fn be16(value: &[u8]) -> Option<u16> {
    value.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

impl Lldpdu {
    /// Takes a TLV behind the mandatory ones. Clause 9.2.7.7, in substance: an information string shorter than its
    /// fixed fields is an error; bytes behind the known fields are ignored.
    fn take(&mut self, kind: u8, value: &[u8]) -> Treated {
        match kind {
            kind::PORT_DESCRIPTION => set(&mut self.port_description, string(value)),
            kind::SYSTEM_NAME => set(&mut self.system_name, string(value)),
            kind::SYSTEM_DESCRIPTION => set(&mut self.system_description, string(value)),
            kind::CAPABILITIES => {
                let read = value.first_chunk().map(|&[a, b, c, d]| Capabilities {
                    supported: u16::from_be_bytes([a, b]),
                    enabled: u16::from_be_bytes([c, d]),
                });
                set(&mut self.capabilities, read)
            }
            kind::MANAGEMENT_ADDRESS => add(&mut self.management, MOST_ADDRESSES, management_address(value)),
            kind::ORGANISATION => match value.split_first_chunk::<3>() {
                Some((&oui, [subtype, information @ ..])) => self.take_organisation(oui, *subtype, information),
                _ => Treated::Discarded,
            },
            _ => Treated::Unrecognized,
        }
    }

    fn take_organisation(&mut self, oui: [u8; 3], subtype: u8, value: &[u8]) -> Treated {
        let (dot1, dot3) = (&mut self.dot1, &mut self.dot3);
        match (oui, subtype) {
            (organisation::DOT1, organisation::PORT_VLAN) => set(&mut dot1.port_vlan, be16(value)),
            (organisation::DOT1, organisation::VLAN_NAME) => add(&mut dot1.vlan_names, MOST_VLANS, vlan_name(value)),
            (organisation::DOT1, organisation::AGGREGATION) => set(&mut dot1.aggregation, aggregation(value)),
            (organisation::DOT1, organisation::CONGESTION) => {
                set(&mut dot1.congestion, CongestionNotification::read(value))
            }
            (organisation::DOT1, organisation::ETS_CONFIGURATION) => set(&mut dot1.ets, EtsConfiguration::read(value)),
            (organisation::DOT1, organisation::ETS_RECOMMENDATION) => {
                set(&mut dot1.ets_recommendation, EtsRecommendation::read(value))
            }
            (organisation::DOT1, organisation::PFC) => set(&mut dot1.pfc, PfcConfiguration::read(value)),
            (organisation::DOT1, organisation::APPLICATION) => set(&mut dot1.applications, read_applications(value)),
            (organisation::DOT3, organisation::MAC_PHY) => set(&mut dot3.mac_phy, mac_phy(value)),
            (organisation::DOT3, organisation::DOT3_AGGREGATION) => set(&mut dot3.aggregation, aggregation(value)),
            (organisation::DOT3, organisation::MAX_FRAME) => set(&mut dot3.max_frame, be16(value)),
            (organisation::HOLDFAST, organisation::INSTANCE) => {
                set(&mut self.instance, value.first_chunk().copied().map(u64::from_be_bytes))
            }
            (organisation::CEE, organisation::CEE_DCBX) => {
                self.speaks_cee = true;
                Treated::Taken
            }
            _ => Treated::Unrecognized,
        }
    }
}

/// Clause 8.5.9: length of family and address, family, address, subtype and number of the interface, length of the
/// object identifier, object identifier.
fn management_address(value: &[u8]) -> Option<ManagementAddress> {
    let (&length, remaining) = value.split_first()?;
    let (address, remaining) = remaining.split_at_checked(length.into()).filter(|_| (2..=32).contains(&length))?;
    let (&[interface_subtype, a, b, c, d, oid_length], remaining) = remaining.split_first_chunk()?;
    let oid = remaining.get(..usize::from(oid_length)).filter(|oid| oid.len() <= 128)?;
    Some(ManagementAddress {
        family: address[0],
        address: address[1..].to_vec(),
        interface_subtype,
        interface: u32::from_be_bytes([a, b, c, d]),
        oid: oid.to_vec(),
    })
}

/// 802.1Q D.2.3: VLAN id, length of the name, name.
fn vlan_name(value: &[u8]) -> Option<VlanName> {
    let (&[high, low, length], remaining) = value.split_first_chunk()?;
    let name = remaining.get(..usize::from(length)).filter(|name| name.len() <= MOST_VLAN_NAME)?;
    Some(VlanName { vlan: u16::from_be_bytes([high, low]), name: Text::from_wire(name) })
}

/// Status (bit 0 capability, bit 1 status) and identifier of the aggregated port.
fn aggregation(value: &[u8]) -> Option<Aggregation> {
    let (&[status, a, b, c, d], _) = value.split_first_chunk()?;
    let port = u32::from_be_bytes([a, b, c, d]);
    Some(Aggregation { is_capable: status & 1 != 0, is_enabled: status & 2 != 0, port })
}

/// 802.3 clause 79.3.1: auto-negotiation, advertised capabilities, MAU type.
fn mac_phy(value: &[u8]) -> Option<MacPhy> {
    let (&[status, a, b, c, d], _) = value.split_first_chunk()?;
    Some(MacPhy {
        has_autonegotiation: status & 1 != 0,
        autonegotiates: status & 2 != 0,
        advertised: u16::from_be_bytes([a, b]),
        mau: u16::from_be_bytes([c, d]),
    })
}
