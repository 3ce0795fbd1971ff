//! One measurement: a fleet that runs for a while.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use holdfast::config;
use holdfast::dataplane::{Counters, Pipeline, SwitchSpec};
use holdfast::dpdk::{self, Eal, Lcore, Mbuf, Mempool};
use holdfast::units::{BitRate, Nanos};

use crate::generator::{Crossing, FLOWS, Generator, PORTS, mac, received};

const WARM_UP: Duration = Duration::from_millis(50);
/// Polls between two looks at the clock, or at what the first lcore says.
const POLLS: u32 = 64;

/// What the first lcore says, which has the clock.
const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const DONE: u8 = 2;

/// What all measurements have in common.
pub struct Lab<'a> {
    pub eal: &'a Eal,
    pub pool: Mempool,
    pub worker: Lcore,
    pub time: Duration,
}

/// What came of one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    /// Packets a second, of all lcores.
    pub packets: f64,
    /// Frames that the lcores send in a poll: the one with the fewest, and the one with the most.
    pub bursts: [f64; 2],
    /// The share of the time that the lcore which had less of it had its CPU.
    pub on_cpu: f64,
}

/// An lcore's work.
struct Part {
    pipeline: Pipeline<Mbuf>,
    generator: Generator,
    phase: Arc<AtomicU8>,
    barrier: Arc<Barrier>,
}

/// What an lcore has done while it counted.
#[derive(Clone, Copy, Default)]
struct Done {
    ticks: u64,
    sent: u64,
    polls: u64,
    cpu_ns: u64,
}

impl Lab<'_> {
    /// # Errors
    /// An lcore that does not start, or panics.
    pub fn run(&self, lcores: usize, crossing: Crossing) -> Result<Rate, String> {
        let hz = dpdk::hz(self.eal);
        let spec = spec(lcores as u8);
        let counters = Arc::new(Counters::new(PORTS, lcores));
        let (phase, barrier) = (Arc::new(AtomicU8::new(WARMING)), Arc::new(Barrier::new(lcores)));
        let all_received = received(lcores);
        let mut parts = Vec::new();
        for (lcore, mut pipeline) in Pipeline::fleet(&spec, &counters, hz, 1).into_iter().enumerate() {
            // What is another's it hears of, or the first frames that go there are flooded or dropped.
            for (port, station) in (0..PORTS).flat_map(|port| (0..FLOWS).map(move |station| (port, station))) {
                pipeline.learn(1, mac(port, station), port, dpdk::now());
            }
            let generator = Generator::new(self.pool.clone(), crossing, lcore, all_received.clone());
            parts.push(Part { pipeline, generator, phase: phase.clone(), barrier: barrier.clone() });
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
        let drops = counters.ports.iter().flat_map(|port| port.drops.iter().flatten());
        assert_eq!(drops.map(|drop| drop.get()).sum::<u64>(), 0, "a switch that drops measures something else");
        self.empty(parts);
        Ok(rate(&done, hz))
    }

    /// Gives back what is in queues and rings, of which each turn takes some bursts.
    fn empty(&self, mut parts: Vec<Part>) {
        for _ in 0..16 {
            for part in &mut parts {
                part.pipeline.shutdown(&mut part.generator, dpdk::now());
            }
        }
        assert_eq!(self.pool.in_use(), 0, "every buffer is back");
    }
}

/// The embedded switch, faster than the cores; the first half of its ports is the first lcore's.
fn spec(lcores: u8) -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(PORTS);
    spec.lcores = lcores;
    for (index, port) in spec.ports.iter_mut().enumerate() {
        port.rate = BitRate(400_000_000_000);
        port.backlog_mark = None;
        port.lcore = (index * usize::from(lcores) / PORTS) as u8;
    }
    spec.poll_gap = Nanos(0);
    spec
}

/// The lcore that has the clock: the time since `start`, now and then.
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

/// Polls, and returns how often.
#[inline(never)]
fn poll_until(part: &mut Part, is_over: impl Fn(u8) -> bool) -> u64 {
    let mut polls = 0;
    while !is_over(part.phase.load(Ordering::Relaxed)) {
        for _ in 0..POLLS {
            part.pipeline.poll(&mut part.generator, dpdk::now());
        }
        polls += u64::from(POLLS);
    }
    polls
}

/// Nanoseconds for which this thread has had a CPU; zero if the kernel does not say.
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
