//! Measures one program at one point once: starts it, warms it up, measures it, ends it.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::counts::{Counts, CountsFile};
use super::lab::Lab;
use super::plan::{PORTS, Point};
use super::process::nap;
use super::programs::{Program, Started};

/// Longest time from the start of a program to its first publication.
const START_TIME: Duration = Duration::from_secs(20);
/// Length of a warm-up window. Warming up ends when a program takes all frames that it is handed, at a steady rate.
const WARM_WINDOW: Duration = Duration::from_millis(200);
const WARM_LIMIT: Duration = Duration::from_secs(2);
/// The limit for a program that learns in a slow path.
const WARM_LIMIT_SLOW: Duration = Duration::from_secs(60);
/// Relative difference up to which the rates of two windows count as equal.
const STEADY: f64 = 0.15;
/// No fast path takes as many cycles per packet: such a rate belongs to a slow path, even if it is steady.
const SLOW_PATH_CYCLES: f64 = 5000.0;
/// Tolerated difference between frames taken and handed out without congestion. More indicates loss or flooding.
const TOLERANCE: f64 = 0.01;

/// Windows to try until the program has at least [`LEAST_ON_CPU`] of the CPU in one.
const WINDOWS: usize = 4;
const LEAST_ON_CPU: f64 = 0.05;
/// Seconds of warming up after which a single round must suffice.
const LONG_WARM_SECONDS: f64 = 20.0;

/// The result of one run.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Sample {
    /// TSC cycles of CPU time per frame handed out.
    pub cycles: f64,
    /// Millions of frames taken by tx, per second of CPU time.
    pub mpps: f64,
    /// Frames taken divided by frames handed out.
    pub forwarded: f64,
    /// The share of the time in which the polling thread had the CPU.
    pub on_cpu: f64,
    /// Ticks of the TSC per second.
    pub tsc_hz: u64,
    /// PFC frames sent by the program.
    pub pfc: u64,
    /// Polls without frames because the program had no buffers.
    pub no_mbuf: u64,
    /// Seconds from the first frame until the rate settled, or until the limit of the warm-up.
    pub warm_seconds: f64,
    /// Whether the rate settled.
    pub steady: bool,
}

/// A program that forwards at a steady rate, and how long that took.
pub struct Warm {
    pub started: Started,
    pub counts: CountsFile,
    seconds: f64,
    steady: bool,
}

/// Starts the program and warms it up, with `frames_per_second` at each port if frames come by the clock.
pub fn start(lab: &Lab, program: &Program, point: &Point, frames_per_second: u64) -> Result<Warm> {
    let counts = lab.counts()?;
    let mut started = program.start(lab, point, &counts)?;
    wait_for_ports(&mut started, &counts)?;
    counts.offer(PORTS, frames_per_second)?;
    let limit = if program.is_slow_to_warm() { WARM_LIMIT_SLOW } else { WARM_LIMIT };
    let begin = Instant::now();
    let steady = warm_up(&mut started, &counts, point, limit)?;
    Ok(Warm { started, counts, seconds: begin.elapsed().as_secs_f64(), steady })
}

/// Starts the program, measures it for `window`, and ends it.
pub fn measure(lab: &Lab, program: &Program, point: &Point, window: Duration) -> Result<Sample> {
    let Warm { mut started, counts, seconds: warm_seconds, steady } = start(lab, program, point, 0)?;
    let sample = Sample { warm_seconds, steady, ..observe_running(&mut started, &counts, window)? };
    judge(&started, point, &sample)?;
    Ok(sample)
}

fn wait_for_ports(started: &mut Started, counts: &CountsFile) -> Result<()> {
    let end = Instant::now() + START_TIME;
    while counts.read(PORTS).is_none() {
        started.check()?;
        if Instant::now() > end {
            return Err(started.complaint("does not poll its ports"));
        }
        nap(Duration::from_millis(20))?;
    }
    Ok(())
}

/// Polls until the rate has settled. Returns false if it has not within `limit`.
fn warm_up(started: &mut Started, counts: &CountsFile, point: &Point, limit: Duration) -> Result<bool> {
    let end = Instant::now() + limit;
    let mut before = observe(started, counts, WARM_WINDOW)?;
    while Instant::now() < end {
        let sample = observe(started, counts, WARM_WINDOW)?;
        let is_same = (sample.cycles / before.cycles - 1.0).abs() < STEADY;
        let is_lossless = point.is_congested() || sample.forwarded > 1.0 - TOLERANCE;
        let is_whole = is_lossless && sample.forwarded < 1.0 + TOLERANCE;
        if is_same && is_whole && sample.cycles < SLOW_PATH_CYCLES && sample.mpps > 0.0 {
            return Ok(true);
        }
        before = sample;
    }
    Ok(false)
}

/// Measures again if other programs had the CPU. On a CPU of its own, the first window suffices.
fn observe_running(started: &mut Started, counts: &CountsFile, window: Duration) -> Result<Sample> {
    for _ in 0..WINDOWS {
        let sample = observe(started, counts, window)?;
        if sample.on_cpu > LEAST_ON_CPU {
            return Ok(sample);
        }
    }
    Err(started.complaint("had hardly any time on the CPU; what else runs there?"))
}

fn observe(started: &mut Started, counts: &CountsFile, window: Duration) -> Result<Sample> {
    let first = counts.read(PORTS);
    nap(window)?;
    started.check()?;
    match (first, counts.read(PORTS)) {
        (Some(first), Some(last)) => Ok(Sample::between(&first, &last)),
        _ => Err(started.complaint("has stopped polling its ports")),
    }
}

impl Sample {
    /// Whether more rounds would take too long.
    pub fn took_long(&self) -> bool {
        self.warm_seconds > LONG_WARM_SECONDS
    }

    /// Computes the rates between two readings. Each port publishes at its own times, so rates are added instead of
    /// counts.
    fn between(first: &[Counts], last: &[Counts]) -> Self {
        let (mut handed, mut taken) = (0.0, 0.0);
        let (mut on_cpu, tsc_hz) = (0.0, last.first().map_or(0, |counts| counts.hz));
        let hz = tsc_hz as f64;
        for (first, last) in first.iter().zip(last) {
            // Ticks of the thread's CPU time: other programs on the machine do not count.
            let ticks = (last.cpu_ns - first.cpu_ns) as f64 * hz / 1e9;
            if ticks > 0.0 {
                handed += (last.handed - first.handed) as f64 / ticks;
                taken += (last.taken - first.taken) as f64 / ticks;
                on_cpu += ticks / (last.tsc - first.tsc) as f64 / PORTS as f64;
            }
        }
        let sum = |count: fn(&Counts) -> u64| {
            first.iter().zip(last).map(|(first, last)| count(last).saturating_sub(count(first))).sum()
        };
        Self {
            cycles: if handed > 0.0 { 1.0 / handed } else { f64::INFINITY },
            mpps: taken * hz / 1e6,
            forwarded: if handed > 0.0 { taken / handed } else { 0.0 },
            on_cpu,
            tsc_hz,
            pfc: sum(|counts| counts.pfc),
            no_mbuf: sum(|counts| counts.no_mbuf),
            warm_seconds: 0.0,
            steady: false,
        }
    }
}

/// Refuses the sample of a program that forwards no frame, floods or drops: its cycles are not those of forwarding.
fn judge(started: &Started, point: &Point, sample: &Sample) -> Result<()> {
    if sample.mpps <= 0.0 {
        return Err(started.complaint("forwards nothing"));
    }
    let percent = 100.0 * sample.forwarded;
    if sample.forwarded > 1.0 + TOLERANCE {
        return Err(started.complaint(&format!("floods: {percent:.1} % of what it got came out")));
    }
    if sample.forwarded < 1.0 - TOLERANCE && !point.is_congested() {
        return Err(started.complaint(&format!("loses: {percent:.1} % of what it got came out")));
    }
    Ok(())
}
