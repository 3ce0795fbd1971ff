//! Tests of devices that start, flap and come back, on a simulated NIC.

use std::cell::{Cell, RefCell};

use super::*;
use crate::dpdk::{ClassPfc, Frames};
use crate::stats::flow_control::FlowControlReading;
use crate::stats::{DeviceFlowControl, PfcStanding, fixture};

/// A simulated NIC. Its PAUSE is on until it is turned off, and after each negotiation that turns it on again. Its flow
/// rules choose the queue of a frame.
pub(in crate::control) struct Nic {
    pub driver: &'static str,
    pub is_on_a_nic: bool,
    pub is_up: Cell<bool>,
    pub pauses: Cell<bool>,
    pub is_stubborn: bool,
    pub has_functions: bool,
    pub asked: Cell<u32>,
    /// Frames for which it takes no rule.
    pub refuses: Vec<Frames>,
    pub rules: RefCell<Vec<FlowRule>>,
    /// Its own PFC as it reads back; `None`: it is not meant to obey.
    pub class_pfc: Cell<Option<ClassPfc>>,
}

pub(in crate::control) fn nic(driver: &'static str) -> Nic {
    Nic {
        driver,
        is_on_a_nic: false,
        is_up: Cell::new(true),
        pauses: Cell::new(true),
        is_stubborn: false,
        has_functions: true,
        asked: Cell::new(0),
        refuses: Vec::new(),
        rules: RefCell::default(),
        class_pfc: Cell::new(None),
    }
}

impl PortAccess for Nic {
    fn driver(&self) -> String {
        self.driver.to_owned()
    }

    fn is_on_a_nic(&self) -> bool {
        self.is_on_a_nic
    }

    fn has_link(&self) -> bool {
        self.is_up.get()
    }

    fn set_link(&self, up: bool) -> Result<(), String> {
        if self.is_stubborn {
            return Err("not supported".to_owned());
        }
        self.is_up.set(up);
        Ok(())
    }

    fn stats(&self) -> Option<PortStats> {
        Some(PortStats { ipackets: 7, ..PortStats::default() })
    }

    fn flow_control(&self) -> impl FlowControlDevice {
        self
    }

    fn class_pfc(&self) -> Option<ClassPfc> {
        self.class_pfc.get()
    }

    fn obey(&self) -> Option<Result<ClassPfc, i32>> {
        self.asked.set(self.asked.get() + 1);
        let answer = if self.is_stubborn { ClassPfc::Differs } else { ClassPfc::Obeys };
        self.class_pfc.set(Some(answer));
        Some(Ok(answer))
    }

    fn chooses_queues(&self) -> bool {
        self.driver != "net_vhost"
    }

    fn steer(&self, rule: FlowRule) -> Result<(), String> {
        if self.refuses.contains(&rule.frames) {
            return Err("not this item".to_owned());
        }
        self.rules.borrow_mut().push(rule);
        Ok(())
    }
}

impl FlowControlDevice for &Nic {
    fn read(&mut self) -> Result<FlowControlReading, i32> {
        let reading = FlowControlReading { is_on: self.pauses.get(), passes_control: false };
        if self.has_functions { Ok(reading) } else { Err(-95) }
    }

    fn turn_off(&mut self, _pass_control: bool) -> Result<(), i32> {
        self.asked.set(self.asked.get() + 1);
        self.pauses.set(self.is_stubborn);
        Ok(())
    }
}

fn switch_view() -> SwitchView {
    let mut switch_view = fixture::quiet();
    switch_view.pfc = vec![PfcStanding::Trusted; 2];
    switch_view
}

#[test]
fn start_tells_each_device_not_to_pause_and_reads_it() {
    let switch_view = switch_view();
    let ports = [nic("net_igc"), Nic { is_stubborn: true, ..nic("net_igc") }];
    ports[1].is_up.set(false);
    let (_, up, warnings) = Devices::start(&ports, &switch_view);
    assert_eq!((ports[0].asked.get(), ports[0].pauses.get(), up), (1, false, PortSet::only(0)));
    assert_eq!(switch_view.flow_control.get(0), DeviceFlowControl::Off);
    assert_eq!(switch_view.standing(1), PfcStanding::Unproven, "whatever the operator says");
    assert_eq!(warnings, ["port p2: flow control pauses (net_igc): its device pauses by itself; see docs/nics.md"]);
    assert_eq!((switch_view.devices[0].read().rx_frames, switch_view.devices[1].read().link_up), (7, false));
}

#[test]
fn device_that_comes_back_with_pause_on_is_told_again() {
    let switch_view = switch_view();
    let ports = [nic("net_igc"), nic("net_igc")];
    let (mut devices, ..) = Devices::start(&ports, &switch_view);
    devices.look(&ports, &switch_view);
    ports[0].is_up.set(false);
    assert_eq!(devices.look(&ports, &switch_view), (PortSet::only(1), vec![]));
    ports[0].is_up.set(true);
    ports[0].pauses.set(true);
    assert_eq!(
        devices.look(&ports, &switch_view),
        (PortSet::first(2), vec![]),
        "it is off again, so that nothing has changed"
    );
    assert_eq!((ports[0].asked.get(), ports[1].asked.get(), ports[0].pauses.get()), (2, 1, false));
}

#[test]
fn device_that_keeps_pause_on_is_configured_once_and_reported() {
    let switch_view = switch_view();
    let ports = [Nic { is_stubborn: true, pauses: Cell::new(false), ..nic("net_igc") }];
    let asked = |devices: &mut Devices| {
        ports[0].is_up.set(false);
        devices.look(&ports, &switch_view);
        ports[0].is_up.set(true);
        devices.look(&ports, &switch_view).1
    };
    let (mut devices, ..) = Devices::start(&ports, &switch_view);
    assert_eq!(switch_view.flow_control.get(0), DeviceFlowControl::Pauses);
    let before = ports[0].asked.get();
    assert_eq!((asked(&mut devices), asked(&mut devices)), (vec![], vec![]));
    assert_eq!(ports[0].asked.get(), before, "telling may take the link down, and so for ever");
    ports[0].pauses.set(false);
    asked(&mut devices);
    assert_eq!(switch_view.flow_control.get(0), DeviceFlowControl::Off);
}

#[test]
fn flap_between_two_looks_is_found_within_ten_seconds() {
    let switch_view = switch_view();
    let ports = [nic("net_igc")];
    let (mut devices, ..) = Devices::start(&ports, &switch_view);
    devices.look(&ports, &switch_view);
    ports[0].pauses.set(true);
    let looks = (1..=100).find(|_| {
        devices.look(&ports, &switch_view);
        !ports[0].pauses.get()
    });
    assert_eq!((looks.is_some(), ports[0].asked.get()), (true, 2));
}

#[test]
fn device_without_a_mac_has_no_flow_control_although_it_is_on_pci() {
    let switch_view = switch_view();
    let mute = |driver| Nic { has_functions: false, ..nic(driver) };
    for driver in ["net_virtio", "net_vmxnet3", "net_af_xdp", "net_af_packet"] {
        let (_, _, warnings) = Devices::start(&[mute(driver)], &switch_view);
        assert_eq!((switch_view.flow_control.get(0), warnings.len()), (DeviceFlowControl::None, 0), "{driver}");
    }
    for port in [mute("net_ice"), Nic { is_on_a_nic: true, ..mute("net_af_packet") }] {
        let driver = port.driver;
        let (_, _, warnings) = Devices::start(&[port], &switch_view);
        assert_eq!((switch_view.flow_control.get(0), warnings.len()), (DeviceFlowControl::Unknown, 1), "{driver}");
    }
}

#[test]
fn device_that_obeys_by_class_keeps_its_flow_control_and_is_told_again_if_it_lost_it() {
    let switch_view = switch_view();
    let obeying = |found| Nic { class_pfc: Cell::new(Some(found)), ..nic("net_ixgbe") };
    let ports = [obeying(ClassPfc::Obeys), obeying(ClassPfc::Unconfirmed)];
    let (mut devices, _, warnings) = Devices::start(&ports, &switch_view);
    assert_eq!((ports[0].asked.get(), ports[0].pauses.get()), (0, true), "`turn_off` would end its obedience");
    assert_eq!(switch_view.flow_control.get(0), DeviceFlowControl::Obeys);
    assert_eq!((switch_view.flow_control.get(1), warnings.len()), (DeviceFlowControl::Unknown, 1));
    ports[0].class_pfc.set(Some(ClassPfc::Differs));
    (0..100).for_each(|_| drop(devices.look(&ports, &switch_view)));
    assert_eq!((ports[0].asked.get(), switch_view.flow_control.get(0)), (1, DeviceFlowControl::Obeys));
}

#[test]
fn device_that_does_not_keep_obeying_defeats_pfc_and_is_told_once() {
    let switch_view = switch_view();
    let ports = [Nic { is_stubborn: true, class_pfc: Cell::new(Some(ClassPfc::Obeys)), ..nic("net_ixgbe") }];
    let (mut devices, ..) = Devices::start(&ports, &switch_view);
    ports[0].class_pfc.set(Some(ClassPfc::Differs));
    (0..1000).for_each(|_| drop(devices.look(&ports, &switch_view)));
    assert_eq!((ports[0].asked.get(), switch_view.standing(0)), (1, PfcStanding::Unproven));
}
