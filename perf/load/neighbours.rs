//! Latency beside an incast, of frames that have no part in it.

use std::time::Duration;

use holdfast::units::{BitRate, Ticks};
use serde_json::{Value, json};

use super::{HOT, PORTS, SETTLE, SINK, THEFT_NS};
use crate::rig::{
    Args, Arrival, Bed, BedSpec, Curve, Flow, LinkSpec, Machine, Observer, Parcel, Probe, Samples, Setup, Stamped,
    Watch, micros, rate_of,
};

const PROBING: Duration = Duration::from_secs(10);
/// Probes of the sender [`PROBER`]: class, egress port, name. They are flows 1 and up; flow 0 is the common load.
const PROBES: [(u8, usize, &str); 3] = [
    (0, SINK, "weighted class, same port"),
    (6, SINK, "strict class, same port"),
    (0, 2, "weighted class, other port"),
];
/// The port at which the probes arrive.
const PROBER: usize = 1;
/// Mean time between two frames of each probe, in nanoseconds.
const PROBE_PERIOD_NS: u64 = 20_000;
/// Slices of a run. The machine is observed after each, for a part of its time.
const SLICES: u32 = 64;
const MACHINE_PART: u64 = 16;

/// Latency of probes, from the time at which they could be received until they were handed out.
#[derive(Default)]
struct Latency {
    probes: [Samples; PROBES.len()],
    measuring: bool,
}

impl Observer for Latency {
    #[inline]
    fn sent(&mut self, _: usize, arrival: Arrival, _: Flow, [now, _]: [u64; 2], watch: &Watch) {
        if arrival.flow() > 0 && self.measuring {
            let is_undisturbed = watch.undisturbed_since(arrival.at());
            self.probes[arrival.flow() - 1].record(now.saturating_sub(arrival.at()), is_undisturbed);
        }
    }
}

/// Latency of probes, and the machine in the same seconds.
struct Probed {
    latency: Latency,
    machine: Machine,
}

impl Probed {
    /// The p99 of a probe, and the part of it that the machine alone adds to one of 100 jobs of the median, in ticks.
    fn p99(&self, probe: usize) -> [u64; 2] {
        let all = &self.latency.probes[probe].all;
        [all.quantile(0.99), self.machine.delay(0.99, all.quantile(0.5))]
    }
}

/// Sends probes while three senders fill `load` percent of their links, all to the same port. After each slice, the
/// core only reads the clock for a sixteenth of that time.
fn probe(bed: &Bed, args: Args, frame_len: usize, rate: BitRate, load: u64) -> Probed {
    let link = |port: usize| {
        let spec = LinkSpec { load, ..LinkSpec::new(rate, frame_len) };
        let hot = Flow::new(HOT, SINK);
        match port {
            SINK => spec,
            PROBER => {
                let flows = std::iter::once(hot).chain(PROBES.map(|(class, to, _)| Flow::new(class, to))).collect();
                let probes = (1..=PROBES.len() as u8).map(|flow| Probe { flow, period_ns: PROBE_PERIOD_NS }).collect();
                LinkSpec { flows, pattern: vec![0], probes, ..spec }
            }
            _ => spec.sending(&[hot]),
        }
    };
    let spec = BedSpec { ports: PORTS, rate, paced: true, one_burst: false, pfc: true, backlog: true };
    let links = (0..PORTS).map(link).collect();
    let mut setup = bed.set_up::<Stamped, Latency>(spec, links, THEFT_NS, |_| Latency::default());
    poll_for(bed, &mut setup, args.time(SETTLE));
    setup.io.observer.measuring = true;
    let (slice, mut machine) = (args.time(PROBING) / SLICES, Machine::new(THEFT_NS, bed.hz));
    for _ in 0..SLICES {
        poll_for(bed, &mut setup, slice);
        machine.observe(bed.ticks(slice.as_nanos() as u64) / MACHINE_PART, &mut setup.io.watch);
    }
    setup.io.observer.measuring = false;
    let lost = setup.lossless_drops() + setup.io.missed();
    if lost > 0 {
        eprintln!("{frame_len} B, probes: {lost} frames lost: polls were later than headroom was told");
    }
    Probed { latency: setup.tear_down(bed), machine }
}

fn poll_for<K: Parcel, O: Observer>(bed: &Bed, setup: &mut Setup<K, O>, time: Duration) {
    let start = setup.io.watch.look();
    let mut now = start;
    while now - start < bed.ticks(time.as_nanos() as u64) {
        setup.pipeline.poll(&mut setup.io, &mut setup.scratch, Ticks(now));
        now = setup.io.watch.look();
    }
}

/// Latency of probes without and with congestion.
pub struct Neighbours {
    name: String,
    quiet: Probed,
    congested: Probed,
}

/// Measures probes on links with a fifth of the core's capacity each, so that the core limits neither run.
pub fn neighbours(bed: &Bed, args: Args, frame_len: usize, core_pps: f64) -> Neighbours {
    let rate = rate_of(frame_len, core_pps / 5.0);
    let [quiet, congested] = [30, 100].map(|load| probe(bed, args, frame_len, rate, load));
    Neighbours { name: format!("{frame_len} B at {:.2} Gb/s", rate.0 as f64 / 1e9), quiet, congested }
}

impl Neighbours {
    pub fn rows(&self, hz: u64) -> impl Iterator<Item = Vec<String>> + '_ {
        let both = [("no", &self.quiet), ("yes", &self.congested)];
        (0..PROBES.len()).flat_map(move |probe| {
            both.map(|(congested, probed)| {
                let samples = &probed.latency.probes[probe];
                let share = samples.undisturbed.count() as f64 / samples.all.count().max(1) as f64;
                let head = [
                    self.name.clone(),
                    PROBES[probe].2.to_owned(),
                    congested.to_owned(),
                    samples.all.count().to_string(),
                ];
                let cells = head.into_iter().chain(samples.all.micros(hz)).chain([format!("{:.2} %", share * 100.0)]);
                cells.chain(samples.undisturbed.micros(hz)).collect()
            })
        })
    }

    /// The p99 of each probe without and with congestion, what the machine adds, and the ratio without that.
    pub fn p99_rows(&self, hz: u64) -> impl Iterator<Item = Vec<String>> + '_ {
        let us = move |ticks: u64| micros(ticks as f64 * 1e9 / hz as f64);
        PROBES.iter().enumerate().map(move |(probe, (_, _, name))| {
            let [quiet, congested] = [&self.quiet, &self.congested].map(|probed| probed.p99(probe));
            let [before, beside] = [quiet, congested].map(|[p99, machine]| p99.saturating_sub(machine));
            let ratio = format!("{:.2}", beside as f64 / before.max(1) as f64);
            let times = quiet.into_iter().chain(congested).map(us);
            [self.name.clone(), (*name).to_owned()].into_iter().chain(times).chain([ratio]).collect()
        })
    }

    pub fn panel(&self) -> (String, Vec<Curve<'_>>) {
        let curves = PROBES.iter().enumerate().flat_map(|(probe, (_, _, name))| {
            let [congested, quiet] =
                [&self.congested, &self.quiet].map(|probed| &probed.latency.probes[probe].undisturbed);
            [
                Curve { name: (*name).to_owned(), values: congested, dashed: false },
                Curve { name: "uncongested".to_owned(), values: quiet, dashed: true },
            ]
        });
        (self.name.clone(), curves.collect())
    }

    pub fn json(&self, hz: u64) -> Value {
        let probes = |latency: &Latency| -> serde_json::Map<String, Value> {
            let samples = latency.probes.iter().zip(PROBES);
            let json =
                |samples: &Samples| json!({"all": samples.all.json(hz), "undisturbed": samples.undisturbed.json(hz)});
            samples.map(|(samples, probe)| (probe.2.to_owned(), json(samples))).collect()
        };
        json!({"case": self.name, "uncongested": probes(&self.quiet.latency),
               "congested": probes(&self.congested.latency)})
    }
}
