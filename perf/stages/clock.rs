//! Samples of the CPU clock while the benchmark runs, taken by `perf record -e cpu-clock`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::output;
use crate::rows::{self, Row};

/// Samples per second: a prime, so that no loop synchronizes with it.
const RATE: u32 = 4999;

/// One sample of the program counter.
pub struct Sample {
    /// Seconds on the monotonic clock.
    time: f64,
    /// Address in the benchmark's file, or 0 for a library or the kernel.
    pub address: u64,
}

/// A sampled run.
pub struct Clock {
    pub samples: Vec<Sample>,
    pub rows: Vec<Row>,
    /// The time at which each row was printed.
    ends: Vec<f64>,
}

impl Clock {
    /// Samples of the part that ended with row `index`, which must not be the first.
    pub fn during(&self, index: usize) -> impl Iterator<Item = &Sample> {
        let (start, end) = (self.ends[index - 1], self.ends[index]);
        self.samples.iter().filter(move |sample| sample.time > start && sample.time <= end)
    }

    /// The share of that part's time in which the benchmark ran on a CPU: the sampled clock stands still otherwise.
    pub fn on_cpu(&self, index: usize) -> f64 {
        let seconds = self.ends[index] - self.ends[index - 1];
        (self.during(index).count() as f64 / f64::from(RATE) / seconds).min(1.0)
    }
}

/// Runs the benchmark under `perf record`.
///
/// # Errors
/// If perf is missing, or is not allowed to sample.
pub fn sample(program: &Path) -> Result<Clock, String> {
    let file = std::env::temp_dir().join(format!("holdfast-stages-{}.perf", std::process::id()));
    let mut child = Command::new("perf")
        .args(["record", "--quiet", "-e", "cpu-clock", "-F", &RATE.to_string(), "-k", "CLOCK_MONOTONIC", "-o"])
        .args([&file, program])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("perf: {error}; Debian has it in linux-perf"))?;
    let mut ends = Vec::new();
    let rows = rows::read(child.stdout.take().expect("piped"), |_| {
        ends.push(now()?);
        Ok(())
    })?;
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("perf record: {status}"));
    }
    let script = output(Command::new("perf").args(["script", "-F", "time,ip", "--show-mmap-events", "-i"]).arg(&file));
    let _ = std::fs::remove_file(&file);
    let samples = parse(&script?, program, &segment(program)?);
    Ok(Clock { samples, rows, ends })
}

/// Seconds since the start of the machine. This is the monotonic clock if the machine was never suspended.
fn now() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/uptime").map_err(|error| format!("/proc/uptime: {error}"))?;
    let uptime = text.split_whitespace().next().and_then(|word| word.parse().ok());
    uptime.ok_or_else(|| format!("/proc/uptime says {text}"))
}

/// File offset and address of the executable segment.
struct Segment {
    offset: u64,
    address: u64,
}

fn segment(program: &Path) -> Result<Segment, String> {
    let headers = output(Command::new("readelf").arg("-lW").arg(program))?;
    let loads = headers.lines().filter(|line| line.trim_start().starts_with("LOAD") && line.contains(" R E "));
    let numbers = |line: &str| {
        let mut words = line.split_whitespace().skip(1).map(hex);
        Some(Segment { offset: words.next()??, address: words.next()?? })
    };
    loads.filter_map(numbers).next().ok_or_else(|| "readelf shows no executable segment".to_owned())
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// Parses the samples in the output of `perf script`. A line that maps `program` gives its address.
fn parse(script: &str, program: &Path, segment: &Segment) -> Vec<Sample> {
    let program = program.to_string_lossy();
    let mut mapped = None;
    let mut samples = Vec::new();
    for line in script.lines() {
        if line.contains("PERF_RECORD_MMAP") {
            if line.trim_end().ends_with(&*program) {
                mapped = mapping(line).or(mapped);
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let time = words.next().and_then(|word| word.trim_end_matches(':').parse().ok());
        let (Some(time), Some(ip)) = (time, words.next().and_then(hex)) else { continue };
        let address = mapped.filter(|&(start, size, _)| ip >= start && ip < start + size);
        let address = address.map_or(0, |(start, _, offset)| ip - start + offset - segment.offset + segment.address);
        samples.push(Sample { time, address });
    }
    samples
}

/// Start, size and file offset of a mapping: `... [0x5607050bb000(0x197000) @ 0x4f000 ...`.
fn mapping(line: &str) -> Option<(u64, u64, u64)> {
    let (start, remaining) = line.split_once('[')?.1.split_once('(')?;
    let (size, remaining) = remaining.split_once(')')?;
    let offset = remaining.split_whitespace().nth(1)?;
    Some((hex(start)?, hex(size)?, hex(offset)?))
}
