//! Requests for dumps, and the kernel's refusals of them.

use netlink_packet_core::{Emitable, NLM_F_DUMP};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::{RouteHeader, RouteMessage};
use rustix::io::Errno;

use crate::netlink::error::NetlinkError;
use crate::netlink::frame::Refusal;
use crate::netlink::mirror::TableName;
use crate::netlink::socket::RouteSocket;

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const RTM_GETNEXTHOP: u16 = 106;

/// Reason why a dump has no end.
pub enum DumpFailure {
    /// The thread has to end.
    Stopped,
    /// The dump failed.
    Failed(String),
}

impl From<NetlinkError> for DumpFailure {
    fn from(error: NetlinkError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Requests a dump. Strict checks of the kernel allow filters, and reject unknown fields.
pub fn request(socket: &mut RouteSocket, table: TableName) -> Result<u32, NetlinkError> {
    match table {
        TableName::Links => {
            let mut message = LinkMessage::default();
            message.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
            socket.send(RTM_GETLINK, NLM_F_DUMP, &message)
        }
        TableName::Addresses => socket.send(RTM_GETADDR, NLM_F_DUMP, &AddressMessage::default()),
        TableName::Neighbours => socket.send(RTM_GETNEIGH, NLM_F_DUMP, &NeighbourMessage::default()),
        TableName::NextHops => socket.send(RTM_GETNEXTHOP, NLM_F_DUMP, &NextHopHeader),
        TableName::RoutesV4 => socket.send(RTM_GETROUTE, NLM_F_DUMP, &routes(AddressFamily::Inet)),
        TableName::RoutesV6 => socket.send(RTM_GETROUTE, NLM_F_DUMP, &routes(AddressFamily::Inet6)),
    }
}

/// Content of a request for next-hop objects: `struct nhmsg` of any family.
struct NextHopHeader;

impl Emitable for NextHopHeader {
    fn buffer_len(&self) -> usize {
        8
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

fn routes(family: AddressFamily) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message
}

/// Returns whether a refused dump is complete. Some errors mean an empty table: no route was ever added, or the kernel
/// has no next-hop objects. Others mean that it should be repeated.
pub fn tolerate(table: TableName, refusal: &Refusal) -> Result<bool, DumpFailure> {
    let error = Errno::from_io_error(&refusal.error);
    if matches!(error, Some(Errno::NOBUFS | Errno::BUSY | Errno::INTR)) {
        return Ok(false);
    }
    let is_empty = match table {
        TableName::RoutesV4 | TableName::RoutesV6 => error == Some(Errno::NOENT),
        TableName::NextHops => matches!(error, Some(Errno::OPNOTSUPP | Errno::INVAL)),
        _ => false,
    };
    if is_empty {
        return Ok(true);
    }
    Err(DumpFailure::Failed(format!("the kernel refuses to dump {table}: {}{}", refusal.error, refusal.detail)))
}
