//! Measures the reactions that decide losslessness, with every port saturated. One is the time from the frame that
//! crosses a threshold to the PFC frame that announces it. Another is the time from a received PFC frame to the last
//! frame of its class. The third is the lateness of polls.
//!
//! `cargo bench --bench reaction -- [--quick] [--json] [--markdown] [--plots] [--small-pages]`. Definitions:
//! docs/performance.md.

#[path = "../rig/mod.rs"]
mod rig;
mod tables;

use std::time::Duration;

use holdfast::headroom::{HeadroomInput, LEFT_BEHIND, SmallPackets};
use holdfast::plan::SwitchSpec;
use holdfast::units::{BitRate, Bytes, Length, Nanos, Ticks};
use rig::{
    Args, Bed, BedSpec, Flow, LinkSpec, Machine, POLL_GAP_NS, PeriodicPause, Reaction, Samples, Setup, Shadow, Stamped,
    Watch, calibrate, micros, rate_of, write_json, write_plot,
};
use tables::{picture, table_of_looks, table_of_machine, table_of_runs, table_of_samples, table_of_terms, to_json};

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
/// After each slice of a run, the core only reads the clock for a sixteenth of that time.
const SLICE: Duration = Duration::from_millis(50);
const MACHINE_PART: u64 = 16;

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
            let pause = PeriodicPause { class: HOT, period_ns: 100_000, held_ns: 10_000 };
            return LinkSpec { pause: Some(pause), ..spec.sending(&flows) };
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
    /// The machine alone, in slices of the same run.
    machine: Machine,
    reaction: Reaction,
}

fn run(bed: &Bed, args: Args, case: Case) -> Outcome {
    let Case { ports, frame_len, .. } = case;
    let core_pps = calibrate(bed, ports, frame_len, args.rounds(7), 100_000_000);
    let share = share(bed, args, case, core_pps);
    let (mut setup, rate) = set_up(bed, case, core_pps * share);
    poll_for(bed, &mut setup, args.time(SETTLE));
    setup.io.observer.measuring = true;
    let (before, polls_before) = (setup.io.sent_frames(), setup.io.observer.polls);
    let mut machine = Machine::new(THEFT_NS, bed.hz);
    let Polled { ticks, moved, idle } = poll_in_slices(bed, &mut setup, args.time(RUN), &mut machine);
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
        seconds: ticks as f64 / bed.hz as f64,
        core_pps,
        forwarded,
        idle_share: idle as f64 / ticks as f64,
        frames_per_poll: moved as f64 / (reaction.polls - polls_before) as f64,
        ring_highest,
        headroom_highest,
        lossless_drops,
        lossy_drops,
        missed,
        surprises,
        run: watch,
        machine,
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

/// Polls for `time` in all, and lets `machine` observe the core after each slice.
fn poll_in_slices(bed: &Bed, setup: &mut Setup<Stamped, Reaction>, time: Duration, machine: &mut Machine) -> Polled {
    let slices = (time.as_nanos() / SLICE.as_nanos()).max(1);
    let mut sums = Polled { ticks: 0, moved: 0, idle: 0 };
    for _ in 0..slices {
        let Polled { ticks, moved, idle } = poll_for(bed, setup, SLICE);
        sums = Polled { ticks: sums.ticks + ticks, moved: sums.moved + moved, idle: sums.idle + idle };
        machine.observe(bed.ticks(SLICE.as_nanos() as u64) / MACHINE_PART, &mut setup.io.watch);
    }
    sums
}

/// Sums of polls.
struct Polled {
    ticks: u64,
    moved: u64,
    /// Ticks of polls that moved nothing.
    idle: u64,
}

/// Polls for `time`.
fn poll_for(bed: &Bed, setup: &mut Setup<Stamped, Reaction>, time: Duration) -> Polled {
    let ticks = bed.ticks(time.as_nanos() as u64);
    let start = setup.io.watch.look();
    let (mut moved, mut idle, mut was_idle, mut last) = (0, 0, false, start);
    loop {
        let now = setup.io.watch.look();
        idle += if was_idle { now - last } else { 0 };
        if now - start >= ticks {
            return Polled { ticks: now - start, moved, idle };
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

    /// Seconds for which the machine alone was observed.
    fn machine_seconds(&self) -> f64 {
        self.machine.ticks as f64 / self.hz as f64
    }

    /// Ticks by which the machine alone delays one of 1,000 jobs as long as the median from a threshold to its XOFF.
    fn machine_delay(&self) -> u64 {
        self.machine.delay(0.999, self.reaction.times.xoff.all.quantile(0.5))
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
            other_rings: 0,
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

fn main() {
    let args = Args::parse();
    let bed = Bed::new(args.small_pages);
    let outcomes: Vec<Outcome> = CASES.iter().map(|&case| run(&bed, args, case)).collect();
    table_of_runs(&outcomes).print(args);
    table_of_samples("Reactions", &outcomes, |outcome| outcome.reactions().to_vec()).print(args);
    table_of_samples("Gaps", &outcomes, |outcome| outcome.gaps().to_vec()).print(args);
    table_of_terms(&outcomes).print(args);
    table_of_machine(&outcomes).print(args);
    table_of_looks(&outcomes).print(args);
    if args.json {
        write_json("reaction", &to_json(&outcomes));
    }
    if args.plots {
        write_plot("reaction", &picture(&outcomes));
    }
    outcomes.iter().for_each(Outcome::check);
}
