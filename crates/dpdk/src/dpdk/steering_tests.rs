//! Tests of flow rules: a filter that compares bytes, as a NIC does, selects exactly the frames with the mark.

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, VlanId};
use proptest::prelude::*;

use super::super::{Mempool, PortConfig, RingLink, tests};
use super::*;

/// Whether `header` of a frame has the bytes of the rule.
fn selects(marked: &Marked, header: &[u8]) -> bool {
    let pairs = header.iter().zip(marked.spec.0.iter().zip(&marked.mask.0));
    pairs.into_iter().all(|(byte, (spec, mask))| byte & mask == spec & mask)
}

fn marked(frames: Frames, mark: u8) -> Marked {
    FlowRule { frames, mark, queue: 1 }.pattern().0.expect("a header with the mark")
}

proptest! {
    #[test]
    fn rule_for_ip_selects_by_dscp_and_ecn(mark: u8, dscp in 0_u8..64, ecn in 0_u8..4, label in 0_u32..1 << 20) {
        let byte = dscp << 2 | ecn;
        let mut ipv4 = Ipv4Header::new(0, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).expect("a header");
        ipv4.dscp = dscp.try_into().expect("a DSCP");
        ipv4.ecn = ecn.try_into().expect("an ECN");
        prop_assert_eq!(selects(&marked(Frames::Ipv4Udp, mark), &ipv4.to_bytes()), mark == byte);
        prop_assert!(selects(&marked(Frames::Ipv4, byte), &ipv4.to_bytes()));
        let ipv6 = Ipv6Header {
            traffic_class: byte,
            flow_label: label.try_into().expect("a label"),
            ..Ipv6Header::default()
        };
        prop_assert_eq!(selects(&marked(Frames::Ipv6Tcp, mark), &ipv6.to_bytes()), mark == byte);
        prop_assert!(selects(&marked(Frames::Ipv6, byte), &ipv6.to_bytes()));
    }

    #[test]
    fn rule_for_tagged_frames_selects_by_pcp(mark in 0_u8..8, pcp in 0_u8..8, vlan in 0_u16..4096) {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).single_vlan(VlanId::try_new(vlan).expect("a VLAN"));
        builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2).write(&mut frame, &[0; 32]).expect("a frame");
        frame[14] |= pcp << 5;
        // The item's header begins behind the tag's own EtherType.
        prop_assert_eq!(selects(&marked(Frames::Tagged, mark), &frame[14..]), mark == pcp);
        prop_assert!(!selects(&marked(Frames::MacControl, 0), &frame));
    }
}

#[test]
fn rule_for_mac_control_selects_pfc_frames() {
    let frame = crate::wire::mac_control::PfcFrame::default().emit(crate::wire::MacAddr([2, 0, 0, 0, 0, 1]));
    assert!(selects(&marked(Frames::MacControl, 0), &frame));
}

#[test]
fn transport_is_part_of_rules_that_name_it() {
    let pattern = |frames| FlowRule { frames, mark: 0, queue: 1 }.pattern();
    let (udp, tcp) = (dpdk_sys::RTE_FLOW_ITEM_TYPE_UDP, dpdk_sys::RTE_FLOW_ITEM_TYPE_TCP);
    assert_eq!([Frames::Ipv4Udp, Frames::Ipv6Udp].map(|frames| pattern(frames).1), [Some(udp); 2]);
    assert_eq!([Frames::Ipv4Tcp, Frames::Ipv6Tcp].map(|frames| pattern(frames).1), [Some(tcp); 2]);
    assert_eq!([Frames::Ipv4, Frames::Ipv6, Frames::Tagged].map(|frames| pattern(frames).1), [None; 3]);
    assert_eq!(pattern(Frames::All), (None, None));
}

#[test]
fn port_without_flow_rules_says_so() {
    let pool = Mempool::create(tests::eal(), "steer", 255, 2048 + 128, 0, None).expect("a pool");
    let mut link = RingLink::new(tests::eal(), "steer", 64, &PortConfig::default(), &pool).expect("a link");
    link.switch.start().expect("a started port");
    let rule = FlowRule { frames: Frames::Ipv4, mark: 26 << 2, queue: 0 };
    assert_eq!(link.switch.steer(rule), Err("Function not implemented".to_owned()));
    assert_eq!(link.switch.steer(FlowRule { queue: 1, ..rule }), Err("there is no receive queue 1".to_owned()));
}
