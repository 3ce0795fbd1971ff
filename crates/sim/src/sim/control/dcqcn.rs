//! DCQCN (Zhu et al., SIGCOMM 2015): a sender's rate follows the CNPs that its receiver sends.

use super::CongestionControl;
use crate::units::{BitRate, Bytes, Nanos};

/// Parameters of DCQCN; the default is the paper's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DcqcnSpec {
    /// A receiver sends at most one CNP per flow in this time (N, 50 us).
    pub cnp_interval: Nanos,
    /// alpha decays after this time without a CNP (K, 55 us).
    pub alpha_timer: Nanos,
    /// g, given as n where g = 1/2^n (the default 1/256 is 8).
    pub g_shift: u8,
    /// Time between two increases (T, 55 us).
    pub increase_timer: Nanos,
    /// Bytes between two increases (B, 10 MB).
    pub byte_counter: Bytes,
    /// Increases of either kind before additive increase begins (F, 5).
    pub fast_recovery: u32,
    /// Additive increase (R_AI, 40 Mbit/s).
    pub additive: BitRate,
    /// Hyper increase (R_HAI, 400 Mbit/s).
    pub hyper: BitRate,
    /// The rate never falls below this.
    pub least: BitRate,
}

impl Default for DcqcnSpec {
    fn default() -> Self {
        Self {
            cnp_interval: Nanos(50_000),
            alpha_timer: Nanos(55_000),
            g_shift: 8,
            increase_timer: Nanos(55_000),
            byte_counter: Bytes(10_000_000),
            fast_recovery: 5,
            additive: BitRate(40_000_000),
            hyper: BitRate(400_000_000),
            least: BitRate(40_000_000),
        }
    }
}

/// The value 1 of alpha, which is stored in units of 2^-32.
const ONE: u64 = 1 << 32;

/// The sender's part, the paper's reaction point: it sets the rate of a flow.
///
/// No timer runs before the first CNP, nor once the flow is back at line rate. The decay of alpha that is due meanwhile
/// is computed when alpha is next needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    line: u64,
    least: u64,
    /// RC, the current rate, in bit/s.
    current: u64,
    /// RT, the target rate, in bit/s.
    target: u64,
    /// alpha, in units of 2^-32.
    alpha: u64,
    /// Time of the next decay of alpha; `None` before the first CNP.
    alpha_due: Option<u64>,
    /// Time of the next increase by the timer.
    increase_due: u64,
    /// Increases by the timer since the last cut.
    timer_rounds: u32,
    /// Increases by the byte counter since the last cut.
    byte_rounds: u32,
    /// Bytes sent since the byte counter's last increase.
    bytes: u64,
    rules: Rules,
}

/// The parameters, with times in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    g_shift: u32,
    alpha_timer: u64,
    increase_timer: u64,
    byte_counter: u64,
    fast_recovery: u32,
    additive: u64,
    hyper: u64,
}

impl Rules {
    fn new(spec: &DcqcnSpec) -> Self {
        Self {
            g_shift: u32::from(spec.g_shift).min(32),
            alpha_timer: picoseconds(spec.alpha_timer),
            increase_timer: picoseconds(spec.increase_timer),
            byte_counter: spec.byte_counter.0.max(1),
            fast_recovery: spec.fast_recovery,
            additive: spec.additive.0,
            hyper: spec.hyper.0,
        }
    }
}

/// Converts to picoseconds, with a minimum of one nanosecond: a timer of zero length would never finish.
fn picoseconds(time: Nanos) -> u64 {
    time.0.max(1).saturating_mul(super::super::HZ / 1_000_000_000)
}

impl Sender {
    /// Returns the sender of a flow that begins now: at line rate, since DCQCN has no slow start, and with alpha = 1.
    #[must_use]
    pub fn new(spec: &DcqcnSpec, line: BitRate, now_ps: u64) -> Self {
        Self {
            line: line.0,
            least: spec.least.0.min(line.0),
            current: line.0,
            target: line.0,
            alpha: ONE,
            alpha_due: None,
            increase_due: now_ps,
            timer_rounds: 0,
            byte_rounds: 0,
            bytes: 0,
            rules: Rules::new(spec),
        }
    }

    /// Returns alpha, the estimated share of congested packets, in millionths. Its decay is up to date as of the last
    /// other call.
    #[must_use]
    pub fn alpha_millionths(&self) -> u32 {
        ((self.alpha * 1_000_000) >> 32) as u32
    }

    #[inline]
    fn is_at_line(&self) -> bool {
        self.current == self.line
    }

    /// Decays alpha by equation 2, once for each K that has passed without a CNP:
    ///
    /// ```text
    /// alpha = (1 - g) alpha
    /// ```
    #[inline]
    fn decay(&mut self, now_ps: u64) {
        let Some(due) = self.alpha_due.filter(|&due| due <= now_ps) else { return };
        let rounds = (now_ps - due) / self.rules.alpha_timer + 1;
        self.alpha_due = Some(due.saturating_add(rounds.saturating_mul(self.rules.alpha_timer)));
        for _ in 0..rounds {
            let less = self.alpha >> self.rules.g_shift;
            if less == 0 {
                break;
            }
            self.alpha -= less;
        }
    }

    /// Increases the rate once, for either counter. Figure 7 and equations 3 and 4, where T and BC include this
    /// increase:
    ///
    /// ```text
    /// fast recovery, max(T, BC) <= F:                     RC = (RT + RC) / 2
    /// additive increase:               RT = RT + RAI,     RC = (RT + RC) / 2
    /// hyper increase, min(T, BC) > F:  RT = RT + i RHAI,  RC = (RT + RC) / 2,  i = min(T, BC) - F
    /// ```
    ///
    /// The paper leaves i to QCN; this i is the one in the simulator of the paper's authors. Halves are rounded up,
    /// because otherwise the line rate would never be reached.
    fn increase(&mut self) {
        let Rules { fast_recovery, additive, hyper, .. } = self.rules;
        let (fewer, more) = (self.timer_rounds.min(self.byte_rounds), self.timer_rounds.max(self.byte_rounds));
        let step = if more <= fast_recovery {
            0
        } else if fewer > fast_recovery {
            hyper.saturating_mul(u64::from(fewer - fast_recovery))
        } else {
            additive
        };
        self.target = self.target.saturating_add(step).min(self.line);
        // RC never exceeds RT: both begin equal, and only a cut changes RC on its own, downward.
        self.current += (self.target.saturating_sub(self.current)).div_ceil(2);
    }
}

impl CongestionControl for Sender {
    /// Returns RC, the rate at which the flow may send.
    #[inline]
    fn rate(&self) -> BitRate {
        BitRate(self.current)
    }

    /// Handles an arriving CNP by equation 1:
    ///
    /// ```text
    /// RT = RC,  RC = RC (1 - alpha/2),  alpha = (1 - g) alpha + g
    /// ```
    fn notified(&mut self, now_ps: u64) {
        self.decay(now_ps);
        self.target = self.current;
        let cut = (u128::from(self.current) * u128::from(self.alpha)) >> 33;
        self.current = (self.current - cut as u64).max(self.least);
        self.alpha = self.alpha - (self.alpha >> self.rules.g_shift) + (ONE >> self.rules.g_shift);
        self.alpha_due = Some(now_ps.saturating_add(self.rules.alpha_timer));
        self.increase_due = now_ps.saturating_add(self.rules.increase_timer);
        (self.timer_rounds, self.byte_rounds, self.bytes) = (0, 0, 0);
    }

    /// Counts bytes that have left: each B of them increase the rate once.
    #[inline]
    fn sent(&mut self, bytes: u64, now_ps: u64) {
        self.decay(now_ps);
        if self.is_at_line() {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        while self.bytes >= self.rules.byte_counter {
            self.bytes -= self.rules.byte_counter;
            self.byte_rounds = self.byte_rounds.saturating_add(1);
            self.increase();
        }
    }

    /// Returns when [`CongestionControl::timer`] is due; `None` while the flow is at line rate.
    #[inline]
    fn next_timer(&self) -> Option<u64> {
        let alpha_due = self.alpha_due.filter(|_| !self.is_at_line())?;
        Some(alpha_due.min(self.increase_due))
    }

    /// Runs the timers that are due: alpha decays every K, the rate increases every T. Call it at the time that
    /// [`CongestionControl::next_timer`] returns, or later.
    fn timer(&mut self, now_ps: u64) {
        self.decay(now_ps);
        while self.increase_due <= now_ps && !self.is_at_line() {
            self.increase_due = self.increase_due.saturating_add(self.rules.increase_timer);
            self.timer_rounds = self.timer_rounds.saturating_add(1);
            self.increase();
        }
    }
}

/// The receiver's part, the paper's notification point: it decides when a flow's sender gets a CNP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationPoint {
    interval: u64,
    /// Time until which the receiver sends no further CNP.
    quiet_until: u64,
}

impl NotificationPoint {
    /// Returns the receiver of a flow of which no packet has arrived; N is `interval_ps`.
    #[must_use]
    pub fn new(interval_ps: u64) -> Self {
        Self { interval: interval_ps, quiet_until: 0 }
    }

    /// Handles an arriving marked packet. Returns whether a CNP answers it: only the first in each interval N is
    /// answered.
    #[must_use]
    pub fn marked(&mut self, now_ps: u64) -> bool {
        let answers = now_ps >= self.quiet_until;
        if answers {
            self.quiet_until = now_ps.saturating_add(self.interval);
        }
        answers
    }
}

#[cfg(test)]
#[path = "dcqcn_tests.rs"]
mod tests;
