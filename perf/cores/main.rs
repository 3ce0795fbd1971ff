//! Two lcores against one: packets per second, by the share of traffic that crosses from one to the other.
//!
//! The bench runs the whole L2 pipeline over real mbufs, like `perf/pipeline.rs`. It has four ports, 64-byte frames
//! with new headers, 1,024 stations per port, and half of the frames lossless. All stations are learned and all
//! features are on. Two lcores have two ports and one CPU each.
//!
//! All patterns take turns in every round. The distance of the two CPUs is measured beside each, because it changes
//! within minutes in a virtual machine: only figures of equal distance are compared.
//!
//! `cargo bench --bench cores [-- --quick] [--only NAME] [--json | --markdown]`; docs/performance.md.

mod generator;
mod primitives;
mod report;
mod run;

use std::process::ExitCode;
use std::time::Duration;

use generator::Crossing;
use holdfast::dpdk::{self, Eal, EalOptions, Memory, Mempool};
use primitives::Distance;
use report::{Format, Round};
use run::Lab;

/// Number of buffers, unless `--buffers` is given. They fit the caches and are fewer than any threshold of the buffer:
/// even if one lcore is far behind the other, no frame is dropped and no class is paused.
const BUFFERS: u32 = 4096;
/// Size of the pool's cache per lcore, as in `holdfast run`.
const CACHE: u32 = 256;

/// Maximum number of rounds per wanted round: other programs on the machine spoil some.
const ATTEMPTS: usize = 8;

/// One pattern of traffic.
pub struct Pattern {
    /// Its name in reports.
    pub name: &'static str,
    /// Number of lcores.
    pub lcores: usize,
    /// The traffic that crosses.
    pub crossing: Crossing,
    /// Whether each lcore sends by every port. Otherwise frames cross rings between lcores.
    pub is_joint: bool,
    /// Whether an lcore receives at most [`generator::AHEAD`] frames ahead of the other. Otherwise its ports always
    /// have more.
    pub is_bounded: bool,
    /// The aim, as a multiple of one core.
    pub aim: Option<f64>,
}

impl Pattern {
    const fn joint(name: &'static str, crossing: Crossing, is_bounded: bool, aim: Option<f64>) -> Self {
        Self { name, lcores: 2, crossing, is_joint: true, is_bounded, aim }
    }

    const fn ring(name: &'static str, crossing: Crossing, is_bounded: bool) -> Self {
        Self { name, lcores: 2, crossing, is_joint: false, is_bounded, aim: None }
    }
}

/// The patterns. "Crossing" frames leave by a port of the other lcore.
pub const PATTERNS: [Pattern; 8] = [
    Pattern { name: "one core", lcores: 1, crossing: Crossing::All, is_joint: false, is_bounded: true, aim: None },
    Pattern::joint("two, none crossing", Crossing::None, true, Some(1.9)),
    Pattern::joint("two, half crossing", Crossing::Half, true, None),
    Pattern::joint("two, all crossing", Crossing::All, true, Some(1.7)),
    Pattern::joint("two, all crossing, ports always have more", Crossing::All, false, Some(1.3)),
    Pattern::ring("by rings: two, none crossing", Crossing::None, true),
    Pattern::ring("by rings: two, all crossing", Crossing::All, true),
    Pattern::ring("by rings: two, all crossing, ports always have more", Crossing::All, false),
];

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let format = match () {
        () if has("--json") => Format::Json,
        () if has("--markdown") => Format::Markdown,
        () => Format::Text,
    };
    let only = std::env::args().skip_while(|argument| argument != "--only").nth(1);
    let is_measured = |pattern: usize| {
        pattern == 0 || only.as_ref().is_none_or(|only| PATTERNS[pattern].name.contains(only.as_str()))
    };
    let (wanted, time) = if has("--quick") { (5, 60) } else { (25, 100) };
    let cpus = dpdk::allowed_cpus();
    let [main_cpu, other, ..] = *cpus.as_slice() else {
        return Err("two lcores need two CPUs, and this process may run on one".to_owned());
    };
    let memory = Memory::NoHuge { mib: 256 };
    let options = EalOptions { memory, main_cpu, worker_cpus: vec![other], ..EalOptions::default() };
    let eal = Eal::init(&options).map_err(|error| error.to_string())?;
    let buffers = std::env::args().skip_while(|argument| argument != "--buffers").nth(1);
    let buffers =
        buffers.map_or(Ok(BUFFERS), |number| number.parse()).map_err(|error| format!("--buffers: {error}"))?;
    let pool = Mempool::create(&eal, "bench", buffers, 2048 + 128, CACHE, None).map_err(|error| error.to_string())?;
    let worker = eal.workers()[0];
    let lab = Lab { eal: &eal, pool, worker, time: Duration::from_millis(time) };
    let mut measured: Vec<Round> = Vec::new();
    for round in 0..wanted * ATTEMPTS {
        // The order rotates, so that a pattern does not always follow the same one.
        let patterns = (0..PATTERNS.len()).map(|index| (index + round) % PATTERNS.len());
        for pattern in patterns.filter(|pattern| is_measured(*pattern)) {
            let before = Distance::measure(&eal, worker)?;
            let rate = lab.run(&PATTERNS[pattern])?;
            let after = Distance::measure(&eal, worker)?;
            measured.push(Round { pattern, rate, before, after });
        }
        let has_enough = |pattern| {
            let good = measured.iter().filter(|round: &&Round| round.pattern == pattern && round.is_near().is_some());
            good.count() >= wanted
        };
        if (0..PATTERNS.len()).filter(|pattern| is_measured(*pattern)).all(has_enough) {
            break;
        }
    }
    print!("{}", report::report(&measured, dpdk::hz(&eal), format));
    Ok(())
}
