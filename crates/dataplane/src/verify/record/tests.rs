//! Runs the pipeline on one thread and virtual hosts on another, with rings between them, in real time. A replay of the
//! recorded events must make the same decisions.

use crate::dataplane::Scratch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Recorder, Stations, Tape};
use crate::config::{self, Config};
use crate::dataplane::Pipeline;
use crate::forward::fdb::StaticEntry;
use crate::hosts::Hosts;
use crate::io::memory::MemPacket;
use crate::io::{Burst, Packet, Ports};
use crate::plan::Counters;
use crate::sets::PortSet;
use crate::units::Ticks;
use crate::verify::replay::agreement::{Agreed, agree, counted};

const HZ: u64 = 1_000_000_000;
/// Hosts send for this long, and until enough events happened, because a machine may give them little CPU time.
const SENDING: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(30);
const QUIET: Duration = Duration::from_millis(20);
const RING: usize = 1024;
/// One of this many transmissions of several frames is accepted only in part.
const STINGY: u64 = 7;

/// One end of each link.
struct Ends {
    links: Vec<(SyncSender<MemPacket>, Receiver<MemPacket>)>,
    /// Whether the driver accepts some bursts only in part, as full rings do.
    is_stingy: bool,
    bursts: u64,
}

impl Ends {
    fn pair(count: usize) -> (Self, Self) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (there, back) = (sync_channel(RING), sync_channel(RING));
            one.push((there.0, back.1));
            other.push((back.0, there.1));
        }
        let ends = |links, is_stingy| Self { links, is_stingy, bursts: 0 };
        (ends(one, true), ends(other, false))
    }
}

impl Ports for Ends {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        let room = out.remaining_capacity().min(most);
        out.extend(self.links[port].1.try_iter().take(room));
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        self.bursts += u64::from(packets.len() > 1);
        let is_short = self.is_stingy && packets.len() > 1 && self.bursts.is_multiple_of(STINGY);
        let most = if is_short { packets.len() / 2 } else { packets.len() };
        let mut left = Burst::new();
        for (number, packet) in packets.drain(..).enumerate() {
            if number >= most || !left.is_empty() {
                left.push(packet);
            } else if let Err(TrySendError::Full(packet) | TrySendError::Disconnected(packet)) =
                self.links[port].0.try_send(packet)
            {
                left.push(packet);
            }
        }
        *packets = left;
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

/// Runs the switch in real time and replays the recorded events.
fn really(yaml: &str) -> Agreed {
    let Config { mut switch, hosts: specs, .. } =
        config::parse("test", yaml).unwrap_or_else(|errors| panic!("{errors}"));
    let mac = |host: &crate::hosts::HostSpec| (host.mac, host.port);
    let stations = Stations { ports: specs.iter().map(mac).collect(), up: PortSet::first(specs.len()) };
    // All stations are static entries, so that no lossless frame has an unknown destination.
    let entry = |(mac, port): (&_, &usize)| StaticEntry { vlan: 1, mac: *mac, port: *port as u8 };
    switch.fdb.entries.extend(stations.ports.iter().map(entry));
    let counters = Arc::new(Counters::new(switch.ports.len(), 1));
    let mut pipeline = Pipeline::new(&switch, counters.clone(), HZ, 1);
    let start = Instant::now();
    let clock = move || HZ + start.elapsed().as_nanos() as u64;
    let (ends, mut host_ends) = Ends::pair(specs.len());
    let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (told_to_stop, is_over) = (stop.clone(), over.clone());
    let world = thread::spawn(move || {
        let mut hosts = Hosts::new(&specs, HZ);
        while !is_over.load(Ordering::Relaxed) {
            if told_to_stop.load(Ordering::Relaxed) {
                hosts.stop_sending();
            }
            hosts.poll(&mut host_ends, Ticks(clock()));
            // Both threads may share one core.
            thread::yield_now();
        }
    });
    let mut io = Recorder::new(ends, Tape::new(4_000_000), clock, Ticks(0));
    let (mut moved_at, mut scratch) = (Instant::now(), Scratch::default());
    let mut is_sending = true;
    while is_sending || pipeline.held_frames() > 0 || moved_at.elapsed() < QUIET {
        if is_sending && start.elapsed() >= SENDING {
            is_sending = !is_enough(&counters) && start.elapsed() < PATIENCE;
            stop.store(!is_sending, Ordering::Relaxed);
        }
        let now = Ticks(clock());
        io.poll = now;
        let received = pipeline.poll_in(&mut io, &mut scratch, now);
        if received > 0 {
            io.tape.look(pipeline.digest(), now);
        }
        if pipeline.poll_out(&mut io, now, received) > 0 {
            moved_at = Instant::now();
        }
        thread::yield_now();
    }
    over.store(true, Ordering::Relaxed);
    world.join().unwrap();
    let agreed = agree(&io.tape, &switch, &stations, HZ);
    assert_eq!(agreed.counts, counted(&counters));
    let backlogs: u64 = counters.ports.iter().map(|port| port.backlog_xoffs.get()).sum();
    assert_eq!(backlogs, 0, "XOFF by a backlog, which a replay does not model");
    println!("{} looks, {:?}", agreed.looks, agreed.decided);
    agreed
}

/// Whether the events that a test must see have all happened.
fn is_enough(counters: &Counters) -> bool {
    let counts = counted(counters);
    let sum =
        |what: &str| -> u64 { counts.iter().filter(|(key, _)| key.ends_with(what)).map(|(_, count)| count).sum() };
    ["headroom_full", "queue_threshold", "marked", "XON sent"].iter().all(|what| sum(what) > 20)
}

/// Four hosts send to a fifth in two classes; one of them ignores PFC. Marks are certain, because kmin equals kmax.
fn incast(headroom: &str) -> String {
    let mut yaml = format!(
        "preset: roce\nbuffer: {{size: 1MiB, headroom: {headroom}}}\nclasses:\n  \
         0: {{ecn: {{kmin: 20kB, kmax: 20kB, pmax: 100%}}}}\n  3: {{ecn: {{kmin: 40kB, kmax: 40kB, pmax: 100%}}}}\nports:\n"
    );
    (1..=5)
        .for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 1G, cable: 5m, backlog_mark: off}}\n"));
    yaml += "hosts:\n";
    for n in 1..=4 {
        let pfc = if n == 4 { "ignore" } else { "obey" };
        let flows = format!(
            "[{{to: h5, kind: roce, rate: 800M, frame: {}, dscp: 26, ecn: true}}, \
             {{to: h5, kind: udp, rate: 150M, frame: {}, dscp: 0, ecn: {}}}]",
            1078 - 100 * n,
            300 * n,
            n % 2 == 0
        );
        yaml += &format!("  - {{name: h{n}, port: p{n}, pfc: {pfc}, flows: {flows}}}\n");
    }
    yaml + "  - {name: h5, port: p5}\n"
}

#[track_caller]
fn assert_reached(decided: &BTreeMap<&'static str, u64>, places: &[&str]) {
    for place in
        places.iter().chain(&["shared", "headroom", "headroom_full", "queue_threshold", "marked", "XOFF", "XON"])
    {
        assert!(decided.contains_key(place), "{place} is not among {decided:?}");
    }
}

#[test]
fn replay_of_a_recorded_run_agrees_with_independent_headroom() {
    assert_reached(&really(&incast("independent")).decided, &["reserve"]);
}

#[test]
fn replay_of_a_recorded_run_agrees_with_a_headroom_pool() {
    assert_reached(&really(&incast("shared-pool")).decided, &["reserve"]);
}

#[test]
fn replay_of_a_recorded_run_agrees_with_dynamic_headroom() {
    assert_reached(&really(&incast("dynamic")).decided, &[]);
}
