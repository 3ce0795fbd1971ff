//! The cost of communication between the two CPUs: all figures of two lcores depend on it.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use holdfast::dpdk::{Eal, Lcore};
use holdfast::plan::ring::ring;
use holdfast::sets::BURST;

const TRIPS: u64 = 20_000;
const BURSTS: u64 = 5_000;

/// The limit between near and far pairs of CPUs, in nanoseconds. The host of a virtual machine may move the CPUs within
/// minutes. No values between 65 and 300 ns were observed.
const NEAR: f64 = 150.0;

/// The current distance of the two CPUs.
#[derive(Debug, Clone, Copy)]
pub struct Distance {
    /// Nanoseconds for the round trip of a cache line.
    pub line: f64,
    /// Nanoseconds per object through the hand-off ring, in bursts of 64.
    pub object: f64,
}

impl Distance {
    pub fn measure(eal: &Eal, other: Lcore) -> Result<Self, String> {
        Ok(Self { line: line(eal, other)?, object: object(eal, other)? })
    }

    pub fn is_near(self) -> bool {
        self.line < NEAR
    }
}

/// Measures a cache line that both CPUs write in turn. Returns the median of several tries, since either CPU may be
/// stopped.
fn line(eal: &Eal, other: Lcore) -> Result<f64, String> {
    let ball = Arc::new(CachePadded::new(AtomicU64::new(0)));
    let theirs = ball.clone();
    const TRIES: u64 = 5;
    let worker = eal.launch(other, move || {
        for trip in 0..TRIES * TRIPS {
            wait_for(&theirs, 2 * trip + 1);
            theirs.store(2 * trip + 2, Ordering::Release);
        }
    });
    let worker = worker.map_err(|error| error.to_string())?;
    let tries = (0..TRIES).map(|one| {
        let start = Instant::now();
        for trip in one * TRIPS..(one + 1) * TRIPS {
            ball.store(2 * trip + 1, Ordering::Release);
            wait_for(&ball, 2 * trip + 2);
        }
        start.elapsed().as_nanos() as f64 / TRIPS as f64
    });
    let median = median(tries.collect());
    worker.join().map_err(|error| error.to_string())?;
    Ok(median)
}

fn wait_for(ball: &AtomicU64, value: u64) {
    while ball.load(Ordering::Acquire) != value {
        spin_loop();
    }
}

/// Measures objects as large as a handed-over frame, in bursts, as fast as the other CPU takes them.
fn object(eal: &Eal, other: Lcore) -> Result<f64, String> {
    let (mut producer, mut consumer) = ring::<[u64; 3]>(1024);
    const TRIES: u64 = 5;
    let count = TRIES * BURSTS * BURST as u64;
    let worker = eal.launch(other, move || {
        let mut taken = 0;
        while taken < count {
            consumer.refresh();
            while let Some(object) = consumer.pop() {
                black_box(object);
                taken += 1;
            }
            consumer.release();
        }
    });
    let worker = worker.map_err(|error| error.to_string())?;
    let tries = (0..TRIES).map(|_| {
        let start = Instant::now();
        for burst in 0..BURSTS {
            for _ in 0..BURST {
                while producer.push([burst; 3]).is_err() {
                    producer.publish();
                    spin_loop();
                }
            }
            producer.publish();
        }
        start.elapsed().as_nanos() as f64 / (BURSTS * BURST as u64) as f64
    });
    let median = median(tries.collect());
    worker.join().map_err(|error| error.to_string())?;
    Ok(median)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
