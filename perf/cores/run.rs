//! One measurement: the pipelines of all lcores run for a given time.

use holdfast::dataplane::Scratch;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use holdfast::config;
use holdfast::dataplane::Pipeline;
use holdfast::dpdk::{self, Eal, Lcore, Mbuf, Mempool};
use holdfast::plan::{Counters, SwitchSpec};
use holdfast::units::{BitRate, Nanos};

use crate::Pattern;
use crate::generator::{FLOWS, Generator, PORTS, mac, received};

const WARM_UP: Duration = Duration::from_millis(50);
/// Polls between two readings of the clock or of the phase.
const POLLS: u32 = 64;

/// The phases of a measurement. The first lcore, which reads the clock, sets them.
const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const DONE: u8 = 2;

/// The environment that all measurements share.
pub struct Lab<'a> {
    pub eal: &'a Eal,
    pub pool: Mempool,
    pub worker: Lcore,
    pub time: Duration,
}

/// The result of one measurement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    /// Packets per second of all lcores.
    pub packets: f64,
    /// Frames that an lcore sends per poll: the minimum and the maximum of all lcores.
    pub bursts: [f64; 2],
    /// The share of the time for which an lcore had its CPU; the minimum of all lcores.
    pub on_cpu: f64,
}

/// The work of an lcore.
struct Part {
    pipeline: Pipeline<Mbuf>,
    scratch: Scratch<Mbuf>,
    generator: Generator,
    phase: Arc<AtomicU8>,
    barrier: Arc<Barrier>,
}

/// The counts of an lcore during the measurement.
#[derive(Clone, Copy, Default)]
struct Done {
    ticks: u64,
    sent: u64,
    polls: u64,
    cpu_ns: u64,
}

impl Lab<'_> {
    /// Measures `pattern`.
    ///
    /// # Errors
    /// If an lcore does not start, or panics.
    pub fn run(&self, pattern: &Pattern) -> Result<Rate, String> {
        let (hz, lcores) = (dpdk::hz(self.eal), pattern.lcores);
        let spec = spec(lcores as u8, pattern.is_joint);
        let counters = Arc::new(Counters::of(&spec));
        let (phase, barrier) = (Arc::new(AtomicU8::new(WARMING)), Arc::new(Barrier::new(lcores)));
        let all_received = received(lcores);
        let mut parts = Vec::new();
        for (lcore, mut pipeline) in Pipeline::fleet(&spec, &counters, hz, 1).into_iter().enumerate() {
            // Each lcore learns the stations of all ports. Otherwise the first frames to ports of the other lcore would
            // be flooded or dropped.
            for (port, station) in (0..PORTS).flat_map(|port| (0..FLOWS).map(move |station| (port, station))) {
                pipeline.learn(1, mac(port, station), port, dpdk::now());
            }
            let generator = Generator::new(self.pool.clone(), pattern, lcore, all_received.clone());
            parts.push(Part {
                pipeline,
                scratch: Scratch::default(),
                generator,
                phase: phase.clone(),
                barrier: barrier.clone(),
            });
        }
        let other = (parts.len() > 1).then(|| parts.remove(1));
        let worker = other.map(|part| self.eal.launch(self.worker, move || follow(part)));
        let worker = worker.transpose().map_err(|error| error.to_string())?;
        let mut first = parts.remove(0);
        let mut done = vec![lead(&mut first, self.time)];
        let mut parts = vec![first];
        if let Some(worker) = worker {
            let (part, result) = worker.join().map_err(|error| error.to_string())?;
            parts.push(part);
            done.push(result);
        }
        let ports = (0..PORTS).flat_map(|port| counters.of_port(port));
        let drops: u64 = ports.flat_map(|port| port.drops.iter().flatten()).map(|drop| drop.get()).sum();
        // Over rings, ports that always have more fill the queues of the other lcore.
        assert!(drops == 0 || !pattern.is_bounded && !pattern.is_joint, "a switch that drops measures something else");
        self.empty(parts);
        Ok(rate(&done, hz))
    }

    /// Returns the buffers in queues and rings to the pool; each turn takes a few bursts.
    fn empty(&self, mut parts: Vec<Part>) {
        for _ in 0..16 {
            for part in &mut parts {
                part.pipeline.shutdown(&mut part.generator, dpdk::now());
            }
        }
        assert_eq!(self.pool.in_use(), 0, "every buffer is back");
    }
}

/// The embedded switch, with ports faster than the cores. The first half of the ports belongs to the first lcore.
fn spec(lcores: u8, is_joint: bool) -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(PORTS);
    spec.lcores = lcores;
    for (index, port) in spec.ports.iter_mut().enumerate() {
        port.rate = BitRate(400_000_000_000);
        port.backlog_mark = None;
        port.tx_queues = if is_joint { lcores } else { 1 };
        port.lcore = (index * usize::from(lcores) / PORTS) as u8;
    }
    spec.poll_gap = Nanos(0);
    spec
}

/// Runs the lcore that reads the clock and sets the phases.
fn lead(part: &mut Part, time: Duration) -> Done {
    part.barrier.wait();
    let start = Instant::now();
    poll_until(part, |_| start.elapsed() >= WARM_UP);
    part.phase.store(COUNTING, Ordering::Relaxed);
    let done = count(part, |_| start.elapsed() >= WARM_UP + time);
    part.phase.store(DONE, Ordering::Relaxed);
    done
}

fn follow(mut part: Part) -> (Part, Done) {
    part.barrier.wait();
    poll_until(&mut part, |phase| phase != WARMING);
    let done = count(&mut part, |phase| phase == DONE);
    (part, done)
}

fn count(part: &mut Part, is_over: impl Fn(u8) -> bool) -> Done {
    let (ticks, sent, cpu) = (dpdk::now().0, part.generator.sent, cpu_time());
    let polls = poll_until(part, is_over);
    let (ticks, sent) = (dpdk::now().0 - ticks, part.generator.sent - sent);
    Done { ticks, sent, polls, cpu_ns: cpu_time().saturating_sub(cpu) }
}

/// Polls until `is_over`, and returns the number of polls.
#[inline(never)]
fn poll_until(part: &mut Part, is_over: impl Fn(u8) -> bool) -> u64 {
    let mut polls = 0;
    while !is_over(part.phase.load(Ordering::Relaxed)) {
        for _ in 0..POLLS {
            part.pipeline.poll(&mut part.generator, &mut part.scratch, dpdk::now());
        }
        polls += u64::from(POLLS);
    }
    polls
}

/// CPU time of this thread in nanoseconds; zero if the kernel does not report it.
fn cpu_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn rate(done: &[Done], hz: u64) -> Rate {
    let seconds = |done: &Done| done.ticks as f64 / hz as f64;
    let on_cpu = done.iter().map(|done| done.cpu_ns as f64 / 1e9 / seconds(done)).fold(1.0, f64::min);
    let bursts = done.iter().map(|done| done.sent as f64 / done.polls.max(1) as f64);
    Rate {
        packets: done.iter().map(|done| done.sent as f64 / seconds(done)).sum(),
        bursts: bursts.fold([f64::INFINITY, 0.0], |[least, most], burst| [least.min(burst), most.max(burst)]),
        on_cpu,
    }
}
