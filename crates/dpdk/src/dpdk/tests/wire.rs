//! The clock of a wire over real rings: a switch on the clock of the test, and a peer that takes each frame when the
//! wire has sent it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::*;
use crate::config;
use crate::dataplane::{Pipeline, Scratch};
use crate::plan::Counters;
use crate::units::Ticks;
use crate::wire::inband::{self, Hops, MARK};

/// A tick is a nanosecond.
const HZ: u64 = 1_000_000_000;
/// A frame of 1000 B on the wire takes 800 ns at 10G.
const LEN: usize = 976;
const FRAME_NS: u64 = 800;
const FRAMES: usize = 120;
/// Bulk that is noted, and a strict class.
const BULK: u8 = 26;
const STRICT: u8 = 48;

const SWITCH: &str = "
preset: roce
classes: {3: {telemetry: hpcc, ecn: off}}
ports: [{name: p*, count: 3, device: \"net_null*\", speed: 10G, cable: 3m}]
";

/// The ports of the switch on the clock of the test.
struct Ends {
    io: EthIo,
    now: u64,
}

impl Ports for Ends {
    type Pkt = Mbuf;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Mbuf>) {
        self.io.rx(port, most, out);
    }

    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        self.io.backlog(port, queues)
    }

    fn time(&mut self) -> Option<Ticks> {
        Some(Ticks(self.now))
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<Mbuf>) {
        self.io.tx(port, packets);
    }

    fn free(&mut self, packets: &mut Burst<Mbuf>) {
        self.io.free(packets);
    }

    fn copy(&mut self, packet: &Mbuf) -> Option<Mbuf> {
        self.io.copy(packet)
    }

    fn make(&mut self, frame: &[u8]) -> Option<Mbuf> {
        self.io.make(frame)
    }
}

/// A frame that the peer took.
struct Taken {
    is_strict: bool,
    /// The poll that posted it, and when the wire began with it.
    posted_ns: u64,
    starts_ns: u64,
    /// Depth in its telemetry.
    depth: u64,
}

/// Ports 0 and 2 send to port 1, whose peer is paced.
struct World {
    links: Vec<RingLink>,
    hosts: Vec<PortQueues>,
    switch: Pipeline<Mbuf>,
    scratch: Scratch<Mbuf>,
    ends: Ends,
    data: Mempool,
    gap_ns: u64,
    wire_free_ns: u64,
    /// The polls that posted the frames in the ring to the peer.
    posted: VecDeque<u64>,
    taken: Vec<Taken>,
}

impl World {
    fn new(gap_ns: u64) -> Self {
        let spec = config::parse("wire.yaml", SWITCH).unwrap_or_else(|errors| panic!("{errors}")).switch;
        let (data, control) = (pool(&format!("wire{gap_ns}"), 4095), pool(&format!("wirec{gap_ns}"), 255));
        let (mut links, mut ends, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
        for port in 0..spec.ports.len() {
            let (link, end, host) = link(&format!("w{gap_ns}_{port}"), 1024, &data);
            links.push(link);
            ends.push(Some(end));
            hosts.push(host);
        }
        let counters = Arc::new(Counters::new(spec.ports.len(), 1));
        let switch = Pipeline::fleet(&spec, &counters, HZ, 1).remove(0);
        let ends = Ends { io: EthIo::new(ends, data.clone(), control), now: HZ };
        let (scratch, posted) = (Scratch::default(), VecDeque::new());
        let mut world =
            Self { links, hosts, switch, scratch, ends, data, gap_ns, wire_free_ns: 0, posted, taken: Vec::new() };
        // The switch learns the station of port 1, and the poll gap. It has forgotten its first slack then.
        world.inject(1, &frame_of(1, 0xff, 0));
        (0..2).for_each(|_| world.poll());
        world.drain_all();
        for _ in 0..4 {
            world.inject(0, &frame_of(0, 1, BULK));
            (0..3).for_each(|_| world.poll());
            world.ends.now += 1_100_000;
        }
        world.drain_all();
        world.taken.clear();
        world
    }

    fn inject(&mut self, from: usize, frame: &[u8]) {
        let mut burst = Burst::new();
        burst.push(self.data.alloc_with(frame).expect("a buffer"));
        self.hosts[from].tx(&mut burst);
        assert!(burst.is_empty(), "the ring is full");
    }

    /// Lets time pass until the next poll, and polls.
    fn poll(&mut self) {
        let now = self.ends.now + self.gap_ns;
        self.ends.now = now;
        self.take(now);
        self.switch.poll(&mut self.ends, &mut self.scratch, Ticks(now));
        let waiting = self.hosts[1].backlog(ClassSet::only(0)).expect("a ring knows its frames");
        self.posted.resize(waiting, now);
    }

    /// Takes the frames that the wire has sent at `now`.
    fn take(&mut self, now: u64) {
        while let Some(&posted_ns) = self.posted.front() {
            let starts_ns = self.wire_free_ns.max(posted_ns);
            if starts_ns + FRAME_NS > now {
                return;
            }
            self.wire_free_ns = starts_ns + FRAME_NS;
            self.posted.pop_front();
            let mut burst = Burst::new();
            self.hosts[1].rx(1, &mut burst);
            let bytes = burst[0].bytes_mut();
            let is_strict = bytes[15] >> 2 == STRICT;
            let notes = inband::find(bytes, 14).map(|field| Hops::read(field));
            let depth = notes.map_or(0, |notes| notes.as_slice().first().map_or(0, |hop| hop.queue_bytes()));
            self.taken.push(Taken { is_strict, posted_ns, starts_ns, depth });
            Mbuf::free_all(&mut burst);
        }
    }

    /// Empties the rings to all hosts.
    fn drain_all(&mut self) {
        let mut burst = Burst::new();
        for host in &mut self.hosts {
            while host.rx(BURST, &mut burst) + burst.len() > 0 {
                Mbuf::free_all(&mut burst);
            }
        }
        self.posted.clear();
    }
}

/// A RoCEv2 packet with an empty field for notes.
fn frame_of(from: u8, to: u8, dscp: u8) -> Vec<u8> {
    let mut frame = vec![0; LEN];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let [high, low] = (LEN as u16 - 14).to_be_bytes();
    frame[14..24].copy_from_slice(&[0x45, dscp << 2 | 2, high, low, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    frame[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    let udp_len = (LEN as u16 - 34).to_be_bytes();
    frame[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, udp_len[0], udp_len[1], 0, 0]);
    frame[42..54].copy_from_slice(&[0x04, 0, 0xff, 0xff, MARK, 0, 0, 1, 0, 0, 0, 0]);
    frame
}

#[test]
fn ring_with_a_paced_peer_drains_at_the_rate_and_depths_count_what_it_holds() {
    for gap_ns in [1_000, 20_000] {
        let mut world = World::new(gap_ns);
        for _ in 0..FRAMES / 2 {
            world.inject(0, &frame_of(0, 1, BULK));
            world.inject(2, &frame_of(2, 1, BULK));
        }
        (0..2).for_each(|_| world.poll());
        world.inject(0, &frame_of(0, 1, STRICT));
        for _ in 0..10 * FRAMES {
            world.poll();
        }
        assert_eq!(world.taken.len(), FRAMES + 1, "each frame is taken once");
        assert_eq!(world.switch.held_frames(), 0);
        let bulk: Vec<&Taken> = world.taken.iter().filter(|taken| !taken.is_strict).collect();
        for (index, taken) in bulk.iter().enumerate() {
            let before = (taken.starts_ns - taken.posted_ns) * 1000 / FRAME_NS;
            // All frames behind it may be in the queue; those in the ring to the switch are not yet.
            let most = before + ((bulk.len() - 1 - index) * LEN) as u64;
            assert!(taken.depth + 82 >= before, "{gap_ns} ns, frame {index}: depth {} of {before} B", taken.depth);
            assert!(taken.depth <= most + 2, "{gap_ns} ns, frame {index}: depth {} of {most} B", taken.depth);
        }
        let (first, last) = (bulk[0], world.taken.last().expect("frames were taken"));
        let took = last.starts_ns + FRAME_NS - first.posted_ns;
        // Ten microseconds of frames a poll, and the one with which the slack ends.
        let of_poll = (10_000 / FRAME_NS + 1).min(FRAMES as u64 + 1);
        let polls = (FRAMES as u64 + 1).div_ceil(of_poll);
        let due = if gap_ns < 10_000 { (FRAMES as u64 + 1) * FRAME_NS } else { polls * gap_ns };
        assert!(took <= due + FRAME_NS, "{gap_ns} ns: {took} of {due} ns");
        let strict = world.taken.iter().find(|taken| taken.is_strict).expect("it was sent");
        let wait = strict.starts_ns - strict.posted_ns;
        assert!(wait <= FRAME_NS + 1, "{gap_ns} ns: the strict frame waits {wait} ns behind what is posted");
        assert!(world.links.iter().all(|link| link.switch.stats().unwrap().oerrors == 0));
    }
}
