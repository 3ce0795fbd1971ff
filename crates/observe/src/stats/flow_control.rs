//! Flow control of the device itself: classic PAUSE (IEEE 802.3 annex 31B) of its MAC, which the switch cannot see.
//!
//! A MAC that sends PAUSE when its FIFO fills stops all classes of the peer. A MAC that obeys PAUSE also holds back PFC
//! frames. A MAC that does not pass MAC control frames discards the PFC frames of the peer.
//!
//! So the switch disables flow control on each device and requests MAC control frames. It reads the state back and
//! judges it here. The behaviour of each driver was read in DPDK 22.11: docs/nics.md.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::counters::Counter;

/// Driver of a port without a device.
pub const NO_DEVICE: &str = "none";

/// Drivers whose device has no MAC of its own, so that it cannot pause by itself.
const WITHOUT_MAC: [&str; 13] = [
    NO_DEVICE,
    "net_af_packet",
    "net_af_xdp",
    "net_memif",
    "net_null",
    "net_pcap",
    "net_ring",
    "net_tap",
    "net_tun",
    "net_vhost",
    "net_virtio",
    "net_virtio_user",
    "net_vmxnet3",
];

/// Drivers that apply "pass MAC control frames" to the device, but do not report whether it is set.
const PASSES_AS_ASKED: [&str; 6] = ["net_e1000_em", "net_e1000_igb", "net_i40e", "net_igc", "net_ngbe", "net_txgbe"];

/// The device's own flow control, as its driver reports it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceFlowControl {
    /// The device has no flow control of its own.
    #[default]
    None,
    /// It is off, and MAC control frames pass to the switch.
    Off,
    /// The device obeys PFC of lossless classes by itself and generates none, as `pfc: nic` wants.
    Obeys,
    /// It is off, but the driver does not report that it passes MAC control frames: the device may discard PFC frames.
    Filters,
    /// It is on although it was turned off: the device may send and obey PAUSE for all classes.
    Pauses,
    /// The driver does not report it: the device may pause by itself, and may discard PFC frames.
    Unknown,
}

impl DeviceFlowControl {
    const ALL: [Self; 6] = [Self::None, Self::Off, Self::Obeys, Self::Filters, Self::Pauses, Self::Unknown];

    /// The word for it in metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Off => "off",
            Self::Obeys => "obeys",
            Self::Filters => "filters",
            Self::Pauses => "pauses",
            Self::Unknown => "unknown",
        }
    }

    /// The consequence for PFC, if there is one.
    #[must_use]
    pub fn consequence(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Off | Self::Obeys => None,
            Self::Filters => Some("its device may drop PFC frames"),
            Self::Pauses => Some("its device pauses by itself"),
            Self::Unknown => Some("its device may pause by itself or drop PFC frames"),
        }
    }

    /// Whether PFC cannot work as promised, even if the operator asserts it. An operator can verify that PFC frames
    /// pass a device that may discard them, and that a device that may pause sends no PAUSE. A mode that reads as on is
    /// a fact.
    #[must_use]
    pub fn defeats_pfc(self) -> bool {
        self == Self::Pauses
    }
}

/// Current flow control of a device, as its driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowControlReading {
    /// Whether the device sends or obeys PAUSE.
    pub is_on: bool,
    /// Whether the driver reports that MAC control frames pass; most drivers never report it.
    pub passes_control: bool,
}

/// A device whose flow control can be read and set; errors are negative error numbers of the driver.
pub trait FlowControlDevice {
    /// Reads the current state.
    ///
    /// # Errors
    /// The error of the driver.
    fn read(&mut self) -> Result<FlowControlReading, i32>;

    /// Turns PAUSE off in both directions, keeps all other settings, and sets whether MAC control frames pass.
    ///
    /// # Errors
    /// The error of the driver.
    fn turn_off(&mut self, pass_control: bool) -> Result<(), i32>;
}

/// The settings that the driver accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// PAUSE off, and MAC control frames pass.
    Passing,
    /// PAUSE off only: the driver refuses the setting for MAC control frames.
    OffOnly,
    /// No setting, with the error of the driver.
    Refused(i32),
}

/// Turns flow control of `device` off and reads the result back.
///
/// It reads the state first, because drivers of NICs refuse settings that differ from it (`autoneg`, watermarks).
pub fn settle(device: &mut impl FlowControlDevice) -> (Accepted, Result<FlowControlReading, i32>) {
    if let Err(error) = device.read() {
        return (Accepted::Refused(error), Err(error));
    }
    let accepted = match device.turn_off(true) {
        Ok(()) => Accepted::Passing,
        Err(error) => device.turn_off(false).map_or(Accepted::Refused(error), |()| Accepted::OffOnly),
    };
    (accepted, device.read())
}

/// Judges the settings `accepted` by the driver and the `reading` after them, for a port of `driver`. `has_mac` is
/// false if the device is known to have no MAC.
#[must_use]
pub fn judge(
    driver: &str,
    has_mac: bool,
    accepted: Accepted,
    reading: Result<FlowControlReading, i32>,
) -> DeviceFlowControl {
    let reading = match reading {
        Ok(reading) if reading.is_on => return DeviceFlowControl::Pauses,
        _ if !has_mac => return DeviceFlowControl::None,
        Err(_) => return DeviceFlowControl::Unknown,
        Ok(reading) => reading,
    };
    let is_accepted = accepted == Accepted::Passing && PASSES_AS_ASKED.contains(&driver);
    if reading.passes_control || is_accepted { DeviceFlowControl::Off } else { DeviceFlowControl::Filters }
}

/// Whether a device of `driver` has a MAC of its own, judged by the driver's name.
#[must_use]
pub fn has_mac(driver: &str) -> bool {
    !WITHOUT_MAC.contains(&driver)
}

/// The last state of each port, written by the control thread and read by any thread.
#[derive(Debug, Default)]
pub struct FlowControls(Vec<Counter>);

impl FlowControls {
    /// Returns the states of `ports` ports, all without flow control of their own.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        Self((0..ports).map(|_| Counter::default()).collect())
    }

    /// The state of `port`.
    #[must_use]
    pub fn get(&self, port: usize) -> DeviceFlowControl {
        let code = self.0.get(port).map_or(0, Counter::get);
        DeviceFlowControl::ALL.into_iter().find(|state| *state as u64 == code).unwrap_or_default()
    }

    /// Publishes the state of `port`. Only the control thread may call it.
    pub fn set(&self, port: usize, state: DeviceFlowControl) {
        if let Some(code) = self.0.get(port) {
            code.set(state as u64);
        }
    }
}

#[cfg(test)]
#[path = "flow_control_tests.rs"]
mod tests;
