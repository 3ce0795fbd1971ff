//! Tests of flow rules, on a simulated NIC that filters frames by the rules it was given.

use proptest::prelude::*;

use super::*;
use crate::control::devices::tests::{Nic, nic};
use crate::forward::VlanMode;
use crate::sets::CLASSES;
use crate::stats::{SwitchView, fixture};

/// The queues of a NIC at the first port, and the warning.
fn of_first(nic: &Nic, view: &SwitchView) -> (Option<Steered>, Option<String>) {
    steer(nic, &view.spec.ports[0], &view.spec.classes)
}

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
    for port in &ports {
        assert_eq!(of_first(port, &switch_view).1, None);
    }
    for byte in 0..=255 {
        let expected = u16::from(byte >> 5 == class);
        assert_eq!((queue(&ports[0], Frames::Ipv4, byte), queue(&ports[0], Frames::Ipv6, byte)), (expected, expected));
    }
    let (control, default_rule) = (CONTROL, FlowRule { frames: Frames::All, mark: 0, queue: 0 });
    assert_eq!(ports[1].rules.borrow()[ports[1].rules.borrow().len() - 2..], [control, default_rule]);
}

#[test]
fn pcp_is_steered_where_the_port_trusts_it() {
    let switch_view = with(3, |port| port.live.trust = Trust::Pcp);
    let class = lossless(&switch_view.spec.ports[0])[0] as u8;
    let ports = [nic("net_ice")];
    assert_eq!(of_first(&ports[0], &switch_view).1, None);
    assert_eq!(*ports[0].rules.borrow(), [FlowRule { frames: Frames::Tagged, mark: class, queue: 1 }, CONTROL]);
}

#[test]
fn ports_without_choice_or_marks_get_no_rules() {
    let silent = |view: &SwitchView, driver| {
        let ports = [nic(driver)];
        let (steered, warning) = of_first(&ports[0], view);
        assert_eq!((warning, ports[0].rules.borrow().len()), (None, 0));
        steered
    };
    assert_eq!(silent(&switch_view(1), "mlx5_pci"), None);
    assert_eq!(silent(&switch_view(2), "net_vhost"), None);
    let none = Some(Steered::default());
    assert_eq!(silent(&with(2, |port| port.pfc = crate::pfc::PfcMode::Off), "mlx5_pci"), none);
    assert_eq!(silent(&with(2, |port| port.live.trust = Trust::Port), "mlx5_pci"), none);
}

#[test]
fn nic_that_does_not_steer_is_named_with_its_reason() {
    let started = |nic: Nic, view: &SwitchView| of_first(&nic, view).1.expect("a warning");
    let unknown = started(nic("net_vmxnet3"), &switch_view(2));
    assert!(unknown.contains("net_vmxnet3 is not known to steer frames by DSCP, so"), "{unknown}");
    let tagged = started(nic("net_i40e"), &with(2, |port| port.live.trust = Trust::Pcp));
    assert!(tagged.contains("net_i40e is not known to steer frames by PCP, so"), "{tagged}");
    let partly = started(Nic { refuses: vec![Frames::Ipv6], ..nic("net_ice") }, &switch_view(2));
    assert!(partly.contains("net_ice does not steer IPv6 by DSCP (not this item), so"), "{partly}");
    let warnings = started(Nic { refuses: vec![Frames::All], ..nic("mlx5_pci") }, &switch_view(2));
    assert!(warnings.contains("mlx5_pci has no rule for all other frames (not this item), so"), "{warnings}");
    let control = started(Nic { refuses: vec![Frames::MacControl], ..nic("net_ice") }, &switch_view(2));
    assert!(control.contains("net_ice does not steer MAC control frames (not this item), so PFC"), "{control}");
}

#[test]
fn queue_0_may_overflow_only_if_it_has_neither_lossless_frames_nor_pfc() {
    let complete = |nic: Nic, view: &SwitchView| {
        let steered = of_first(&nic, view).0.expect("queues that the device chooses");
        (steered.queues, steered.is_complete)
    };
    let one = ClassSet::only(1);
    let trunk = with(2, |port| port.vlan = VlanMode::Trunk { tagged: vec![7], native: Some(1) });
    let tagged = with(2, |port| {
        (port.live.trust, port.vlan) = (Trust::Pcp, VlanMode::Trunk { tagged: vec![7], native: None });
    });
    assert_eq!(complete(nic("net_ice"), &switch_view(2)), (one, true));
    assert_eq!(complete(nic("net_ice"), &tagged), (one, true));
    assert_eq!(complete(nic("net_ice"), &trunk), (one, false), "tagged frames");
    assert_eq!(complete(nic("net_hns3"), &switch_view(2)), (one, false), "IPv6");
    let unmarked = with(2, |port| port.live.port_class = lossless(port)[0] as u8);
    assert_eq!(complete(nic("net_ice"), &unmarked), (one, false), "unmarked frames");
    for driver in ["net_vmxnet3", "net_i40e"] {
        let pcp = with(2, |port| port.live.trust = Trust::Pcp);
        assert_eq!(complete(nic(driver), &pcp), (ClassSet::EMPTY, false), "{driver}");
    }
    for frames in [Frames::MacControl, Frames::Ipv6, Frames::All] {
        let nic = Nic { refuses: vec![frames], ..nic("mlx5_pci") };
        assert_eq!(complete(nic, &switch_view(2)), (one, false), "{frames}");
    }
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
        port.live.marks.dscp_to_tc.copy_from_slice(&marks);
        port.buffer.groups.iter_mut().zip(lossless).for_each(|(group, lossless)| group.lossless = lossless);
        let ports = [nic("mlx5_pci")];
        of_first(&ports[0], &view);
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
