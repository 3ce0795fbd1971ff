//! A switch in memory: its construction, the frames sent to it, and its results.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use crate::layout::Layout;
use holdfast::dataplane::{LiveConfig, Pipeline, Work};
use holdfast::forward::{FdbSpec, LagState, LagsSpec};
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::mmu::{BufferPlan, GroupProfile, HeadroomPolicy, QueueLimit, Threshold};
use holdfast::plan::exception::{ExceptionLink, exception_channel};
use holdfast::plan::mirror::CopyFrame;
use holdfast::plan::own_probes::OwnProbes;
use holdfast::plan::{Companion, Counters, DropReason, LcoreControl, PortSpec, QueueSpec, SwitchSpec};
use holdfast::qos::{ClassMap, QueueDiscipline};
use holdfast::route::RouteTable;
use holdfast::sets::{CLASSES, ClassSet, PortSet};
use holdfast::units::{Alpha, BitRate, Bytes, Cells, Nanos, Ticks};
use holdfast::wire::MacAddr;
use holdfast::wire::mac_control::{self, MacControl, PfcFrame};

/// Ticks per second: a tick is a nanosecond here.
pub const HZ: u64 = 1_000_000_000;
/// The lossless class of these tests, and a DSCP that maps to it.
pub const LOSSLESS: usize = 3;
pub const LOSSLESS_DSCP: u8 = 26;
/// Length of a frame that takes exactly one cell.
pub const CELL: usize = 208;

pub const fn lossy_group() -> GroupProfile {
    GroupProfile {
        lossless: false,
        reserve: Cells(0),
        threshold: Threshold::Static(Cells(10_000)),
        xon_offset: Cells(0),
        xon_floor: Cells(0),
        headroom: Cells(0),
    }
}

pub const fn lossless_group() -> GroupProfile {
    GroupProfile {
        lossless: true,
        reserve: Cells(10),
        threshold: Threshold::Static(Cells(20)),
        xon_offset: Cells(4),
        xon_floor: Cells(2),
        headroom: Cells(5),
    }
}

/// Returns a switch with `ports` 10G ports in VLAN 1, on the lcores of this run in turn. Class 3 is lossless with 10
/// cells of reserve, 20 shared and 5 of headroom.
pub fn spec(ports: usize) -> SwitchSpec {
    spec_on(Layout::current(), ports)
}

/// Returns a switch like [`spec`] in this layout.
pub fn spec_on(layout: Layout, ports: usize) -> SwitchSpec {
    let Layout { lcores, tx_queues } = layout;
    let mut groups = [lossy_group(); 8];
    groups[LOSSLESS] = lossless_group();
    let port = |index: usize| {
        let mac = MacAddr::local(0, index as u16);
        let port = PortSpec::new(format!("p{index}"), mac, BitRate(10_000_000_000), groups);
        PortSpec { lcore: [0, lcores - 1][index % 2], tx_queues, ..port }
    };
    let lossy_limit = QueueLimit::from(Threshold::Dynamic(Alpha::from_exponent(3).unwrap()));
    let mut queues = [QueueSpec {
        discipline: QueueDiscipline::Dwrr { weight: 1 },
        wred: None,
        limit: Some(lossy_limit),
        reserve: Cells(0),
    }; 8];
    queues[LOSSLESS].limit = None;
    SwitchSpec {
        ports: (0..ports).map(port).collect(),
        buffer: BufferPlan {
            cell: Bytes(CELL as u64),
            total: Cells(50_000),
            reserves: Cells(10 * ports as u32),
            headroom: Cells(5 * ports as u32),
            policy: HeadroomPolicy::Independent,
            lossless_shared: Cells(20_000),
            lossy_shared: Cells(20_000),
        },
        classes: ClassMap::identity(),
        queues,
        fdb: FdbSpec { capacity: 4096, ageing: Nanos(300 * HZ), entries: vec![], seed: 0 },
        lags: LagsSpec::default(),
        poll_gap: Nanos(1000),
        lcores,
        floods_lossless: false,
        hpcc: holdfast::mmu::HpccRules::NONE,
        abm: None,
        reverie: false,
        telemetry_queues: ClassSet::EMPTY,
        congestion_points: [None; CLASSES],
        routing: None,
        mirror: holdfast::plan::mirror::MirrorSpec::default(),
    }
}

/// The state of an lcore with ports in memory. It neither rests nor takes new settings or routes.
pub fn work<C: Companion>(
    pipeline: Pipeline<MemPacket>,
    io: MemPorts,
    companion: Option<C>,
    control: &Arc<LcoreControl>,
) -> Work<MemPorts, C> {
    let control = control.clone();
    Work {
        pipeline,
        scratch: Box::default(),
        io,
        companion,
        control,
        hz: HZ,
        resting: None,
        live_config: None,
        exchange: None,
        route_tables: None,
    }
}

/// The lcores of a switch, polled in turn by one thread.
pub struct Fleet {
    parts: Vec<Pipeline<MemPacket>>,
    scratch: Scratch<MemPacket>,
    now: u64,
}

impl Fleet {
    pub fn new(spec: &SwitchSpec, counters: &Arc<Counters>) -> Self {
        Self { parts: Pipeline::fleet(spec, counters, HZ, 1), scratch: Scratch::default(), now: HZ }
    }

    /// Polls each lcore once, and again if there are several. After that, each frame handed to another lcore is in its
    /// queue, whichever lcore sent it.
    pub fn poll(&mut self, io: &mut MemPorts, now: u64) {
        for _ in 0..self.parts.len().min(2) {
            self.poll_once(io, now);
        }
    }

    /// Polls each lcore once.
    pub fn poll_once(&mut self, io: &mut MemPorts, now: u64) {
        self.now = now;
        for part in &mut self.parts {
            part.poll(io, &mut self.scratch, Ticks(now));
        }
    }

    /// Returns the only lcore.
    pub fn into_one(mut self) -> Pipeline<MemPacket> {
        assert_eq!(self.parts.len(), 1);
        self.parts.remove(0)
    }

    pub fn set_link(&mut self, port: usize, up: bool) {
        for part in &mut self.parts {
            part.set_link(port, up, Ticks(self.now));
        }
    }

    /// Blocks ports whose loops have no other port.
    pub fn set_blocked(&mut self, blocked: PortSet) {
        self.set_loops(blocked, blocked);
    }

    /// Blocks ports because of loops with the ports `looped`.
    pub fn set_loops(&mut self, blocked: PortSet, looped: PortSet) {
        self.parts.iter_mut().for_each(|part| part.set_blocked(blocked, looped));
    }

    pub fn set_lags(&mut self, state: LagState) {
        self.parts.iter_mut().for_each(|part| part.set_lags(state));
    }

    /// Notes the frames that `members` hold.
    pub fn note_members(&mut self, members: PortSet) {
        assert!(self.parts.iter_mut().all(|part| part.note_members(members)), "no frame is between lcores");
    }

    /// Members at which noted frames wait.
    pub fn undrained_members(&mut self) -> PortSet {
        self.parts.iter_mut().fold(PortSet::EMPTY, |all, part| all | part.undrained_members())
    }

    /// Shuts down until no frame is in transit between lcores. Returns whether every XON has left.
    pub fn shutdown(&mut self, io: &mut MemPorts, now: Ticks) -> bool {
        let mut done = true;
        for _ in 0..=self.parts.len() {
            done = true;
            for part in &mut self.parts {
                done &= part.shutdown(io, now);
            }
        }
        done
    }

    /// Shuts down `lcore` alone.
    pub fn shutdown_one(&mut self, lcore: usize, io: &mut MemPorts, now: Ticks) -> bool {
        self.parts[lcore].shutdown(io, now)
    }

    /// Polls `lcore` alone.
    pub fn poll_one(&mut self, lcore: usize, io: &mut MemPorts, now: u64) {
        self.parts[lcore].poll(io, &mut self.scratch, Ticks(now));
    }

    pub fn apply(&mut self, live_config: &LiveConfig) {
        self.parts.iter_mut().for_each(|part| part.apply(&mut live_config.clone()));
    }

    /// Applies settings with as many messages as their static entries need. Returns the number of messages to an lcore.
    pub fn apply_statics(&mut self, live_config: &LiveConfig) -> usize {
        let messages = self.parts.iter_mut().map(|part| {
            let (mut message, mut messages) = (live_config.clone(), 1);
            part.apply(&mut message);
            while !message.has_all_statics() {
                message.again(false);
                part.apply(&mut message);
                messages += 1;
            }
            messages
        });
        messages.max().unwrap_or(0)
    }

    /// Applies settings to `lcore` alone.
    pub fn apply_one(&mut self, lcore: usize, live_config: &LiveConfig) {
        self.parts[lcore].apply(&mut live_config.clone());
    }

    /// Learns a station, as if it had sent a frame to the lcore that owns `port`.
    pub fn learn(&mut self, vlan: u16, mac: MacAddr, port: usize) {
        let owner = port % self.parts.len();
        self.parts[owner].learn(vlan, mac, port, Ticks(self.now));
    }

    /// Replaces the routing tables of all lcores.
    pub fn set_routes(&mut self, table: &Arc<RouteTable>) {
        self.parts.iter_mut().for_each(|part| part.set_routes(table));
    }

    /// Attaches a control plane for frames of at most `longest` bytes to each lcore. Returns its ends, by lcore.
    pub fn attach_exceptions(&mut self, longest: usize) -> Vec<ExceptionLink> {
        let attach = |part: &mut Pipeline<MemPacket>| {
            let (port, link) = exception_channel(longest);
            part.attach_exceptions(port);
            link
        };
        self.parts.iter_mut().map(attach).collect()
    }

    /// Attaches a thread of mirrors to each lcore. Returns its ends, by lcore.
    pub fn attach_mirrors(&mut self) -> Vec<ExceptionLink<CopyFrame>> {
        let attach = |part: &mut Pipeline<MemPacket>| {
            let (channel, link) = exception_channel(2048);
            part.attach_mirror(channel);
            link
        };
        self.parts.iter_mut().map(attach).collect()
    }

    /// Declares which probes are own ones.
    pub fn recognize_probes(&mut self, probes: &Arc<OwnProbes>) {
        self.parts.iter_mut().for_each(|part| part.recognize_probes(probes.clone()));
    }

    pub fn clear_watermarks(&mut self) {
        self.parts.iter_mut().for_each(Pipeline::clear_watermarks);
    }

    pub fn held_cells(&self) -> u64 {
        self.parts.iter().map(Pipeline::held_cells).sum()
    }

    pub fn held_frames(&self) -> usize {
        self.parts.iter().map(Pipeline::held_frames).sum()
    }
}

/// A switch with its own clock.
pub struct Bed {
    pub io: MemPorts,
    pub switch: Fleet,
    pub counters: Arc<Counters>,
    pub now: u64,
}

impl Bed {
    pub fn new(spec: &SwitchSpec) -> Self {
        let counters = Arc::new(Counters::of(spec));
        let switch = Fleet::new(spec, &counters);
        Self { io: MemPorts::new(spec.ports.len()), switch, counters, now: HZ }
    }

    /// Creates a switch that knows station `n` behind port `n`.
    pub fn learned(spec: &SwitchSpec) -> Self {
        let mut bed = Self::new(spec);
        for port in 0..spec.ports.len() {
            bed.io.inject(port, &frame(port, 0xffff, 0, 60));
        }
        bed.run(1_000_000);
        for port in 0..spec.ports.len() {
            bed.io.sent_all(port);
        }
        bed
    }

    /// Creates a switch like [`Bed::learned`] whose port 1 is paused for class 3, so frames to it stay.
    pub fn blocked(spec: &SwitchSpec) -> Self {
        let mut bed = Self::learned(spec);
        bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
        bed.poll();
        bed
    }

    /// Injects `frames` lossless frames of one cell each, from station 0 to station 1.
    pub fn fill(&mut self, frames: usize) {
        for _ in 0..frames {
            self.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
        }
    }

    /// Applies settings as the loop of an lcore does: peers of ports that it shuts get XON.
    pub fn apply(&mut self, live_config: &LiveConfig) {
        for part in &mut self.switch.parts {
            part.resume_before_shut(&mut self.io, live_config, Ticks(self.now));
            part.apply(&mut live_config.clone());
        }
    }

    /// Creates a message with this change for each lcore.
    pub fn messages(&self, live_config: &LiveConfig) -> Vec<LiveConfig> {
        vec![live_config.clone(); self.switch.parts.len()]
    }

    /// Gives each lcore its message of `messages`. Returns the ports at which the change is pending. The messages ask
    /// for the next step afterwards: with `may_grow` parts of the buffer grow.
    pub fn step(&mut self, messages: &mut [LiveConfig], may_grow: bool) -> PortSet {
        let mut pending = PortSet::EMPTY;
        for (part, message) in self.switch.parts.iter_mut().zip(messages) {
            part.resume_before_shut(&mut self.io, message, Ticks(self.now));
            part.apply(message);
            pending |= message.pending();
            message.again(may_grow);
        }
        pending
    }

    /// Polls once, now.
    pub fn poll(&mut self) {
        self.switch.poll(&mut self.io, self.now);
    }

    /// Polls every microsecond for `ns`.
    pub fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += 1000;
            self.poll();
        }
    }

    /// Returns the frames sent by `port`, without PFC frames.
    pub fn data(&mut self, port: usize) -> Vec<Vec<u8>> {
        self.io.sent_all(port).into_iter().filter(|frame| pfc_of(frame).is_none()).collect()
    }

    /// Returns the PFC frames sent by `port`; discards its data frames.
    pub fn pfcs(&mut self, port: usize) -> Vec<PfcFrame> {
        self.io.sent_all(port).iter().filter_map(|frame| pfc_of(frame)).collect()
    }

    /// Returns the drops at `port` for `reason`, of any class.
    pub fn drops(&self, port: usize, reason: DropReason) -> u64 {
        let rows = self.counters.of_port(port).flat_map(|port| &port.drops);
        rows.map(|row| row[reason as usize].get()).sum()
    }

    /// Asserts that all frames have left and all cells and buffers are free.
    pub fn assert_empty(&mut self) {
        self.poll();
        assert_eq!((self.switch.held_cells(), self.switch.held_frames(), self.io.held()), (0, 0, 0));
    }

    /// Injects a PFC frame from the peer of `port` that pauses `priorities` for `quanta`.
    pub fn pause(&mut self, port: usize, priorities: ClassSet, quanta: u16) {
        let pfc = PfcFrame { enabled: priorities, quanta: [holdfast::units::Quanta(quanta); 8] };
        self.io.inject(port, &pfc.emit(mac(port)));
    }
}

/// Returns the address of the station behind port `n`. 0xffff is the broadcast address.
pub fn mac(station: usize) -> MacAddr {
    if station == 0xffff { MacAddr::BROADCAST } else { MacAddr::local(1, station as u16) }
}

/// Returns an IPv4 UDP frame of `len` bytes (42 at least) with this DSCP and ECT(0).
pub fn frame(from: usize, to: usize, dscp: u8, len: usize) -> Vec<u8> {
    let mut ip = etherparse::Ipv4Header::new(
        (len - 34) as u16,
        64,
        etherparse::IpNumber::UDP,
        [10, 0, 0, from as u8],
        [10, 0, 0, to as u8],
    )
    .unwrap();
    ip.dscp = etherparse::IpDscp::try_new(dscp).unwrap();
    ip.ecn = etherparse::IpEcn::try_new(2).unwrap();
    let mut bytes = Vec::new();
    etherparse::PacketBuilder::ethernet2(mac(from).0, mac(to).0)
        .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
        .udp(49_152, 4791)
        .write(&mut bytes, &vec![0; len - 42])
        .unwrap();
    bytes
}

pub fn pfc_of(frame: &[u8]) -> Option<PfcFrame> {
    if frame.get(12..14)? != mac_control::ETHERTYPE.to_be_bytes() {
        return None;
    }
    match mac_control::parse(frame) {
        Some(MacControl::Pfc(pfc)) => Some(pfc),
        _ => None,
    }
}

/// Returns the ECN field of an untagged IPv4 frame.
pub fn ecn_of(frame: &[u8]) -> u8 {
    frame[15] & 3
}
