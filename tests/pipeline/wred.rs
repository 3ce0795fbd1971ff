//! Rates of WRED marks and drops: 10,000 frames at a constant depth, within five standard deviations of the binomial.

use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::qos::WredProfile;
use holdfast::units::Bytes;

use crate::harness::*;

const FRAMES: u64 = 10_000;
/// Length of a frame in bytes. With 24 more on the wire it takes 200 ns at 10 Gb/s.
const LEN: usize = 226;
const FRAME_NS: u64 = 200;
/// The profile in frames, and its maximum probability.
const KMIN: u64 = 100;
const KMAX: u64 = 300;
const PMAX: f64 = 0.4;
/// Depths in frames: a tenth, a half and nine tenths of the way from kmin to kmax.
const DEPTHS: [u64; 3] = [120, 200, 280];
const CLASS: usize = 0;
/// Frames that the device has at a poll: polls are a frame apart, so pacing posts one ahead.
const POSTED: u64 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ip {
    V4,
    V6,
}

/// Returns a frame from station 0 to station 1 in class 0 with this ECN field.
fn ip_frame(ip: Ip, ecn: u8) -> Vec<u8> {
    let mut frame = frame(0, 1, 0, LEN);
    match ip {
        Ip::V4 => frame[15] = ecn,
        Ip::V6 => {
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
            frame[14..20].copy_from_slice(&[0x60, ecn << 4, 0, 0, 0, (LEN - 54) as u8]);
            (frame[20], frame[21]) = (17, 64);
            frame[22..54].fill(1);
            // UDP ports, and the length of the UDP segment.
            frame[54..62].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, (LEN - 54) as u8, 0, 0]);
        }
    }
    frame
}

fn ecn_codepoint(frame: &[u8]) -> u8 {
    if frame[12] == 0x08 { frame[15] & 3 } else { frame[15] >> 4 & 3 }
}

fn switch() -> SwitchSpec {
    let mut spec = spec(2);
    let bytes = |frames: u64| Bytes(frames * LEN as u64);
    spec.queues[CLASS].wred = WredProfile::new(bytes(KMIN), bytes(KMAX), "40%".parse().unwrap());
    spec
}

/// The line from kmin to kmax, independent of the implementation.
fn probability(depth: u64) -> f64 {
    PMAX * (depth - KMIN) as f64 / (KMAX - KMIN) as f64
}

/// Independent trials, each with its own probability.
#[derive(Debug, Default)]
struct Trials {
    count: u64,
    hits: u64,
    /// Queue depth of each trial.
    depths: Vec<u64>,
}

impl Trials {
    /// Whether the hits are within five standard deviations, were each probability multiplied by `factor`.
    fn is_likely(&self, factor: f64) -> bool {
        let each = || self.depths.iter().map(|depth| probability(*depth) * factor);
        let (mean, variance) = (each().sum::<f64>(), each().map(|p| p * (1.0 - p)).sum::<f64>());
        (self.hits as f64 - mean).abs() <= 5.0 * variance.sqrt()
    }

    #[track_caller]
    fn check(&self, what: &str, depth: u64) {
        let stands = self.depths.iter().all(|at| at.abs_diff(depth) <= 2);
        assert!(stands, "{what}: {:?} to {:?}", self.depths.iter().min(), self.depths.iter().max());
        assert_eq!((self.count, self.depths.len() as u64), (FRAMES, FRAMES));
        assert!(self.is_likely(1.0), "{what}: {} of {FRAMES}", self.hits);
        for wrong in [0.25, 0.5, 2.0] {
            assert!(!self.is_likely(wrong), "{what}: {} of {FRAMES} would pass for {wrong} times the rate", self.hits);
        }
    }
}

/// A queue kept at a constant depth by counting the frames in and out.
struct Standing {
    bed: Bed,
    ip: Ip,
    depth: u64,
    queued: u64,
}

impl Standing {
    fn new(ip: Ip, depth: u64) -> Self {
        let mut standing = Self { bed: Bed::learned(&switch()), ip, depth, queued: 0 };
        // Frames that can be marked are not dropped. After two milliseconds the slack of pacing is that of these polls.
        for _ in 0..11_000 {
            standing.fill();
            standing.step();
        }
        standing.fill();
        standing
    }

    /// Fills the queue to its depth with frames that WRED never drops.
    fn fill(&mut self) {
        while self.queued < self.depth {
            self.bed.io.inject(0, &ip_frame(self.ip, 2));
            self.queued += 1;
            self.bed.poll();
            self.collect();
        }
    }

    /// Lets a frame leave.
    fn step(&mut self) -> Vec<Vec<u8>> {
        self.bed.now += FRAME_NS;
        self.bed.poll();
        self.collect()
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        let sent = self.bed.data(1);
        self.queued -= sent.len() as u64;
        sent
    }
}

fn marks(ip: Ip, depth: u64) -> Trials {
    let mut standing = Standing::new(ip, depth);
    let mut trials = Trials::default();
    while trials.count < FRAMES {
        standing.bed.io.inject(0, &ip_frame(ip, 2));
        standing.queued += 1;
        let before = standing.queued;
        for frame in standing.step().iter().take((FRAMES - trials.count) as usize) {
            trials.count += 1;
            trials.hits += u64::from(ecn_codepoint(frame) == 3);
            // The depth includes the leaving frame, and those before it.
            trials.depths.push(before + POSTED);
        }
    }
    trials
}

fn drops(ip: Ip, depth: u64) -> Trials {
    let mut standing = Standing::new(ip, depth);
    let mut trials = Trials::default();
    while trials.count < FRAMES {
        standing.fill();
        trials.depths.push(standing.queued + POSTED);
        let before = standing.bed.drops(1, DropReason::Wred);
        standing.bed.io.inject(0, &ip_frame(ip, 0));
        // The frame may leave in the same poll.
        standing.queued += 1;
        standing.step();
        let dropped = standing.bed.drops(1, DropReason::Wred) - before;
        standing.queued -= dropped;
        (trials.count, trials.hits) = (trials.count + 1, trials.hits + dropped);
    }
    trials
}

#[test]
fn wred_mark_rate_matches_queue_depth() {
    for (ip, depth) in DEPTHS.into_iter().flat_map(|depth| [(Ip::V4, depth), (Ip::V6, depth)]) {
        marks(ip, depth).check(&format!("marks of {ip:?} at {depth} frames"), depth);
    }
}

#[test]
fn wred_drop_rate_of_not_ect_frames_matches_queue_depth() {
    for (ip, depth) in DEPTHS.into_iter().flat_map(|depth| [(Ip::V4, depth), (Ip::V6, depth)]) {
        drops(ip, depth).check(&format!("drops of {ip:?} at {depth} frames"), depth);
    }
}
