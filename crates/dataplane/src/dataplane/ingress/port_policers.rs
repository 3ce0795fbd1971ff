//! The policers of one cause of punts at all ports of an lcore: a port that floods uses up what is its own, and leaves
//! the others theirs.

use crate::qos::policer::Policer;
use crate::sets::MAX_PORTS;
use crate::units::Ticks;

/// The ports together have a share of one in this many of the rate.
const SHARED_PART: u64 = 4;
/// Beyond its share, a port has one in this many of the rate.
const PORT_PART: u64 = 2;
/// Frames that pass in a row: by the share of a port, of a port beyond its share, and of all ports beyond theirs.
const BURST_OF_SHARE: u32 = 8;
const BURST_OF_PORT: u32 = 32;
const BURST_OF_ALL: u32 = 64;

/// The policers of one cause of punts.
///
/// A quarter of the rate is divided among the ports: such a share is a port's own at any time. The rest is common, and
/// a port may use at most two thirds of it. So one port that floods leaves the others a quarter of the rate beside
/// their shares, and a port of which there are no others to heed has more than half of the rate.
#[derive(Debug)]
pub(super) struct PortPolicers {
    /// The share of each port.
    share: [Policer; MAX_PORTS],
    /// The common part; `None`: each port has its share alone.
    common: Option<Common>,
}

/// The part of the rate that is common to all ports.
#[derive(Debug)]
struct Common {
    /// The most that each port may use of it.
    port: [Policer; MAX_PORTS],
    all: Policer,
}

impl PortPolicers {
    /// Creates policers that pass `rate` frames a second of all `ports` ports together, on a clock of `hz` ticks a
    /// second.
    pub fn shared(rate: u32, ports: usize, hz: u64) -> Self {
        let (rate, ports) = (u64::from(rate).max(1), (ports as u64).max(1));
        let common = Common {
            port: [Policer::with_interval(hz * PORT_PART / rate, BURST_OF_PORT); MAX_PORTS],
            all: Policer::with_interval(hz * SHARED_PART / (rate * (SHARED_PART - 1)), BURST_OF_ALL),
        };
        let share = Policer::with_interval(hz * SHARED_PART * ports / rate, BURST_OF_SHARE);
        Self { share: [share; MAX_PORTS], common: Some(common) }
    }

    /// Creates policers that pass `rate` frames a second, and `burst` in a row, of each port.
    pub fn separate(rate: u32, burst: u32, hz: u64) -> Self {
        Self { share: [Policer::new(rate, burst, hz); MAX_PORTS], common: None }
    }

    /// Whether a frame that `port` received may pass at `now`.
    pub fn pass(&mut self, port: usize, now: Ticks) -> bool {
        let port = port % MAX_PORTS;
        if self.share[port].passes(now) {
            return true;
        }
        let Some(common) = &mut self.common else { return false };
        // A refused frame costs neither policer anything.
        common.port[port].could_pass(now) && common.all.passes(now) && common.port[port].passes(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HZ: u64 = 1_000_000_000;
    const RATE: u32 = 1_000;
    const PORTS: usize = 8;

    /// Frames of ports: the time since the frame before, and the port.
    fn arrivals(ports: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u64, usize)>> {
        let gap = prop_oneof![0..1_000_u64, 0..100_000_u64, 0..20_000_000_u64];
        prop::collection::vec((gap, ports), 1..2_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn port_has_its_share_whatever_all_ports_send(arrivals in arrivals(0..PORTS)) {
            let mut policers = PortPolicers::shared(RATE, PORTS, HZ);
            let mut shares = PortPolicers { common: None, ..PortPolicers::shared(RATE, PORTS, HZ) };
            let mut now = HZ;
            for (gap, port) in arrivals {
                now += gap;
                let has_share = shares.pass(port, Ticks(now));
                prop_assert!(policers.pass(port, Ticks(now)) || !has_share);
            }
        }

        #[test]
        fn ports_together_pass_the_rate_and_one_port_its_part(arrivals in arrivals(0..PORTS)) {
            let mut policers = PortPolicers::shared(RATE, PORTS, HZ);
            let (mut now, mut passed) = (HZ, [0_u64; PORTS]);
            for (gap, port) in arrivals {
                now += gap;
                passed[port] += u64::from(policers.pass(port, Ticks(now)));
            }
            let in_time = |rate: u64| (now - HZ) * rate / HZ + 1;
            let bursts = u64::from(BURST_OF_SHARE) * PORTS as u64 + u64::from(BURST_OF_ALL);
            prop_assert!(passed.iter().sum::<u64>() <= in_time(u64::from(RATE)) + bursts);
            let most = in_time(u64::from(RATE) / 2 + u64::from(RATE) / 4 / PORTS as u64) + 1;
            let burst = u64::from(BURST_OF_SHARE + BURST_OF_PORT);
            prop_assert!(passed.iter().all(|&passed| passed <= most + burst), "{passed:?}, at most {most} + {burst}");
        }

        #[test]
        fn port_that_floods_leaves_the_others_a_quarter_of_the_rate(
            flood in 1_000..1_000_000_u64,
            others in arrivals(1..PORTS),
        ) {
            let mut policers = PortPolicers::shared(RATE, PORTS, HZ);
            // The others together send no more than this policer passes.
            let mut quarter = Policer::new(RATE / 4, BURST_OF_ALL - BURST_OF_PORT - 2, HZ);
            let (mut now, mut flooded) = (HZ, HZ);
            for (gap, port) in others {
                now += gap;
                while flooded < now {
                    policers.pass(0, Ticks(flooded));
                    flooded += flood;
                }
                if quarter.passes(Ticks(now)) {
                    prop_assert!(policers.pass(port, Ticks(now)));
                }
            }
        }
    }

    #[test]
    fn ports_that_all_flood_pass_their_shares_each() {
        let mut policers = PortPolicers::shared(RATE, PORTS, HZ);
        let mut passed = [0_u64; PORTS];
        for time in 0..100_000 {
            for (port, passed) in passed.iter_mut().enumerate() {
                *passed += u64::from(policers.pass(port, Ticks(HZ + time * 100_000)));
            }
        }
        let share = 10 * u64::from(RATE) / 4 / PORTS as u64;
        assert!(passed.iter().all(|&passed| passed >= share), "{passed:?}, of {share} each");
        assert!(passed.iter().sum::<u64>() <= 10 * u64::from(RATE) + 128, "{passed:?}");
    }

    #[test]
    fn single_port_passes_more_than_half_of_the_rate() {
        let mut policers = PortPolicers::shared(RATE, PORTS, HZ);
        let passed = (0..100_000).filter(|time| policers.pass(3, Ticks(HZ + time * 100_000))).count();
        assert!((5_312..5_362).contains(&passed), "{passed} in 10 s");
    }
}
