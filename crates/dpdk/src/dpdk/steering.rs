//! Flow rules of a device (rte_flow), by which it puts received frames into receive queues.

use std::ffi::{CStr, c_void};
use std::ptr;

use dpdk_sys::{libc, rte_flow_action, rte_flow_attr, rte_flow_error, rte_flow_item, rte_flow_item_type};

use super::EthPort;
use super::error::errno_text;

/// Frames that a rule selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// All frames that no other rule selects.
    All,
    /// MAC control frames, PFC and PAUSE: EtherType 0x8808.
    MacControl,
    /// Frames with a VLAN tag, by their PCP.
    Tagged,
    /// Frames of IPv4, by the byte of DSCP and ECN.
    Ipv4,
    /// UDP in IPv4.
    Ipv4Udp,
    /// TCP in IPv4.
    Ipv4Tcp,
    /// Frames of IPv6, by the traffic class, which holds DSCP and ECN.
    Ipv6,
    /// UDP in IPv6.
    Ipv6Udp,
    /// TCP in IPv6.
    Ipv6Tcp,
}

impl Frames {
    /// Whether the mark has two bits of ECN.
    fn has_ecn(self) -> bool {
        !matches!(self, Self::All | Self::MacControl | Self::Tagged)
    }
}

impl std::fmt::Display for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::All => "all frames",
            Self::MacControl => "MAC control frames",
            Self::Tagged => "tagged frames",
            Self::Ipv4 => "IPv4",
            Self::Ipv4Udp => "UDP in IPv4",
            Self::Ipv4Tcp => "TCP in IPv4",
            Self::Ipv6 => "IPv6",
            Self::Ipv6Udp => "UDP in IPv6",
            Self::Ipv6Tcp => "TCP in IPv6",
        })
    }
}

/// A rule: frames with a mark go to a receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRule {
    /// Frames that have the mark.
    pub frames: Frames,
    /// PCP (0 to 7) of tagged frames. DSCP and ECN of IP frames, as in the packet: DSCP in the upper six bits. Zero for
    /// [`Frames::All`] and [`Frames::MacControl`].
    pub mark: u8,
    /// Number of the receive queue.
    pub queue: u16,
}

/// The frames by whose marks a driver puts frames into queues. [`steerable`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steerable {
    /// Kinds of frames whose rules together select the IP frames with a DSCP.
    pub by_dscp: &'static [Frames],
    /// Whether these rules select all such frames that are untagged.
    pub is_complete: bool,
    /// Kinds of frames whose rules select frames with a PCP.
    pub by_pcp: &'static [Frames],
    /// Whether a rule must send other frames to queue 0, since the driver would spread them over all queues.
    pub needs_default_rule: bool,
}

/// Returns how a driver steers frames, as read in the source of DPDK 22.11.11. Drivers that are not in this list have
/// no such rules, refuse them, or accept them and then ignore the mark (bnxt with TruFlow, PCP of i40e and net_tap).
#[must_use]
pub fn steerable(driver: &str) -> Option<Steerable> {
    const WHOLE: &[Frames] = &[Frames::Ipv4, Frames::Ipv6];
    // Here a rule for IPv4 does not select UDP and TCP, which have packet types of their own.
    const BY_TYPE: &[Frames] =
        &[Frames::Ipv4Udp, Frames::Ipv4Tcp, Frames::Ipv4, Frames::Ipv6Udp, Frames::Ipv6Tcp, Frames::Ipv6];
    let whole = Steerable { by_dscp: WHOLE, is_complete: true, by_pcp: &[Frames::Tagged], needs_default_rule: false };
    match driver {
        "mlx5_pci" => Some(Steerable { needs_default_rule: true, ..whole }),
        // Fragments and SCTP have further types.
        "net_i40e" => Some(Steerable { by_dscp: BY_TYPE, is_complete: false, by_pcp: &[], ..whole }),
        "net_ice" | "net_enic" => Some(whole),
        // It refuses the traffic class of IPv6.
        "net_hns3" => Some(Steerable { by_dscp: &[Frames::Ipv4], is_complete: false, ..whole }),
        _ => None,
    }
}

/// Header fields of a pattern item, in the order of bytes on the wire. Each item struct of rte_flow begins with the
/// header; the bytes after it are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
struct Header([u8; 64]);

/// The header that has the mark: its item type, the bytes to find, and the bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marked {
    item: rte_flow_item_type,
    spec: Header,
    mask: Header,
}

impl FlowRule {
    /// The header with the mark, and the item type of the transport header behind it.
    fn pattern(&self) -> (Option<Marked>, Option<rte_flow_item_type>) {
        let at = |bytes: &[(usize, u8)]| {
            let mut header = Header([0; 64]);
            bytes.iter().for_each(|&(at, byte)| header.0[at] = byte);
            header
        };
        let (ipv4, ipv6) = (dpdk_sys::RTE_FLOW_ITEM_TYPE_IPV4, dpdk_sys::RTE_FLOW_ITEM_TYPE_IPV6);
        // Drivers of Intel select by the whole byte of DSCP and ECN. They refuse a part of it, or ignore it.
        let marked = match self.frames {
            Frames::All => None,
            // IEEE 802.3 clause 31.4.1: the type follows the two addresses.
            Frames::MacControl => Some(Marked {
                item: dpdk_sys::RTE_FLOW_ITEM_TYPE_ETH,
                spec: at(&[(12, 0x88), (13, 0x08)]),
                mask: at(&[(12, 0xff), (13, 0xff)]),
            }),
            // IEEE 802.1Q clause 9.6: the PCP is the upper three bits of the TCI.
            Frames::Tagged => Some(Marked {
                item: dpdk_sys::RTE_FLOW_ITEM_TYPE_VLAN,
                spec: at(&[(0, self.mark << 5)]),
                mask: at(&[(0, 0xe0)]),
            }),
            Frames::Ipv4 | Frames::Ipv4Udp | Frames::Ipv4Tcp => {
                Some(Marked { item: ipv4, spec: at(&[(1, self.mark)]), mask: at(&[(1, 0xff)]) })
            }
            // RFC 8200 section 3: four bits of version, eight of traffic class.
            Frames::Ipv6 | Frames::Ipv6Udp | Frames::Ipv6Tcp => Some(Marked {
                item: ipv6,
                spec: at(&[(0, self.mark >> 4), (1, self.mark << 4)]),
                mask: at(&[(0, 0x0f), (1, 0xf0)]),
            }),
        };
        let transport = match self.frames {
            Frames::Ipv4Udp | Frames::Ipv6Udp => Some(dpdk_sys::RTE_FLOW_ITEM_TYPE_UDP),
            Frames::Ipv4Tcp | Frames::Ipv6Tcp => Some(dpdk_sys::RTE_FLOW_ITEM_TYPE_TCP),
            _ => None,
        };
        (marked, transport)
    }
}

const _: () = assert!(
    size_of::<dpdk_sys::rte_flow_item_ipv6>() <= size_of::<Header>()
        && size_of::<dpdk_sys::rte_flow_item_ipv4>() <= size_of::<Header>()
        && size_of::<dpdk_sys::rte_flow_item_vlan>() <= size_of::<Header>()
        && size_of::<dpdk_sys::rte_flow_item_eth>() <= size_of::<Header>()
        && std::mem::offset_of!(dpdk_sys::rte_flow_item_ipv6, hdr) == 0
        && std::mem::offset_of!(dpdk_sys::rte_flow_item_ipv4, hdr) == 0
);

impl EthPort {
    /// Adds a rule to the started port. Rules end with the port.
    ///
    /// # Errors
    ///
    /// The driver's reason, such as that it has no flow rules. An equal rule that differs by ECN alone is none.
    pub fn steer(&self, rule: FlowRule) -> Result<(), String> {
        let device = self.device();
        let state = device.state();
        if !state.started {
            return Err("the port is not started".to_owned());
        }
        if rule.queue >= state.rx_queues {
            return Err(format!("there is no receive queue {}", rule.queue));
        }
        let (marked, transport) = rule.pattern();
        let item = |type_| rte_flow_item { type_, ..rte_flow_item::default() };
        let of_mark = marked.as_ref().map(|marked| rte_flow_item {
            spec: (&raw const marked.spec).cast::<c_void>(),
            mask: (&raw const marked.mask).cast::<c_void>(),
            ..item(marked.item)
        });
        let ethernet = item(dpdk_sys::RTE_FLOW_ITEM_TYPE_ETH);
        let has_ethernet = of_mark.is_some_and(|item| item.type_ == ethernet.type_);
        let pattern: arrayvec::ArrayVec<rte_flow_item, 4> = [(!has_ethernet).then_some(ethernet), of_mark]
            .into_iter()
            .chain([transport.map(item), Some(item(dpdk_sys::RTE_FLOW_ITEM_TYPE_END))])
            .flatten()
            .collect();
        let queue = dpdk_sys::rte_flow_action_queue { index: rule.queue };
        let to_queue =
            rte_flow_action { type_: dpdk_sys::RTE_FLOW_ACTION_TYPE_QUEUE, conf: (&raw const queue).cast::<c_void>() };
        let end = rte_flow_action { type_: dpdk_sys::RTE_FLOW_ACTION_TYPE_END, conf: ptr::null() };
        let actions = [to_queue, end];
        let mut attributes =
            rte_flow_attr { priority: (rule.frames == Frames::All).into(), ..rte_flow_attr::default() };
        attributes.set_ingress(1);
        let mut error = rte_flow_error::default();
        // SAFETY: the port is open, and the lock excludes other control calls on it. The pattern and the actions end
        // with END, and each item points to a header that is as long as the item's struct or longer. DPDK copies them.
        let flow = unsafe {
            dpdk_sys::hf_clear_errno();
            dpdk_sys::rte_flow_create(device.id(), &attributes, pattern.as_ptr(), actions.as_ptr(), &mut error)
        };
        // SAFETY: the function reads a number of this thread.
        match unsafe { dpdk_sys::hf_errno() } {
            _ if !flow.is_null() => Ok(()),
            // Some drivers select by DSCP alone. There the rule for the first codepoint of ECN is one for all four.
            libc::EEXIST if rule.frames.has_ecn() && rule.mark & 3 != 0 => Ok(()),
            number => Err(reason(&error, number)),
        }
    }
}

/// The driver's words, and the text of the error number.
fn reason(error: &rte_flow_error, number: i32) -> String {
    let text = errno_text(-number);
    if error.message.is_null() {
        return text;
    }
    // SAFETY: drivers give constant strings with a zero at the end.
    let words = unsafe { CStr::from_ptr(error.message) }.to_string_lossy();
    if words == text { text } else { format!("{words}: {text}") }
}

#[cfg(test)]
#[path = "steering_tests.rs"]
mod tests;
