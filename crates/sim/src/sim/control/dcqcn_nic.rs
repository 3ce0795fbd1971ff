//! DCQCN as ConnectX NICs run it, and as HPCC's simulator models it.
//!
//! It differs from the paper ([`super::dcqcn`]): a CNP only sets flags. Timers read the flags, one for alpha and one
//! for the rate. So the rate falls at most once per interval, and only a timer increases it. NVIDIA's "DCQCN
//! parameters" names the timers.

use super::{CongestionControl, bounded};
use crate::units::{BitRate, Nanos};

/// Parameters of DCQCN in NICs; the default is that of HPCC's comparison for 25 Gbit/s (SIGCOMM 2019, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DcqcnNicSpec {
    /// A receiver sends at most one CNP per flow in this time (`min_time_between_cnps`).
    pub cnp_interval: Nanos,
    /// Time between two updates of alpha (`dce_tcp_rtt`).
    pub alpha_timer: Nanos,
    /// Time between two decreases (`rate_reduce_monitor_period`).
    pub decrease_timer: Nanos,
    /// Time between two increases (`rpg_time_reset`).
    pub increase_timer: Nanos,
    /// g, the weight of a new value of alpha (`dce_tcp_g`).
    pub gain: f64,
    /// Increases before additive increase begins (`rpg_threshold`).
    pub fast_recovery: u32,
    /// Whether each decrease lowers the target rate too (`clamp_tgt_rate`).
    pub clamps_target: bool,
    /// Additive increase (`rpg_ai_rate`).
    pub additive: BitRate,
    /// Hyper increase (`rpg_hai_rate`).
    pub hyper: BitRate,
    /// The rate never falls below this (`rpg_min_rate`).
    pub least: BitRate,
}

impl Default for DcqcnNicSpec {
    fn default() -> Self {
        Self {
            cnp_interval: Nanos(4_000),
            alpha_timer: Nanos(1_000),
            decrease_timer: Nanos(4_000),
            increase_timer: Nanos(300_000),
            gain: 1.0 / 256.0,
            fast_recovery: 1,
            clamps_target: false,
            additive: BitRate(5_000_000),
            hyper: BitRate(50_000_000),
            least: BitRate(100_000_000),
        }
    }
}

/// The timers of a flow that has received a CNP, by the time at which each is due next.
#[derive(Debug, Clone, Copy)]
struct Timers {
    alpha: u64,
    decrease: u64,
    /// `None` before the first decrease.
    increase: Option<u64>,
}

/// The sender of one flow.
#[derive(Debug)]
pub struct DcqcnNic {
    spec: DcqcnNicSpec,
    most: u64,
    /// The current rate and the target rate, in bit/s.
    current: f64,
    target: f64,
    alpha: f64,
    /// Whether a CNP has come since the last update of alpha, and since the last decrease.
    notified: [bool; 2],
    /// Increases since the last decrease.
    stage: u32,
    /// `None` before the first CNP.
    timers: Option<Timers>,
}

/// The decrease follows an update of alpha that is due at one time with it.
const AFTER_ALPHA_PS: u64 = 1_000;

impl DcqcnNic {
    /// Begins a flow at `rate`.
    #[must_use]
    pub fn new(spec: &DcqcnNicSpec, rate: BitRate) -> Self {
        let line = rate.0 as f64;
        Self {
            spec: *spec,
            most: rate.0,
            current: line,
            target: line,
            alpha: 1.0,
            notified: [false; 2],
            stage: 0,
            timers: None,
        }
    }

    /// Updates alpha, where the CNP counts as 1 and its absence as 0:
    ///
    /// ```text
    /// alpha = (1 - g) alpha + g CNP
    /// ```
    fn update_alpha(&mut self) {
        let notified = f64::from(u8::from(std::mem::take(&mut self.notified[0])));
        self.alpha = (1.0 - self.spec.gain) * self.alpha + self.spec.gain * notified;
    }

    /// Decreases the rate if a CNP has come. Returns whether it did.
    ///
    /// ```text
    /// RT = RC,  RC = RC (1 - alpha/2)
    /// ```
    fn decrease(&mut self) -> bool {
        if !std::mem::take(&mut self.notified[1]) {
            return false;
        }
        if self.spec.clamps_target || self.stage > 0 {
            self.target = self.current;
        }
        self.current = bounded(self.current * (1.0 - self.alpha / 2.0), self.spec.least.0, self.most);
        self.stage = 0;
        true
    }

    /// Increases the rate: fast recovery, additive increase once, then hyper increase.
    fn increase(&mut self) {
        let step = match self.stage.cmp(&self.spec.fast_recovery) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => self.spec.additive.0,
            std::cmp::Ordering::Greater => self.spec.hyper.0,
        };
        self.target = (self.target + step as f64).min(self.most as f64);
        self.current = self.current / 2.0 + self.target / 2.0;
        self.stage = self.stage.saturating_add(1);
    }
}

fn picoseconds(time: Nanos) -> u64 {
    time.0.max(1).saturating_mul(super::super::HZ / 1_000_000_000)
}

impl CongestionControl for DcqcnNic {
    fn rate(&self) -> BitRate {
        BitRate(self.current as u64)
    }

    fn notified(&mut self, now_ps: u64) {
        self.notified = [true; 2];
        if self.timers.is_none() {
            // The first CNP starts the timers, and counts for no update of alpha.
            (self.alpha, self.notified[0]) = (1.0, false);
            self.timers = Some(Timers {
                alpha: now_ps + picoseconds(self.spec.alpha_timer),
                decrease: now_ps + picoseconds(self.spec.decrease_timer) + AFTER_ALPHA_PS,
                increase: None,
            });
        }
    }

    fn next_timer(&self) -> Option<u64> {
        let timers = self.timers?;
        Some(timers.alpha.min(timers.decrease).min(timers.increase.unwrap_or(u64::MAX)))
    }

    fn timer(&mut self, now_ps: u64) {
        while let Some(mut timers) = self.timers
            && let Some(due) = self.next_timer().filter(|&due| due <= now_ps)
        {
            if due == timers.alpha {
                self.update_alpha();
                timers.alpha += picoseconds(self.spec.alpha_timer);
            } else if due == timers.decrease {
                timers.decrease += picoseconds(self.spec.decrease_timer);
                if self.decrease() {
                    timers.increase = Some(due + picoseconds(self.spec.increase_timer));
                }
            } else {
                self.increase();
                timers.increase = Some(due + picoseconds(self.spec.increase_timer));
            }
            self.timers = Some(timers);
        }
        // Back at line rate with a spent alpha, nothing changes until the next CNP, which starts the timers again.
        let is_spent = self.alpha < 1e-9 && self.notified == [false; 2] && self.current >= self.most as f64;
        if is_spent {
            self.timers = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: BitRate = BitRate(100_000_000_000);
    const US: u64 = 1_000_000;

    #[test]
    fn rate_falls_once_per_interval_however_many_cnps_come() {
        let mut nic = DcqcnNic::new(&DcqcnNicSpec::default(), LINE);
        assert_eq!(nic.next_timer(), None);
        for at in [0, US / 2, US, 2 * US] {
            nic.notified(at);
        }
        nic.timer(4 * US);
        assert_eq!(nic.rate(), LINE, "the interval of 4 us and its nanosecond have not passed");
        nic.timer(4 * US + 1000);
        // alpha is updated at 1, 2, 3 and 4 us. All CNPs came before the first of these timers ran, so they count once:
        // (1 - g)^4 + g (1 - g)^3.
        let g: f64 = 1.0 / 256.0;
        let alpha = (1.0 - g).powi(4) + g * (1.0 - g).powi(3);
        assert!((nic.alpha - alpha).abs() < 1e-12, "{} and {alpha}", nic.alpha);
        assert_eq!(nic.rate().0, (1e11 * (1.0 - alpha / 2.0)) as u64);
        nic.timer(12 * US);
        assert_eq!(nic.stage, 0, "no CNP since: no further decrease");
    }

    #[test]
    fn timer_recovers_then_adds_then_adds_more() {
        let mut nic = DcqcnNic::new(&DcqcnNicSpec::default(), LINE);
        (nic.current, nic.target, nic.most) = (10e9, 20e9, 100_000_000_000);
        let rates: Vec<f64> = (0..3)
            .map(|_| {
                nic.increase();
                nic.current
            })
            .collect();
        // Half-way to 20 Gbit/s; to 20.005; to 20.055.
        assert_eq!(rates, [15e9, 17.5025e9, 18.77875e9]);
    }

    #[test]
    fn decrease_right_after_a_decrease_keeps_the_target() {
        let mut nic = DcqcnNic::new(&DcqcnNicSpec::default(), LINE);
        nic.alpha = 0.5;
        nic.notified[1] = true;
        assert!(nic.decrease());
        assert_eq!((nic.target, nic.current), (100e9, 75e9), "no increase before it");
        nic.increase();
        nic.notified[1] = true;
        assert!(nic.decrease() && !nic.decrease());
        assert_eq!((nic.target, nic.current), (87.5e9, 65.625e9));
        let clamped = DcqcnNicSpec { clamps_target: true, ..DcqcnNicSpec::default() };
        let mut nic = DcqcnNic::new(&clamped, LINE);
        nic.notified[1] = true;
        nic.decrease();
        assert_eq!((nic.target, nic.current), (100e9, 50e9));
    }
}
