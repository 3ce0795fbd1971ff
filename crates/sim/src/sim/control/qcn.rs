//! QCN (IEEE 802.1Qau; 802.1Q clauses 30.2.2 and 32.10 to 32.15; Alizadeh et al., Allerton 2008): the reaction point at
//! a sender. Its rate follows the congestion notification messages of switches.
//!
//! Names in parentheses are those of the standard and its MIB, which also have the defaults.

use super::CongestionControl;
use crate::sim::rng::Rng;
use crate::units::{BitRate, Bytes, Nanos};

/// Stream of random numbers of a reaction point, which draws the lengths of its cycles.
const STREAM: u64 = 0x51c0;
/// Bounds of Random(0.85, 1.15), in hundredths.
const SHORTEST: u64 = 85;
const LONGEST: u64 = 115;
/// A target above this multiple of the current rate falls to an eighth in the first cycle (AdjustRates).
const MOST_AHEAD: f64 = 10.0;
const CUT_AHEAD: f64 = 8.0;

/// Parameters of a reaction point; the default is the standard's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QcnSpec {
    /// Gd, decrease for each unit of quantised feedback (rpgGd, 1/128).
    pub gain: f64,
    /// Largest decrease, as a share of the rate (1 - rpgMinDecFac, 1/2).
    pub largest_decrease: f64,
    /// Bytes of a cycle of the byte counter in fast recovery (rpgByteReset, 150,000).
    pub byte_counter: Bytes,
    /// Time of a cycle of the timer in fast recovery (rpgTimeReset, 15 ms).
    pub increase_timer: Nanos,
    /// Cycles of fast recovery of either kind (rpgThreshold, 5).
    pub fast_recovery: u32,
    /// R_AI, active increase (rpgAiRate, 5 Mbit/s).
    pub additive: BitRate,
    /// R_HAI, hyper-active increase (rpgHaiRate, 50 Mbit/s).
    pub hyper: BitRate,
    /// The rate never falls below this (rpgMinRate, 5 Mbit/s).
    pub least: BitRate,
}

impl Default for QcnSpec {
    fn default() -> Self {
        Self {
            gain: 1.0 / 128.0,
            largest_decrease: 0.5,
            byte_counter: Bytes(150_000),
            increase_timer: Nanos(15_000_000),
            fast_recovery: 5,
            additive: BitRate(5_000_000),
            hyper: BitRate(50_000_000),
            least: BitRate(5_000_000),
        }
    }
}

/// The reaction point of one flow.
#[derive(Debug)]
pub struct Qcn {
    spec: QcnSpec,
    /// Rate at which the flow sends without congestion (rpgMaxRate).
    line: u64,
    /// CR, the current rate (rpCurrentRate), and TR, the target rate (rpTargetRate), in bit/s.
    current: f64,
    target: f64,
    /// Whether the flow is limited (rpEnabled): from a message until CR is the line rate again.
    is_limited: bool,
    /// Cycles of the byte counter and of the timer since the last decrease (rpByteStage, rpTimeStage).
    byte_stage: u32,
    time_stage: u32,
    /// Bytes left in the cycle of the byte counter (rpByteCount).
    bytes_left: u64,
    /// End of the cycle of the timer (rpWhile), in picoseconds.
    timer_due: u64,
    rng: Rng,
}

impl Qcn {
    /// Returns the reaction point of a flow that begins now, at line rate. `seed` is that of its cycles.
    #[must_use]
    pub fn new(spec: &QcnSpec, line: BitRate, seed: u64) -> Self {
        Self {
            spec: *spec,
            line: line.0,
            current: line.0 as f64,
            target: line.0 as f64,
            is_limited: false,
            byte_stage: 0,
            time_stage: 0,
            bytes_left: 0,
            timer_due: u64::MAX,
            rng: Rng::new(seed, STREAM),
        }
    }

    /// Random(0.85, 1.15) times the length of a cycle in `stage`, which is halved from the end of fast recovery on.
    fn cycle(&mut self, length: u64, stage: u32) -> u64 {
        let length = if stage < self.spec.fast_recovery { length } else { length / 2 };
        let (low, high) = (length.saturating_mul(SHORTEST) / 100, length.saturating_mul(LONGEST) / 100);
        self.rng.between(low, high).max(1)
    }

    fn start_byte_cycle(&mut self) {
        self.bytes_left = self.cycle(self.spec.byte_counter.0, self.byte_stage);
    }

    fn start_time_cycle(&mut self, from_ps: u64) {
        let length = self.spec.increase_timer.0.max(1).saturating_mul(crate::sim::HZ / 1_000_000_000);
        self.timer_due = from_ps.saturating_add(self.cycle(length, self.time_stage));
    }

    /// Increases the rate at the end of a cycle of either kind. B and T are the stages, which include this cycle:
    ///
    /// ```text
    /// fast recovery, max(B, T) <= 5:                                  CR = (TR + CR) / 2
    /// active increase:                      TR = TR + R_AI,           CR = (TR + CR) / 2
    /// hyper-active increase, min(B, T) > 5: TR = TR + i R_HAI,        CR = (TR + CR) / 2,  i = min(B, T) - 5
    /// ```
    ///
    /// A first cycle divides a target of more than ten times CR by eight instead (clause 32.14, AdjustRates).
    fn increase(&mut self) {
        let (fewer, more) = (self.byte_stage.min(self.time_stage), self.byte_stage.max(self.time_stage));
        let threshold = self.spec.fast_recovery;
        let step = if more <= threshold {
            0.0
        } else if fewer > threshold {
            self.spec.hyper.0 as f64 * f64::from(fewer - threshold)
        } else {
            self.spec.additive.0 as f64
        };
        let is_first = self.byte_stage == 1 || self.time_stage == 1;
        if is_first && self.target > MOST_AHEAD * self.current {
            self.target /= CUT_AHEAD;
        } else {
            self.target = (self.target + step).min(self.line as f64);
        }
        self.current = f64::midpoint(self.target, self.current);
        // Within one bit per second: halves alone would never end.
        if self.current + 1.0 >= self.line as f64 {
            self.release();
        }
    }

    /// Ends the limit (TestRpTerminate).
    fn release(&mut self) {
        (self.current, self.target) = (self.line as f64, self.line as f64);
        (self.is_limited, self.timer_due) = (false, u64::MAX);
    }
}

impl CongestionControl for Qcn {
    /// Returns CR.
    fn rate(&self) -> BitRate {
        BitRate(self.current as u64)
    }

    /// Handles a congestion notification message with the quantised feedback Fb (clause 32.14, ProcessCnm):
    ///
    /// ```text
    /// TR = CR,  CR = CR (1 - Gd Fb),  Gd Fb <= 1/2
    /// ```
    ///
    /// TR stays if no cycle of the byte counter has ended since the last decrease.
    fn congested(&mut self, feedback: u8, now_ps: u64) {
        if feedback == 0 {
            return;
        }
        if !self.is_limited || self.byte_stage > 0 {
            self.target = self.current;
            (self.is_limited, self.byte_stage) = (true, 0);
            self.start_byte_cycle();
        }
        self.time_stage = 0;
        self.start_time_cycle(now_ps);
        let decrease = (self.spec.gain * f64::from(feedback)).min(self.spec.largest_decrease);
        let least = self.spec.least.0.min(self.line) as f64;
        self.current = (self.current * (1.0 - decrease)).max(least);
    }

    /// Counts a frame that left (clause 32.14, TransmitDataFrame).
    fn sent(&mut self, bytes: u64, _: u64) {
        let mut bytes = bytes;
        while self.is_limited && bytes >= self.bytes_left {
            bytes -= self.bytes_left;
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.start_byte_cycle();
            self.increase();
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    fn next_timer(&self) -> Option<u64> {
        self.is_limited.then_some(self.timer_due)
    }

    /// Ends the cycles of the timer that are due.
    fn timer(&mut self, now_ps: u64) {
        while self.is_limited && self.timer_due <= now_ps {
            self.time_stage = self.time_stage.saturating_add(1);
            self.start_time_cycle(self.timer_due);
            self.increase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: BitRate = BitRate(10_000_000_000);
    const MBPS: u64 = 1_000_000;

    fn point() -> Qcn {
        Qcn::new(&QcnSpec::default(), LINE, 7)
    }

    /// Ends a cycle of the byte counter.
    fn byte_cycle(point: &mut Qcn) -> u64 {
        point.sent(point.bytes_left, 0);
        point.rate().0
    }

    fn time_cycle(point: &mut Qcn) -> u64 {
        point.timer(point.timer_due);
        point.rate().0
    }

    fn cycles(point: &mut Qcn, count: u32, cycle: fn(&mut Qcn) -> u64) {
        for _ in 0..count {
            cycle(point);
        }
    }

    #[test]
    fn flow_sends_at_line_rate_until_the_first_message() {
        let mut point = point();
        point.sent(1_000_000_000, 0);
        point.congested(0, 5);
        assert_eq!((point.rate(), point.next_timer()), (LINE, None));
    }

    #[test]
    fn decrease_and_recovery_follow_a_trace_computed_by_hand() {
        let mut point = point();
        // 1 - 32 / 128 = 3/4.
        point.congested(32, 0);
        assert_eq!((point.rate().0, point.target as u64), (7_500 * MBPS, LINE.0));
        // Fast recovery halves the distance to 10 Gbit/s five times: 10,000 - 2,500 / 2^n Mbit/s.
        let recovered: Vec<u64> = (0..5).map(|_| byte_cycle(&mut point)).collect();
        assert_eq!(recovered, [8_750_000_000, 9_375_000_000, 9_687_500_000, 9_843_750_000, 9_921_875_000]);
        // A second message: TR = CR, and 63 / 128 is the largest decrease of a message.
        point.congested(63, 0);
        assert_eq!((point.rate().0, point.target as u64), (5_038_452_148, 9_921_875_000));
        assert_eq!((point.byte_stage, point.time_stage), (0, 0));
    }

    #[test]
    fn target_stays_until_a_cycle_of_the_byte_counter_has_ended() {
        let mut point = point();
        point.congested(64, 0);
        point.congested(64, 0);
        assert_eq!((point.rate().0, point.target as u64), (2_500 * MBPS, LINE.0));
        time_cycle(&mut point);
        point.congested(64, 0);
        assert_eq!(point.target as u64, LINE.0, "a cycle of the timer does not count");
        byte_cycle(&mut point);
        let rate = point.rate().0;
        point.congested(1, 0);
        assert_eq!(point.target as u64, rate);
    }

    #[test]
    fn active_and_hyper_active_increase_raise_the_target() {
        let mut point = point();
        point.congested(64, 0);
        byte_cycle(&mut point);
        point.congested(64, 0);
        cycles(&mut point, 5, byte_cycle);
        let target = 7_500 * MBPS;
        assert_eq!(point.target as u64, target);
        byte_cycle(&mut point);
        assert_eq!(point.target as u64, target + 5 * MBPS, "the sixth cycle of one kind is active");
        // Five cycles of the timer: B is 6, T at most 5.
        cycles(&mut point, 5, time_cycle);
        assert_eq!(point.target as u64, target + 6 * 5 * MBPS);
        time_cycle(&mut point);
        assert_eq!(point.target as u64, target + 30 * MBPS + 50 * MBPS, "i = 1");
    }

    #[test]
    fn qcn_target_far_above_the_rate_falls_in_the_first_cycle() {
        let mut point = point();
        (0..4).for_each(|_| point.congested(64, 0));
        assert_eq!(point.rate().0, 625 * MBPS);
        // 10 Gbit/s / 8 = 1.25 Gbit/s; the mean of 1,250 and 625.
        assert_eq!(byte_cycle(&mut point), 937_500_000);
    }

    #[test]
    fn rate_is_at_least_the_least_and_a_recovered_flow_is_released() {
        let mut point = point();
        (0..20).for_each(|_| point.congested(63, 0));
        assert_eq!(point.rate().0, 5 * MBPS);
        let mut cycles = 0;
        while point.is_limited {
            byte_cycle(&mut point);
            time_cycle(&mut point);
            cycles += 1;
        }
        assert_eq!((point.rate(), point.next_timer()), (LINE, None));
        assert!((10..200).contains(&cycles), "{cycles} cycles");
    }

    #[test]
    fn cycles_are_random_within_fifteen_percent_and_halved_after_fast_recovery() {
        let mut point = point();
        point.congested(32, 1_000);
        let timer = point.timer_due - 1_000;
        assert!((12_750_000_000..=17_250_000_000).contains(&timer), "{timer} ps");
        let lengths: Vec<u64> = (0..6)
            .map(|_| {
                let left = point.bytes_left;
                byte_cycle(&mut point);
                left
            })
            .collect();
        assert!(lengths[..5].iter().all(|length| (127_500..=172_500).contains(length)), "{lengths:?}");
        assert!((63_750..=86_250).contains(&lengths[5]), "{lengths:?}");
        assert!(lengths.windows(2).any(|pair| pair[0] != pair[1]));
    }

    proptest! {
        #[test]
        fn qcn_rate_stays_within_its_bounds(steps in prop::collection::vec((0_u8..64, 0_u64..1_000_000, any::<bool>()), 0..200)) {
            let mut point = point();
            let mut now = 0;
            for (feedback, amount, is_message) in steps {
                now += amount * 1_000_000;
                point.timer(now);
                if is_message {
                    point.congested(feedback, now);
                } else {
                    point.sent(amount, now);
                }
                prop_assert!((5 * MBPS..=LINE.0).contains(&point.rate().0));
                prop_assert!(point.target <= LINE.0 as f64);
            }
        }
    }
}
