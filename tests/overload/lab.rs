//! A switch, its virtual hosts and the links between them, on one clock. Cables have a length and receive rings a
//! limit. An lcore takes time for each frame, while hosts and links continue.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use holdfast::config::{self, Config};
use holdfast::dataplane::Pipeline;
use holdfast::dataplane::Scratch;
use holdfast::hosts::{HostCounters, Hosts};
use holdfast::io::memory::MemPacket;
use holdfast::io::{self, Burst, Packet, Ports};
use holdfast::plan::Counters;
use holdfast::sets::{ClassSet, FrameSet};
use holdfast::units::{Quanta, Ticks};
use holdfast::wire::MacAddr;
use holdfast::wire::mac_control::PfcFrame;

/// Ticks per second: a tick is a nanosecond here.
const HZ: u64 = 1_000_000_000;
/// Interval between polls of the hosts.
const STEP_NS: u64 = 200;
/// Time of a poll without its frames.
const POLL_NS: u64 = 300;
/// Delay of a cable in each direction. On the way to the host, a pause also takes `RESPONSE_NS` until the host obeys.
const CABLE_NS: u64 = 500;
const RESPONSE_NS: u64 = 1_000;
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// Frames in transit, with their times of arrival.
type Cable = VecDeque<(u64, MemPacket)>;

/// Both directions between a port of the switch and its host.
#[derive(Default)]
struct Link {
    to_switch: Cable,
    ring: VecDeque<MemPacket>,
    to_host: Cable,
    /// Frames for which the ring had no room, by class; the last entry is frames without IP, such as PFC.
    missed: [u64; 9],
    highest: usize,
    is_dead: bool,
}

/// All links. Implements [`Ports`] for the hosts' ends.
struct Links {
    links: Vec<Link>,
    ring: usize,
    now: u64,
}

impl Links {
    fn arrive(&mut self) {
        for link in &mut self.links {
            while link.to_switch.front().is_some_and(|(at, _)| *at <= self.now) {
                let Some((_, frame)) = link.to_switch.pop_front() else { break };
                if link.ring.len() < self.ring {
                    link.ring.push_back(frame);
                    link.highest = link.highest.max(link.ring.len());
                } else {
                    link.missed[class_of(frame.bytes())] += 1;
                }
            }
        }
    }
}

/// Returns the class by the class selector of an untagged IPv4 frame, or 8 for all other frames.
fn class_of(frame: &[u8]) -> usize {
    if frame[12..14] == [8, 0] { usize::from(frame[15] >> 5) } else { 8 }
}

impl Ports for Links {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        let link = &mut self.links[port];
        let until = out.capacity().min(out.len() + most);
        while out.len() < until && link.to_host.front().is_some_and(|(at, _)| *at <= self.now) {
            let frame = link.to_host.pop_front();
            out.extend(frame.map(|(_, frame)| frame).filter(|_| !link.is_dead));
        }
    }

    /// Takes all packets: a wire is never full.
    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        let link = &mut self.links[port];
        let at = self.now + CABLE_NS;
        link.to_switch.extend(packets.drain(..).filter(|_| !link.is_dead).map(|frame| (at, frame)));
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        packets.clear();
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        Some(MemPacket::new(packet.bytes()))
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        Some(MemPacket::new(frame))
    }
}

struct World {
    hosts: Hosts,
    links: Links,
}

impl World {
    fn advance(&mut self, to: u64) {
        while self.links.now + STEP_NS <= to {
            self.links.now += STEP_NS;
            self.links.arrive();
            let now = Ticks(self.links.now);
            self.hosts.poll(&mut self.links, now);
        }
    }
}

/// The switch's ends of the links, as one lcore accesses them on its own clock.
struct SwitchEnd {
    world: Rc<RefCell<World>>,
    clock: u64,
    frame_ns: u64,
    /// Time to shed a frame: a sixth of the time to receive and send one.
    shed_ns: u64,
}

impl Ports for SwitchEnd {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        let mut world = self.world.borrow_mut();
        world.advance(self.clock);
        let ring = &mut world.links.links[port].ring;
        let count = ring.len().min(most).min(out.remaining_capacity());
        out.extend(ring.drain(..count));
        self.clock += count as u64 * self.frame_ns;
    }

    fn backlog(&mut self, port: usize, _: ClassSet) -> Option<usize> {
        let mut world = self.world.borrow_mut();
        world.advance(self.clock);
        Some(world.links.links[port].ring.len())
    }

    fn time(&mut self) -> Option<Ticks> {
        Some(Ticks(self.clock))
    }

    fn shed(&mut self, packets: &mut Burst<MemPacket>, frames: FrameSet) {
        self.clock -= (self.frame_ns - self.shed_ns) * frames.len() as u64;
        io::shed(self, packets, frames);
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        let at = self.clock + CABLE_NS + RESPONSE_NS;
        self.world.borrow_mut().links.links[port].to_host.extend(packets.drain(..).map(|frame| (at, frame)));
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        packets.clear();
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        Some(MemPacket::new(packet.bytes()))
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        Some(MemPacket::new(frame))
    }
}

/// The switch, its lcores, the hosts and the links. Host n is at port n.
pub struct Lab {
    world: Rc<RefCell<World>>,
    lcores: Vec<(Pipeline<MemPacket>, SwitchEnd)>,
    scratch: Scratch<MemPacket>,
    pub counters: Arc<Counters>,
    pub hosts: Arc<HostCounters>,
}

impl Lab {
    /// Creates the lab from a configuration whose ports are all `ring`, with hosts in the order of the ports. Each
    /// receive ring holds `ring` frames, and an lcore takes `frame_ns` for each frame.
    pub fn new(yaml: &str, ring: usize, frame_ns: u64) -> Self {
        let Config { switch, hosts, .. } = config::parse("lab", yaml).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(hosts.iter().enumerate().all(|(index, host)| host.port == index), "host n at port n");
        let links = Links { links: hosts.iter().map(|_| Link::default()).collect(), ring, now: HZ };
        let world = World { hosts: Hosts::new(&hosts, HZ), links };
        let tallies = world.hosts.counters();
        let world = Rc::new(RefCell::new(world));
        let counters = Arc::new(Counters::of(&switch));
        let end = || SwitchEnd { world: world.clone(), clock: HZ, frame_ns, shed_ns: frame_ns.div_ceil(6) };
        let fleet = Pipeline::fleet(&switch, &counters, HZ, 1);
        let mut lab = Self {
            lcores: fleet.into_iter().map(|part| (part, end())).collect(),
            scratch: Scratch::default(),
            world,
            counters,
            hosts: tallies,
        };
        // Runs until the switch knows the hosts and the flows are about to start.
        lab.run(MS);
        lab
    }

    /// Runs the lab for `ns`: the lcore with the earliest clock polls next.
    pub fn run(&mut self, ns: u64) {
        let end = self.now() + ns;
        while let Some((pipeline, io)) = self.lcores.iter_mut().min_by_key(|(_, io)| io.clock)
            && io.clock < end
        {
            let now = io.clock;
            io.clock += POLL_NS;
            pipeline.poll(io, &mut self.scratch, Ticks(now));
        }
    }

    /// Stops the polls of all lcores for `ns`, while hosts and links continue.
    pub fn stall(&mut self, ns: u64) {
        self.lcores.iter_mut().for_each(|(_, io)| io.clock += ns);
    }

    /// Sends XOFF for `classes` with `quanta` from the host at `port`. The most quanta last 3.4 ms at 10G; zero quanta
    /// are XON.
    pub fn pause(&mut self, port: usize, classes: ClassSet, quanta: u16) {
        let pfc = PfcFrame { enabled: classes, quanta: [Quanta(quanta); 8] };
        let links = &mut self.world.borrow_mut().links;
        let at = links.now + CABLE_NS;
        links.links[port].to_switch.push_back((at, MemPacket::new(&pfc.emit(MacAddr::local(1, port as u16)))));
    }

    /// Returns the time of the lcore that is furthest behind.
    pub fn now(&self) -> u64 {
        self.lcores.iter().map(|(_, io)| io.clock).min().expect("an lcore")
    }

    /// Cuts off `host`: no frame comes from it or reaches it. With `link` the switch also sees the link down.
    pub fn die(&mut self, host: usize, link: bool) {
        self.world.borrow_mut().links.links[host].is_dead = true;
        for (pipeline, io) in self.lcores.iter_mut().filter(|_| link) {
            let now = Ticks(io.clock);
            pipeline.set_link(host, false, now);
        }
    }

    /// Stops the hosts from sending and runs until all frames in transit have arrived.
    pub fn drain(&mut self) {
        self.world.borrow_mut().hosts.stop_sending();
        self.run(30 * MS);
    }

    /// Asserts that no lcore holds cells or frames.
    #[track_caller]
    pub fn assert_empty(&self) {
        let held: Vec<_> = self.lcores.iter().map(|(part, _)| (part.held_cells(), part.held_frames())).collect();
        assert!(held.iter().all(|held| *held == (0, 0)), "cells and frames held: {held:?}");
    }

    /// Returns the frames of `class` that found a full receive ring.
    pub fn missed(&self, class: usize) -> u64 {
        self.world.borrow().links.links.iter().map(|link| link.missed[class]).sum()
    }

    /// Returns the watermark of the receive rings in frames.
    pub fn ring_highest(&self) -> usize {
        self.world.borrow().links.links.iter().map(|link| link.highest).max().expect("a link")
    }

    pub fn sent(&self, flow: usize) -> u64 {
        self.hosts.flows[flow].sent_frames.get()
    }

    pub fn received(&self, flow: usize) -> u64 {
        self.hosts.flows[flow].received_frames.get()
    }

    /// Returns the frames that each flow delivers in `ns`.
    pub fn delivered_in(&mut self, ns: u64) -> Vec<u64> {
        let count = |lab: &Self| (0..lab.hosts.flows.len()).map(|flow| lab.received(flow)).collect::<Vec<_>>();
        let before = count(self);
        self.run(ns);
        count(self).iter().zip(before).map(|(after, before)| after - before).collect()
    }

    /// Returns the frames of `class` that were sent and not received.
    pub fn lost(&self, class: u8) -> u64 {
        let flows = self.hosts.flows.iter().filter(|flow| flow.info.class == class);
        flows.filter_map(|flow| flow.missing()).sum()
    }

    /// Returns the XOFF caused by a receive backlog.
    pub fn backlog_xoffs(&self) -> u64 {
        self.counters.ports.iter().map(|port| port.backlog_xoffs.get()).sum()
    }

    /// Returns the XOFF that `port` sent for `class`.
    pub fn xoffs(&self, port: usize, class: usize) -> u64 {
        self.counters.ports[port].pfc_tx_xoff[class].get()
    }

    /// Returns all drops of `class`.
    pub fn all_drops(&self, class: usize) -> u64 {
        self.counters.ports.iter().flat_map(|port| &port.drops[class]).map(|count| count.get()).sum()
    }
}
