//! Storm control: drops frames to be flooded beyond the limits of their ingress port.

use crate::dataplane::spec::SwitchSpec;
use crate::dataplane::telemetry::drops::DropReason;
use crate::qos::policer::Policer;
use crate::qos::{FloodKind, StormLimits};
use crate::sets::MAX_PORTS;
use crate::units::Ticks;

/// The policers of one lcore, by ingress port and kind.
#[derive(Debug)]
pub(crate) struct StormControl {
    ports: Box<[[Option<Policer>; FloodKind::COUNT]; MAX_PORTS]>,
    hz: u64,
}

impl StormControl {
    /// Creates the policers of `spec` on a clock of `hz` ticks a second.
    pub fn new(spec: &SwitchSpec, hz: u64) -> Self {
        let mut control = Self { ports: Box::new([[None; FloodKind::COUNT]; MAX_PORTS]), hz };
        for (port, spec) in spec.ports.iter().enumerate() {
            control.set(port, &spec.storm_limits);
        }
        control
    }

    /// Replaces the limits of `port`.
    pub fn set(&mut self, port: usize, limits: &StormLimits) {
        let hz = self.hz;
        self.ports[port % MAX_PORTS] = limits.map(|limit| limit.map(|rate| Policer::new(rate.0, hz)));
    }

    /// Why a frame that `port` received at `now` is not flooded; `None` if it is.
    pub fn refuse(&mut self, port: usize, kind: FloodKind, now: Ticks) -> Option<DropReason> {
        let policer = self.ports[port % MAX_PORTS][kind as usize].as_mut()?;
        (!policer.passes(now)).then_some(match kind {
            FloodKind::Broadcast => DropReason::StormBroadcast,
            FloodKind::Multicast => DropReason::StormMulticast,
            FloodKind::Unknown => DropReason::StormUnknown,
        })
    }
}
