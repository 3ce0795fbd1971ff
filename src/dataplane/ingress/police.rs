//! Policers of punted frames: each cause may use its rate, so that a flood of one delays no other. Frames of a link are
//! policed by port, so that a peer silences no other.

use crate::qos::policer::Policer;
use crate::route::PuntCause;
use crate::sets::MAX_PORTS;
use crate::units::Ticks;

/// Frames of a cause that may pass in a row.
const BURST_FRAMES: u32 = 64;
/// Frames of LLDP or of LACP that may pass in a row at a port: two of each of eight neighbours. All ports share the
/// buffers of the lcore.
const BURST_OF_LINK: u32 = 16;
/// Own probes that may pass in a row at a port: those of four trunks in a round.
const BURST_OF_PROBES: u32 = 64;

/// The policers of one lcore.
#[derive(Debug)]
pub(crate) struct Policers {
    by_cause: [Policer; PuntCause::COUNT],
    /// Policers of LLDP, of LACP and of probes, by port.
    lldp: Box<[Policer; MAX_PORTS]>,
    lacp: Box<[Policer; MAX_PORTS]>,
    probes: Box<[Policer; MAX_PORTS]>,
}

impl Policers {
    /// Creates the policers on a clock of `hz` ticks a second.
    pub fn new(hz: u64) -> Self {
        let policer = |cause: usize| Policer::new(PuntCause::TABLE[cause].2, BURST_FRAMES, hz);
        let of_link = |cause: PuntCause| {
            let burst = if cause == PuntCause::LoopProbe { BURST_OF_PROBES } else { BURST_OF_LINK };
            let policer = Policer::new(PuntCause::TABLE[cause as usize].2, burst, hz);
            Box::new([policer; MAX_PORTS])
        };
        let (lldp, lacp) = (of_link(PuntCause::Lldp), of_link(PuntCause::Lacp));
        let probes = of_link(PuntCause::LoopProbe);
        Self { by_cause: std::array::from_fn(policer), lldp, lacp, probes }
    }

    /// Whether a frame of `cause` that `port` received may pass at `now`.
    #[inline]
    pub fn pass(&mut self, cause: PuntCause, port: usize, now: Ticks) -> bool {
        match cause {
            PuntCause::Lldp => self.lldp[port % MAX_PORTS].passes(now),
            PuntCause::Lacp => self.lacp[port % MAX_PORTS].passes(now),
            PuntCause::LoopProbe => self.probes[port % MAX_PORTS].passes(now),
            _ => self.by_cause[cause as usize].passes(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 1_000_000_000;

    #[test]
    fn flood_passes_at_its_rate_and_leaves_other_causes_alone() {
        let mut policers = Policers::new(HZ);
        let mut passed = 0;
        for microsecond in 0..1_000_000 {
            passed += u64::from(policers.pass(PuntCause::Arp, 0, Ticks(microsecond * 1000)));
        }
        assert!((1_000..=1_000 + u64::from(BURST_FRAMES)).contains(&passed), "{passed} in a second");
        assert!(policers.pass(PuntCause::Bgp, 0, Ticks(HZ)));
    }

    #[test]
    fn flood_of_lldp_at_one_port_leaves_the_others_alone() {
        let mut policers = Policers::new(HZ);
        let passed = (0..1_000_000).filter(|&time| policers.pass(PuntCause::Lldp, 3, Ticks(time * 1000))).count();
        assert!((20..=20 + BURST_OF_LINK as usize).contains(&passed), "{passed} in a second");
        assert!(policers.pass(PuntCause::Lldp, 4, Ticks(HZ)));
    }

    #[test]
    fn flood_of_probes_passes_at_its_rate_and_leaves_lldp_and_lacp_of_its_port_alone() {
        let mut policers = Policers::new(HZ);
        let passed = (0..1_000_000).filter(|&time| policers.pass(PuntCause::LoopProbe, 3, Ticks(time * 1000))).count();
        assert!((50..=50 + BURST_OF_PROBES as usize).contains(&passed), "{passed} in a second");
        for cause in [PuntCause::Lldp, PuntCause::Lacp, PuntCause::Arp] {
            assert!(policers.pass(cause, 3, Ticks(HZ)));
        }
        assert!(policers.pass(PuntCause::LoopProbe, 4, Ticks(HZ)));
    }

    #[test]
    fn burst_passes_after_silence() {
        let mut policers = Policers::new(HZ);
        for second in [5, 9] {
            let passed = (0..100).filter(|_| policers.pass(PuntCause::Icmp, 0, Ticks(second * HZ))).count();
            assert_eq!(passed as u64, u64::from(BURST_FRAMES));
        }
    }
}
