//! Measures the whole pipeline over ports in memory, in TSC cycles per packet on one core.
//!
//! Four ports receive 64-byte RoCE-shaped frames, half in a lossless and half in a lossy class. All stations are
//! learned, and all features are on: learning, DSCP classes, admission, eight queues, pacing, ECN, counters. The ports
//! post real mbufs ahead, like the descriptors of a NIC, and write the headers of each frame when they post it. The
//! first row of each pair is the cost of that alone. With 16,384 frames posted, the headers have left the cache when
//! they are received.
//!
//! `cargo bench --bench pipeline [-- --flows N] [--posted N] [--rounds N] [--pipeline-only] [--kind KIND] [--classes 8]
//! [--len BYTES]`, or `make perf`. With `--classes 8`, frames are of all eight classes in turn. `--len` is their
//! length, 64 to 1514 bytes; no byte behind the headers is read. Frames are `udp` by default, or `tcp`, `ipv6` (UDP),
//! `tagged` (UDP over IPv4, on trunks that trust PCP), or `retagged` (UDP over IPv4, every second port a trunk: all
//! frames gain or lose their VLAN tag). `routed` frames go between routed ports by 1,024 routes, `routed-cold` ones to
//! random addresses of 1,048,576 routes. Both have DPDK's forwarding table.
//!
//! The generator always has more frames, so a poll takes one burst of each port, and backlog is ignored. `--operator`
//! measures an operator's defaults instead: `poll_gap` and `backlog_mark` of the configuration, and a generator that
//! has [`LOAD`] frames for each port and poll.

mod routes;
mod template;

use holdfast::dataplane::Scratch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast::config;
use holdfast::dataplane::Pipeline;
use holdfast::dpdk::{self, Eal, EalOptions, Mbuf, Memory, Mempool};
use holdfast::forward::VlanMode;
use holdfast::io::{Burst, Packet, Ports};
use holdfast::plan::{Counters, SwitchSpec};
use holdfast::qos::Trust;
use holdfast::sets::{BURST, ClassSet};
use holdfast::units::{BitRate, Nanos, Ticks};
use holdfast::wire::MacAddr;

use routes::Networks;
use template::{Headers, template};

const PORTS: usize = 4;
const ROUNDS: usize = 41;
/// Frames per port and poll with an operator's defaults: a burst and a half, which a poll receives in half of its time.
const LOAD: usize = 48;
/// Memory of the buffers.
const BUFFERS_MIB: u32 = 512;
const ROUND: Duration = Duration::from_millis(50);
/// The VLAN of all stations.
const VLAN: u16 = 1;

/// The kind of all frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Udp,
    Tcp,
    Ipv6,
    Tagged,
    Retagged,
    Routed,
    RoutedCold,
}

impl Kind {
    const ALL: [(&str, Self); 7] = [
        ("udp", Self::Udp),
        ("tcp", Self::Tcp),
        ("ipv6", Self::Ipv6),
        ("tagged", Self::Tagged),
        ("retagged", Self::Retagged),
        ("routed", Self::Routed),
        ("routed-cold", Self::RoutedCold),
    ];

    /// The networks behind each port, if frames are routed: a quarter of 1,024, or of 1,048,576.
    fn networks(self) -> Option<Networks> {
        match self {
            Self::Routed => Some(Networks { bits: 8 }),
            Self::RoutedCold => Some(Networks { bits: 18 }),
            _ => None,
        }
    }

    /// Flows of each port and frames posted ahead, by row. Each frame of `routed-cold` is a flow of its own.
    fn rows(self) -> &'static [(u32, usize)] {
        match self {
            Self::RoutedCold => &[(1 << 24, 1024), (1 << 24, 16_384)],
            _ => &[(1, 1024), (1024, 1024), (65_536, 1024), (1024, 16_384)],
        }
    }

    /// Whether frames have a VLAN tag at `port`.
    fn is_tagged(self, port: usize) -> bool {
        self == Self::Tagged || self == Self::Retagged && port % 2 == 1
    }

    /// The first bytes of a frame of `len` bytes for ingress at `port`, with `mark` as DSCP and ECN, and addresses of
    /// zero.
    fn frame(self, port: usize, mark: u8, len: usize) -> [u8; 64] {
        let headers = match self {
            Self::Tcp => Headers::Tcp,
            Self::Ipv6 => Headers::Ipv6,
            _ => Headers::Udp,
        };
        let frame = template(headers, mark, self.is_tagged(port).then_some(VLAN), len);
        *frame.first_chunk().expect("at least 64 bytes")
    }
}

/// Ports that receive again the frames that they have sent, with new addresses.
struct Generator {
    pool: Mempool,
    idle: Vec<Mbuf>,
    /// Frames that each port will hand out, in order.
    posted: Vec<VecDeque<Mbuf>>,
    flows: u32,
    next: u32,
    /// Frames that each port still has in this poll; `None` for no limit.
    left: Option<[usize; PORTS]>,
    /// Whether the switch adds or removes the VLAN tag of every frame.
    is_retagged: bool,
    kind: Kind,
    /// Templates by port. Of two classes the first two count, lossless and lossy, and a station has one of them.
    frames: [[[u8; 64]; 8]; PORTS],
    /// Frames written so far.
    written: u32,
    /// Bits of a station and of `written` that select the template. Without a branch, `perf/stages` knows how often a
    /// frame is written.
    select: [u32; 2],
    sent: u64,
}

/// The frames of a run.
#[derive(Debug, Clone, Copy)]
struct Load {
    kind: Kind,
    /// Classes: two, or all eight.
    classes: usize,
    /// Length in bytes.
    len: usize,
    flows: u32,
    /// Frames posted ahead.
    posted: usize,
}

impl Generator {
    fn new(pool: Mempool, load: Load) -> Self {
        let Load { kind, classes, len, flows, posted } = load;
        // ECT(0), and the DSCP of each class, or of a lossless and a lossy one.
        let mark = |index: usize| if classes == 2 { [0x6a, 2][index % 2] } else { (index as u8) << 5 | 2 };
        let frames = std::array::from_fn(|port| std::array::from_fn(|index| kind.frame(port, mark(index), len)));
        let select = if classes == 2 { [1, 0] } else { [0, 7] };
        let idle = (0..8 * BURST + PORTS * posted).filter_map(|_| pool.alloc_with(&vec![0; len])).collect();
        let rings = (0..PORTS).map(|_| VecDeque::with_capacity(posted + BURST)).collect();
        let mut generator = Self {
            pool,
            idle,
            posted: rings,
            flows,
            next: 0,
            left: None,
            is_retagged: false,
            kind,
            frames,
            written: 0,
            select,
            sent: 0,
        };
        for port in 0..PORTS {
            for _ in 0..posted / BURST {
                generator.post(port);
            }
        }
        generator
    }

    /// Keeps frames for later use. PFC frames, which are shorter than data frames, are freed.
    #[inline]
    fn recycle(&mut self, packets: &mut Burst<Mbuf>) {
        for packet in packets.drain(..) {
            if packet.len() < 64 { packet.free() } else { self.idle.push(packet) }
        }
    }

    /// Posts a burst of frames.
    #[inline]
    fn post(&mut self, port: usize) {
        for _ in 0..BURST {
            self.post_one(port);
        }
    }

    /// Always inline: `perf/stages` tells by the caller whether a frame belongs to the measurement.
    #[inline(always)]
    fn post_one(&mut self, port: usize) {
        let Some(mut packet) = self.idle.pop() else { return };
        if let Some(frame) = packet.bytes_mut().first_chunk_mut() {
            self.write(port, frame);
        }
        self.posted[port].push_back(packet);
    }

    /// Writes a frame from a station behind `port` to one behind the next port. The stores are as wide as the later
    /// loads: otherwise the loads would stall, and the generator would cost more than the switch.
    #[inline(always)]
    fn write(&mut self, port: usize, frame: &mut [u8; 64]) {
        self.next = self.next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let station = (self.next >> 8) % self.flows;
        self.written = self.written.wrapping_add(1);
        let index = station & self.select[0] | self.written & self.select[1];
        let template = &self.frames[port][index as usize % 8];
        let remaining = u32::from_be_bytes([template[12], template[13], template[14], template[15]]);
        *frame = *template;
        let to = (port + 1) % PORTS;
        let [mut dst, src] = [to, port].map(|port| u64::from_be_bytes(mac(port, station)));
        if let Some(networks) = self.kind.networks() {
            dst = Networks::own_mac(port).to_number();
            let destination = networks.address(to, station);
            frame[30..34].copy_from_slice(&destination.to_be_bytes());
            let checksum = checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        frame[..8].copy_from_slice(&(dst << 16 | src >> 32).to_be_bytes());
        frame[8..16].copy_from_slice(&(src << 32 | u64::from(remaining)).to_be_bytes());
    }
}

/// The checksum of an IPv4 header whose checksum field is zero (RFC 1071).
#[inline]
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum + (sum >> 16)) as u16
}

/// The address of a station, in the lower six bytes.
fn mac(port: usize, station: u32) -> [u8; 8] {
    let [_, a, b, c] = station.to_be_bytes();
    [0, 0, 2, port as u8, 0, a, b, c]
}

impl Ports for Generator {
    type Pkt = Mbuf;

    #[inline]
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Mbuf>) {
        let count = self.left.map_or(most, |left| left[port].min(most));
        if let Some(left) = &mut self.left {
            left[port] -= count;
        }
        if count == BURST {
            self.post(port);
        } else {
            for _ in 0..count {
                self.post_one(port);
            }
        }
        out.extend(self.posted[port].drain(..count));
        out.iter().for_each(Packet::prefetch_bytes);
    }

    #[inline]
    fn tx(&mut self, port: usize, packets: &mut Burst<Mbuf>) {
        self.sent += packets.len() as u64;
        if self.is_retagged {
            // Restores the original position of the frame in its buffer.
            let is_tagged = self.kind.is_tagged(port);
            packets
                .iter_mut()
                .for_each(|packet| _ = if is_tagged { packet.pull_front(4) } else { packet.push_front(4) });
        }
        self.recycle(packets);
    }

    fn backlog(&mut self, port: usize, _: ClassSet) -> Option<usize> {
        self.left.map(|left| left[port])
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        self.left.map(|_| dpdk::now())
    }

    fn free(&mut self, packets: &mut Burst<Mbuf>) {
        self.recycle(packets);
    }

    fn copy(&mut self, packet: &Mbuf) -> Option<Mbuf> {
        self.pool.alloc_with(packet.bytes())
    }

    fn make(&mut self, frame: &[u8]) -> Option<Mbuf> {
        self.pool.alloc_with(frame)
    }
}

/// The embedded switch with port rates beyond the speed of the core: pacing is on but never limits.
fn spec(kind: Kind, flows: u32, is_operators: bool) -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(PORTS);
    for (index, port) in spec.ports.iter_mut().enumerate() {
        if kind.is_tagged(index) {
            port.live.trust = Trust::Pcp;
            port.vlan = VlanMode::Trunk { tagged: vec![VLAN], native: None };
        }
        port.rate = BitRate(400_000_000_000);
        // The share of a port in the table that is configured here would be too small for the stations of a row.
        port.fdb_limit = u32::MAX;
        if !is_operators {
            // The generator always has more frames and ignores PFC.
            port.backlog_mark = None;
        }
    }
    if !is_operators {
        // One burst per poll, as at ports without a backlog.
        spec.poll_gap = Nanos(0);
    }
    if let Some(networks) = kind.networks() {
        networks.route(&mut spec);
    } else {
        // Twice the stations, as operators configure. A table that is much too large costs cache and TLB misses.
        spec.fdb.capacity = spec.fdb.capacity.max(2 * PORTS as u32 * flows);
    }
    spec
}

/// Cycles per packet of each round, sorted.
fn measure(rounds: usize, generator: &mut Generator, mut poll: impl FnMut(&mut Generator)) -> Vec<f64> {
    let mut rounds: Vec<f64> = (0..rounds)
        .map(|_| {
            let (start, first, sent) = (Instant::now(), dpdk::now().0, generator.sent);
            while start.elapsed() < ROUND {
                for _ in 0..64 {
                    poll(generator);
                }
            }
            (dpdk::now().0 - first) as f64 / (generator.sent - sent).max(1) as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds
}

fn print(name: &str, flows: u32, posted: usize, rounds: &[f64]) {
    if let (Some(lowest), Some(highest)) = (rounds.first(), rounds.last()) {
        let median = rounds[rounds.len() / 2];
        println!("{name:<28} {flows:>7} {posted:>7} {median:>8.1} {lowest:>8.1} {highest:>8.1}");
    }
}

/// Dropped frames as a percentage of dropped and sent ones.
fn share(dropped: u64, sent: u64) -> f64 {
    100.0 * dropped as f64 / (dropped + sent).max(1) as f64
}

fn free_hugepages() -> usize {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The word after the argument `name`.
fn word(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// The number after the argument `name`.
fn number(name: &str) -> Option<usize> {
    let value = word(name)?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {value}")))
}

/// The kind of frames that the command line selects.
fn kind() -> Kind {
    let wanted = word("--kind").unwrap_or_else(|| "udp".to_owned());
    let kind = Kind::ALL.iter().find(|(name, _)| *name == wanted).map(|&(_, kind)| kind);
    kind.unwrap_or_else(|| panic!("--kind takes {}, not {wanted}", Kind::ALL.map(|(name, _)| name).join(", ")))
}

fn main() {
    // Further arguments that `cargo bench` passes to every benchmark are ignored. Like a NIC's, buffers are in
    // hugepages if possible: ordinary pages cost the core one or two page walks per frame.
    let kind = kind();
    let mib = BUFFERS_MIB + kind.networks().map_or(0, |networks| networks.mib(PORTS));
    let wanted = mib.div_ceil(2) as usize;
    let is_huge = free_hugepages() >= wanted && !std::env::args().any(|argument| argument == "--small-pages");
    let memory = if is_huge { Memory::Huge { mib: Some(mib) } } else { Memory::NoHuge { mib } };
    let options = EalOptions { memory, ..EalOptions::default() };
    let eal = Eal::init(&options).unwrap_or_else(|error| panic!("{error}"));
    let pool = Mempool::create(&eal, "bench", 98_304, 2048 + 128, 256, None).unwrap_or_else(|error| panic!("{error}"));
    let small = format!("small pages: said so, or no {wanted} hugepages of 2 MiB are free");
    let pages = if is_huge { "hugepages" } else { &small };
    let ghz = dpdk::hz(&eal) as f64 / 1e9;
    let (classes, len) = (number("--classes").unwrap_or(2), number("--len").unwrap_or(64));
    assert!(classes == 2 || classes == 8, "--classes takes 2 or 8, not {classes}");
    assert!((64..=1514).contains(&len), "--len takes 64 to 1514, not {len}");
    println!(
        "frames of {len} bytes ({kind:?}), {classes} classes, {PORTS} ports, one core, TSC at {ghz:.2} GHz, {pages}"
    );
    println!(
        "{:<28} {:>7} {:>7} {:>8} {:>8} {:>8}",
        "cycles a packet", "flows", "posted", "median", "lowest", "highest"
    );
    let rounds = number("--rounds").unwrap_or(ROUNDS);
    for &(flows, posted) in kind.rows() {
        if number("--flows").is_none_or(|wanted| wanted == flows as usize)
            && number("--posted").is_none_or(|wanted| wanted == posted)
        {
            run(&eal, &pool, Load { kind, classes, len, flows, posted }, rounds);
        }
    }
}

/// Teaches `pipeline` all stations.
fn learn(pipeline: &mut Pipeline<Mbuf>, flows: u32) {
    for (port, station) in (0..PORTS).flat_map(|port| (0..flows).map(move |station| (port, station))) {
        let [_, _, a, b, c, d, e, f] = mac(port, station);
        pipeline.learn(VLAN, MacAddr([a, b, c, d, e, f]), port, dpdk::now());
    }
}

fn run(eal: &Eal, pool: &Mempool, load: Load, rounds: usize) {
    let Load { kind, flows, posted, .. } = load;
    let mut generator = Generator::new(pool.clone(), load);
    let mut burst = Burst::new();
    if !std::env::args().any(|argument| argument == "--pipeline-only") {
        let alone = measure(rounds, &mut generator, |generator| {
            for port in 0..PORTS {
                generator.rx(port, BURST, &mut burst);
                generator.tx(port, &mut burst);
            }
        });
        print("generator alone", flows, posted, &alone);
    }

    generator.is_retagged = kind == Kind::Retagged;
    let is_operators = std::env::args().any(|argument| argument == "--operator");
    let spec = spec(kind, flows, is_operators);
    let counters = Arc::new(Counters::of(&spec));
    let mut scratch = Scratch::default();
    let mut pipeline: Pipeline<Mbuf> = Pipeline::new(&spec, counters.clone(), dpdk::hz(eal), 1);
    if let Some(networks) = kind.networks() {
        pipeline.set_routes(&networks.table(eal, &spec));
    } else {
        learn(&mut pipeline, flows);
    }
    let whole = measure(rounds, &mut generator, |generator| {
        generator.left = is_operators.then_some([LOAD; PORTS]);
        pipeline.poll(generator, &mut scratch, dpdk::now());
    });
    print(
        match kind.networks() {
            _ if is_operators => "with an operator's defaults",
            Some(_) => "generator and L3 pipeline",
            None => "generator and L2 pipeline",
        },
        flows,
        posted,
        &whole,
    );
    let dropped: u64 = counters.ports.iter().flat_map(|port| port.drops.iter().flatten()).map(|drop| drop.get()).sum();
    // If the core was taken away, the poll is late, and with an operator's defaults the switch sheds frames for a
    // moment.
    if is_operators && dropped > 0 {
        println!("{:<28} {:>7} {:>7} {:>8.2} %", "of these dropped", flows, posted, share(dropped, generator.sent));
    } else {
        assert_eq!(dropped, 0, "a benchmark of a switch that drops measures something else");
    }
    pipeline.shutdown(&mut generator, dpdk::now());
    for packet in generator.idle.drain(..).chain(generator.posted.iter_mut().flat_map(|ring| ring.drain(..))) {
        packet.free();
    }
}
