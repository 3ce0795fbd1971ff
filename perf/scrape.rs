//! Measures the cost of a scrape: the time to write all metrics of a switch of 32 ports, and the speed of the packet
//! path beside a thread that scrapes without rest. Needs no libdpdk and no network; `tests/monitoring` measures the
//! cost of HTTP.
//!
//! `cargo bench --no-default-features --bench scrape`. The exit code is 1 if a scrape takes [`LIMIT`] or more.

#[allow(dead_code, reason = "the guard of instructions uses all of it")]
#[path = "instructions/frames.rs"]
mod frames;

use holdfast::dataplane::Scratch;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use frames::{Frame, PORTS, Traffic, Wires, mac};
use holdfast::config;
use holdfast::dataplane::Pipeline;
use holdfast::forward::VlanMode;
use holdfast::plan::{Counters, SwitchSpec};
use holdfast::stats::{Current, SwitchCollector, SwitchView};
use holdfast::units::{BitRate, Nanos, Ticks};

/// Maximum time of a scrape of a ToR switch.
const LIMIT: Duration = Duration::from_millis(5);
const TOR_PORTS: usize = 32;
const SCRAPES: usize = 500;

const FLOWS: u32 = 1024;
const HZ: u64 = 1_000_000_000;
/// Rounds with and without scrapes, which alternate; and polls per round.
const ROUNDS: usize = 41;
const POLLS: u64 = 20_000;

fn main() -> ExitCode {
    let worst = scrape_of_a_tor();
    pace();
    if worst < LIMIT { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures scrapes of a switch with 32 ports of eight classes, one of them lossless. Returns the median.
fn scrape_of_a_tor() -> Duration {
    let port =
        |port| format!("  - {{name: p{port}, device: \"net_tap{port},iface=p{port}\", speed: 100G, cable: 5m}}\n");
    let ports = (1..=TOR_PORTS).map(port);
    let text = format!("preset: roce\nbuffer: {{size: 64MiB}}\nports:\n{}", ports.collect::<String>());
    let spec = config::parse("tor.yaml", &text).unwrap_or_else(|errors| panic!("{errors}")).switch;
    let counters = Arc::new(Counters::new(TOR_PORTS, 1));
    for port in &counters.ports {
        // Large numbers, as after a long run: digits cost time.
        let classes = [&port.rx_frames, &port.rx_bytes, &port.tx_frames, &port.tx_bytes, &port.ecn_marked];
        classes.into_iter().flatten().for_each(|counter| counter.add(1_234_567_890_123));
        let gauges = [&port.group_used_cells, &port.group_used_highest_cells, &port.queue_highest_cells];
        gauges.into_iter().flatten().for_each(|gauge| gauge.set(12_345));
        port.pfc_tx_paused_ns.iter().for_each(|time| time.add(98_765_432_109));
    }
    let collector = SwitchCollector::new(Current::new(SwitchView::new(spec, counters)));
    let text = collector.text();
    let mut times: Vec<Duration> = (0..SCRAPES)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(collector.text());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    println!("scrape of {TOR_PORTS} ports x 8 classes: {series} series, {} bytes", text.len());
    let [median, late, last] = [times[SCRAPES / 2], times[SCRAPES * 99 / 100], times[SCRAPES - 1]];
    println!("  median {median:.2?}, 99 % below {late:.2?}, longest {last:.2?}; may be {LIMIT:?}");
    median
}

/// The switch of the instruction guard: 1024 flows on four ports that are not congested.
struct Bed {
    pipeline: Pipeline<Frame>,
    wires: Wires,
    scratch: Scratch<Frame>,
    now: u64,
}

impl Bed {
    fn new(spec: &SwitchSpec, counters: &Arc<Counters>) -> Self {
        let mut pipeline = Pipeline::fleet(spec, counters, HZ, 1).swap_remove(0);
        let VlanMode::Access(vlan) = spec.ports[0].vlan else { panic!("the embedded ports are access ports") };
        for (port, station) in (0..PORTS).flat_map(|port| (0..FLOWS).map(move |station| (port, station))) {
            pipeline.learn(vlan, mac(port, station), port, Ticks(HZ));
        }
        let traffic = Traffic { flows: FLOWS, ..Traffic::default() };
        let mut wires = Wires::new(traffic, 1024);
        wires.is_counting = true;
        Self { pipeline, wires, scratch: Scratch::default(), now: HZ }
    }

    /// Nanoseconds per frame over a round of polls, including the ports in memory.
    fn round(&mut self) -> f64 {
        let (start, before) = (Instant::now(), self.wires.sent);
        for _ in 0..POLLS {
            self.now += 1_000;
            self.pipeline.poll(&mut self.wires, &mut self.scratch, Ticks(self.now));
        }
        start.elapsed().as_nanos() as f64 / (self.wires.sent - before) as f64
    }
}

/// Measures the speed of the packet path alone, and while another thread scrapes the same switch without rest.
fn pace() {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(PORTS);
    for port in &mut spec.ports {
        port.rate = BitRate(400_000_000_000);
        port.backlog_mark = None;
    }
    spec.poll_gap = Nanos(0);
    spec.fdb.capacity = spec.fdb.capacity.max(2 * PORTS as u32 * FLOWS);
    let counters = Arc::new(Counters::new(PORTS, 1));
    let collector = SwitchCollector::new(Current::new(SwitchView::new(spec.clone(), counters.clone())));
    let (is_scraping, is_over, scrapes) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let mut bed = Bed::new(&spec, &counters);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if is_scraping.load(Ordering::Relaxed) {
                    std::hint::black_box(collector.text());
                    scrapes.fetch_add(1, Ordering::Relaxed);
                } else {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        bed.round();
        for _ in 0..ROUNDS {
            alone.push(bed.round());
            is_scraping.store(true, Ordering::Relaxed);
            beside.push(bed.round());
            is_scraping.store(false, Ordering::Relaxed);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let median = |times: &mut Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        (times[0], times[times.len() / 2])
    };
    let ((best, usual), (best_beside, usual_beside)) = (median(&mut alone), median(&mut beside));
    println!("packet path, ports in memory included, {FLOWS} flows, 64 B:");
    println!("  alone                  median {usual:.2} ns a frame, best round {best:.2}");
    println!("  scraped without rest   median {usual_beside:.2} ns a frame, best round {best_beside:.2}");
    println!("  {} scrapes of {PORTS} ports meanwhile", scrapes.load(Ordering::Relaxed));
}
