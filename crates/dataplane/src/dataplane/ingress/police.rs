//! Policers of punted frames: each cause may use its rate, so that a flood of one delays no other. All police by port,
//! so that a port that floods silences no other. Answers to the router's own questions have policers of their own, so
//! that a flood of questions does not make the router forget its neighbours.

use super::port_policers::PortPolicers;
use crate::route::PuntCause;
use crate::units::Ticks;

/// Frames of LLDP or of LACP that may pass in a row at a port: two of each of eight neighbours. All ports share the
/// buffers of the lcore.
const BURST_OF_LINK: u32 = 16;
/// Own probes that may pass in a row at a port: those of four trunks in a round.
const BURST_OF_PROBES: u32 = 64;
/// Answers to own questions that may pass at a port in a second and in a row. The router asks each of 16,384 neighbours
/// again after 45 s, and all may be behind one port.
const ANSWERS: u32 = 500;
const BURST_OF_ANSWERS: u32 = 64;

/// Packets of BGP, and of BFD, of strangers that may pass in a second. A session of BFD that is not known yet sends one
/// a second (RFC 5880 section 6.8.3).
const STRANGERS: u32 = 600;

/// The policers that a frame must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoliceAs {
    /// Those of its cause.
    Cause,
    /// Those of answers to the router's own questions.
    Answer,
    /// Those of BGP and BFD of others than peers ([`super::peers`]).
    Stranger,
}

/// The policers of one lcore.
#[derive(Debug)]
pub(crate) struct Policers {
    by_cause: Box<[PortPolicers]>,
    /// Answers by ARP, and by neighbour discovery.
    answers: Box<[PortPolicers; 2]>,
    /// BGP and BFD of strangers.
    strangers: Box<[PortPolicers; 2]>,
}

impl Policers {
    /// Creates the policers of an lcore that receives by `ports` ports, on a clock of `hz` ticks a second. A group of
    /// ports counts as one.
    pub fn new(ports: usize, hz: u64) -> Self {
        let policers = |(cause, _, rate): &(PuntCause, &str, u32)| match cause {
            PuntCause::Lldp | PuntCause::Lacp => PortPolicers::separate(*rate, BURST_OF_LINK, hz),
            PuntCause::LoopProbe => PortPolicers::separate(*rate, BURST_OF_PROBES, hz),
            _ => PortPolicers::shared(*rate, ports, hz),
        };
        let answers = || PortPolicers::separate(ANSWERS, BURST_OF_ANSWERS, hz);
        let strangers = || PortPolicers::shared(STRANGERS, ports, hz);
        Self {
            by_cause: PuntCause::TABLE.iter().map(policers).collect(),
            answers: Box::new([answers(), answers()]),
            strangers: Box::new([strangers(), strangers()]),
        }
    }

    /// Whether a frame of `cause` that `port` received may pass at `now`.
    pub fn pass(&mut self, cause: PuntCause, police_as: PoliceAs, port: usize, now: Ticks) -> bool {
        let policers = match police_as {
            PoliceAs::Cause => &mut self.by_cause[cause as usize],
            PoliceAs::Answer => &mut self.answers[usize::from(cause == PuntCause::NeighbourDiscovery)],
            PoliceAs::Stranger => &mut self.strangers[usize::from(cause == PuntCause::Bfd)],
        };
        policers.pass(port, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 1_000_000_000;
    const PORTS: usize = 4;

    fn pass(policers: &mut Policers, cause: PuntCause, port: usize, time: u64) -> bool {
        policers.pass(cause, PoliceAs::Cause, port, Ticks(time))
    }

    #[test]
    fn flood_passes_at_its_rate_and_leaves_other_causes_alone() {
        let mut policers = Policers::new(PORTS, HZ);
        let passed = (0..1_000_000).filter(|&time| pass(&mut policers, PuntCause::Arp, 0, time * 1000)).count();
        assert!((562..=602).contains(&passed), "{passed} in a second");
        assert!(pass(&mut policers, PuntCause::Bgp, 0, HZ));
    }

    #[test]
    fn flood_of_lldp_at_one_port_leaves_the_others_alone() {
        let mut policers = Policers::new(PORTS, HZ);
        let passed = (0..1_000_000).filter(|&time| pass(&mut policers, PuntCause::Lldp, 3, time * 1000)).count();
        assert!((20..=20 + BURST_OF_LINK as usize).contains(&passed), "{passed} in a second");
        assert!(pass(&mut policers, PuntCause::Lldp, 4, HZ));
    }

    #[test]
    fn flood_of_probes_passes_at_its_rate_and_leaves_lldp_and_lacp_of_its_port_alone() {
        let mut policers = Policers::new(PORTS, HZ);
        let passed = (0..1_000_000).filter(|&time| pass(&mut policers, PuntCause::LoopProbe, 3, time * 1000)).count();
        assert!((50..=50 + BURST_OF_PROBES as usize).contains(&passed), "{passed} in a second");
        for cause in [PuntCause::Lldp, PuntCause::Lacp, PuntCause::Arp] {
            assert!(pass(&mut policers, cause, 3, HZ));
        }
        assert!(pass(&mut policers, PuntCause::LoopProbe, 4, HZ));
    }

    #[test]
    fn punt_policer_passes_a_burst_after_silence() {
        let mut policers = Policers::new(PORTS, HZ);
        for second in [5, 9] {
            let passed = (0..100).filter(|_| pass(&mut policers, PuntCause::Icmp, 0, second * HZ)).count();
            assert_eq!(passed, 40);
        }
    }

    #[test]
    fn answers_pass_beside_a_flood_of_questions_and_bound_each_port() {
        for cause in [PuntCause::Arp, PuntCause::NeighbourDiscovery] {
            let mut policers = Policers::new(PORTS, HZ);
            assert!((0..1_000).any(|_| !pass(&mut policers, cause, 0, HZ)), "the questions are policed");
            let mut answers = |port, time| policers.pass(cause, PoliceAs::Answer, port, Ticks(time));
            assert_eq!((0..1_000).filter(|_| answers(0, HZ)).count(), 64);
            assert!(answers(1, HZ));
            let passed = (0..100_000).filter(|time| answers(0, 2 * HZ + time * 10_000)).count();
            assert!((500..=564).contains(&passed), "{passed} in a second");
        }
    }
}
