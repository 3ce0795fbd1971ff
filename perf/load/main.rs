//! Measures the whole pipeline with a congested port: packets per second of one core in an incast, and the latency of
//! flows that do not take part in it.
//!
//! `cargo bench --bench load -- [--quick] [--json] [--markdown] [--plots] [--small-pages]`. Definitions:
//! docs/performance.md.

mod neighbours;
#[path = "../rig/mod.rs"]
mod rig;

use std::time::Duration;

use holdfast::dpdk::Mbuf;
use holdfast::sim::plot::bars;
use holdfast::units::{BitRate, Ticks};
use neighbours::{Neighbours, neighbours};
use rig::{
    Args, Bed, BedSpec, Flow, LinkSpec, POLL_GAP_NS, Section, Setup, calibrate, distributions, micros, rate_of,
    write_json, write_plot,
};
use serde_json::{Value, json};

const PORTS: usize = 4;
/// The lossless class of the incast.
const HOT: u8 = 3;
const SINK: usize = 0;
/// A gap between two readings of the clock longer than this is a theft.
const THEFT_NS: u64 = 10_000;
const FRAMES: [usize; 3] = [64, 512, 1500];
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(500);
/// Length of the window of one figure; the result is the median of all windows.
const WINDOW_NS: u64 = 10_000_000;
/// Time until queues have filled.
const SETTLE: Duration = Duration::from_millis(200);

/// The traffic of the three senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Each sends to the next sender; together they use 90 % of the core's capacity.
    Spread,
    /// All send to the sink, three times its rate. They obey PFC.
    Incast,
    /// Like [`Pattern::Incast`] with frames that are not ECN-capable: none is marked.
    IncastWithoutEcn,
    /// Like [`Pattern::Incast`], but a poll takes at most one burst of each port.
    IncastOneBurst,
    /// Like [`Pattern::Incast`], without PFC.
    IncastWithoutPfc,
}

const PATTERNS: [(Pattern, &str); 5] = [
    (Pattern::Spread, "spread, uncongested"),
    (Pattern::Incast, "incast, PFC on"),
    (Pattern::IncastWithoutEcn, "incast, PFC on, nothing marked"),
    (Pattern::IncastOneBurst, "incast, PFC on, one burst a poll"),
    (Pattern::IncastWithoutPfc, "incast, PFC off"),
];

impl Pattern {
    fn links(self, rate: BitRate, frame_len: usize) -> Vec<LinkSpec> {
        let link = |port: usize| {
            let spec = LinkSpec { obeys: self != Pattern::IncastWithoutPfc, ..LinkSpec::new(rate, frame_len) };
            match (port, self) {
                (SINK, _) => spec,
                (_, Pattern::Spread) => {
                    LinkSpec { load: 30, ..spec.sending(&[Flow::new(HOT, 1 + port % (PORTS - 1))]) }
                }
                _ => spec.sending(&[Flow { ecn: self != Pattern::IncastWithoutEcn, ..Flow::new(HOT, SINK) }]),
            }
        };
        (0..PORTS).map(link).collect()
    }
}

/// Counts of a window, without the polls during which the core was taken away.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    ticks: u64,
    own_ticks: u64,
    idle_ticks: u64,
    frames: u64,
    polls: u64,
}

impl Count {
    /// Ticks per frame: all ticks, and those in the switch during polls that moved frames.
    fn per_frame(&self) -> [f64; 2] {
        let frames = self.frames.max(1) as f64;
        [self.ticks as f64 / frames, self.ticks.saturating_sub(self.own_ticks + self.idle_ticks) as f64 / frames]
    }
}

/// All windows of one pattern, and the counters of its rounds.
#[derive(Debug, Default)]
struct Figures {
    windows: Vec<Count>,
    held_frames: Vec<f64>,
    queue_bytes: Vec<f64>,
    seconds: f64,
    xoffs: u64,
    lossless_drops: u64,
    missed: u64,
    held_ticks: u64,
    stolen: u64,
    /// The longest poll during which the core was not taken away.
    longest_ticks: u64,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Figures {
    fn of(&self, figure: impl Fn(&Count) -> f64) -> f64 {
        median(self.windows.iter().filter(|window| window.ticks > 0).map(figure))
    }

    fn pps(&self, hz: u64) -> f64 {
        self.of(|window| window.frames as f64 * hz as f64 / window.ticks as f64)
    }

    fn idle_share(&self) -> f64 {
        self.of(|window| window.idle_ticks as f64 / window.ticks as f64)
    }
}

/// Measures windows for `time`. The clock is read once per poll: the end of a poll is the beginning of the next.
fn measure(bed: &Bed, setup: &mut Setup<Mbuf, ()>, time: Duration, figures: &mut Figures) {
    let ticks = bed.ticks(time.as_nanos() as u64);
    let start = setup.io.watch.look();
    let stolen = setup.io.watch.stolen;
    let mut now = start;
    while now - start < ticks {
        let window_ends = now + bed.ticks(WINDOW_NS);
        let mut count = Count::default();
        while now < window_ends {
            let (thefts, own, sent) = (setup.io.watch.thefts, setup.io.own_ticks, setup.io.sent_frames());
            let moved = setup.pipeline.poll(&mut setup.io, &mut setup.scratch, Ticks(now));
            let end = setup.io.watch.look();
            // A poll during which the core was taken away is not counted, neither its time nor its frames.
            if setup.io.watch.thefts == thefts {
                count.ticks += end - now;
                count.own_ticks += if moved > 0 { setup.io.own_ticks - own } else { 0 };
                count.idle_ticks += if moved > 0 { 0 } else { end - now };
                figures.longest_ticks = figures.longest_ticks.max(end - now);
                count.polls += 1;
                count.frames += setup.io.sent_frames() - sent;
            }
            now = end;
        }
        figures.windows.push(count);
        figures.held_frames.push(setup.pipeline.held_frames() as f64);
        figures.queue_bytes.push(setup.pipeline.view(SINK, usize::from(HOT)).queue_bytes.0 as f64);
    }
    figures.seconds += (now - start).saturating_sub(setup.io.watch.stolen - stolen) as f64 / bed.hz as f64;
}

fn round(bed: &Bed, args: Args, pattern: Pattern, rate: BitRate, frame_len: usize, figures: &mut Figures) {
    let spec = BedSpec {
        ports: PORTS,
        rate,
        paced: true,
        one_burst: pattern == Pattern::IncastOneBurst,
        pfc: pattern != Pattern::IncastWithoutPfc,
        backlog: true,
    };
    let mut setup = bed.set_up::<Mbuf, ()>(spec, pattern.links(rate, frame_len), THEFT_NS, |_| ());
    let mut settling = Figures::default();
    measure(bed, &mut setup, args.time(SETTLE), &mut settling);
    figures.longest_ticks = figures.longest_ticks.max(settling.longest_ticks);
    let (xoffs, stolen) = (setup.io.xoffs, setup.io.watch.stolen);
    let held = |setup: &Setup<Mbuf, ()>| setup.io.links.iter().map(|link| link.held[usize::from(HOT)]).sum::<u64>();
    let held_before = held(&setup);
    measure(bed, &mut setup, args.time(ROUND), figures);
    figures.xoffs += setup.io.xoffs - xoffs;
    figures.stolen += setup.io.watch.stolen - stolen;
    figures.held_ticks += held(&setup) - held_before;
    figures.lossless_drops += setup.lossless_drops();
    figures.missed += setup.io.missed();
    assert_eq!(setup.io.starved, 0, "there are as many buffers as cells");
    setup.tear_down(bed);
}

/// The results of one frame length.
struct Incast {
    frame_len: usize,
    core_pps: f64,
    rate: BitRate,
    figures: [Figures; PATTERNS.len()],
}

/// Measures the patterns in turn, so that changes of the machine affect all of them.
fn incast(bed: &Bed, args: Args, frame_len: usize) -> Incast {
    let mut figures: [Figures; PATTERNS.len()] = Default::default();
    let core_pps = calibrate(bed, PORTS, frame_len, args.rounds(7), 100_000_000);
    let rate = rate_of(frame_len, core_pps);
    for _ in 0..args.rounds(ROUNDS) {
        for (&(pattern, _), figures) in PATTERNS.iter().zip(&mut figures) {
            round(bed, args, pattern, rate, frame_len, figures);
        }
    }
    Incast { frame_len, core_pps, rate, figures }
}

impl Incast {
    fn rows(&self, hz: u64) -> impl Iterator<Item = Vec<String>> + '_ {
        PATTERNS.iter().zip(&self.figures).map(move |((_, name), figures)| {
            let per_frame = |which: usize| figures.of(|window| window.per_frame()[which]);
            let held_share = figures.held_ticks as f64 / hz as f64 / figures.seconds / (PORTS - 1) as f64;
            vec![
                format!("{} B, {name}", self.frame_len),
                format!("{:.2} M", figures.pps(hz) / 1e6),
                format!("{:.0} %", figures.pps(hz) / self.core_pps * 100.0),
                format!("{:.0}", per_frame(0)),
                format!("{:.0}", per_frame(1)),
                format!("{:.1} %", figures.idle_share() * 100.0),
                format!("{:.2}", figures.of(|window| window.ticks as f64 / window.polls as f64) * 1e6 / hz as f64),
                format!("{:.0}", median(figures.held_frames.iter().copied())),
                format!("{:.2}", median(figures.queue_bytes.iter().copied()) / 1e6),
                format!("{:.0}", figures.xoffs as f64 / figures.seconds),
                format!("{:.0} %", held_share * 100.0),
                figures.lossless_drops.to_string(),
                figures.missed.to_string(),
                micros(figures.longest_ticks as f64 * 1e9 / hz as f64),
            ]
        })
    }

    /// Checks that no frame is lost while senders obey PFC and polls are within the poll gap of the headroom.
    fn check(&self, hz: u64) {
        for ((pattern, name), figures) in PATTERNS.iter().zip(&self.figures) {
            let lost = figures.lossless_drops + figures.missed;
            let longest_ns = figures.longest_ticks as f64 * 1e9 / hz as f64;
            if *pattern == Pattern::IncastWithoutPfc || lost == 0 {
                continue;
            }
            let what =
                format!("{} B, {name}: {lost} frames lost, polls up to {} us", self.frame_len, micros(longest_ns));
            assert!(longest_ns > POLL_GAP_NS as f64, "{what}");
            eprintln!("{what}: this core is too slow for the headroom of {POLL_GAP_NS} ns");
        }
    }

    fn json(&self, hz: u64) -> Value {
        let pattern = |((_, name), figures): (&(Pattern, &str), &Figures)| {
            let [cycles, switch_cycles] = [0, 1].map(|which| figures.of(|window| window.per_frame()[which]));
            json!({
                "pattern": name,
                "frames_per_second": figures.pps(hz),
                "of_uncongested": figures.pps(hz) / self.core_pps,
                "cycles_per_frame": cycles,
                "switch_cycles_per_frame": switch_cycles,
                "idle_share": figures.idle_share(),
                "standing_frames": median(figures.held_frames.iter().copied()),
                "standing_bytes": median(figures.queue_bytes.iter().copied()),
                "xoffs_per_second": figures.xoffs as f64 / figures.seconds,
                "lossless_drops": figures.lossless_drops,
                "missed": figures.missed,
                "longest_poll_ns": figures.longest_ticks as f64 * 1e9 / hz as f64,
                "stolen_share": figures.stolen as f64 / hz as f64 / figures.seconds,
            })
        };
        let patterns: Vec<Value> = PATTERNS.iter().zip(&self.figures).map(pattern).collect();
        json!({"frame_bytes": self.frame_len, "core_frames_per_second": self.core_pps,
               "port_bits_per_second": self.rate.0, "patterns": patterns})
    }
}

fn draw(hz: u64, incasts: &[Incast], neighbours: &[Neighbours]) {
    let labels: Vec<String> = incasts.iter().map(|incast| format!("{} B", incast.frame_len)).collect();
    let series = PATTERNS.iter().enumerate().map(|(index, (_, name))| {
        let pps = incasts.iter().map(|incast| incast.figures[index].pps(hz) / 1e6);
        ((*name).to_owned(), pps.collect::<Vec<f64>>())
    });
    let series: Vec<(String, Vec<f64>)> = series.collect();
    write_plot("incast", &bars("One core, switch and peers", "million frames forwarded a second", &labels, &series));
    let panels: Vec<_> = neighbours.iter().map(Neighbours::panel).collect();
    let subtitle = "solid: beside an incast; dashed: without it; undisturbed samples; one core, switch and peers";
    write_plot("latency", &distributions("Latency of who has no part in it", subtitle, hz, &panels));
}

fn main() {
    let args = Args::parse();
    let bed = Bed::new(args.small_pages);
    let incasts: Vec<Incast> = FRAMES.iter().map(|&frame_len| incast(&bed, args, frame_len)).collect();
    let mut section = Section::new(
        "Incast (frames forwarded a second; cycles a frame)",
        &[
            "case",
            "forwarded",
            "of uncongested",
            "cycles",
            "of the switch",
            "idle",
            "us a poll",
            "standing frames",
            "standing MB",
            "XOFF/s",
            "senders held",
            "lossless drops",
            "missed",
            "longest poll, us",
        ],
    );
    incasts.iter().flat_map(|incast| incast.rows(bed.hz)).for_each(|row| section.row(row));
    section.print(args);

    let cases = [&incasts[0], &incasts[FRAMES.len() - 1]];
    let neighbours: Vec<Neighbours> =
        cases.iter().map(|incast| neighbours(&bed, args, incast.frame_len, incast.core_pps)).collect();
    let columns = [
        "links",
        "probe",
        "congested",
        "samples",
        "p50",
        "p99",
        "p99.9",
        "max",
        "undisturbed",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    let mut section = Section::new("Latency (us)", &columns);
    neighbours.iter().flat_map(|neighbours| neighbours.rows(bed.hz)).for_each(|row| section.row(row));
    section.print(args);
    let columns =
        ["links", "probe", "p99", "machine alone", "beside an incast: p99", "machine alone", "ratio of the rest"];
    let mut section = Section::new("Latency, all samples, and the machine (us)", &columns);
    neighbours.iter().flat_map(|neighbours| neighbours.p99_rows(bed.hz)).for_each(|row| section.row(row));
    section.print(args);

    if args.json {
        let incast: Vec<Value> = incasts.iter().map(|incast| incast.json(bed.hz)).collect();
        let latency: Vec<Value> = neighbours.iter().map(|neighbours| neighbours.json(bed.hz)).collect();
        write_json("load", &json!({"theft_ns": THEFT_NS, "incast": incast, "latency": latency}));
    }
    if args.plots {
        draw(bed.hz, &incasts, &neighbours);
    }
    incasts.iter().for_each(|incast| incast.check(bed.hz));
}
