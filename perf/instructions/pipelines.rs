//! Cases of the whole pipeline, per packet: `Pipeline::poll` of every lcore in turn.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use holdfast::config;
use holdfast::dataplane::Pipeline;
use holdfast::forward::VlanMode;
use holdfast::plan::exception::exception_channel;
use holdfast::plan::mirror::MirrorSession;
use holdfast::plan::{Counters, DropReason, SwitchSpec};
use holdfast::qos::Trust;
use holdfast::route::RouteTable;
use holdfast::sets::PortSet;
use holdfast::units::{BitRate, Nanos, Ticks};

use crate::frames::{Frame, Headers, PORTS, Pattern, Traffic, VLAN, Wires, mac};

/// A tick is a nanosecond, and the time between polls is a microsecond.
const HZ: u64 = 1_000_000_000;
const STEP: u64 = 1_000;
/// Polls before and during the count: multiples of the number of polls between two publications of gauges.
const WARM_UP: u32 = 128;
const POLLS: u32 = 256;

/// The embedded switch with ports that are faster than their traffic.
pub fn spec(flows: u32) -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(PORTS);
    for port in &mut spec.ports {
        port.rate = BitRate(400_000_000_000);
        // The wires always have more frames.
        port.backlog_mark = None;
        // All stations of a port are known.
        port.fdb_limit = u32::MAX;
    }
    // One burst per poll, as at ports without a backlog.
    spec.poll_gap = Nanos(0);
    spec.fdb.capacity = spec.fdb.capacity.max(2 * PORTS as u32 * flows);
    spec
}

/// A switch that has learned every station, and the traffic that it receives.
pub struct Bench {
    parts: Vec<Pipeline<Frame>>,
    scratch: Scratch<Frame>,
    wires: Wires,
    counters: Arc<Counters>,
    now: u64,
}

impl Bench {
    pub fn new(spec: &SwitchSpec, traffic: Traffic) -> Self {
        let counters = Arc::new(Counters::of(spec));
        let buffers = if traffic.pattern == Pattern::Incast { 32_768 } else { 1024 };
        let silence = Traffic { pattern: Pattern::Silence, ..traffic };
        let parts = Pipeline::fleet(spec, &counters, HZ, 1);
        let mut bench =
            Self { parts, scratch: Scratch::default(), wires: Wires::new(silence, buffers), counters, now: HZ };
        bench.learn(spec, traffic.flows);
        bench.wires.traffic = traffic;
        bench
    }

    /// Learns every station at its port. Other lcores receive updates; a poll in between keeps them within the room for
    /// updates.
    fn learn(&mut self, spec: &SwitchSpec, flows: u32) {
        for (port, station) in (0..PORTS).flat_map(|port| (0..flows).map(move |station| (port, station))) {
            let vlan = match spec.ports[port].vlan {
                VlanMode::Access(vlan) => vlan,
                // Neighbours of routed ports are not in the database.
                VlanMode::Routed(_) => continue,
                VlanMode::Trunk { ref tagged, .. } => tagged[0],
            };
            let owner = usize::from(spec.ports[port].lcore);
            self.parts[owner].learn(vlan, mac(port, station), port, Ticks(self.now));
            if self.parts.len() > 1 && station % 512 == 0 {
                self.polls(1);
            }
        }
    }

    /// Lets all lcores route by `table`.
    pub fn set_routes(&mut self, table: &Arc<RouteTable>) {
        self.parts.iter_mut().for_each(|part| part.set_routes(table));
    }

    /// Number of routed frames.
    pub fn routed(&self) -> u64 {
        self.counters.lcores.iter().map(|lcore| lcore.routed_frames.get()).sum()
    }

    fn polls(&mut self, polls: u32) {
        for _ in 0..polls {
            self.now += STEP;
            for part in &mut self.parts {
                part.poll(&mut self.wires, &mut self.scratch, Ticks(self.now));
            }
        }
    }

    /// Returns the number of frames that were sent during the count.
    pub fn run(&mut self) -> u64 {
        self.polls(WARM_UP);
        let before = self.wires.sent;
        self.wires.is_counting = true;
        measured_polls(self);
        let dropped: u64 =
            self.counters.ports.iter().flat_map(|port| port.drops.iter().flatten()).map(|drop| drop.get()).sum();
        assert_eq!(dropped, 0, "a count of a switch that drops is of something else");
        self.wires.sent - before
    }
}

#[inline(never)]
fn measured_polls(bench: &mut Bench) {
    bench.polls(POLLS);
}

/// Frames of 64 bytes without congestion, between `flows` stations per port.
fn uncongested(flows: u32) -> u64 {
    Bench::new(&spec(flows), Traffic { flows, ..Traffic::default() }).run()
}

pub fn one_flow() -> u64 {
    uncongested(1)
}

pub fn flows_1k() -> u64 {
    uncongested(1024)
}

/// One frame in a thousand is sampled, for a thread that takes no copy: there are buffers for all of them.
pub fn sampled() -> u64 {
    let mut spec = spec(1024);
    spec.mirror.sessions.push(MirrorSession { sample: 1000, ..MirrorSession::default() });
    let mut bench = Bench::new(&spec, Traffic { flows: 1024, ..Traffic::default() });
    let (channel, _link) = exception_channel(2048);
    bench.parts[0].attach_mirror(channel);
    let sent = bench.run();
    assert!(bench.counters.lcores[0].copies[2].get() > sent / 2000, "frames are sampled");
    sent
}

pub fn flows_64k() -> u64 {
    uncongested(65_536)
}

pub fn tcp() -> u64 {
    Bench::new(&spec(1024), Traffic { headers: Headers::Tcp, ..Traffic::default() }).run()
}

pub fn ipv6() -> u64 {
    Bench::new(&spec(1024), Traffic { headers: Headers::Ipv6, ..Traffic::default() }).run()
}

/// Frames with a VLAN tag on ingress and egress; the PCP selects the class.
pub fn tagged() -> u64 {
    let mut spec = spec(1024);
    for port in &mut spec.ports {
        port.vlan = VlanMode::Trunk { tagged: vec![VLAN], native: None };
        port.live.trust = Trust::Pcp;
    }
    Bench::new(&spec, Traffic { tagged: PortSet::ALL, ..Traffic::default() }).run()
}

/// Half of the frames gain a VLAN tag, half lose it.
pub fn retagged() -> u64 {
    let mut spec = spec(1024);
    for (index, port) in spec.ports.iter_mut().enumerate() {
        let trunk = VlanMode::Trunk { tagged: vec![VLAN], native: None };
        port.vlan = if index % 2 == 0 { VlanMode::Access(VLAN) } else { trunk };
    }
    Bench::new(&spec, Traffic { tagged: PortSet::from_bits(0b1010), ..Traffic::default() }).run()
}

/// A flood of lossy frames, almost all shed. The count is per received frame, not per sent frame.
pub fn flood() -> u64 {
    flooded(&[])
}

/// The flood with sFlow's report of drops.
pub fn reported_flood() -> u64 {
    flooded(&[MirrorSession { dropped: true, rate: 100, ..MirrorSession::default() }])
}

fn flooded(sessions: &[MirrorSession]) -> u64 {
    let mut spec = spec(1024);
    spec.mirror.sessions.extend(sessions.iter().copied());
    spec.ports.iter_mut().for_each(|port| port.backlog_mark = Some(32));
    let mut bench = Bench::new(&spec, Traffic { is_lossy: true, ..Traffic::default() });
    let (channel, _link) = exception_channel(2048);
    bench.parts[0].attach_mirror(channel);
    // An lcore sheds when its patience is spent.
    let shed = |bench: &Bench| {
        bench.counters.ports.iter().map(|port| port.drops[0][DropReason::Shed as usize].get()).sum::<u64>()
    };
    for _ in 0..1_000 {
        if shed(&bench) > 0 {
            break;
        }
        bench.polls(WARM_UP);
    }
    assert!(shed(&bench) > 0, "the flood is not shed");
    bench.polls(WARM_UP);
    let received = |bench: &Bench| bench.counters.ports.iter().map(|port| port.rx_frames[0].get()).sum::<u64>();
    let before = received(&bench);
    bench.wires.is_counting = true;
    measured_polls(&mut bench);
    received(&bench) - before
}

/// Three ports send lossless frames to one: queues grow, frames are marked, and PFC pauses the senders in turn.
pub fn incast() -> u64 {
    let mut spec = spec(1024);
    for port in &mut spec.ports {
        // Slightly less than one burst per poll.
        port.rate = BitRate(20_000_000_000);
    }
    let mut bench = Bench::new(&spec, Traffic { pattern: Pattern::Incast, ..Traffic::default() });
    // Poll until the senders are paused.
    for _ in 0..10_000 {
        if bench.wires.paused() == PORTS - 1 {
            break;
        }
        bench.polls(1);
    }
    let before = bench.wires.pfc;
    let sent = bench.run();
    assert!(bench.wires.pfc > before, "an incast without PFC");
    sent
}

/// Two lcores polled in turn. Every frame leaves by a port that the other lcore owns: measures joint ports and tallies.
pub fn crossing() -> u64 {
    two_lcores(2)
}

/// Two lcores whose ports have one transmit queue: measures hand-off and tallies.
pub fn crossing_rings() -> u64 {
    two_lcores(1)
}

fn two_lcores(tx_queues: u8) -> u64 {
    let mut spec = spec(1024);
    spec.lcores = 2;
    for (index, port) in spec.ports.iter_mut().enumerate() {
        port.lcore = index as u8 % 2;
        port.tx_queues = tx_queues;
    }
    Bench::new(&spec, Traffic::default()).run()
}

/// Polls that find no frames.
pub fn idle_poll() -> u64 {
    Bench::new(&spec(1024), Traffic { pattern: Pattern::Silence, ..Traffic::default() }).run();
    u64::from(POLLS)
}
