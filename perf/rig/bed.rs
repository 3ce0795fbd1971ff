//! The switch that is measured: DPDK, buffers, a configuration, a pipeline and its counters.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use holdfast::config;
use holdfast::dataplane::Pipeline;
use holdfast::dpdk::{self, Eal, EalOptions, Mbuf, Memory, Mempool};
use holdfast::io::{Burst, Packet};
use holdfast::plan::{Counters, SwitchSpec};
use holdfast::qos::shaper::MIN_FRAME;
use holdfast::sets::CLASSES;
use holdfast::units::{BitRate, Nanos, Ticks, WIRE_OVERHEAD};

use super::frames::{Parcel, STATIONS, mac};
use super::{Flow, Generator, Link, LinkSpec, Observer, Watch};

/// The settings of the switch that is measured.
#[derive(Debug, Clone, Copy)]
pub struct BedSpec {
    /// Number of ports.
    pub ports: usize,
    /// Rate of each port, from which headroom and PFC follow.
    pub rate: BitRate,
    /// Whether the ports are paced to `rate`. Otherwise they are so fast that pacing never limits.
    pub paced: bool,
    /// Whether a poll takes at most one burst of a port, instead of all frames that can arrive in the poll gap.
    pub one_burst: bool,
    /// Whether the switch sends PFC frames.
    pub pfc: bool,
    /// Whether the backlog in a receive ring causes XOFF.
    pub backlog: bool,
}

impl BedSpec {
    /// The preset `roce` with 5 m of cable and the default buffer, or up to three times that buffer if the headroom
    /// needs it: a quick machine has quick links.
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
        let config = (1..MOST_BUFFERS).find_map(|times| parse(times * BUFFER_MIB).ok());
        let config = config.map_or_else(|| parse(MOST_BUFFERS * BUFFER_MIB), Ok);
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

/// Defaults of the configuration.
pub const POLL_GAP_NS: u64 = 20_000;
const BUFFER_MIB: usize = 12;
const MOST_BUFFERS: usize = 3;
/// Packet buffers: one per cell of the largest buffer, and some for frames in flight.
const MBUFS: u32 = ((MOST_BUFFERS * BUFFER_MIB) << 20) as u32 / 208 + 4096;
/// Bytes of each packet buffer, as in `holdfast run` with an MTU of 1500.
const DATA_ROOM: u16 = 2048 + 128;
/// Between two readings of the clock further apart than this, the core was taken away: calibration excludes that time.
const CALIBRATION_THEFT_NS: u64 = 20_000;
const MEMORY_MIB: u32 = 780;
/// `MEMORY_MIB` in hugepages of 2 MiB.
const HUGEPAGES: u32 = MEMORY_MIB / 2;

fn free_hugepages() -> u32 {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// DPDK and its buffer pools, shared by all switches of a run.
pub struct Bed {
    eal: Eal,
    data: Mempool,
    control: Mempool,
    /// Ticks per second.
    pub hz: u64,
}

/// A switch and its peers.
pub struct Setup<K: Parcel, O> {
    /// The switch.
    pub pipeline: Pipeline<K>,
    /// Scratch memory of its polls.
    pub scratch: Scratch<K>,
    /// The ports of the switch, with the peers.
    pub io: Generator<K, O>,
    /// The counters of the switch.
    pub counters: Arc<Counters>,
    /// The specification of the switch.
    pub spec: SwitchSpec,
}

impl Bed {
    /// Starts DPDK. Packet buffers are in hugepages if enough are free and `small_pages` is not set, as with a NIC.
    /// Ordinary pages need neither privilege nor preparation, but each frame that has waited costs the core one or two
    /// page walks. Prints the kind of pages.
    ///
    /// # Panics
    /// If DPDK cannot be started.
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

    /// Converts nanoseconds to ticks.
    pub fn ticks(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.hz) / 1_000_000_000) as u64
    }

    /// Creates a switch with the peers `links`, with all stations learned. A gap of more than `theft_ns` between two
    /// readings of the clock counts as a theft.
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
            scratch: Scratch::default(),
            io: Generator::new(links, idle, self.control.clone(), watch, observer),
            counters,
            spec: switch,
        }
    }
}

impl<K: Parcel, O: Observer> Setup<K, O> {
    /// Dropped frames of lossless classes, for any reason.
    pub fn lossless_drops(&self) -> u64 {
        let lossless = self.spec.lossless_groups();
        self.drops(|class| class < CLASSES && lossless.contains(class))
    }

    /// Dropped frames of the classes that `counts` selects.
    pub fn drops(&self, counts: impl Fn(usize) -> bool) -> u64 {
        let rows = self.counters.ports.iter().flat_map(|port| port.drops.iter().enumerate());
        rows.filter(|(class, _)| counts(*class)).flat_map(|(_, row)| row).map(|drop| drop.get()).sum()
    }

    /// Shuts the switch down, returns all buffers to their pools, and returns the observer.
    ///
    /// # Panics
    /// If a cell or a buffer is missing: a switch that leaks is not worth measuring.
    pub fn tear_down(mut self, bed: &Bed) -> O {
        let now = Ticks(self.io.watch.look());
        self.pipeline.shutdown(&mut self.io, now);
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

/// Frames per second that the core switches without congestion, with frames of `frame_len` bytes on `ports` ports.
/// Peers keep a schedule: each offers more than the core can switch, to the next port. Returns the median of `rounds`
/// rounds of `round_ns`, without stolen time.
pub fn calibrate(bed: &Bed, ports: usize, frame_len: usize, rounds: usize, round_ns: u64) -> f64 {
    // The limit of the core must be known first, so that the schedule can exceed it.
    let most = capacity(bed, ports, frame_len, BitRate(100_000_000_000), true, 3, round_ns / 2);
    capacity(bed, ports, frame_len, rate_of(frame_len, most / ports as f64 * 1.1), false, rounds, round_ns)
}

/// The rate of a link on which `pps` frames of `frame_len` bytes fit in a second.
pub fn rate_of(frame_len: usize, pps: f64) -> BitRate {
    let bits = ((frame_len as u32).max(MIN_FRAME) + WIRE_OVERHEAD) * 8;
    // The configuration takes whole kilobits per second.
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
    // Pacing is off: a poll longer than its slack would cost throughput and would not measure the core.
    let spec = BedSpec { ports, rate, paced: false, one_burst: true, pfc: false, backlog: false };
    let mut setup = bed.set_up::<Mbuf, ()>(spec, (0..ports).map(link).collect(), CALIBRATION_THEFT_NS, |_| ());
    let mut round = || {
        let (start, before, stolen) = (dpdk::now().0, setup.io.sent_frames(), setup.io.watch.stolen);
        let mut now = start;
        while now - start < bed.ticks(round_ns) {
            setup.pipeline.poll(&mut setup.io, &mut setup.scratch, Ticks(now));
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
