//! A switch to be measured: DPDK, buffers, a configuration, a pipeline, its counters.

use std::sync::Arc;

use holdfast::config;
use holdfast::dataplane::{Counters, Pipeline, SwitchSpec};
use holdfast::dpdk::{self, Eal, EalOptions, Mbuf, Memory, Mempool};
use holdfast::packet::{Burst, Packet};
use holdfast::qos::shaper::{MIN_FRAME, WIRE_OVERHEAD};
use holdfast::sets::CLASSES;
use holdfast::units::{BitRate, Nanos, Ticks};

use super::frames::{Parcel, STATIONS, mac};
use super::{Flow, Generator, Link, LinkSpec, Observer, Watch};

/// The switch to be measured.
#[derive(Debug, Clone, Copy)]
pub struct BedSpec {
    /// How many ports.
    pub ports: usize,
    /// The rate of each, which headroom and PFC go by.
    pub rate: BitRate,
    /// Whether it is paced to that, or so fast that pacing never binds.
    pub paced: bool,
    /// Whether a poll takes one burst of a port at most, and not what can have come in the poll gap.
    pub one_burst: bool,
    /// Whether it sends PFC frames.
    pub pfc: bool,
    /// Whether a receive ring that fills makes it do so.
    pub backlog: bool,
}

impl BedSpec {
    /// The preset `roce`, on 5 m of cable, in the default buffer, or in twice that where its headroom needs it.
    fn config(&self) -> SwitchSpec {
        let pfc = if self.pfc { "software" } else { "\"off\"" };
        let kilobits = self.rate.0 / 1000;
        let port =
            |n: usize| format!("  - {{name: p{n}, device: net_null{n}, speed: {kilobits}k, cable: 5m, pfc: {pfc}}}\n");
        let ports: String = (1..=self.ports).map(port).collect();
        let parse = |size: usize| {
            let text = format!("preset: roce\nports:\n{ports}buffer: {{size: {size}MiB}}\nmetrics: \"off\"\n");
            config::parse("rig", &text)
        };
        let config = parse(BUFFER_MIB).or_else(|_| parse(2 * BUFFER_MIB));
        let mut spec = config.unwrap_or_else(|errors| panic!("{errors}")).switch;
        spec.fdb.capacity = spec.fdb.capacity.max(2 * self.ports as u32 * STATIONS);
        if self.one_burst {
            spec.poll_gap = Nanos(0);
        }
        for port in spec.ports.iter_mut().filter(|_| !self.paced) {
            port.rate = BitRate(1_000_000_000_000);
        }
        for port in spec.ports.iter_mut().filter(|_| !self.backlog) {
            port.backlog_mark = None;
        }
        spec
    }
}

/// What a configuration has unless it says otherwise.
pub const POLL_GAP_NS: u64 = 20_000;
const BUFFER_MIB: usize = 12;
/// Buffers: as many as the buffer has cells, and what is in flight.
const MBUFS: u32 = ((2 * BUFFER_MIB) << 20) as u32 / 208 + 4096;
/// Bytes of each, as `holdfast run` has it for an MTU of 1500.
const DATA_ROOM: u16 = 2048 + 128;
/// Two looks at the clock that are further apart do not count when the core's speed is measured.
const CALIBRATION_THEFT_NS: u64 = 20_000;
const MEMORY_MIB: u32 = 620;
/// The same in hugepages.
const HUGEPAGES: u32 = MEMORY_MIB / 2;

fn free_hugepages() -> u32 {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// What is there once, for all switches of a run.
pub struct Bed {
    eal: Eal,
    data: Mempool,
    control: Mempool,
    /// Ticks a second.
    pub hz: u64,
}

/// A switch and its peers.
pub struct Setup<K: Parcel, O> {
    /// The switch.
    pub pipeline: Pipeline<K>,
    /// Its ports.
    pub io: Generator<K, O>,
    /// What it counts.
    pub counters: Arc<Counters>,
    /// What it was made from.
    pub spec: SwitchSpec,
}

impl Bed {
    /// Starts DPDK, with hugepages if enough are free, as a NIC's buffers are in; on ordinary pages that takes neither privilege
    /// nor preparation, and the core has a page or two to look up for each frame that has waited. Says which it is; `small_pages`
    /// asks for the latter.
    ///
    /// # Panics
    /// If that fails.
    pub fn new(small_pages: bool) -> Self {
        let is_huge = !small_pages && free_hugepages() >= HUGEPAGES;
        let memory = if is_huge { Memory::Huge { mib: Some(MEMORY_MIB) } } else { Memory::NoHuge { mib: MEMORY_MIB } };
        let small = format!("small pages: said so, or no {HUGEPAGES} hugepages of 2 MiB are free");
        println!("{}\n", if is_huge { "hugepages of 2 MiB" } else { &small });
        let options = EalOptions { memory, ..EalOptions::default() };
        let eal = Eal::init(&options).unwrap_or_else(|error| panic!("{error}"));
        let pool = |name, count, room| {
            Mempool::create(&eal, name, count, room, 256, None).unwrap_or_else(|error| panic!("{error}"))
        };
        let (data, control) = (pool("data", MBUFS, DATA_ROOM), pool("control", 1024, 256));
        let hz = dpdk::hz(&eal);
        Self { eal, data, control, hz }
    }

    /// Ticks of a time.
    pub fn ticks(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.hz) / 1_000_000_000) as u64
    }

    /// A switch whose peers are `links`, all stations learned. Times of more than `theft_ns` between two looks at the clock
    /// are thefts.
    pub fn set_up<K: Parcel, O: Observer>(
        &self,
        spec: BedSpec,
        links: Vec<LinkSpec>,
        theft_ns: u64,
        observer: impl FnOnce(&SwitchSpec) -> O,
    ) -> Setup<K, O> {
        let switch = spec.config();
        let observer = observer(&switch);
        let counters = Arc::new(Counters::new(spec.ports, 1));
        let mut pipeline = Pipeline::new(&switch, counters.clone(), self.hz, 1);
        for port in 0..spec.ports {
            for station in 0..STATIONS {
                pipeline.learn(1, mac(port, station), port, dpdk::now());
            }
        }
        let frame = vec![0; links[0].frame_len];
        let idle: Vec<Mbuf> = std::iter::from_fn(|| self.data.alloc_with(&frame)).collect();
        let now = dpdk::now().0;
        let links = links.into_iter().enumerate().map(|(port, link)| Link::new(port, link, self.hz, now)).collect();
        let watch = Watch::new(theft_ns, self.hz);
        Setup {
            pipeline,
            io: Generator::new(links, idle, self.control.clone(), watch, observer),
            counters,
            spec: switch,
        }
    }
}

impl<K: Parcel, O: Observer> Setup<K, O> {
    /// Frames of lossless classes that were lost: by drops of any reason, and in receive rings if `links` obey.
    pub fn lossless_drops(&self) -> u64 {
        let lossless = self.spec.lossless_groups();
        self.drops(|class| class < CLASSES && lossless >> class & 1 == 1)
    }

    /// Frames dropped of the classes that `counts` names.
    pub fn drops(&self, counts: impl Fn(usize) -> bool) -> u64 {
        let rows = self.counters.ports.iter().flat_map(|port| port.drops.iter().enumerate());
        rows.filter(|(class, _)| counts(*class)).flat_map(|(_, row)| row).map(|drop| drop.get()).sum()
    }

    /// Ends the switch and gives all buffers back, none missing. What looked on goes on.
    ///
    /// # Panics
    /// If a cell or a buffer is missing: a switch that leaks is not worth measuring.
    pub fn tear_down(mut self, bed: &Bed) -> O {
        self.pipeline.shutdown(&mut self.io, dpdk::now());
        assert_eq!((self.pipeline.held_cells(), self.pipeline.held_frames()), (0, 0), "an idle switch holds nothing");
        let (idle, observer) = self.io.into_parts();
        let mut burst: Burst<Mbuf> = Burst::new();
        for mbuf in idle {
            if burst.is_full() {
                Mbuf::free_all(&mut burst);
            }
            burst.push(mbuf);
        }
        Mbuf::free_all(&mut burst);
        assert_eq!((bed.data.in_use(), bed.control.in_use()), (0, 0), "every buffer comes back");
        observer
    }
}

/// Frames a second that the core switches, uncongested, of `frame_len` bytes on `ports` ports, with peers that keep a
/// schedule: each offers more than there is time for, to the next. The median of `rounds` of `round_ns`, without stolen time.
pub fn calibrate(bed: &Bed, ports: usize, frame_len: usize, rounds: usize, round_ns: u64) -> f64 {
    // First what the core can at most, to know what is more than it can.
    let most = capacity(bed, ports, frame_len, BitRate(100_000_000_000), true, 3, round_ns / 2);
    capacity(bed, ports, frame_len, rate_of(frame_len, most / ports as f64 * 1.1), false, rounds, round_ns)
}

/// The rate of a link on which `pps` frames of `frame_len` bytes fit in a second.
pub fn rate_of(frame_len: usize, pps: f64) -> BitRate {
    let bits = ((frame_len as u32).max(MIN_FRAME) + WIRE_OVERHEAD) * 8;
    // Whole kilobits, as the configuration is told.
    BitRate((pps * f64::from(bits) / 1e3) as u64 * 1000)
}

fn capacity(
    bed: &Bed,
    ports: usize,
    frame_len: usize,
    rate: BitRate,
    greedy: bool,
    rounds: usize,
    round_ns: u64,
) -> f64 {
    let link = |port: usize| LinkSpec {
        greedy,
        ..LinkSpec::new(rate, frame_len).sending(&[Flow::new(3, (port + 1) % ports)])
    };
    // A poll that takes longer than pacing has slack for would cost throughput, and say nothing of the core.
    let spec = BedSpec { ports, rate, paced: false, one_burst: true, pfc: false, backlog: false };
    let mut setup = bed.set_up::<Mbuf, ()>(spec, (0..ports).map(link).collect(), CALIBRATION_THEFT_NS, |_| ());
    let mut round = || {
        let (start, before, stolen) = (dpdk::now().0, setup.io.sent_frames(), setup.io.watch.stolen);
        let mut now = start;
        while now - start < bed.ticks(round_ns) {
            setup.pipeline.poll(&mut setup.io, Ticks(now));
            now = setup.io.watch.look();
        }
        let ticks = (now - start).saturating_sub(setup.io.watch.stolen - stolen).max(1);
        (setup.io.sent_frames() - before) as f64 * bed.hz as f64 / ticks as f64
    };
    let mut figures: Vec<f64> = (0..rounds).map(|_| round()).collect();
    setup.tear_down(bed);
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
