//! Injected faults: ports in memory with a clock, and random faults on them.

use std::sync::Arc;

use proptest::prelude::*;

use holdfast_base::io::memory::{MemPacket, MemPorts};
use holdfast_base::io::{Burst, Packet, Ports};
use holdfast_base::sets::ClassSet;
use holdfast_base::sync::{AtomicU64, Ordering};
use holdfast_base::units::{Nanos, Ticks};
use holdfast_config::config;
use holdfast_edges::faults::board::{REORDER_WAIT, Refused};
use holdfast_edges::faults::counters::{PFC_ROW, ROWS};
use holdfast_edges::faults::hold::Hold;
use holdfast_edges::faults::rule::{Draws, Rule};
use holdfast_edges::faults::*;
use holdfast_wire::wire::mac_control::{self, MacControl};

mod board;
mod devices;
mod kinds;
mod storms;

/// Frames of one kind at the end of a random run.
fn sum(rows: [u64; ROWS]) -> usize {
    rows.iter().sum::<u64>() as usize
}

/// Ticks a second: one a nanosecond.
const HZ: u64 = 1_000_000_000;
const SWITCH: &str = "
preset: roce
ports: [{name: p1, device: net_null0, speed: 10G}, {name: p2, device: net_null1, speed: 10G}]
";

type Clock = Box<dyn Fn() -> Ticks + Send>;

/// Ports with faults, the clock, and the list of faults.
struct Bed {
    io: Faulty<MemPorts, Clock>,
    time: Arc<AtomicU64>,
    board: Arc<FaultBoard>,
    /// A second set of the ports, which counts all buffers.
    sibling: MemPorts,
    number: u16,
}

impl Bed {
    fn new(faults: &str) -> Self {
        let config = config::parse("test", &format!("{SWITCH}faults: {{seed: 7, list: {faults}}}"));
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        let (time, list) = (Arc::new(AtomicU64::new(1_000)), config.faults.unwrap());
        let clock = |time: Arc<AtomicU64>| move || Ticks(time.load(Ordering::Relaxed));
        let (board, mut receivers) = FaultBoard::new(&config.switch, &list.list, list.seed, clock(time.clone()), HZ);
        let mem = MemPorts::new(2);
        let sibling = mem.sibling();
        let table = board.table();
        let (tables, counters) = (receivers.remove(0), board.counters().clone());
        let faults = LcoreFeed { table: &table, tables, counters, lcore: 0, seed: list.seed };
        let io = Faulty::new(mem, Box::new(clock(time.clone())) as Clock, faults);
        Self { io, time, board, sibling, number: 0 }
    }

    fn mem(&mut self) -> &mut MemPorts {
        self.io.plain_mut()
    }

    fn pass(&self, time: Nanos) {
        self.time.fetch_add(time.0, Ordering::Relaxed);
    }

    /// Frames that the switch receives from the wire of port 0 when `frames` arrive there.
    fn receive(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        frames.iter().for_each(|frame| self.mem().inject(0, frame));
        self.poll()
    }

    /// Frames that one poll receives at port 0.
    fn poll(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let mut burst = Burst::new();
            self.io.rx(0, 32, &mut burst);
            assert!(burst.len() <= 32);
            all.extend(burst.iter().map(|packet| packet.bytes().to_vec()));
            let is_last = burst.is_empty() && self.mem().backlog(0, ClassSet::ALL) == Some(0);
            self.io.free(&mut burst);
            if is_last {
                return all;
            }
        }
    }

    /// Frames that leave by port 0 when the switch sends `frames`; those that it refuses are returned too.
    fn send(&mut self, frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
        let mut burst: Burst<MemPacket> = frames.iter().map(|frame| self.io.make(frame).unwrap()).collect();
        self.io.tx(0, &mut burst);
        let refused = burst.len();
        self.io.free(&mut burst);
        (self.mem().sent_all(0), refused)
    }

    /// Frames `from..to` of the wire with their numbers.
    fn frames(&mut self, count: u16) -> Vec<Vec<u8>> {
        let first = self.number;
        self.number += count;
        (first..self.number).map(|number| udp(26, 2, 4000, number)).collect()
    }

    fn counts(&self) -> Vec<u64> {
        self.board.faults().iter().map(|fault| fault.hits.iter().sum()).collect()
    }

    fn end(self) {
        drop(self.io.end());
        assert_eq!(self.sibling.held(), 0, "buffers are left");
    }
}

/// An IPv4 packet with a number in its payload.
fn udp(dscp: u8, ecn: u8, destination_port: u16, number: u16) -> Vec<u8> {
    let mut ip = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
    ip.dscp = etherparse::IpDscp::try_new(dscp).unwrap();
    ip.ecn = etherparse::IpEcn::try_new(ecn).unwrap();
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let builder = builder.ip(etherparse::IpHeaders::Ipv4(ip, Default::default())).udp(1000, destination_port);
    let mut payload = [0; 40];
    payload[..2].copy_from_slice(&number.to_be_bytes());
    payload[5..8].copy_from_slice(&[0, 0, 17]);
    let mut frame = Vec::new();
    builder.write(&mut frame, &payload).unwrap();
    frame
}

fn number(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[42], frame[43]])
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u16> {
    frames.iter().map(|frame| number(frame)).collect()
}

fn pfc() -> Vec<u8> {
    holdfast_edges::faults::storm::frame(ClassSet::only(3), ClassSet::EMPTY).to_vec()
}

/// Classes and times of the PFC frames `frames`.
fn pauses(frames: &[Vec<u8>]) -> Vec<(ClassSet, u16)> {
    let one = |frame: &Vec<u8>| match mac_control::parse(frame) {
        Some(MacControl::Pfc(frame)) => (frame.enabled, frame.quanta[3].0),
        other => panic!("{other:?}"),
    };
    frames.iter().map(one).collect()
}

proptest! {
    /// One in N with bursts of B hits frames N to N + B - 1, then 2 N to 2 N + B - 1, and so on.
    #[test]
    fn one_in_n_hits_exactly_the_frames_of_the_model(count in 1_u32..50, part in 0_u32..50, frames in 0_u32..500) {
        let burst = 1 + part % count;
        let mut rule = Rule::new(Draws::default());
        for frame in 1..=frames {
            let expected = frame >= count && (frame - count) % count < burst;
            prop_assert_eq!(rule.hits(Share::OneIn(count), burst), expected, "frame {}", frame);
        }
    }

    /// Any faults and any traffic: each buffer is returned, and each frame and copy is delivered, lost or held. Without
    /// delays frames keep their order.
    #[test]
    fn any_injected_faults_return_each_buffer(
        picks in prop::collection::vec(0_usize..RANDOM.len(), 1..6),
        steps in prop::collection::vec((0_u8..6, 1_u16..65), 1..40),
        receive_multiple in prop::sample::select(vec![1_usize, 4, 8]),
    ) {
        let list: Vec<&str> = picks.iter().map(|&pick| RANDOM[pick]).collect();
        let mut bed = Bed::new(&format!("[{}]", list.join(", ")));
        bed.mem().receive_multiple = receive_multiple;
        let (mut received, mut sent, mut put) = (Vec::new(), Vec::new(), 0);
        for (step, count) in steps {
            match step {
                0 => {
                    let frames = bed.frames(count);
                    put += frames.len();
                    received.extend(bed.receive(&frames));
                }
                1 => {
                    let frames = bed.frames(count);
                    let (left, refused) = bed.send(&frames);
                    put += frames.len() - refused;
                    sent.extend(left);
                }
                2 => bed.mem().set_room(0, Some(usize::from(count))),
                3 => bed.mem().set_room(0, None),
                4 => bed.pass(Nanos(u64::from(count) * 100_000)),
                _ => drop(bed.board.remove(Some(u64::from(count % 4)))),
            }
            bed.io.free(&mut Burst::new());
            sent.extend(bed.mem().sent_all(0));
        }
        received.retain(|frame| mac_control::parse(frame).is_none());
        let (counters, held) = (bed.board.counters().clone(), bed.board.counters().held() as usize);
        bed.end();
        let hits = |verb| Toward::TABLE.iter().map(|&(_, toward)| sum(counters.of_port(0, verb, toward))).sum::<usize>();
        let (lost, copies) = (hits(FaultVerb::Lose), hits(FaultVerb::Duplicate));
        prop_assert!(sum(counters.ended_of_port(0)) >= held);
        prop_assert_eq!(received.len() + sent.len() + lost + sum(counters.ended_of_port(0)), put + copies);
        if !list.iter().any(|fault| ["{delay", "{reorder", "{corrupt"].iter().any(|kind| fault.starts_with(kind))) {
            for frames in [received, sent] {
                let numbers = numbers(&frames);
                prop_assert!(numbers.is_sorted(), "{:?}", numbers);
            }
        }
    }
}

const RANDOM: [&str; 10] = [
    "{lose: p1, one_in: 3, burst: 2}",
    "{lose: p1, chance: 20%}",
    "{delay: p1, by: 1ms}",
    "{delay: p1, by: 300us, chance: 50%, toward: host}",
    "{duplicate: p1}",
    "{reorder: p1, one_in: 4, behind: 3}",
    "{corrupt: p1, chance: 10%}",
    "{mark: p1}",
    "{storm: p1, for: 2ms}",
    "{reorder: p1, behind: 2, toward: host}",
];
