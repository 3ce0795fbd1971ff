//! A switch, its virtual hosts and what is between them, on one clock. Cables have a length, receive rings an end, and
//! lcores take time for each frame, during which the world goes on.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use holdfast::config::{self, Config};
use holdfast::dataplane::memory::MemPacket;
use holdfast::dataplane::{Counters, Pipeline};
use holdfast::hosts::{HostCounters, Hosts};
use holdfast::packet::{self, Burst, Packet, Ports};
use holdfast::sets::FrameSet;
use holdfast::units::{Quanta, Ticks};
use holdfast::wire::MacAddr;
use holdfast::wire::mac_control::PfcFrame;

/// A tick is a nanosecond here.
const HZ: u64 = 1_000_000_000;
/// Hosts are polled this often.
const STEP_NS: u64 = 200;
/// What a poll takes beside its frames.
const POLL_NS: u64 = 300;
/// Each way, and on the way to the host also until it has understood a pause.
const CABLE_NS: u64 = 500;
const RESPONSE_NS: u64 = 1_000;
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// Frames on their way, with when they arrive.
type Cable = VecDeque<(u64, MemPacket)>;

/// Both ways between a port of the switch and its host.
#[derive(Default)]
struct Link {
    to_switch: Cable,
    ring: VecDeque<MemPacket>,
    to_host: Cable,
    /// Frames the ring had no room for, by class; the last is PFC.
    missed: [u64; 9],
    highest: usize,
    is_dead: bool,
}

/// All links. As [`Ports`] they are the hosts' ends.
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

/// By the class selector of an untagged IPv4 frame; 8 for all that is not IP.
fn class_of(frame: &[u8]) -> usize {
    if frame[12..14] == [8, 0] { usize::from(frame[15] >> 5) } else { 8 }
}

impl Ports for Links {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, out: &mut Burst<MemPacket>) {
        let link = &mut self.links[port];
        while !out.is_full() && link.to_host.front().is_some_and(|(at, _)| *at <= self.now) {
            let frame = link.to_host.pop_front();
            out.extend(frame.map(|(_, frame)| frame).filter(|_| !link.is_dead));
        }
    }

    /// A wire never says that it is full.
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

/// The switch's ends of the links, as one lcore sees them while its time goes by.
struct SwitchEnd {
    world: Rc<RefCell<World>>,
    clock: u64,
    frame_ns: u64,
    /// Time of a frame that is shed: a sixth of one that is received and sent.
    shed_ns: u64,
}

impl Ports for SwitchEnd {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, out: &mut Burst<MemPacket>) {
        let mut world = self.world.borrow_mut();
        world.advance(self.clock);
        let ring = &mut world.links.links[port].ring;
        let count = ring.len().min(out.remaining_capacity());
        out.extend(ring.drain(..count));
        self.clock += count as u64 * self.frame_ns;
    }

    fn backlog(&mut self, port: usize) -> Option<usize> {
        let mut world = self.world.borrow_mut();
        world.advance(self.clock);
        Some(world.links.links[port].ring.len())
    }

    fn time(&mut self) -> Option<Ticks> {
        Some(Ticks(self.clock))
    }

    fn shed(&mut self, packets: &mut Burst<MemPacket>, frames: FrameSet) {
        self.clock -= (self.frame_ns - self.shed_ns) * frames.len() as u64;
        packet::shed(self, packets, frames);
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

/// All of it. Host n is at port n.
pub struct Lab {
    world: Rc<RefCell<World>>,
    lcores: Vec<(Pipeline<MemPacket>, SwitchEnd)>,
    pub counters: Arc<Counters>,
    pub hosts: Arc<HostCounters>,
}

impl Lab {
    /// By a configuration whose ports are all `ring`, with hosts in their order. Each receive ring holds `ring` frames, and
    /// each frame takes its lcore `frame_ns`.
    pub fn new(yaml: &str, ring: usize, frame_ns: u64) -> Self {
        let Config { switch, hosts, .. } = config::parse("lab", yaml).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(hosts.iter().enumerate().all(|(index, host)| host.port == index), "host n at port n");
        let links = Links { links: hosts.iter().map(|_| Link::default()).collect(), ring, now: HZ };
        let world = World { hosts: Hosts::new(&hosts, HZ), links };
        let tallies = world.hosts.counters();
        let world = Rc::new(RefCell::new(world));
        let counters = Arc::new(Counters::new(switch.ports.len(), usize::from(switch.lcores)));
        let end = || SwitchEnd { world: world.clone(), clock: HZ, frame_ns, shed_ns: frame_ns.div_ceil(6) };
        let fleet = Pipeline::fleet(&switch, &counters, HZ, 1);
        let mut lab =
            Self { lcores: fleet.into_iter().map(|part| (part, end())).collect(), world, counters, hosts: tallies };
        // Until hosts are known and flows about to start.
        lab.run(MS);
        lab
    }

    /// Time goes by: whichever lcore is behind polls next.
    pub fn run(&mut self, ns: u64) {
        let end = self.now() + ns;
        while let Some((pipeline, io)) = self.lcores.iter_mut().min_by_key(|(_, io)| io.clock)
            && io.clock < end
        {
            let now = io.clock;
            io.clock += POLL_NS;
            pipeline.poll(io, Ticks(now));
        }
    }

    /// No lcore polls for `ns`, while everybody else goes on.
    pub fn stall(&mut self, ns: u64) {
        self.lcores.iter_mut().for_each(|(_, io)| io.clock += ns);
    }

    /// The host at `port` says XOFF for `classes` from now on for the longest time there is, 3.4 ms at 10G; zero quanta: XON.
    pub fn pause(&mut self, port: usize, classes: u8, quanta: u16) {
        let pfc = PfcFrame { enabled: classes, quanta: [Quanta(quanta); 8] };
        let links = &mut self.world.borrow_mut().links;
        let at = links.now + CABLE_NS;
        links.links[port].to_switch.push_back((at, MemPacket::new(&pfc.emit(MacAddr::local(1, port as u16)))));
    }

    /// Where the lcore that is furthest behind is.
    pub fn now(&self) -> u64 {
        self.lcores.iter().map(|(_, io)| io.clock).min().expect("an lcore")
    }

    /// Nothing comes from `host` any more, and nothing reaches it; `link`: the switch sees that.
    pub fn die(&mut self, host: usize, link: bool) {
        self.world.borrow_mut().links.links[host].is_dead = true;
        for (pipeline, io) in self.lcores.iter_mut().filter(|_| link) {
            let now = Ticks(io.clock);
            pipeline.set_link(host, false, now);
        }
    }

    /// Hosts fall silent and all that is under way arrives.
    pub fn drain(&mut self) {
        self.world.borrow_mut().hosts.stop_sending();
        self.run(30 * MS);
    }

    /// Hosts are silent, and neither switch nor links hold anything.
    #[track_caller]
    pub fn assert_empty(&self) {
        let held: Vec<_> = self.lcores.iter().map(|(part, _)| (part.held_cells(), part.held_frames())).collect();
        assert!(held.iter().all(|held| *held == (0, 0)), "cells and frames held: {held:?}");
    }

    /// Frames of `class` that found a full receive ring.
    pub fn missed(&self, class: usize) -> u64 {
        self.world.borrow().links.links.iter().map(|link| link.missed[class]).sum()
    }

    /// The most frames that a receive ring ever held.
    pub fn ring_highest(&self) -> usize {
        self.world.borrow().links.links.iter().map(|link| link.highest).max().expect("a link")
    }

    pub fn sent(&self, flow: usize) -> u64 {
        self.hosts.flows[flow].sent_frames.get()
    }

    pub fn received(&self, flow: usize) -> u64 {
        self.hosts.flows[flow].received_frames.get()
    }

    /// What each flow delivers in `ns`.
    pub fn delivered_in(&mut self, ns: u64) -> Vec<u64> {
        let count = |lab: &Self| (0..lab.hosts.flows.len()).map(|flow| lab.received(flow)).collect::<Vec<_>>();
        let before = count(self);
        self.run(ns);
        count(self).iter().zip(before).map(|(after, before)| after - before).collect()
    }

    /// What flows of `class` sent and did not receive.
    pub fn lost(&self, class: u8) -> u64 {
        let flows = self.hosts.flows.iter().filter(|flow| flow.info.class == class);
        flows.filter_map(|flow| flow.missing()).sum()
    }

    /// Times that a backlog stopped somebody.
    pub fn backlog_xoffs(&self) -> u64 {
        self.counters.ports.iter().map(|port| port.backlog_xoffs.get()).sum()
    }

    /// XOFF that `port` sent for `class`.
    pub fn xoffs(&self, port: usize, class: usize) -> u64 {
        self.counters.ports[port].pfc_tx_xoff[class].get()
    }

    /// All drops of `class`.
    pub fn all_drops(&self, class: usize) -> u64 {
        self.counters.ports.iter().flat_map(|port| &port.drops[class]).map(|count| count.get()).sum()
    }
}
