//! Flow control (PAUSE) of the devices: turned off at the start of their ports, and read again whenever a link comes
//! up.
//!
//! A MAC settles its use of PAUSE after it has negotiated with its partner, so the first reading is not final. PAUSE is
//! turned off again at a device that has come back with it on.

use super::devices::PortAccess;
use crate::dpdk::{ClassPfc, EthPort, FlowControl};
use crate::sets::PortSet;
use crate::stats::flow_control::{Accepted, FlowControlDevice, FlowControlReading, has_mac, judge, settle};
use crate::stats::{DeviceFlowControl, SwitchView};

/// Checks between two readings of every device. A flap between two checks is not seen as a link that came up. At one
/// check each 100 ms, these are ten seconds.
const LOOKS_TO_READ_ALL: u32 = 100;

/// Reason of a port without a device: ENODEV.
const NO_PORT: i32 = -19;

/// Access to the flow control of a port. It keeps the settings that were read, because drivers refuse others.
pub(super) struct Asked<'a> {
    /// `None`: there is no device.
    port: Option<&'a EthPort>,
    settings: Option<FlowControl>,
}

impl<'a> Asked<'a> {
    pub fn new(port: Option<&'a EthPort>) -> Self {
        Self { port, settings: None }
    }
}

impl FlowControlDevice for Asked<'_> {
    fn read(&mut self) -> Result<FlowControlReading, i32> {
        let settings = self.port.ok_or(NO_PORT)?.flow_control()?;
        self.settings = Some(settings);
        Ok(FlowControlReading { is_on: settings.is_on(), passes_control: settings.passes_control() })
    }

    fn turn_off(&mut self, pass_control: bool) -> Result<(), i32> {
        let settings = match self.settings {
            Some(settings) => settings,
            None => self.port.ok_or(NO_PORT)?.flow_control()?,
        };
        self.port.ok_or(NO_PORT)?.set_flow_control(&settings.off(pass_control))
    }
}

/// The driver of one port, and the result of turning its flow control off.
struct Port {
    accepted: Accepted,
    driver: String,
    has_mac: bool,
}

/// State of the flow control at the devices of all ports.
pub(super) struct FlowControls {
    ports: Vec<Port>,
    /// Ports whose links were up at the last check.
    up: PortSet,
    /// Checks since every device was read.
    looks: u32,
}

impl FlowControls {
    /// Turns off flow control at every port's device, and publishes the result. Returns warnings for the ports where
    /// this failed. The ports must be started, because starting resets the setting (`igc_rx_init`).
    pub fn turn_off(ports: &[impl PortAccess], switch_view: &SwitchView) -> (Self, Vec<String>) {
        let (mut all, mut lines) = (Self { ports: Vec::new(), up: PortSet::EMPTY, looks: 0 }, Vec::new());
        for (index, port) in ports.iter().enumerate() {
            let (port, line) = turn_off(port, index, switch_view);
            lines.extend(line);
            all.ports.push(port);
        }
        (all, lines)
    }

    /// Does so at the device that port `index` has got.
    pub fn turn_off_at(&mut self, ports: &[impl PortAccess], index: usize, switch_view: &SwitchView) -> Option<String> {
        let (port, line) = turn_off(ports.get(index)?, index, switch_view);
        *self.ports.get_mut(index)? = port;
        line
    }

    /// Reads the devices again whose link has come up since the last check, and all devices every `LOOKS_TO_READ_ALL`
    /// checks. `up` are the ports whose links are up. Returns the ports whose state changed, with messages.
    pub fn look(&mut self, ports: &[impl PortAccess], switch_view: &SwitchView, up: PortSet) -> Vec<(usize, String)> {
        let risen = up - std::mem::replace(&mut self.up, up);
        self.looks = (self.looks + 1) % LOOKS_TO_READ_ALL;
        let is_due = |index: usize| self.looks == 0 || risen.contains(index);
        let mut lines = Vec::new();
        for (index, (port, was)) in ports.iter().zip(&mut self.ports).enumerate() {
            if !is_due(index) || !was.has_mac {
                continue;
            }
            let before = switch_view.flow_control.get(index);
            let state = was.read_again(port, before);
            if state != before {
                switch_view.flow_control.set(index, state);
                lines.extend(line(switch_view, index, &was.driver, state).map(|line| (index, line)));
            }
        }
        lines
    }
}

/// Turns off flow control at the device of port `index`, and publishes the result. Returns a warning if this failed.
fn turn_off(port: &impl PortAccess, index: usize, switch_view: &SwitchView) -> (Port, Option<String>) {
    let driver = port.driver();
    let has_mac = has_mac(&driver) || port.is_on_a_nic();
    // A device that obeys PFC by itself does so since its start. One that does not is asked once more.
    let obeyed = || port.obey().and_then(Result::ok);
    let by_class = port.class_pfc().map(|found| match found {
        ClassPfc::Differs => of_class(obeyed().unwrap_or(found)),
        ClassPfc::Obeys | ClassPfc::Unconfirmed => of_class(found),
    });
    let (accepted, reading) = match by_class {
        Some(_) => (Accepted::Passing, Err(NO_PORT)),
        None => settle(&mut port.flow_control()),
    };
    let state = by_class.unwrap_or_else(|| judge(&driver, has_mac, accepted, reading));
    switch_view.flow_control.set(index, state);
    let line = line(switch_view, index, &driver, state);
    (Port { accepted, driver, has_mac }, line)
}

impl Port {
    /// Returns the current state. Turns PAUSE off again, once, at a device that was off and now has it on. More
    /// attempts are harmful: turning it off may take the link down (e1000), and the link of a device that stays on
    /// would flap forever.
    fn read_again(&mut self, port: &impl PortAccess, before: DeviceFlowControl) -> DeviceFlowControl {
        if let Some(found) = port.class_pfc() {
            let is_lost = found == ClassPfc::Differs && before != DeviceFlowControl::Pauses;
            return of_class(is_lost.then(|| port.obey()).flatten().and_then(Result::ok).unwrap_or(found));
        }
        let mut device = port.flow_control();
        let mut reading = device.read();
        let is_on = reading.is_ok_and(|reading| reading.is_on);
        if is_on && before != DeviceFlowControl::Pauses {
            (self.accepted, reading) = settle(&mut device);
        }
        judge(&self.driver, self.has_mac, self.accepted, reading)
    }
}

/// The state of a device that should obey PFC by itself and generate none.
fn of_class(answer: ClassPfc) -> DeviceFlowControl {
    match answer {
        ClassPfc::Obeys => DeviceFlowControl::Obeys,
        ClassPfc::Unconfirmed => DeviceFlowControl::Unknown,
        ClassPfc::Differs => DeviceFlowControl::Pauses,
    }
}

/// Returns a warning for a port whose device may break the guarantee of PFC. `None` if PFC is off or the device does
/// not pause.
fn line(switch_view: &SwitchView, port: usize, driver: &str, state: DeviceFlowControl) -> Option<String> {
    let is_wanted = !switch_view.guarded_groups(port).is_empty();
    let consequence = state.consequence().filter(|_| is_wanted)?;
    let (name, label) = (switch_view.port_name(port), state.label());
    Some(format!("port {name}: flow control {label} ({driver}): {consequence}; see docs/nics.md"))
}
