//! The devices of the ports: their flow control, flow rules, links and counters.

use super::flow_control::{Asked, FlowControls};
use super::steering::{Steered, steer};
use crate::dpdk::{EthPort, FlowRule, PortStats};
use crate::sets::PortSet;
use crate::stats::flow_control::FlowControlDevice;
use crate::stats::{DeviceStats, SwitchView};

/// Access to a port for the control thread.
pub(super) trait PortAccess {
    /// Name of its driver.
    fn driver(&self) -> String;
    /// Whether it is a virtual port on the kernel interface of a NIC.
    fn is_on_a_nic(&self) -> bool;
    /// Whether the port has a link, so that frames can leave by it.
    fn has_link(&self) -> bool;
    /// Counters of the port; `None` if its driver refuses.
    fn stats(&self) -> Option<PortStats>;
    /// Flow control of the device.
    fn flow_control(&self) -> impl FlowControlDevice;
    /// Whether the device chooses the receive queue of a frame. At other ports the sender does.
    fn chooses_queues(&self) -> bool;
    /// Adds a flow rule, or returns the driver's reason against it.
    fn steer(&self, rule: FlowRule) -> Result<(), String>;
}

impl PortAccess for EthPort {
    fn driver(&self) -> String {
        EthPort::driver(self)
    }

    fn is_on_a_nic(&self) -> bool {
        EthPort::is_on_a_nic(self)
    }

    fn has_link(&self) -> bool {
        EthPort::has_link(self)
    }

    fn stats(&self) -> Option<PortStats> {
        EthPort::stats(self).ok()
    }

    fn flow_control(&self) -> impl FlowControlDevice {
        Asked::new(self)
    }

    fn chooses_queues(&self) -> bool {
        self.is_physical()
    }

    fn steer(&self, rule: FlowRule) -> Result<(), String> {
        EthPort::steer(self, rule)
    }
}

/// The devices of all ports while the switch runs.
pub(super) struct Devices {
    flow_control: FlowControls,
    steered: Vec<Option<Steered>>,
}

impl Devices {
    /// Turns off flow control at the devices of started ports, gives them their flow rules, and reads their state.
    /// Returns the ports whose links are up, and warnings.
    pub fn start(ports: &[impl PortAccess], switch_view: &SwitchView) -> (Self, PortSet, Vec<String>) {
        let (flow_control, mut warnings) = FlowControls::turn_off(ports, switch_view);
        let specs = switch_view.spec.ports.iter();
        let steered = ports.iter().zip(specs).map(|(port, spec)| {
            let (steered, warning) = steer(port, spec, &switch_view.spec.classes);
            warnings.extend(warning);
            steered
        });
        let steered = steered.collect();
        (Self { flow_control, steered }, refresh(ports, switch_view), warnings)
    }

    /// Queues of a port whose device chooses the queue of a frame; `None` at other ports.
    pub fn steered(&self, port: usize) -> Option<Steered> {
        *self.steered.get(port)?
    }

    /// Reads every device. Returns the ports whose links are up, and messages about changed flow control.
    pub fn look(&mut self, ports: &[impl PortAccess], switch_view: &SwitchView) -> (PortSet, Vec<String>) {
        let up = refresh(ports, switch_view);
        (up, self.flow_control.look(ports, switch_view, up))
    }
}

/// Reads every device and publishes its counters. Returns the ports whose links are up.
pub(super) fn refresh(ports: &[impl PortAccess], switch_view: &SwitchView) -> PortSet {
    let mut up = PortSet::EMPTY;
    for (index, (port, counters)) in ports.iter().zip(switch_view.devices.iter()).enumerate() {
        let link_up = port.has_link();
        up |= PortSet::only_if(link_up, index);
        if let Some(stats) = port.stats() {
            counters.publish(&DeviceStats {
                link_up,
                rx_frames: stats.ipackets,
                tx_frames: stats.opackets,
                rx_missed: stats.imissed + lost_on_wire(switch_view, index),
                rx_no_buffer: stats.rx_nombuf,
                rx_errors: stats.ierrors,
                tx_errors: stats.oerrors,
            });
        }
    }
    up
}

/// Returns the number of frames that the host at `port` sent into a full receive ring. An in-process port does not
/// count them.
fn lost_on_wire(switch_view: &SwitchView, port: usize) -> u64 {
    let hosts = switch_view.hosts.iter().flat_map(|hosts| &hosts.hosts).filter(|host| host.port == port);
    hosts.map(|host| host.lost_frames.get()).sum()
}

#[cfg(test)]
#[path = "devices_tests.rs"]
pub(super) mod tests;
