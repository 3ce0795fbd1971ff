//! The data unit that a port sends, computed from the configuration.
//!
//! A *priority* on the wire is that of PFC frames: the number of the priority group. A host that tags must use it as
//! its PCP too. A *traffic class* of ETS is an egress queue.

use std::net::IpAddr;

use crate::forward::VlanMode;
use crate::plan::{PortSpec, SwitchSpec};
use crate::qos::{QueueDiscipline, Trust};
use crate::sets::{CLASSES, ClassSet};
use crate::wire::lldp::{
    Aggregation, Algorithm, Application, Capabilities, ChassisId, CongestionNotification, Dot1, Dot3, EtsConfiguration,
    EtsRecommendation, EtsTable, Lldpdu, ManagementAddress, PfcConfiguration, PortId, Selector, Text,
};
use crate::wire::{MacAddr, roce};

/// DSCP that RoCE senders use by convention.
const ROCE_DSCP: usize = 26;
/// Bytes of the Ethernet header and the frame check sequence.
const ETHERNET: u16 = 18;
/// Bytes of a VLAN tag.
const TAG: u16 = 4;
/// Traffic classes of a port that may have PFC at the same time.
const PFC_CLASSES: u8 = CLASSES as u8;

/// Properties of the system that the configuration of the switch does not have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct System {
    /// Name of the system, such as its host name.
    pub name: String,
    /// Description of the system: program and version.
    pub description: String,
    /// Addresses by which the system can be managed.
    pub management: Vec<IpAddr>,
}

/// The information that a port states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The data unit; the agent sets its TTL.
    pub pdu: Lldpdu,
    /// Address of the port, the source of its frames.
    pub source: MacAddr,
    /// Longest IP packet of the port in bytes.
    pub mtu: u16,
}

impl Stated {
    /// Priorities that the port states as lossless.
    #[must_use]
    pub fn lossless(&self) -> ClassSet {
        self.pdu.dot1.pfc.map_or(ClassSet::EMPTY, |pfc| pfc.enabled)
    }
}

/// Computes the information that port `index` of `spec` states; `aggregation` is the state of its link, by default
/// neither capable nor enabled. `None`: there is no such port.
///
/// The chassis is the address of the first port. Nothing is willing: 802.1Q clause 38, in substance: a port that is
/// not willing keeps its own configuration, and a willing peer takes it over.
#[must_use]
pub fn stated(spec: &SwitchSpec, index: usize, system: &System, aggregation: Aggregation) -> Option<Stated> {
    let port = spec.ports.get(index)?;
    let chassis = spec.ports.first()?.mac;
    let mut pdu = Lldpdu::new(ChassisId::mac(chassis), PortId::name(&port.name), 0);
    let description = Some(&port.live.description).filter(|text| !text.is_empty());
    pdu.port_description = Some(Text::new(description.unwrap_or(&port.name)));
    pdu.system_name = Some(Text::new(&system.name));
    pdu.system_description = Some(Text::new(&system.description));
    let router = if spec.routing.is_some() { Capabilities::ROUTER } else { 0 };
    let all = Capabilities::BRIDGE | router;
    pdu.capabilities = Some(Capabilities { supported: all, enabled: all });
    pdu.management = system.management.iter().map(|&address| ManagementAddress::of(address)).collect();
    let ets = ets_table(spec);
    pdu.dot1 = Dot1 {
        port_vlan: Some(port_vlan(&port.vlan)),
        vlan_names: Vec::new(),
        aggregation: Some(aggregation),
        congestion: Some(congestion(spec)),
        ets: Some(EtsConfiguration { is_willing: false, has_credit_based: false, classes: CLASSES as u8, table: ets }),
        ets_recommendation: Some(EtsRecommendation(ets)),
        pfc: Some(pfc(port)),
        applications: Some(applications(spec, port)),
    };
    // 802.3 has deprecated its own link aggregation TLV for that of 802.1.
    pdu.dot3 = Dot3 { mac_phy: None, aggregation: None, max_frame: Some(max_frame(port)) };
    Some(Stated { pdu, source: port.mac, mtu: port.mtu })
}

/// VLAN of untagged frames; zero if there is none. 802.1Q D.2.1.1, in substance: zero is a port without a PVID.
fn port_vlan(vlan: &VlanMode) -> u16 {
    match vlan {
        // The VLAN of a routed port exists inside the switch only.
        VlanMode::Routed(_) => 0,
        VlanMode::Access(_) | VlanMode::Trunk { .. } => vlan.untagged().unwrap_or(0),
    }
}

/// 802.3 clause 79.3.4 counts the header, the frame check sequence and the tag, if the port takes tagged frames.
fn max_frame(port: &PortSpec) -> u16 {
    let tag = if matches!(port.vlan, VlanMode::Routed(_)) { 0 } else { TAG };
    port.mtu.saturating_add(ETHERNET + tag)
}

/// PFC of the lossless priorities, if the port sends and obeys PFC frames.
fn pfc(port: &PortSpec) -> PfcConfiguration {
    let enabled = if port.pfc.sends_frames() { port.lossless_groups() } else { ClassSet::EMPTY };
    PfcConfiguration { is_willing: false, bypasses_macsec: false, capability: PFC_CLASSES, enabled }
}

/// Priorities whose queues are congestion points. They are ready: the switch never changes the priority of their frames
/// and keeps CN-TAGs (802.1Q D.2.7.4).
fn congestion(spec: &SwitchSpec) -> CongestionNotification {
    let is_point = |priority: &usize| spec.congestion_points[queue(spec, *priority)].is_some();
    let priorities = (0..CLASSES).filter(is_point).collect();
    CongestionNotification { priorities, ready: priorities }
}

/// The queue that holds the frames of `priority` (`maps.pfc_to_queue`).
fn queue(spec: &SwitchSpec, priority: usize) -> usize {
    usize::from(spec.classes.pfc_to_queue[priority]) & 7
}

/// The schedule of the queues. A queue without a priority has no share.
fn ets_table(spec: &SwitchSpec) -> EtsTable {
    let used: ClassSet = (0..CLASSES).map(|priority| queue(spec, priority)).collect();
    let weight = |queue: usize| match spec.queues[queue].discipline {
        QueueDiscipline::Dwrr { weight } if used.contains(queue) => weight.max(1),
        QueueDiscipline::Dwrr { .. } | QueueDiscipline::Strict => 0,
    };
    let weights: [u8; CLASSES] = std::array::from_fn(weight);
    EtsTable {
        class_of: std::array::from_fn(|priority| queue(spec, priority) as u8),
        bandwidth: percentages(weights),
        algorithm: weights.map(|weight| if weight > 0 { Algorithm::ETS } else { Algorithm::STRICT }),
    }
}

/// Shares in percent by the method of largest remainders: they sum to 100, unless all weights are zero. Of equal
/// remainders that of the lower class is rounded up first.
fn percentages(weights: [u8; CLASSES]) -> [u8; CLASSES] {
    let sum: u32 = weights.iter().map(|&weight| u32::from(weight)).sum();
    if sum == 0 {
        return [0; CLASSES];
    }
    let hundred = weights.map(|weight| 100 * u32::from(weight));
    let mut shares = hundred.map(|part| (part / sum) as u8);
    let left = 100 - shares.iter().sum::<u8>();
    let mut order: [usize; CLASSES] = std::array::from_fn(|class| class);
    order.sort_by_key(|&class| std::cmp::Reverse(hundred[class] % sum));
    for &class in order.iter().take(left.into()) {
        shares[class] += 1;
    }
    shares
}

/// Rows of the lossless priorities: UDP port 4791, and where DSCPs decide, each DSCP of a lossless class.
fn applications(spec: &SwitchSpec, port: &PortSpec) -> Vec<Application> {
    let lossless = if port.pfc.is_on() { port.lossless_groups() } else { ClassSet::EMPTY };
    let group = |class: u8| spec.classes.tc_to_group[usize::from(class) & 7];
    let is_lossless = |group: &u8| lossless.contains(usize::from(*group));
    let roce = match port.live.trust {
        Trust::Dscp => Some(group(port.live.marks.dscp_to_tc[ROCE_DSCP])),
        Trust::Port => Some(group(port.live.port_class)),
        Trust::Pcp => lossless_pcp(port, group, lossless),
    };
    // RoCE of another class is moved by the peer's own marks: the lowest lossless priority is the best proposal.
    let roce = roce.filter(|priority| port.live.trust == Trust::Pcp || is_lossless(priority));
    let roce = roce.or(lossless.lowest().map(|priority| priority as u8));
    let udp = roce.map(|priority| Application { priority, selector: Selector::DATAGRAM, protocol: roce::PORT });
    let dscps = (0..64).filter(|_| port.live.trust == Trust::Dscp).filter_map(|dscp: u16| {
        let priority = Some(group(port.live.marks.dscp_to_tc[usize::from(dscp)])).filter(is_lossless)?;
        Some(Application { priority, selector: Selector::DSCP, protocol: dscp })
    });
    udp.into_iter().chain(dscps).collect()
}

/// The PCP by which a host reaches a lossless group: that of the group's number if possible, since PFC names it too.
fn lossless_pcp(port: &PortSpec, group: impl Fn(u8) -> u8, lossless: ClassSet) -> Option<u8> {
    let group_of = |pcp: usize| usize::from(group(port.live.marks.pcp_to_tc[pcp]));
    let reaching = (0..CLASSES).filter(|&pcp| lossless.contains(group_of(pcp)));
    reaching.min_by_key(|&pcp| group_of(pcp) != pcp).map(|pcp| pcp as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentages_use_the_largest_remainder() {
        assert_eq!(percentages([1, 1, 1, 0, 0, 0, 0, 0]), [34, 33, 33, 0, 0, 0, 0, 0]);
        assert_eq!(percentages([1; 8]), [13, 13, 13, 13, 12, 12, 12, 12]);
        assert_eq!(percentages([2, 1, 0, 0, 0, 0, 0, 0]), [67, 33, 0, 0, 0, 0, 0, 0]);
        assert_eq!(percentages([0; 8]), [0; 8]);
    }

    proptest! {
        #[test]
        fn percentages_sum_to_a_hundred_and_keep_the_order(weights: [u8; 8]) {
            let shares = percentages(weights);
            let sum: u32 = weights.iter().map(|&weight| u32::from(weight)).sum();
            prop_assert_eq!(shares.iter().map(|&share| u32::from(share)).sum::<u32>(), if sum > 0 { 100 } else { 0 });
            for (weight, share) in weights.into_iter().zip(shares) {
                let exact = 100.0 * f64::from(weight) / f64::from(sum.max(1));
                prop_assert!((f64::from(share) - exact).abs() < 1.0, "{weight} of {sum} is {share}");
            }
        }
    }
}
