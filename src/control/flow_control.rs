//! Flow control of the devices behind the ports: told at their start, read again whenever a link comes up.
//!
//! A MAC settles what it does of PAUSE when it has negotiated with its partner, so the first reading is not the last word.

use crate::dpdk::{EthPort, FlowControl};
use crate::stats::flow_control::{FlowControlDevice, FlowControlReading, Told, has_mac, judge, settle};
use crate::stats::{DeviceFlowControl, Subject};

/// A port while it is asked; keeps the settings that were read, since drivers refuse others.
struct Asked<'a> {
    port: &'a EthPort,
    settings: Option<FlowControl>,
}

impl FlowControlDevice for Asked<'_> {
    fn read(&mut self) -> Result<FlowControlReading, i32> {
        let settings = self.port.flow_control()?;
        self.settings = Some(settings);
        Ok(FlowControlReading { is_on: settings.is_on(), passes_control: settings.passes_control() })
    }

    fn turn_off(&mut self, pass_control: bool) -> Result<(), i32> {
        let settings = match self.settings {
            Some(settings) => settings,
            None => self.port.flow_control()?,
        };
        self.port.set_flow_control(&settings.off(pass_control))
    }
}

/// One port's driver, and what it was told.
struct Port {
    told: Told,
    driver: String,
    has_mac: bool,
}

/// Orders to the devices of all ports.
pub(super) struct FlowControls {
    ports: Vec<Port>,
    /// Links that were up at the last look, a bit a port.
    up: u64,
}

impl FlowControls {
    /// Turns flow control of every port's device off, publishes what came of it, and says of which port it does not hold.
    /// The ports are started: starting resets what a device was told (`igc_rx_init`).
    pub fn turn_off(ports: &[EthPort], subject: &Subject) -> (Self, Vec<String>) {
        let (mut all, mut lines) = (Self { ports: Vec::new(), up: 0 }, Vec::new());
        for (index, port) in ports.iter().enumerate() {
            let driver = port.driver();
            let has_mac = port.is_physical() || has_mac(&driver) || port.is_on_a_nic();
            let (told, reading) = settle(&mut Asked { port, settings: None });
            let state = judge(&driver, has_mac, told, reading);
            subject.flow_control.set(index, state);
            lines.extend(line(subject, index, &driver, state));
            all.ports.push(Port { told, driver, has_mac });
        }
        (all, lines)
    }

    /// Reads again at ports whose link has come up; `up` has a bit for each link that is. Lines where the answer changed.
    pub fn look(&mut self, ports: &[EthPort], subject: &Subject, up: u64) -> Vec<String> {
        let risen = up & !self.up;
        self.up = up;
        let mut lines = Vec::new();
        for (index, (port, was)) in ports.iter().zip(&self.ports).enumerate() {
            if risen >> index & 1 == 0 || !was.has_mac {
                continue;
            }
            let reading = (Asked { port, settings: None }).read();
            let state = judge(&was.driver, was.has_mac, was.told, reading);
            if state != subject.flow_control.get(index) {
                subject.flow_control.set(index, state);
                lines.extend(line(subject, index, &was.driver, state));
            }
        }
        lines
    }
}

/// Warning of a port whose device may break the promise of PFC; `None` where PFC is off or the device keeps quiet.
fn line(subject: &Subject, port: usize, driver: &str, state: DeviceFlowControl) -> Option<String> {
    let is_wanted = subject.guarded_groups(port) != 0;
    let consequence = state.consequence().filter(|_| is_wanted)?;
    let (name, label) = (subject.port_name(port), state.label());
    Some(format!("port {name}: flow control {label} ({driver}): {consequence}; see docs/nics.md"))
}
