//! Tests of flow rules, on a simulated NIC that filters frames by the rules it was given.

use proptest::prelude::*;

use super::*;
use crate::control::devices::tests::{Nic, nic};
use crate::forward::VlanMode;
use crate::sets::CLASSES;
use crate::stats::fixture;

/// The queue of a frame of this kind and mark at a NIC.
fn queue(nic: &Nic, frames: Frames, mark: u8) -> u16 {
    let rules = nic.rules.borrow();
    rules.iter().find(|rule| rule.frames == frames && rule.mark == mark).map_or(0, |rule| rule.queue)
}

/// PFC comes by the first lossless queue.
const CONTROL: FlowRule = FlowRule { frames: Frames::MacControl, mark: 0, queue: 1 };

/// A switch of two ports with `queues` receive queues each.
fn switch_view(queues: u8) -> SwitchView {
    let mut switch_view = fixture::quiet();
    switch_view.spec.ports.iter_mut().for_each(|port| port.rx_queues = queues);
    switch_view
}

/// The switch's view with the first port changed.
fn with(queues: u8, change: impl FnOnce(&mut PortSpec)) -> SwitchView {
    let mut switch_view = switch_view(queues);
    change(&mut switch_view.spec.ports[0]);
    switch_view
}

fn lossless(port: &PortSpec) -> Vec<usize> {
    port.lossless_groups().iter().collect()
}

#[test]
fn lossless_dscps_have_a_queue_apart_with_each_codepoint_of_ecn() {
    let switch_view = switch_view(2);
    let class = lossless(&switch_view.spec.ports[0])[0] as u8;
    let ports = [nic("mlx5_pci"), nic("mlx5_pci")];
    let (_, warnings) = Steering::start(&ports, &switch_view);
    assert_eq!(warnings, Vec::<String>::new());
    for byte in 0..=255 {
        let expected = u16::from(byte >> 5 == class);
        assert_eq!((queue(&ports[0], Frames::Ipv4, byte), queue(&ports[0], Frames::Ipv6, byte)), (expected, expected));
    }
    let (control, rest) = (CONTROL, FlowRule { frames: Frames::All, mark: 0, queue: 0 });
    assert_eq!(ports[1].rules.borrow()[ports[1].rules.borrow().len() - 2..], [control, rest]);
}

#[test]
fn pcp_is_steered_where_the_port_trusts_it() {
    let switch_view = with(3, |port| port.trust = Trust::Pcp);
    let class = lossless(&switch_view.spec.ports[0])[0] as u8;
    let ports = [nic("net_ice")];
    let (_, warnings) = Steering::start(&ports, &switch_view);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(*ports[0].rules.borrow(), [FlowRule { frames: Frames::Tagged, mark: class, queue: 1 }, CONTROL]);
}

#[test]
fn ports_without_choice_or_marks_get_no_rules() {
    let silent = |view: &SwitchView, driver| {
        let ports = [nic(driver)];
        let (_, warnings) = Steering::start(&ports, view);
        assert_eq!((warnings.len(), ports[0].rules.borrow().len()), (0, 0));
    };
    silent(&switch_view(1), "mlx5_pci");
    silent(&switch_view(2), "net_vhost");
    silent(&with(2, |port| port.pfc = crate::pfc::PfcMode::Off), "mlx5_pci");
    silent(&with(2, |port| port.trust = Trust::Port), "mlx5_pci");
}

#[test]
fn nic_that_does_not_steer_is_named_with_its_reason() {
    let started = |nic: Nic, view: &SwitchView| Steering::start(&[nic], view).1;
    let unknown = started(nic("net_vmxnet3"), &switch_view(2));
    assert!(unknown[0].contains("net_vmxnet3 is not known to steer frames by DSCP, so"), "{unknown:?}");
    let tagged = started(nic("net_i40e"), &with(2, |port| port.trust = Trust::Pcp));
    assert!(tagged[0].contains("net_i40e is not known to steer frames by PCP, so"), "{tagged:?}");
    let partly = started(Nic { refuses: vec![Frames::Ipv6], ..nic("net_ice") }, &switch_view(2));
    assert!(partly[0].contains("net_ice does not steer IPv6 by DSCP (not this item), so"), "{partly:?}");
    let rest = started(Nic { refuses: vec![Frames::All], ..nic("mlx5_pci") }, &switch_view(2));
    assert!(rest[0].contains("mlx5_pci has no rule for all other frames (not this item), so"), "{rest:?}");
    let control = started(Nic { refuses: vec![Frames::MacControl], ..nic("net_ice") }, &switch_view(2));
    assert!(control[0].contains("net_ice does not steer MAC control frames (not this item), so PFC"), "{control:?}");
    assert_eq!([unknown, tagged, partly, rest, control].map(|lines| lines.len()), [1; 5]);
}

#[test]
fn reload_of_maps_or_trust_replaces_the_rules_and_others_leave_them() {
    let mut view = switch_view(2);
    let class = lossless(&view.spec.ports[0])[0] as u8;
    let ports = [nic("net_hns3")];
    let (mut steering, _) = Steering::start(&ports, &view);
    assert_eq!((steering.queues(0).0, steering.queues(7).0), (ClassSet::only(1), ClassSet::EMPTY));
    let before = ports[0].rules.borrow().clone();
    view.spec.ports[0].port_class = 1;
    assert_eq!(steering.follow(&ports, &view), Vec::<String>::new());
    assert_eq!(*ports[0].rules.borrow(), before);

    view.spec.ports[0].marks.dscp_to_tc[46] = class;
    assert_eq!(steering.follow(&ports, &view), Vec::<String>::new());
    assert_eq!(queue(&ports[0], Frames::Ipv4, 46 << 2 | 1), 1);
    assert_eq!(ports[0].rules.borrow().len(), before.len() + 4);

    view.spec.ports[0].trust = Trust::Pcp;
    assert_eq!(steering.follow(&ports, &view), Vec::<String>::new());
    assert_eq!(*ports[0].rules.borrow(), [FlowRule { frames: Frames::Tagged, mark: class, queue: 1 }, CONTROL]);

    // Nothing is lossless any more.
    view.spec.ports[0].marks.pcp_to_tc = [0; 8];
    assert_eq!(steering.follow(&ports, &view), Vec::<String>::new());
    assert_eq!((ports[0].rules.borrow().len(), steering.queues(0).0), (0, ClassSet::EMPTY));
}

#[test]
fn rules_that_a_device_keeps_are_replaced_by_the_next_reload() {
    let mut view = switch_view(2);
    let ports = [nic("net_hns3")];
    let (mut steering, _) = Steering::start(&ports, &view);
    let before = ports[0].rules.borrow().clone();
    view.spec.ports[0].marks.dscp_to_tc = [0; 64];
    ports[0].keeps_rules.set(true);
    let warnings = steering.follow(&ports, &view);
    assert!(warnings.len() == 1 && warnings[0].contains("keeps its old flow rules (busy)"), "{warnings:?}");
    assert_eq!(*ports[0].rules.borrow(), before);
    ports[0].keeps_rules.set(false);
    assert_eq!(steering.follow(&ports, &view), Vec::<String>::new());
    assert_eq!(ports[0].rules.borrow().len(), 0);
}

#[test]
fn queue_0_may_overflow_only_if_it_has_neither_lossless_frames_nor_pfc() {
    let complete = |nic: Nic, view: &SwitchView| Steering::start(&[nic], view).0.queues(0);
    let one = ClassSet::only(1);
    let trunk = with(2, |port| port.vlan = VlanMode::Trunk { tagged: vec![7], native: Some(1) });
    let tagged = with(2, |port| {
        (port.trust, port.vlan) = (Trust::Pcp, VlanMode::Trunk { tagged: vec![7], native: None });
    });
    assert_eq!(complete(nic("net_ice"), &switch_view(2)), (one, true));
    assert_eq!(complete(nic("net_ice"), &tagged), (one, true));
    assert_eq!(complete(nic("net_ice"), &trunk), (one, false), "tagged frames");
    assert_eq!(complete(nic("net_hns3"), &switch_view(2)), (one, false), "IPv6");
    let unmarked = with(2, |port| port.port_class = lossless(port)[0] as u8);
    assert_eq!(complete(nic("net_ice"), &unmarked), (one, false), "unmarked frames");
    for frames in [Frames::MacControl, Frames::Ipv6, Frames::All] {
        let nic = Nic { refuses: vec![frames], ..nic("mlx5_pci") };
        assert_eq!(complete(nic, &switch_view(2)), (one, false), "{frames}");
    }
}

#[test]
fn device_that_took_no_rule_has_none_to_keep() {
    let mut view = switch_view(2);
    let ports = [Nic { refuses: vec![Frames::Ipv4, Frames::MacControl], ..nic("net_hns3") }];
    ports[0].keeps_rules.set(true);
    let (mut steering, _) = Steering::start(&ports, &view);
    assert_eq!(steering.queues(0), (ClassSet::EMPTY, false));
    view.spec.ports[0].marks.dscp_to_tc = [0; 64];
    assert_eq!(steering.follow(&ports, &view), Vec::<String>::new());
}

proptest! {
    /// A frame gets a queue from 1 on exactly if its class is lossless; frames of a group share one.
    #[test]
    fn queue_of_a_mark_follows_its_group(
        queues in 2_u8..=8,
        groups in prop::array::uniform8(0_u8..8),
        marks in prop::collection::vec(0_u8..8, 64),
        lossless in prop::array::uniform8(any::<bool>()),
    ) {
        let mut view = switch_view(queues);
        view.spec.classes.tc_to_group = groups;
        let port = &mut view.spec.ports[0];
        port.marks.dscp_to_tc.copy_from_slice(&marks);
        port.buffer.groups.iter_mut().zip(lossless).for_each(|(group, lossless)| group.lossless = lossless);
        let ports = [nic("mlx5_pci")];
        Steering::start(&ports, &view);
        let mut queue_of_group = [None; CLASSES];
        for byte in 0..=255_u8 {
            let group = usize::from(groups[usize::from(marks[usize::from(byte >> 2)])]);
            let queue = queue(&ports[0], Frames::Ipv4, byte);
            prop_assert_eq!(queue > 0, lossless[group]);
            prop_assert!(queue < queues.into());
            prop_assert_eq!(*queue_of_group[group].get_or_insert(queue), queue);
        }
    }
}
