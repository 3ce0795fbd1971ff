//! Models of drivers as read in DPDK 22.11, each with its `flow_ctrl_get` and `flow_ctrl_set`.

use super::*;

const ENOTSUP: i32 = -95;
const EINVAL: i32 = -22;

/// A model of a NIC: the settings that it refuses, those that it ignores, and its reports.
#[derive(Default)]
struct Nic {
    is_on: bool,
    passes: bool,
    /// Has no functions for flow control at all.
    is_mute: bool,
    /// Refuses the setting for MAC control frames (sfc, hns3, cnxk).
    refuses_pass: bool,
    /// Refuses all settings.
    refuses_all: bool,
    /// Accepts the mode but stays on.
    is_stubborn: bool,
    /// Reports whether MAC control frames pass (ixgbe).
    says_pass: bool,
    reads: u32,
}

impl FlowControlDevice for Nic {
    fn read(&mut self) -> Result<FlowControlReading, i32> {
        self.reads += 1;
        if self.is_mute {
            return Err(ENOTSUP);
        }
        Ok(FlowControlReading { is_on: self.is_on, passes_control: self.says_pass && self.passes })
    }

    fn turn_off(&mut self, pass_control: bool) -> Result<(), i32> {
        assert!(self.reads > 0, "the settings to be kept were not read");
        if self.refuses_all || self.refuses_pass && pass_control {
            return Err(EINVAL);
        }
        self.is_on &= self.is_stubborn;
        self.passes = pass_control;
        Ok(())
    }
}

fn found(driver: &str, mut nic: Nic) -> DeviceFlowControl {
    let (accepted, reading) = settle(&mut nic);
    judge(driver, has_mac(driver), accepted, reading)
}

#[test]
fn e1000_starts_with_pause_on_and_is_off_once_told() {
    for driver in ["net_e1000_em", "net_e1000_igb", "net_igc"] {
        assert_eq!(found(driver, Nic { is_on: true, ..Nic::default() }), DeviceFlowControl::Off, "{driver}");
    }
}

#[test]
fn ixgbe_is_off_only_if_it_says_that_control_frames_pass() {
    assert_eq!(found("net_ixgbe", Nic { says_pass: true, ..Nic::default() }), DeviceFlowControl::Off);
    // A driver that accepts the setting but does not report it afterwards.
    assert_eq!(found("net_ixgbe", Nic::default()), DeviceFlowControl::Filters);
}

#[test]
fn a_driver_that_refuses_to_pass_control_frames_is_turned_off_all_the_same() {
    let mut nic = Nic { is_on: true, refuses_pass: true, ..Nic::default() };
    let (accepted, reading) = settle(&mut nic);
    assert_eq!(accepted, Accepted::OffOnly);
    assert!(!nic.is_on);
    assert_eq!(judge("net_sfc_efx", true, accepted, reading), DeviceFlowControl::Filters);
}

#[test]
fn unproven_driver_that_accepts_the_flag_silently_may_filter_pfc() {
    assert_eq!(found("mlx5_pci", Nic::default()), DeviceFlowControl::Filters);
}

#[test]
fn device_that_still_reads_on_is_pausing_for_every_driver() {
    let stubborn = || Nic { is_on: true, is_stubborn: true, ..Nic::default() };
    for driver in ["net_ixgbe", "net_e1000_em", "mlx5_pci", "net_failsafe", "net_tap"] {
        assert_eq!(found(driver, stubborn()), DeviceFlowControl::Pauses, "{driver}");
    }
    let refusing = Nic { is_on: true, refuses_all: true, ..Nic::default() };
    assert_eq!(found("net_ixgbe", refusing), DeviceFlowControl::Pauses);
}

#[test]
fn a_driver_that_refuses_everything_and_reads_off_may_eat_pfc() {
    let mut nic = Nic { refuses_all: true, ..Nic::default() };
    let (accepted, reading) = settle(&mut nic);
    assert_eq!(accepted, Accepted::Refused(EINVAL));
    assert_eq!(judge("net_igc", true, accepted, reading), DeviceFlowControl::Filters);
}

#[test]
fn a_nic_that_cannot_be_asked_is_unknown_and_a_virtual_device_has_none() {
    let mute = || Nic { is_mute: true, ..Nic::default() };
    assert_eq!(found("net_ice", mute()), DeviceFlowControl::Unknown);
    for driver in WITHOUT_MAC {
        assert_eq!(found(driver, mute()), DeviceFlowControl::None, "{driver}");
    }
    // net_tap can be read, and reports that flow control is off.
    assert_eq!(found("net_tap", Nic::default()), DeviceFlowControl::None);
    // An af_packet port on the interface of a NIC, whose kernel driver may let the NIC pause.
    let (accepted, reading) = settle(&mut mute());
    assert_eq!(judge("net_af_packet", true, accepted, reading), DeviceFlowControl::Unknown);
}

#[test]
fn only_a_device_that_pauses_defeats_the_word_of_the_operator() {
    for state in DeviceFlowControl::ALL {
        assert_eq!(state.defeats_pfc(), state == DeviceFlowControl::Pauses);
        let is_quiet = matches!(state, DeviceFlowControl::None | DeviceFlowControl::Off | DeviceFlowControl::Obeys);
        assert_eq!(state.consequence().is_none(), is_quiet, "{}", state.label());
    }
}

#[test]
fn published_flow_control_is_read_back_for_its_port() {
    let all = FlowControls::new(2);
    assert_eq!(all.get(1), DeviceFlowControl::None);
    for state in DeviceFlowControl::ALL {
        all.set(1, state);
        assert_eq!(all.get(1), state);
        assert_eq!(all.get(0), DeviceFlowControl::None);
    }
    all.set(7, DeviceFlowControl::Pauses);
    assert_eq!(all.get(7), DeviceFlowControl::None);
}
