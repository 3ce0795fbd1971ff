//! Support for real-time tests on a machine that may take the CPU away from a switch, or from the programs around it.
//!
//! A test names the longest absence of a CPU that does not affect its verdict. A failure without a longer absence is a
//! defect, and the test fails at once. Otherwise the test runs again, [`ATTEMPTS`] times at most, and prints the
//! reason. Two things are measured: gaps between polls, by the switch itself, and the late wake-ups of threads of this
//! process, one on each CPU.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::process::{Ended, Process};
use crate::program::PATIENCE;

/// Most attempts of a test.
pub const ATTEMPTS: usize = 3;

/// Longest absence of a CPU without effect on tests over taps and links. Hosts that sustain a pause refresh it 20 times
/// a second, and at 100M it lasts 335 ms. Frames that arrive meanwhile fit the queues and rings before the switch.
pub const ALLOWED: Duration = Duration::from_millis(250);

/// Time between two checks of a witness.
const LOOK: Duration = Duration::from_millis(5);

/// The longest poll gap that the switches of this attempt have reported, in nanoseconds. Tests that run a switch run
/// one at a time, so there is only one attempt at a time.
static LONGEST_GAP: AtomicU64 = AtomicU64::new(0);

/// The reason why an attempt proves nothing; a panic with it is no failure.
enum Disturbed {
    /// The machine disturbed the test itself.
    Busy(String),
    /// A gap between polls explains everything that was wrong.
    Explained(String),
}

/// Reports that a switch of this attempt had a poll gap of `nanoseconds`.
pub fn saw_gap(nanoseconds: u64) {
    LONGEST_GAP.fetch_max(nanoseconds, Relaxed);
}

/// Reports the longest poll gap of the switch that serves these metrics. A switch that does not answer adds nothing.
pub fn saw_gap_of(metrics: Option<String>) {
    let metrics = metrics.unwrap_or_default();
    let lines = metrics.lines().filter_map(|line| line.strip_prefix("holdfast_poll_gap_highest_seconds{"));
    let seconds = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    saw_gap((seconds.fold(0.0, f64::max) * 1e9) as u64);
}

/// Returns the longest poll gap reported in this attempt.
pub fn longest_gap() -> Duration {
    Duration::from_nanos(LONGEST_GAP.load(Relaxed))
}

/// Ends this attempt: the machine was too busy for a result. A test fails if all its attempts end so.
pub fn too_busy(why: String) -> ! {
    panic_any(Disturbed::Busy(why))
}

/// Ends this attempt: gaps between polls explain all frames that were lost. A test passes with a message if all its
/// attempts end so.
pub fn explained(why: String) -> ! {
    panic_any(Disturbed::Explained(why))
}

/// Runs `attempt` until it returns no reason for a disturbance. Returns the last result, and whether it was quiet. For
/// tests that apply other limits where it was not.
pub fn until_quiet<T>(mut attempt: impl FnMut() -> (T, Option<String>)) -> (T, bool) {
    let mut last = attempt();
    for left in (1..ATTEMPTS).rev() {
        let Some(why) = &last.1 else { break };
        eprintln!("NOT QUIET: {why}; again, {left} left");
        last = attempt();
    }
    let (seen, why) = last;
    (seen, why.is_none())
}

/// Runs `test` until it passes, or fails although no CPU was away for longer than `allowed`.
#[track_caller]
pub fn attempt(allowed: Duration, test: impl Fn()) {
    for left in (0..ATTEMPTS).rev() {
        LONGEST_GAP.store(0, Relaxed);
        let witnesses = Witnesses::start();
        let Err(panic) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let late = witnesses.longest();
        let away = longest_gap().max(late);
        let (why, passes) = match panic.downcast::<Disturbed>() {
            Ok(disturbed) => match *disturbed {
                Disturbed::Busy(why) => (why, false),
                Disturbed::Explained(why) => (why, true),
            },
            Err(panic) if away <= allowed => {
                eprintln!("no CPU was away for longer than {away:?}, of {allowed:?} that this test allows: a failure");
                resume_unwind(panic)
            }
            Err(_) => {
                (format!("it failed while a CPU was away for {away:?}, and {allowed:?} is what it allows"), false)
            }
        };
        let gap = longest_gap();
        let seen = format!("longest gap between polls {gap:?}, latest wake-up of a thread {late:?}");
        if left > 0 {
            eprintln!("NOT QUIET: {why} ({seen}); again, {left} left");
        } else if passes {
            eprintln!("NOT QUIET in any of {ATTEMPTS} attempts, and judged by what gaps allow: {why} ({seen})");
        } else {
            panic!(
                "this machine was not quiet in any of {ATTEMPTS} attempts, so this says nothing of the switch: {why} ({seen})"
            );
        }
    }
}

/// A thread on each CPU that this process may use, which measures the delay of its own wake-ups.
struct Witnesses {
    longest: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Witnesses {
    fn start() -> Self {
        let (longest, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let threads = cpus().into_iter().map(|cpu| {
            let (longest, ends) = (longest.clone(), ends.clone());
            std::thread::spawn(move || {
                pin(cpu);
                while !ends.load(Relaxed) {
                    let start = Instant::now();
                    sleep(LOOK);
                    let late = start.elapsed().saturating_sub(LOOK);
                    longest.fetch_max(late.as_nanos() as u64, Relaxed);
                }
            })
        });
        let threads = threads.collect();
        Self { longest, ends, threads }
    }

    fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest.load(Relaxed))
    }
}

impl Drop for Witnesses {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Seconds for which the threads of a process, all together, had a CPU, and waited for one (the kernel's
/// Documentation/scheduler/sched-stats.rst). Threads that have ended do not count.
pub fn cpu_seconds(pid: u32) -> [f64; 2] {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    let stats: Vec<String> = stats.collect();
    let nanoseconds =
        |field| stats.iter().filter_map(move |stat| stat.split_whitespace().nth(field)?.parse::<f64>().ok());
    [0, 1].map(|field| nanoseconds(field).sum::<f64>() / 1e9)
}

/// Waits until `process` ends by itself. Returns also the percentage of its CPU time for which it waited for a CPU.
#[track_caller]
pub fn finish_watched(mut process: Process) -> (Ended, f64) {
    let [mut had, mut waited] = [0.0_f64; 2];
    let end = Instant::now() + PATIENCE;
    while process.is_running() && Instant::now() < end {
        let [has, waits] = cpu_seconds(process.pid());
        (had, waited) = (had.max(has), waited.max(waits));
        sleep(Duration::from_millis(50));
    }
    (process.wait(PATIENCE), 100.0 * waited / (had + waited).max(1e-9))
}

/// Returns the CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).expect("our own CPUs");
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Pins this thread to `cpu`. If that fails, the thread still measures, on any CPU.
fn pin(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    let _ = sched_setaffinity(None, &only);
}
