//! Measures the reactions that decide losslessness, with every port saturated. One is the time from the frame that
//! crosses a threshold to the PFC frame that announces it. Another is the time from a received PFC frame to the last
//! frame of its class. The third is the lateness of polls.
//!
//! `cargo bench --bench reaction -- [--quick] [--json] [--markdown] [--plots] [--small-pages]`. Definitions:
//! docs/performance-reaction.md.

#[path = "rig/mod.rs"]
mod rig;

use std::time::Duration;

use holdfast::dataplane::SwitchSpec;
use holdfast::dpdk;
use holdfast::headroom::{HeadroomInput, LEFT_BEHIND, SmallPackets, headroom};
use holdfast::units::{BitRate, Bytes, Length, Nanos, Ticks};
use rig::{
    Args, Bed, BedSpec, Curve, Flow, Histogram, LinkSpec, POLL_GAP_NS, Reaction, Samples, Section, Setup, Shadow,
    Stamped, Storm, Watch, calibrate, control, distributions, micros, rate_of, write_json, write_plot,
};
use serde_json::{Value, json};

/// The lossless class that all other ports send to the first port.
const HOT: u8 = 3;
/// The congested port.
const SINK: usize = 0;
/// A gap between two readings of the clock longer than this is a theft. Runs have no more such gaps than a core that
/// only reads the clock. Shorter gaps include bursts in which every frame is cold.
const THEFT_NS: u64 = 10_000;
const RUN: Duration = Duration::from_secs(8);
const SETTLE: Duration = Duration::from_millis(200);
/// Time of a trial that shows whether a load is too high. Queues fill meanwhile.
const TRIAL: Duration = Duration::from_millis(500);
const CONTROL: Duration = Duration::from_millis(500);

/// The cases: number of ports, bytes per frame, and load relative to the core's capacity.
const CASES: [Case; 5] = [
    Case { ports: 4, frame_len: 1500, load: Load::Full },
    Case { ports: 8, frame_len: 1500, load: Load::Full },
    Case { ports: 4, frame_len: 64, load: Load::Full },
    Case { ports: 8, frame_len: 64, load: Load::Full },
    Case { ports: 4, frame_len: 64, load: Load::Over },
];

#[derive(Debug, Clone, Copy)]
struct Case {
    ports: usize,
    frame_len: usize,
    load: Load,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Every link is full, and one port is congested. The rate of the links is within the core's capacity.
    Full,
    /// Half as much again as the core's capacity, all lossless. No port is congested: receive rings cause XOFF.
    Over,
}

/// The load of [`Load::Over`], relative to the core's capacity.
const OVER: f64 = 1.5;
/// Most frames that wait in a receive ring while the core keeps up.
const SHORT_RING: usize = 256;
/// The share of the largest such load that is measured.
const MARGIN: f64 = 0.8;

/// The peers. With [`Load::Full`], all others send class 3 to the first port, and class 0 to the next port but the
/// first. So a link whose class 3 is paused is full of class 0. The first port's peer sends class 0 to all others, and
/// pauses class 3 from time to time.
fn links(case: Case, rate: BitRate) -> Vec<LinkSpec> {
    let ports = case.ports;
    let link = |port: usize| {
        let spec = LinkSpec::new(rate, case.frame_len);
        if case.load == Load::Over {
            return spec.sending(&[Flow::new(HOT, (port + 1) % ports)]);
        }
        if port == SINK {
            let flows: Vec<Flow> = (1..ports).map(|to| Flow::new(0, to)).collect();
            let storm = Storm { class: HOT, period_ns: 100_000, held_ns: 10_000 };
            return LinkSpec { storm: Some(storm), ..spec.sending(&flows) };
        }
        spec.sending(&[Flow::new(HOT, SINK), Flow::new(0, 1 + port % (ports - 1))])
    };
    (0..ports).map(link).collect()
}

/// The result of one case.
struct Outcome {
    name: String,
    ports: usize,
    frame_len: usize,
    rate: BitRate,
    hz: u64,
    seconds: f64,
    core_pps: f64,
    forwarded: u64,
    idle_share: f64,
    frames_per_poll: f64,
    ring_highest: usize,
    headroom_highest: Bytes,
    lossless_drops: u64,
    lossy_drops: u64,
    missed: u64,
    surprises: u64,
    run: Watch,
    control: Watch,
    control_seconds: f64,
    reaction: Reaction,
}

fn run(bed: &Bed, args: Args, case: Case) -> Outcome {
    let Case { ports, frame_len, .. } = case;
    let core_pps = calibrate(bed, ports, frame_len, args.rounds(7), 100_000_000);
    let share = share(bed, args, case, core_pps);
    let idle = control(THEFT_NS, bed.hz, bed.ticks(args.time(CONTROL).as_nanos() as u64));
    let (mut setup, rate) = set_up(bed, case, core_pps * share);
    poll_for(bed, &mut setup, args.time(SETTLE));
    setup.io.observer.measuring = true;
    let (before, polls_before) = (setup.io.sent_frames(), setup.io.observer.polls);
    let (seconds, moved, idle_share) = poll_for(bed, &mut setup, args.time(RUN));
    let forwarded = setup.io.sent_frames() - before;
    let cells = setup.counters.ports.iter().map(|port| port.group_headroom_highest_cells[usize::from(HOT)].get());
    let headroom_highest = Bytes(cells.max().unwrap_or(0) * setup.spec.buffer.cell.0);
    let surprises = setup.io.observer.shadow.surprises;
    let (lossless_drops, missed) = (setup.lossless_drops(), setup.io.missed());
    let lossy_drops = setup.drops(|_| true) - lossless_drops;
    let ring_highest = setup.io.links.iter().map(|link| link.highest).max().unwrap_or(0);
    let watch = std::mem::replace(&mut setup.io.watch, Watch::new(THEFT_NS, bed.hz));
    assert_eq!(setup.io.starved, 0, "there are as many buffers as cells");
    let reaction = setup.tear_down(bed);
    Outcome {
        name: format!("{ports} ports, {frame_len} B, {:.0} %", share * 100.0),
        ports,
        frame_len,
        rate,
        hz: bed.hz,
        seconds,
        core_pps,
        forwarded,
        idle_share,
        frames_per_poll: moved as f64 / (reaction.polls - polls_before) as f64,
        ring_highest,
        headroom_highest,
        lossless_drops,
        lossy_drops,
        missed,
        surprises,
        run: watch,
        control: idle,
        control_seconds: args.time(CONTROL).as_secs_f64(),
        reaction,
    }
}

/// The load to offer, relative to the core's uncongested rate. With [`Load::Full`], it is [`MARGIN`] of the largest
/// load, in steps of a tenth, with which receive rings stay short: standing queues cost time that [`calibrate`] does
/// not measure.
fn share(bed: &Bed, args: Args, case: Case, core_pps: f64) -> f64 {
    if case.load == Load::Over {
        return OVER;
    }
    let fits = |share: f64| {
        let (mut setup, _) = set_up(bed, case, core_pps * share);
        poll_for(bed, &mut setup, args.time(TRIAL));
        let highest = setup.io.links.iter().map(|link| link.highest).max().unwrap_or(0);
        setup.tear_down(bed);
        highest <= SHORT_RING
    };
    let mut shares = (2..=10).rev().map(|tenths| f64::from(tenths) / 10.0);
    shares.find(|&share| fits(share)).unwrap_or(0.1) * MARGIN
}

fn set_up(bed: &Bed, case: Case, pps: f64) -> (Setup<Stamped, Reaction>, BitRate) {
    let rate = rate_of(case.frame_len, pps / case.ports as f64);
    let spec = BedSpec { ports: case.ports, rate, paced: true, one_burst: false, pfc: true, backlog: true };
    let observer = |spec: &SwitchSpec| Reaction::new(Shadow::new(spec, HOT, case.frame_len), case.ports, (SINK, HOT));
    (bed.set_up(spec, links(case, rate), THEFT_NS, observer), rate)
}

/// Polls for `time`. Returns the seconds, the frames moved, and the share of the time in polls that moved none.
fn poll_for(bed: &Bed, setup: &mut Setup<Stamped, Reaction>, time: Duration) -> (f64, u64, f64) {
    let ticks = bed.ticks(time.as_nanos() as u64);
    let start = dpdk::now().0;
    let (mut moved, mut idle, mut was_idle, mut last) = (0, 0, false, start);
    loop {
        let now = setup.io.watch.look();
        idle += if was_idle { now - last } else { 0 };
        if now - start >= ticks {
            let ticks = (now - start) as f64;
            return (ticks / bed.hz as f64, moved, idle as f64 / ticks);
        }
        setup.io.observer.begin_poll(now, &setup.io.watch);
        let frames = setup.pipeline.poll(&mut setup.io, &mut setup.scratch, Ticks(now));
        setup.io.observer.shadow.end_poll();
        moved += frames as u64;
        (was_idle, last) = (frames == 0, now);
    }
}

impl Outcome {
    /// The reaction times by name.
    fn reactions(&self) -> [(&'static str, &Samples); 8] {
        let times = &self.reaction.times;
        [
            ("XOFF sent, threshold", &times.xoff),
            ("... since its burst was asked for", &times.handling),
            ("XOFF sent, backlog", &times.backlog_xoff),
            ("XON sent, threshold", &times.xon),
            ("XON sent, backlog", &times.drained_xon),
            ("XOFF received, last frame", &times.stop),
            ("XOFF received, wire silent", &times.silent),
            ("XON received, first frame", &times.resume),
        ]
    }

    fn gaps(&self) -> [(&'static str, &Samples); 5] {
        let (times, last) = (&self.reaction.times, self.ports - 1);
        [
            ("poll, begin to begin", &times.gaps),
            ("first port, visit to visit", &times.visit_gaps[0]),
            ("last port, visit to visit", &times.visit_gaps[last]),
            ("first port, beyond the poll's", &times.beyond[0]),
            ("last port, beyond the poll's", &times.beyond[last]),
        ]
    }

    /// The input with which a configuration would compute the headroom of such a port.
    fn headroom_input(&self) -> HeadroomInput {
        HeadroomInput {
            rate: self.rate,
            cable: Length { mm: 5_000 },
            mtu: 1500,
            poll_gap: Nanos(POLL_GAP_NS),
            posted: HeadroomInput::posted_by_pacing(self.rate, Nanos(POLL_GAP_NS)),
            cell: Bytes(208),
            peer_response: None,
            left: LEFT_BEHIND,
            small_packets: SmallPackets::ALL,
            stops_queues: 0,
        }
    }

    /// Checks that no lossless frame was lost and that the shadow explains each PFC frame; otherwise the results are
    /// worthless. Losslessness holds only for polls within the poll gap of the headroom. Peers stand still during a
    /// theft, so only the rest of a gap counts.
    fn check(&self) {
        assert_eq!(self.surprises, 0, "{}: the shadow and the switch disagree", self.name);
        let lost = self.lossless_drops + self.missed;
        let longest_ns = self.reaction.times.longest_net as f64 * 1e9 / self.hz as f64;
        if lost > 0 && longest_ns > POLL_GAP_NS as f64 {
            eprintln!(
                "{}: {lost} frames lost, with polls {} us late: this core is too slow",
                self.name,
                micros(longest_ns)
            );
            return;
        }
        assert_eq!(lost, 0, "{}: frames of a lossless class were lost", self.name);
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Thefts per second, and their share of the time.
fn thefts(watch: &Watch, seconds: f64, hz: u64) -> [String; 2] {
    [format!("{:.0}", watch.thefts as f64 / seconds), percent(watch.stolen as f64 / hz as f64 / seconds)]
}

fn table_of_runs(outcomes: &[Outcome]) -> Section {
    let columns = [
        "case",
        "port",
        "core can",
        "forwarded",
        "idle",
        "frames a poll",
        "XOFF/s",
        "ring, highest",
        "lossless drops",
        "lossy drops",
        "thefts/s",
        "stolen",
        "control: thefts/s",
        "stolen",
    ];
    let mut section =
        Section::new("What was run (frames a second; idle: of the time, in polls that moved nothing)", &columns);
    for outcome in outcomes {
        let millions = |pps: f64| format!("{:.2} M", pps / 1e6);
        let cells = [
            outcome.name.clone(),
            format!("{:.2} Gb/s", outcome.rate.0 as f64 / 1e9),
            millions(outcome.core_pps),
            millions(outcome.forwarded as f64 / outcome.seconds),
            percent(outcome.idle_share),
            format!("{:.1}", outcome.frames_per_poll),
            format!("{:.0}", outcome.reaction.times.xoffs as f64 / outcome.seconds),
            outcome.ring_highest.to_string(),
            outcome.lossless_drops.to_string(),
            outcome.lossy_drops.to_string(),
        ];
        let run = thefts(&outcome.run, outcome.seconds, outcome.hz);
        let control = thefts(&outcome.control, outcome.control_seconds, outcome.hz);
        section.row(cells.into_iter().chain(run).chain(control));
    }
    section
}

fn table_of_samples<'a>(
    title: &str,
    outcomes: &'a [Outcome],
    rows: impl Fn(&'a Outcome) -> Vec<(&'static str, &'a Samples)>,
) -> Section {
    let columns =
        ["case", "what", "samples", "p50", "p99", "p99.9", "max", "undisturbed", "p50", "p99", "p99.9", "max"];
    let mut section = Section::new(format!("{title} (us)"), &columns);
    for outcome in outcomes {
        for (what, samples) in rows(outcome).into_iter().filter(|row| row.1.all.count() > 0) {
            let cells = [outcome.name.clone(), what.to_owned(), samples.all.count().to_string()];
            let share = samples.undisturbed.count() as f64 / samples.all.count() as f64;
            let cells = cells.into_iter().chain(samples.all.micros(outcome.hz)).chain([percent(share)]);
            section.row(cells.chain(samples.undisturbed.micros(outcome.hz)));
        }
    }
    section
}

/// How often two readings of the clock were further apart than a number of microseconds. If a run and a core that only
/// reads the clock agree, the switch is not the cause.
fn table_of_looks(outcomes: &[Outcome]) -> Section {
    let mut section = Section::new(
        "Looks at the clock further apart than this, a second",
        &["case", "1 us", "2 us", "3 us", "5 us", "10 us", "20 us", "50 us", "100 us"],
    );
    for outcome in outcomes {
        let rows = [(&outcome.run, outcome.seconds, ""), (&outcome.control, outcome.control_seconds, ", control")];
        for (watch, seconds, what) in rows {
            let above = |us: u64| format!("{:.1}", watch.gaps.above(us * outcome.hz / 1_000_000) as f64 / seconds);
            let name = format!("{}{what}", outcome.name);
            section.row(std::iter::once(name).chain([1, 2, 3, 5, 10, 20, 50, 100].map(above)));
        }
    }
    section
}

/// Measured times beside the terms of headroom that depend on this switch, in microseconds.
fn table_of_terms(outcomes: &[Outcome]) -> Section {
    let columns = [
        "case",
        "poll gap: has",
        "XOFF sent, p99.9",
        "max",
        "longest visit gap less thefts",
        "transmit ring: has",
        "ahead of PFC, p99.9",
        "max",
        "both: have",
        "unseen and ahead, p99.9",
        "max",
        "eta",
        "headroom used",
    ];
    let mut section = Section::new("Measured, undisturbed, beside the terms of headroom (us; bytes)", &columns);
    for outcome in outcomes {
        let input = outcome.headroom_input();
        let us = |ticks: u64| micros(ticks as f64 * 1e9 / outcome.hz as f64);
        let times = &outcome.reaction.times;
        let xoff = times.xoff.undisturbed.micros(outcome.hz);
        section.row([
            outcome.name.clone(),
            micros(input.poll_gap.0 as f64),
            xoff[2].clone(),
            xoff[3].clone(),
            us(times.longest_net),
            micros(input.posted.0 as f64 * 8e9 / outcome.rate.0 as f64),
            us(times.ahead.quantile(0.999)),
            us(times.ahead.highest()),
            micros(input.poll_gap.0 as f64 + input.posted.0 as f64 * 8e9 / outcome.rate.0 as f64),
            us(times.unheard.undisturbed.quantile(0.999)),
            us(times.unheard.undisturbed.highest()),
            headroom(&input).total.to_string(),
            outcome.headroom_highest.to_string(),
        ]);
    }
    section
}

fn to_json(outcomes: &[Outcome]) -> Value {
    let samples =
        |samples: &Samples, hz| json!({"all": samples.all.json(hz), "undisturbed": samples.undisturbed.json(hz)});
    let case = |outcome: &Outcome| {
        let hz = outcome.hz;
        let named = |rows: Vec<(&'static str, &Samples)>| -> serde_json::Map<String, Value> {
            rows.into_iter().map(|(name, row)| (name.to_owned(), samples(row, hz))).collect()
        };
        json!({
            "case": outcome.name,
            "ports": outcome.ports,
            "frame_bytes": outcome.frame_len,
            "port_bits_per_second": outcome.rate.0,
            "core_frames_per_second": outcome.core_pps,
            "forwarded_frames_per_second": outcome.forwarded as f64 / outcome.seconds,
            "idle_share": outcome.idle_share,
            "xoffs_per_second": outcome.reaction.times.xoffs as f64 / outcome.seconds,
            "lossless_drops": outcome.lossless_drops,
            "lossy_drops": outcome.lossy_drops,
            "ring_highest_frames": outcome.ring_highest,
            "headroom_highest_bytes": outcome.headroom_highest.0,
            "thefts": outcome.run.thefts,
            "stolen_share": outcome.run.stolen as f64 / hz as f64 / outcome.seconds,
            "control_thefts": outcome.control.thefts,
            "control_stolen_share": outcome.control.stolen as f64 / hz as f64 / outcome.control_seconds,
            "looks_apart": outcome.run.gaps.json(hz),
            "reaction": named(outcome.reactions().to_vec()),
            "gaps": named(outcome.gaps().to_vec()),
            "data_ahead_of_pfc": outcome.reaction.times.ahead.json(hz),
            "unseen_and_ahead_of_pfc": samples(&outcome.reaction.times.unheard, hz),
        })
    };
    json!({"theft_ns": THEFT_NS, "cases": outcomes.iter().map(case).collect::<Vec<_>>()})
}

/// Draws a panel for each case: undisturbed samples as solid lines, all samples dashed.
fn picture(outcomes: &[Outcome]) -> String {
    fn curves<'a>(rows: &[(&'static str, &'a Samples)]) -> Vec<Curve<'a>> {
        let pair = |(name, samples): &(&'static str, &'a Samples)| {
            let curve = |name: String, values: &'a Histogram, dashed| Curve { name, values, dashed };
            [curve((*name).to_owned(), &samples.undisturbed, false), curve("all".to_owned(), &samples.all, true)]
        };
        rows.iter().flat_map(pair).collect()
    }
    let panels: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let times = &outcome.reaction.times;
            let rows = [
                ("XOFF sent", &times.xoff),
                ("XOFF received to last frame", &times.stop),
                ("XON sent", &times.xon),
                ("poll gap", &times.gaps),
            ];
            (outcome.name.clone(), curves(&rows))
        })
        .collect();
    let subtitle = "solid: nobody took the core away meanwhile; dashed: all; one core, switch and peers";
    distributions("Reaction of a saturated switch", subtitle, outcomes[0].hz, &panels)
}

fn main() {
    let args = Args::parse();
    let bed = Bed::new(args.small_pages);
    let outcomes: Vec<Outcome> = CASES.iter().map(|&case| run(&bed, args, case)).collect();
    table_of_runs(&outcomes).print(args);
    table_of_samples("Reactions", &outcomes, |outcome| outcome.reactions().to_vec()).print(args);
    table_of_samples("Gaps", &outcomes, |outcome| outcome.gaps().to_vec()).print(args);
    table_of_terms(&outcomes).print(args);
    table_of_looks(&outcomes).print(args);
    if args.json {
        write_json("reaction", &to_json(&outcomes));
    }
    if args.plots {
        write_plot("reaction", &picture(&outcomes));
    }
    outcomes.iter().for_each(Outcome::check);
}
