//! The thread of the servers, and the supervision of every thread beside the lcores.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::RunError;
use crate::dpdk::{Eal, InterruptPulse};
use crate::linux;
use crate::output::Writers;
use crate::pulse::{self, LATE, PERIOD, Pulse};
use crate::stats::health::CONTROL_THREAD;
use crate::stats::{Notice, NoticeKind};

/// Longest time to wait for the end of the servers.
const END_TIME: Duration = Duration::from_secs(1);

/// The thread of the API and of metrics, which serves even while the control thread hangs. Dropping it cuts all
/// connections.
struct Servers {
    handle: Handle,
    /// Lets the thread begin to serve.
    go: Option<mpsc::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Servers {
    /// Starts the thread, which inherits the CPUs of the caller.
    ///
    /// # Errors
    /// If the system refuses its descriptors or the thread.
    fn start() -> io::Result<Self> {
        let runtime = linux::runtime()?;
        let (stop, stopped) = oneshot::channel();
        let (go, begun) = mpsc::channel();
        let handle = runtime.handle().clone();
        let run = move || {
            if begun.recv().is_err() {
                return;
            }
            let pulse = Pulse::start("api");
            runtime.block_on(async {
                tokio::select! {
                    () = beats(&pulse) => {}
                    _ = stopped => {}
                }
            });
            // A request that is parsed elsewhere does not keep the switch.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("api".to_owned()).spawn(run)?;
        Ok(Self { handle, go: Some(go), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop((self.go.take(), self.stop.take()));
        let end = Instant::now() + END_TIME;
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The threads that help the control thread, and the pulse of DPDK's. They are dropped in this order.
pub(super) struct Helpers {
    servers: Servers,
    _interrupts: InterruptPulse,
    _writers: Writers,
}

impl Helpers {
    /// Starts the threads after `eal` has bound the caller: on its CPU they leave those of the lcores alone.
    pub fn start(eal: &Eal) -> Result<Self, RunError> {
        Ok(Self {
            _writers: Writers::start().map_err(RunError::Runtime)?,
            _interrupts: InterruptPulse::start(eal)?,
            servers: Servers::start().map_err(RunError::Runtime)?,
        })
    }

    /// Begins to serve: the lcores have begun.
    pub fn serve(&self) {
        if let Some(go) = &self.servers.go {
            // The thread ends only with this value.
            let _ = go.send(());
        }
    }

    /// The runtime of the servers.
    pub fn servers(&self) -> &Handle {
        &self.servers.handle
    }
}

/// Ticks that keep their distance even after a late one. Ticks that are made up for would leave other tasks of the
/// thread no turn.
pub(super) fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Beats for as long as the runtime of the task runs.
async fn beats(pulse: &Pulse) {
    let mut beats = every(PERIOD / 2);
    loop {
        beats.tick().await;
        pulse.beat();
    }
}

/// The pulse of the control thread, on which systemd's watchdog depends too.
pub(super) async fn main_beats() {
    beats(&Pulse::start(CONTROL_THREAD)).await;
}

/// Name of a thread that a panic has ended.
pub(super) fn panicked() -> Option<String> {
    pulse::look().into_iter().find(|thread| thread.has_panicked).map(|thread| thread.name)
}

/// Reports threads that are late.
#[derive(Debug, Default)]
pub(super) struct LateThreads(BTreeSet<String>);

impl LateThreads {
    /// Notices about threads that became late, and about those that run again.
    pub fn look(&mut self) -> Vec<Notice> {
        let threads = pulse::look();
        let late: BTreeSet<String> =
            threads.into_iter().filter(pulse::Thread::is_late).map(|thread| thread.name).collect();
        let text = |name| format!("thread: {name} has not run for {} s", LATE.as_secs());
        let new = late.difference(&self.0).map(|name| Notice::new(NoticeKind::ThreadLate, text(name)));
        let mut notices: Vec<_> = new.collect();
        let text = |name, gap: Duration| format!("thread: {name} runs again after {:.1} s", gap.as_secs_f64());
        let again = pulse::take_gaps().into_iter();
        notices.extend(again.map(|(name, gap)| Notice::new(NoticeKind::ThreadRuns, text(name, gap))));
        self.0 = late;
        notices
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn task_whose_turns_last_longer_than_its_period_leaves_turns_to_others() {
        let runtime = linux::runtime().expect("a runtime");
        let turns = Rc::new(Cell::new(0));
        let counted = turns.clone();
        let period = Duration::from_millis(1);
        let other = async move {
            let mut ticks = every(period);
            loop {
                ticks.tick().await;
                counted.set(counted.get() + 1);
            }
        };
        let slow = async {
            let mut ticks = every(period);
            for _ in 0..40 {
                ticks.tick().await;
                std::thread::sleep(period * 3);
            }
        };
        runtime.block_on(tokio::task::LocalSet::new().run_until(async {
            tokio::task::spawn_local(other);
            slow.await;
        }));
        // One that makes up for its late ticks leaves a single turn, and a busy machine few.
        assert!(turns.get() >= 3, "{} turns of the other task", turns.get());
    }
}
