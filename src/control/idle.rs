//! How lcores rest, from the configuration to what they call; and the proof, before any port starts, that they wake up in
//! time where that is what losslessness hangs on.

use super::RunError;
use crate::config::{Config, IdleConfig, IdleWait};
use crate::dataplane::{Idle, Rest, Resting};
use crate::dpdk::{self, Eal, EthIo, Waiter};
use crate::units::{Nanos, Ticks};

/// Rests that are tried, an odd number: half of them end no later than the one in the middle.
const TRIALS: usize = 33;
/// Longest of them: how late a timer comes hardly hangs on what it was set to.
const LONGEST_TRIAL: Nanos = Nanos(100_000);

/// Refuses a way to rest that this CPU does not have. It asks the CPU and nobody else, so it can come before everything.
pub(super) fn check_cpu(config: &Config) -> Result<(), RunError> {
    match config.lcores.idle {
        Some(IdleConfig { wait: IdleWait::Umwait, .. }) => {
            Waiter::umwait().map(drop).map_err(|error| RunError::Idle { error })
        }
        _ => Ok(()),
    }
}

/// How lcore `lcore` rests; `None` if it polls on.
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

/// Refuses a machine that wakes the lcores of lossless ports later than the configuration says, by trying: on each of them,
/// on its own CPU. It is the median that counts. Single rests last for milliseconds where a machine takes its CPU away,
/// but so does a poll.
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

/// How much later than asked half of the rests of `length` end.
fn median_overshoot(waiter: &mut Waiter, length: Nanos, hz: u64) -> Nanos {
    let ticks = length.0 * (hz / 1_000_000) / 1_000;
    // The first one makes what all others find.
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
