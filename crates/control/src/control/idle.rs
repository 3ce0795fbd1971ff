//! Sets up how lcores rest, from the configuration to the wait function. Proves before any port starts that lcores of
//! lossless ports wake up in time.

use super::RunError;
use crate::config::{Config, IdleConfig, IdleWait};
use crate::dataplane::{Idle, Rest, Resting};
use crate::dpdk::{self, Eal, EthIo, Waiter};
use crate::units::{Nanos, Ticks};

/// Number of trial rests. It is odd: half of them end no later than the median one.
const TRIALS: usize = 33;
/// Longest trial rest: the delay of a timer hardly depends on its length.
const LONGEST_TRIAL: Nanos = Nanos(100_000);

/// Refuses a way to rest that this CPU does not have. It queries only the CPU, so it can run before all other steps.
pub(super) fn check_cpu(config: &Config) -> Result<(), RunError> {
    match config.lcores.idle {
        Some(IdleConfig { wait: IdleWait::Umwait, .. }) => {
            Waiter::umwait().map(drop).map_err(|error| RunError::Idle { error })
        }
        _ => Ok(()),
    }
}

/// Returns how lcore `lcore` rests; `None` if it polls without a rest.
pub(super) fn resting(config: &Config, lcore: usize, eal: &Eal) -> Result<Option<Resting<EthIo>>, RunError> {
    let Some(idle) = config.idle_of(lcore) else { return Ok(None) };
    let mut waiter = waiter(idle.wait, eal)?;
    let rest: Rest<EthIo> = Box::new(move |io, until| waiter.wait(Some(io), until));
    Ok(Some(Resting { idle: Idle::new(idle.after, idle.longest, dpdk::hz(eal)), rest }))
}

fn waiter(wait: IdleWait, eal: &Eal) -> Result<Waiter, RunError> {
    match wait {
        IdleWait::Pause => Ok(Waiter::Pause),
        IdleWait::Umwait => Waiter::umwait().map_err(|error| RunError::Idle { error }),
        IdleWait::Sleep => Ok(Waiter::sleep(eal)),
    }
}

/// Refuses a machine that wakes the lcores of lossless ports later than configured. Each of these lcores tries it on
/// its own CPU. The median counts: single rests last for milliseconds if the machine takes the CPU away, but a poll
/// would suffer the same delay.
pub(super) fn prove(config: &Config, eal: &Eal) -> Result<(), RunError> {
    for (number, lcore) in eal.workers().iter().take(config.switch.lcores.into()).enumerate() {
        let Some(idle) = config.idle_of(number).filter(|_| config.has_lossless(number)) else { continue };
        let (hz, length) = (dpdk::hz(eal), Nanos(idle.longest.0.min(LONGEST_TRIAL.0)));
        let mut waiter = waiter(idle.wait, eal)?;
        let late = eal.launch(*lcore, move || median_overshoot(&mut waiter, length, hz))?.join()?;
        if late > idle.wake {
            return Err(RunError::WakesLate { lcore: number, late, idle: *idle });
        }
    }
    Ok(())
}

/// Returns the median delay by which rests of `length` end late.
fn median_overshoot(waiter: &mut Waiter, length: Nanos, hz: u64) -> Nanos {
    let ticks = length.0 * (hz / 1_000_000) / 1_000;
    // The first rest warms up and is not counted.
    let mut late: Vec<u64> = (0..=TRIALS).map(|_| overshoot(waiter, ticks)).skip(1).collect();
    late.sort_unstable();
    let ticks = u128::from(late[TRIALS / 2]);
    Nanos(u64::try_from(ticks * 1_000_000_000 / u128::from(hz.max(1))).unwrap_or(u64::MAX))
}

fn overshoot(waiter: &mut Waiter, ticks: u64) -> u64 {
    let until = Ticks(dpdk::now().0 + ticks);
    waiter.wait(None, until);
    dpdk::now().since(until)
}
