//! Changes of links, addresses and neighbours of a namespace.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netlink_packet_core::{Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState};

use super::decode::decode;
use super::error::NetlinkError;
use super::frame::{Answer, messages};
use super::model::KernelEvent;
use super::socket::{Namespace, Received, RouteSocket, wait};
use crate::wire::MacAddr;

const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWNEIGH: u16 = 28;

/// Longest wait for an answer. The kernel answers at once, unless its lock of the network configuration is held.
const PATIENCE: Duration = Duration::from_secs(5);
/// Receive buffer in bytes; answers are short.
const BUFFER: usize = 64 * 1024;

/// A socket that changes a namespace. Calls block until the kernel has answered, usually for microseconds. They need
/// CAP_NET_ADMIN at the time of the call too.
pub struct KernelWriter {
    socket: RouteSocket,
    buffer: Vec<u8>,
}

impl KernelWriter {
    /// Opens a socket in `namespace`.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the socket cannot be made.
    pub fn open(namespace: &Namespace) -> Result<Self, NetlinkError> {
        Ok(Self { socket: RouteSocket::open(namespace, &[], BUFFER)?, buffer: Vec::new() })
    }

    /// Returns the index of the link `name`.
    ///
    /// # Errors
    /// If there is no such link.
    pub fn link_index(&mut self, name: &str) -> Result<u32, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let mut index = None;
        let action = format!("find link {name}");
        self.request(RTM_GETLINK, 0, &message, &action, |event| {
            if let KernelEvent::Link(state) = event {
                index = Some(state.link.index);
            }
        })?;
        index.ok_or_else(|| self.silent(action))
    }

    /// Enables or disables link `index`.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set_up(&mut self, index: u32, is_up: bool) -> Result<(), NetlinkError> {
        let mut message = link(index);
        message.header.change_mask = LinkFlags::Up;
        message.header.flags = if is_up { LinkFlags::Up } else { LinkFlags::empty() };
        let verb = if is_up { "enable" } else { "disable" };
        self.change(RTM_SETLINK, 0, &message, &format!("{verb} link {index}"))
    }

    /// Sets the MAC address of link `index`.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set_mac(&mut self, index: u32, mac: MacAddr) -> Result<(), NetlinkError> {
        let mut message = link(index);
        message.attributes.push(LinkAttribute::Address(mac.0.to_vec()));
        self.change(RTM_SETLINK, 0, &message, &format!("set the MAC address of link {index} to {mac}"))
    }

    /// Sets the MTU of link `index`.
    ///
    /// # Errors
    /// If the kernel refuses it, for example since the device allows less.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        let mut message = link(index);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.change(RTM_SETLINK, 0, &message, &format!("set the MTU of link {index} to {mtu}"))
    }

    /// Adds an address to link `index`. It may have it already.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn add_address(&mut self, index: u32, address: IpNet) -> Result<(), NetlinkError> {
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RTM_NEWADDR, flags, &own(index, address), &format!("add address {address} to link {index}"))
    }

    /// Removes an address from link `index`.
    ///
    /// # Errors
    /// If the link does not have it.
    pub fn remove_address(&mut self, index: u32, address: IpNet) -> Result<(), NetlinkError> {
        self.change(RTM_DELADDR, 0, &own(index, address), &format!("remove address {address} from link {index}"))
    }

    /// Makes the kernel resolve a neighbour, as if it had a packet for it. The result arrives as an event.
    ///
    /// # Errors
    /// If the kernel refuses it, for example since the link is disabled.
    pub fn resolve(&mut self, index: u32, address: IpAddr) -> Result<(), NetlinkError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::None;
        message.header.flags = NeighbourFlags::Use;
        message.attributes.push(NeighbourAttribute::Destination(address.into()));
        self.change(RTM_NEWNEIGH, NLM_F_CREATE, &message, &format!("resolve {address} on link {index}"))
    }

    fn change(&mut self, kind: u16, flags: u16, content: &impl Emitable, action: &str) -> Result<(), NetlinkError> {
        self.request(kind, flags, content, action, |_| {})
    }

    /// Sends a request and waits for its acknowledgement. `entry` receives the entries of the answer.
    fn request(
        &mut self,
        kind: u16,
        flags: u16,
        content: &impl Emitable,
        action: &str,
        mut entry: impl FnMut(KernelEvent),
    ) -> Result<(), NetlinkError> {
        let sequence = self.socket.send(kind, flags | NLM_F_ACK, content)?;
        let end = Instant::now() + PATIENCE;
        loop {
            let received = self.socket.receive(&mut self.buffer)?;
            if received == Received::Nothing {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(self.silent(action.to_owned()));
                }
                let waited = wait([self.socket.as_fd()], left);
                waited.map_err(|error| self.socket.failure("wait", error))?;
                continue;
            }
            let answers = messages(&self.buffer).map_while(Result::ok).filter(|message| message.sequence == sequence);
            for message in answers {
                match message.answer() {
                    Answer::End(Ok(())) => return Ok(()),
                    Answer::End(Err(refusal)) => {
                        return Err(NetlinkError::Refused {
                            namespace: self.socket.namespace().to_owned(),
                            action: action.to_owned(),
                            error: refusal.error,
                            detail: refusal.detail,
                        });
                    }
                    Answer::Entry => {
                        if let Ok(Some(event)) = decode(message.kind, message.flags, message.payload) {
                            entry(event);
                        }
                    }
                    Answer::Overrun => {}
                }
            }
        }
    }

    fn silent(&self, action: String) -> NetlinkError {
        NetlinkError::Silent { namespace: self.socket.namespace().to_owned(), action }
    }
}

fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

/// The kernel takes the own address from `IFA_LOCAL`; `IFA_ADDRESS` is the same where there is no peer.
fn own(index: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    message.attributes.push(AddressAttribute::Local(address.addr()));
    message.attributes.push(AddressAttribute::Address(address.addr()));
    message
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
