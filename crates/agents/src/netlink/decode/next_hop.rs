//! Next-hop objects: `struct nhmsg` and the attributes `NHA_*` of linux/nexthop.h.

use std::net::IpAddr;

use netlink_packet_core::{DecodeError, NlasIterator, parse_u32};

use crate::netlink::model::{GroupMember, KernelEvent, KernelNextHop, NextHopObject};

/// Length of `struct nhmsg`: family, scope, protocol, a reserved byte, and 32 bits of flags.
const HEADER: usize = 8;
/// Length of `struct nexthop_grp`: 32 bits of number, weight, high byte of the weight, 16 reserved bits.
const MEMBER: usize = 8;

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_ENCAP: u16 = 8;
const NHA_FDB: u16 = 11;

const RTNH_F_DEAD: u32 = 1;
const RTNH_F_LINKDOWN: u32 = 16;

/// Decodes `RTM_NEWNEXTHOP` or, if `is_gone`, `RTM_DELNEXTHOP`. Returns none for objects that no route may use.
pub fn decode(is_gone: bool, payload: &[u8]) -> Result<Option<KernelEvent>, DecodeError> {
    let (header, attributes) =
        payload.split_at_checked(HEADER).ok_or_else(|| DecodeError::from("short header of a next-hop object"))?;
    let flags = parse_u32(&header[4..])?;
    let hop = KernelNextHop {
        gateway: None,
        index: 0,
        weight: 1,
        is_dead: flags & RTNH_F_DEAD != 0,
        is_linkdown: flags & RTNH_F_LINKDOWN != 0,
    };
    let (mut id, mut object, mut hop) = (None, None, hop);
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            NHA_ID => id = Some(parse_u32(value)?),
            NHA_GROUP => object = Some(NextHopObject::Group(members(value)?)),
            NHA_BLACKHOLE => object = Some(NextHopObject::Blackhole),
            NHA_ENCAP_TYPE | NHA_ENCAP => object = Some(NextHopObject::Other),
            NHA_OIF => hop.index = parse_u32(value)?,
            NHA_GATEWAY => hop.gateway = Some(gateway(value)?),
            NHA_FDB => return Ok(None),
            _ => {}
        }
    }
    let id = id.ok_or_else(|| DecodeError::from("next-hop object without number"))?;
    if is_gone {
        return Ok(Some(KernelEvent::NextHopGone { id }));
    }
    Ok(Some(KernelEvent::NextHop { id, object: object.unwrap_or(NextHopObject::Hop(hop)) }))
}

/// The length of a gateway gives its family.
fn gateway(value: &[u8]) -> Result<IpAddr, DecodeError> {
    if let Ok(bytes) = <[u8; 4]>::try_from(value) {
        return Ok(IpAddr::from(bytes));
    }
    let bytes = <[u8; 16]>::try_from(value).map_err(|_| DecodeError::invalid_ip_address(value.len()))?;
    Ok(IpAddr::from(bytes))
}

/// The kernel stores weights minus 1. The high byte exists since Linux 6.12 and is 0 before.
fn members(value: &[u8]) -> Result<Vec<GroupMember>, DecodeError> {
    if !value.len().is_multiple_of(MEMBER) {
        return Err(DecodeError::from("next-hop group with part of a member"));
    }
    let member = |bytes: &[u8]| {
        let weight = u16::from_le_bytes([bytes[4], bytes[5]]).saturating_add(1);
        Ok(GroupMember { id: parse_u32(&bytes[..4])?, weight })
    };
    value.chunks_exact(MEMBER).map(member).collect()
}
