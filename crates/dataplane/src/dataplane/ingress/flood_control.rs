//! Flood control: drops frames to be flooded beyond the limits of their ingress port (`storm_control`).

use crate::plan::drops::DropReason;
use crate::plan::spec::SwitchSpec;
use crate::qos::policer::Policer;
use crate::qos::{FloodKind, FloodLimits};
use crate::sets::MAX_PORTS;
use crate::units::Ticks;

/// Frames of a kind that may pass in a row.
const BURST_FRAMES: u32 = 64;

/// The policers of one lcore, by ingress port and kind.
#[derive(Debug)]
pub(crate) struct FloodControl {
    limits: Box<[FloodLimits; MAX_PORTS]>,
    policers: Box<[[Option<Policer>; FloodKind::COUNT]; MAX_PORTS]>,
    hz: u64,
}

impl FloodControl {
    /// Creates the policers of `spec` on a clock of `hz` ticks a second.
    pub fn new(spec: &SwitchSpec, hz: u64) -> Self {
        let limits = Box::new([FloodLimits::default(); MAX_PORTS]);
        let mut control = Self { limits, policers: Box::new([[None; FloodKind::COUNT]; MAX_PORTS]), hz };
        for (port, spec) in spec.ports.iter().enumerate() {
            control.set(port, &spec.live.flood_limits);
        }
        control
    }

    /// Replaces the limits of `port`. A limit that stays keeps its policer, so that a reload passes no further frames.
    pub fn set(&mut self, port: usize, limits: &FloodLimits) {
        let (old, policers) = (&mut self.limits[port % MAX_PORTS], &mut self.policers[port % MAX_PORTS]);
        for ((old, new), policer) in old.iter_mut().zip(limits).zip(policers) {
            if old != new {
                *policer = new.map(|rate| Policer::new(rate.0, BURST_FRAMES, self.hz));
                *old = *new;
            }
        }
    }

    /// Why a frame that `port` received at `now` is not flooded; `None` if it is.
    pub fn refuse(&mut self, port: usize, kind: FloodKind, now: Ticks) -> Option<DropReason> {
        let policer = self.policers[port % MAX_PORTS][kind as usize].as_mut()?;
        (!policer.passes(now)).then_some(match kind {
            FloodKind::Broadcast => DropReason::StormBroadcast,
            FloodKind::Multicast => DropReason::StormMulticast,
            FloodKind::Unknown => DropReason::StormUnknown,
        })
    }
}
