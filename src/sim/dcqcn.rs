//! DCQCN (Zhu et al., SIGCOMM 2015): a sender's rate follows the CNPs that its receiver sends.

use crate::units::{BitRate, Bytes, Nanos};

/// Its parameters; the default is the paper's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DcqcnSpec {
    /// A receiver sends at most one CNP a flow in this time (N, 50 us).
    pub cnp_interval: Nanos,
    /// alpha decays after this time without a CNP (K, 55 us).
    pub alpha_timer: Nanos,
    /// g, as the power of two that it is one over (1/256: 8).
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

/// One of alpha, in the 2^-32 that it is kept in.
const ONE: u64 = 1 << 32;

/// The sender's part, the paper's reaction point: how fast a flow sends.
///
/// It has nothing to do before the first CNP, nor once it is back at line rate: no timer runs then, and what alpha has
/// decayed by meanwhile is made up for when next it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    line: u64,
    least: u64,
    /// RC.
    current: u64,
    /// RT.
    target: u64,
    /// alpha, in parts of 2^32.
    alpha: u64,
    /// When alpha decays next; `None` before the first CNP.
    alpha_due: Option<u64>,
    /// When the timer increases the rate next.
    increase_due: u64,
    /// Increases by the timer since the last cut.
    timer_rounds: u32,
    /// Increases by the byte counter since then.
    byte_rounds: u32,
    /// Bytes since the byte counter's last increase.
    bytes: u64,
    rules: Rules,
}

/// The parameters in the units that are computed with.
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

/// A nanosecond at least: a timer of no time would never be done.
fn picoseconds(time: Nanos) -> u64 {
    time.0.max(1).saturating_mul(super::HZ / 1_000_000_000)
}

impl Sender {
    /// A flow that begins now: at line rate, there being no slow start, and with alpha = 1.
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

    /// RC: what it may send at.
    #[must_use]
    #[inline]
    pub fn rate(&self) -> BitRate {
        BitRate(self.current)
    }

    /// alpha, its estimate of the share of congested packets; as of the last call of anything else.
    #[must_use]
    pub fn alpha_millionths(&self) -> u32 {
        ((self.alpha * 1_000_000) >> 32) as u32
    }

    /// A CNP has arrived. Equation 1:
    ///
    /// ```text
    /// RT = RC,  RC = RC (1 - alpha/2),  alpha = (1 - g) alpha + g
    /// ```
    pub fn cnp(&mut self, now_ps: u64) {
        self.decay(now_ps);
        self.target = self.current;
        let cut = (u128::from(self.current) * u128::from(self.alpha)) >> 33;
        self.current = (self.current - cut as u64).max(self.least);
        self.alpha = self.alpha - (self.alpha >> self.rules.g_shift) + (ONE >> self.rules.g_shift);
        self.alpha_due = Some(now_ps.saturating_add(self.rules.alpha_timer));
        self.increase_due = now_ps.saturating_add(self.rules.increase_timer);
        (self.timer_rounds, self.byte_rounds, self.bytes) = (0, 0, 0);
    }

    /// Bytes have left: each B of them increase the rate once.
    #[inline]
    pub fn sent(&mut self, bytes: u64, now_ps: u64) {
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

    /// When [`Sender::timer`] has something to do; `None` while nothing holds the flow back.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        let alpha_due = self.alpha_due.filter(|_| !self.is_at_line())?;
        Some(alpha_due.min(self.increase_due))
    }

    /// The time has come that [`Sender::next_timer`] told, or a later one: alpha decays every K, the rate increases
    /// every T.
    pub fn timer(&mut self, now_ps: u64) {
        self.decay(now_ps);
        while self.increase_due <= now_ps && !self.is_at_line() {
            self.increase_due = self.increase_due.saturating_add(self.rules.increase_timer);
            self.timer_rounds = self.timer_rounds.saturating_add(1);
            self.increase();
        }
    }

    #[inline]
    fn is_at_line(&self) -> bool {
        self.current == self.line
    }

    /// Equation 2, once for each K that has gone by without a CNP:
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

    /// An increase, of either counter. Figure 7 and equations 3 and 4, with T and BC counting this increase:
    ///
    /// ```text
    /// fast recovery, max(T, BC) <= F:                     RC = (RT + RC) / 2
    /// additive increase:               RT = RT + RAI,     RC = (RT + RC) / 2
    /// hyper increase, min(T, BC) > F:  RT = RT + i RHAI,  RC = (RT + RC) / 2,  i = min(T, BC) - F
    /// ```
    ///
    /// The paper leaves i to QCN, and its authors' own simulator has it. Halves are rounded up, or the line rate were
    /// never reached.
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
        // RC is never above RT: it begins there, and all that RC does on its own is to fall.
        self.current += (self.target.saturating_sub(self.current)).div_ceil(2);
    }
}

/// The receiver's part, the paper's notification point: when to tell a flow's sender of congestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    interval: u64,
    /// No CNP before.
    quiet_until: u64,
}

impl Receiver {
    /// A flow of which nothing has arrived.
    #[must_use]
    pub fn new(spec: &DcqcnSpec) -> Self {
        Self { interval: spec.cnp_interval.0.saturating_mul(super::HZ / 1_000_000_000), quiet_until: 0 }
    }

    /// A marked packet has arrived: whether a CNP answers it, which is so for the first in each N.
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
mod tests;
