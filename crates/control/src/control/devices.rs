//! The devices of the ports: their flow control, flow rules, links and counters.

use super::flow_control::{Asked, FlowControls};
use super::steering::{Steered, steer};
use crate::config::Config;
use crate::config::model::{DeviceKind, SocketAccess};
use crate::dpdk::{ClassPfc, Error, EthPort, FlowRule, PortStats};
use crate::plan::PortSpec;
use crate::sets::{ClassSet, PortSet};
use crate::stats::flow_control::{FlowControlDevice, NO_DEVICE};
use crate::stats::{DeviceStats, Notice, NoticeKind, SwitchView};

/// Access to a port for the control thread.
pub(super) trait PortAccess {
    /// Name of its driver.
    fn driver(&self) -> String;
    /// Whether it is a virtual port on the kernel interface of a NIC.
    fn is_on_a_nic(&self) -> bool;
    /// Whether the port has a link, so that frames can leave by it.
    fn has_link(&self) -> bool;
    /// Takes the link down or up, or returns the driver's reason why it cannot.
    fn set_link(&self, up: bool) -> Result<(), String>;
    /// Counters of the port; `None` if its driver refuses.
    fn stats(&self) -> Option<PortStats>;
    /// Flow control of the device.
    fn flow_control(&self) -> impl FlowControlDevice;
    /// Reads whether the device obeys PFC by itself; `None`: it is not meant to.
    fn class_pfc(&self) -> Option<ClassPfc>;
    /// Lets the device obey PFC by itself again, if it is meant to.
    fn obey(&self) -> Option<Result<ClassPfc, i32>>;
    /// Whether the device chooses the receive queue of a frame. At other ports the sender does.
    fn chooses_queues(&self) -> bool;
    /// Adds a flow rule, or returns the driver's reason against it.
    fn steer(&self, rule: FlowRule) -> Result<(), String>;
}

/// Priorities that the device of a port obeys by itself.
pub(super) fn obeyed(spec: &PortSpec) -> ClassSet {
    if spec.pfc.is_obeyed_by_device() { spec.lossless_groups() } else { ClassSet::EMPTY }
}

/// Settings that a device takes only when it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opened {
    kind: DeviceKind,
    socket: SocketAccess,
    descriptors: [u16; 2],
    mtu: u16,
    /// Priorities that the device obeys by itself.
    obeyed: ClassSet,
}

impl Opened {
    /// Those of port `port`; `None`: it has no device.
    pub fn of(config: &Config, port: usize) -> Option<Self> {
        let device = config.devices.get(port).filter(|device| device.kind != DeviceKind::Absent)?;
        let descriptors = [device.rx_descriptors, device.tx_descriptors];
        let spec = &config.switch.ports[port];
        let (mtu, obeyed) = (spec.mtu, obeyed(spec));
        Some(Self { kind: device.kind.clone(), socket: device.socket.clone(), descriptors, mtu, obeyed })
    }
}

/// The place of a port for its device.
#[derive(Default)]
pub(super) struct Slot {
    /// `None`: it has none.
    pub device: Option<EthPort>,
    /// Settings with which it was opened.
    pub opened: Option<Opened>,
    /// Counts of the devices that it had before, so that its counters never fall.
    pub earlier: PortStats,
}

impl Slot {
    /// Closes the device, which another program may use from then on.
    pub fn close(&mut self) -> Result<(), Error> {
        let Some(device) = self.device.take() else { return Ok(()) };
        self.opened = None;
        self.earlier = self.earlier.plus(PortAccess::stats(&device).unwrap_or_default());
        device.remove()
    }
}

/// A port without a device has no link.
impl PortAccess for Slot {
    fn driver(&self) -> String {
        self.device.as_ref().map_or(NO_DEVICE.to_owned(), PortAccess::driver)
    }

    fn is_on_a_nic(&self) -> bool {
        self.device.as_ref().is_some_and(PortAccess::is_on_a_nic)
    }

    fn has_link(&self) -> bool {
        self.device.as_ref().is_some_and(PortAccess::has_link)
    }

    fn set_link(&self, up: bool) -> Result<(), String> {
        self.device.as_ref().map_or(Ok(()), |port| PortAccess::set_link(port, up))
    }

    fn stats(&self) -> Option<PortStats> {
        let now = match &self.device {
            Some(device) => PortAccess::stats(device)?,
            None => PortStats::default(),
        };
        Some(self.earlier.plus(now))
    }

    fn flow_control(&self) -> impl FlowControlDevice {
        Asked::new(self.device.as_ref())
    }

    fn class_pfc(&self) -> Option<ClassPfc> {
        self.device.as_ref().and_then(PortAccess::class_pfc)
    }

    fn obey(&self) -> Option<Result<ClassPfc, i32>> {
        self.device.as_ref().and_then(PortAccess::obey)
    }

    fn chooses_queues(&self) -> bool {
        self.device.as_ref().is_some_and(PortAccess::chooses_queues)
    }

    fn steer(&self, rule: FlowRule) -> Result<(), String> {
        self.device.as_ref().map_or_else(|| Err("there is no device".to_owned()), |port| PortAccess::steer(port, rule))
    }
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

    fn set_link(&self, up: bool) -> Result<(), String> {
        EthPort::set_link(self, up).map_err(|error| error.to_string())
    }

    fn stats(&self) -> Option<PortStats> {
        EthPort::stats(self).ok()
    }

    fn flow_control(&self) -> impl FlowControlDevice {
        Asked::new(Some(self))
    }

    fn class_pfc(&self) -> Option<ClassPfc> {
        EthPort::class_pfc(self)
    }

    fn obey(&self) -> Option<Result<ClassPfc, i32>> {
        EthPort::obey(self)
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
    /// Ports that are shut, as their devices know it.
    shut: PortSet,
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
        let mut devices = Self { flow_control, steered, shut: PortSet::EMPTY };
        warnings.extend(devices.shut(ports, switch_view).into_iter().map(|notice| notice.text));
        (devices, refresh(ports, switch_view), warnings)
    }

    /// Queues of a port whose device chooses the queue of a frame; `None` at other ports.
    pub fn steered(&self, port: usize) -> Option<Steered> {
        *self.steered.get(port)?
    }

    /// Takes the links of shut ports down, and of others up again. Returns notices about those that keep it.
    fn shut(&mut self, ports: &[impl PortAccess], switch_view: &SwitchView) -> Vec<Notice> {
        let before = std::mem::replace(&mut self.shut, switch_view.spec.shut_ports());
        let changed = before ^ self.shut;
        let set = |index: usize| {
            let (name, is_shut) = (switch_view.port_name(index), self.shut.contains(index));
            match ports.get(index)?.set_link(!is_shut) {
                Err(reason) if is_shut => {
                    let text = format!("{name} is shut, but its device keeps the link: {reason}");
                    Some(Notice::new(NoticeKind::LinkKept, text).at_port(name))
                }
                // A device that kept its link has no need to take it up.
                _ => None,
            }
        };
        changed.iter().filter_map(set).collect()
    }

    /// Begins with the devices that `replaced` ports have got. Returns warnings.
    pub fn replace(&mut self, ports: &[impl PortAccess], replaced: PortSet, switch_view: &SwitchView) -> Vec<Notice> {
        // Their links are up, as those of all devices at their start.
        self.shut -= replaced;
        let mut notices = Vec::new();
        for index in replaced.iter() {
            let line = self.flow_control.turn_off_at(ports, index, switch_view);
            let notice = |line| Notice::new(NoticeKind::FlowControl, line).at_port(switch_view.port_name(index));
            notices.extend(line.map(notice));
        }
        notices
    }

    /// Reads every device, and takes down the links of shut ports. Returns the ports whose links are up, and
    /// notices about changed flow control and devices that keep their link.
    pub fn look(&mut self, ports: &[impl PortAccess], switch_view: &SwitchView) -> (PortSet, Vec<Notice>) {
        let mut notices = self.shut(ports, switch_view);
        let up = refresh(ports, switch_view);
        let changed = self.flow_control.look(ports, switch_view, up).into_iter();
        notices.extend(
            changed.map(|(port, text)| Notice::new(NoticeKind::FlowControl, text).at_port(switch_view.port_name(port))),
        );
        (up, notices)
    }
}

/// Reads every device and publishes its counters; a shut port counts as down. Returns the ports whose links are up.
pub(super) fn refresh(ports: &[impl PortAccess], switch_view: &SwitchView) -> PortSet {
    let mut up = PortSet::EMPTY;
    for (index, (port, counters)) in ports.iter().zip(switch_view.devices.iter()).enumerate() {
        let is_shut = switch_view.is_shut(index);
        let has_link = port.has_link();
        let link_up = has_link && !is_shut;
        up |= PortSet::only_if(has_link, index);
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
