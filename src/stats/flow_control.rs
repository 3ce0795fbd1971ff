//! Flow control that a device does by itself: classic PAUSE (IEEE 802.3 annex 31B) of its MAC, out of the switch's sight.
//!
//! A MAC that sends PAUSE when its FIFO fills stops all classes of the peer, and one that obeys PAUSE holds back PFC frames
//! too. A MAC that keeps MAC control frames to itself eats the PFC frames of the peer. So each port asks its device for
//! neither, reads back what holds, and judges the answer here. Which driver does what was read in DPDK 22.11: docs/nics.md.

use serde::Serialize;

use crate::dataplane::counters::Counter;

/// Drivers whose device has no MAC of its own: nothing below the switch can pause.
const WITHOUT_MAC: [&str; 12] = [
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

/// Drivers that write "pass MAC control frames" to the device as asked, and do not tell whether it is set.
const PASSES_AS_ASKED: [&str; 6] = ["net_e1000_em", "net_e1000_igb", "net_i40e", "net_igc", "net_ngbe", "net_txgbe"];

/// Flow control that a port's device does by itself, as its driver says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceFlowControl {
    /// The device has no flow control of its own.
    #[default]
    None,
    /// It is off, and MAC control frames pass to the switch.
    Off,
    /// It is off, but the driver does not pass MAC control frames as far as it says: the device may eat PFC frames.
    Filters,
    /// It is on after it was told to be off: the device may send and obey PAUSE for all classes.
    Pauses,
    /// The driver cannot be asked: the device may pause by itself, and may eat PFC frames.
    Unknown,
}

impl DeviceFlowControl {
    const ALL: [Self; 5] = [Self::None, Self::Off, Self::Filters, Self::Pauses, Self::Unknown];

    /// In metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Off => "off",
            Self::Filters => "filters",
            Self::Pauses => "pauses",
            Self::Unknown => "unknown",
        }
    }

    /// The consequence for PFC, where there is one.
    #[must_use]
    pub fn consequence(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Off => None,
            Self::Filters => Some("its device may eat PFC frames"),
            Self::Pauses => Some("its device pauses by itself"),
            Self::Unknown => Some("its device may pause by itself or eat PFC frames"),
        }
    }

    /// Whether PFC cannot work as promised, even if the operator says so. An operator can see that PFC frames pass a
    /// device that only may eat them, and that a device that only may pause sends none; a mode that reads on is a fact.
    #[must_use]
    pub fn defeats_pfc(self) -> bool {
        self == Self::Pauses
    }
}

/// Present flow control of a device, as its driver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowControlReading {
    /// Whether the device sends or obeys PAUSE.
    pub is_on: bool,
    /// Whether the driver says that MAC control frames pass; most drivers never say so.
    pub passes_control: bool,
}

/// A device that can be asked; errors are negative error numbers, as drivers give them.
pub trait FlowControlDevice {
    /// The present state.
    ///
    /// # Errors
    /// The driver's.
    fn read(&mut self) -> Result<FlowControlReading, i32>;

    /// Turns PAUSE off both ways, keeps all other settings, and asks for MAC control frames to pass or not.
    ///
    /// # Errors
    /// The driver's.
    fn turn_off(&mut self, pass_control: bool) -> Result<(), i32>;
}

/// Orders that the driver took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Off, and pass MAC control frames.
    Passing,
    /// Off alone: it refuses to be told of MAC control frames.
    OffOnly,
    /// Neither.
    Refused(i32),
}

/// Turns flow control of `device` off and reads back what holds.
///
/// The reading comes first since drivers of NICs refuse settings that differ from it (`autoneg`, water marks).
pub fn settle(device: &mut impl FlowControlDevice) -> (Told, Result<FlowControlReading, i32>) {
    if let Err(error) = device.read() {
        return (Told::Refused(error), Err(error));
    }
    let told = match device.turn_off(true) {
        Ok(()) => Told::Passing,
        Err(error) => device.turn_off(false).map_or(Told::Refused(error), |()| Told::OffOnly),
    };
    (told, device.read())
}

/// Judges `told` and the `reading` after it, for a port of `driver`; `has_mac` is false where the device is known
/// to have no MAC.
#[must_use]
pub fn judge(driver: &str, has_mac: bool, told: Told, reading: Result<FlowControlReading, i32>) -> DeviceFlowControl {
    let reading = match reading {
        Ok(reading) if reading.is_on => return DeviceFlowControl::Pauses,
        _ if !has_mac => return DeviceFlowControl::None,
        Err(_) => return DeviceFlowControl::Unknown,
        Ok(reading) => reading,
    };
    let is_told = told == Told::Passing && PASSES_AS_ASKED.contains(&driver);
    if reading.passes_control || is_told { DeviceFlowControl::Off } else { DeviceFlowControl::Filters }
}

/// Whether a device of `driver` has a MAC of its own, as far as the driver's name says.
#[must_use]
pub fn has_mac(driver: &str) -> bool {
    !WITHOUT_MAC.contains(&driver)
}

/// The last answer of each port: written by the control thread, read by anyone.
#[derive(Debug, Default)]
pub struct FlowControls(Vec<Counter>);

impl FlowControls {
    /// `ports` ports without flow control of their own.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        Self((0..ports).map(|_| Counter::default()).collect())
    }

    /// That of `port`.
    #[must_use]
    pub fn get(&self, port: usize) -> DeviceFlowControl {
        let code = self.0.get(port).map_or(0, Counter::get);
        DeviceFlowControl::ALL.into_iter().find(|state| *state as u64 == code).unwrap_or_default()
    }

    /// Publishes that of `port`. Only the control thread may.
    pub fn set(&self, port: usize, state: DeviceFlowControl) {
        if let Some(code) = self.0.get(port) {
            code.set(state as u64);
        }
    }
}

#[cfg(test)]
#[path = "flow_control_tests.rs"]
mod tests;
