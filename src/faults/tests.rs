//! Unit tests of the rules, the held frames and the wrapper.

use std::sync::Arc;

use proptest::prelude::*;

use super::board::{REORDER_WAIT, Refused};
use super::counters::{PFC_ROW, ROWS};
use super::hold::Hold;
use super::rule::{Draws, Rule};
use super::*;
use crate::config;
use crate::io::memory::{MemPacket, MemPorts};
use crate::io::{Burst, Packet, Ports};
use crate::sets::ClassSet;
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Nanos, Ticks};
use crate::wire::mac_control::{self, MacControl};

#[path = "board_tests.rs"]
mod board;

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
        let (board, mut receivers) = FaultBoard::new(&config.switch, (&list.list, list.seed), clock(time.clone()), HZ);
        let mem = MemPorts::new(2);
        let sibling = mem.sibling();
        let table = board.table();
        let io = (mem, Box::new(clock(time.clone())) as Clock);
        let io = Faulty::new(io, (&table, receivers.remove(0)), board.counters().clone(), (0, list.seed));
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
    storm::frame(ClassSet::only(3), ClassSet::EMPTY).to_vec()
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
    fn any_faults_return_each_buffer(
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

#[test]
fn chance_hits_its_share_by_its_seed() {
    let hits = |seed, fault, lcore| {
        let mut rule = Rule::new(Draws::new(seed, fault, lcore));
        (0..100_000).map(|_| rule.hits(Share::Chance(10_000), 1)).collect::<Vec<bool>>()
    };
    let count = |hits: &[bool]| hits.iter().filter(|hit| **hit).count();
    let one = hits(1, 1, 0);
    assert_eq!(one, hits(1, 1, 0));
    assert!((800..1200).contains(&count(&one)), "{} of 100,000", count(&one));
    for other in [hits(2, 1, 0), hits(1, 2, 0), hits(1, 1, 1)] {
        assert_ne!(one, other);
    }
    let mut rule = Rule::new(Draws::new(1, 1, 0));
    let bursts: Vec<bool> = (0..100_000).map(|_| rule.hits(Share::Chance(1_000), 5)).collect();
    let lengths = bursts.split(|hit| !hit).map(<[bool]>::len).filter(|len| *len > 0);
    assert!(lengths.clone().count() > 50 && lengths.clone().all(|len| len % 5 == 0));
}

#[test]
fn loss_has_a_direction_a_class_and_a_time() {
    let mut bed = Bed::new("[{lose: p1, toward: switch, class: 3, at: 1ms, for: 1ms}]");
    let frames = bed.frames(4);
    assert_eq!(bed.receive(&frames).len(), 4, "it has not begun");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.receive(&frames).len(), 0);
    assert_eq!(bed.receive(&[udp(0, 2, 9, 0), pfc()]).len(), 2, "another class");
    assert_eq!(bed.send(&frames).0.len(), 4, "the other direction");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.receive(&frames).len(), 4, "it is over");
    let fault = bed.board.faults()[0];
    assert_eq!((fault.hits[3], fault.state), (4, FaultState::Over));
    assert_eq!(bed.board.counters().of_port(0, FaultVerb::Lose, Toward::Switch)[3], 4);
    bed.end();
}

#[test]
fn fault_selects_frames_by_flow_and_kind() {
    let flows = [
        ("source: 10.0.0.1", true),
        ("source: 10.0.0.0/24, destination: 10.0.0.2", true),
        ("destination: 10.0.0.1", false),
        ("source: \"::/0\"", false),
        ("protocol: udp, destination_port: 4791, queue_pair: 17", true),
        ("queue_pair: 18", false),
        ("protocol: tcp", false),
        ("source_port: 1000, dscp: 26", true),
        ("source_port: 1001", false),
        ("dscp: 25", false),
    ];
    for (flow, is_hit) in flows {
        let mut bed = Bed::new(&format!("[{{lose: p1, flow: {{{flow}}}}}]"));
        let left = bed.receive(&[udp(26, 2, 4791, 0), pfc()]).len();
        assert_eq!(left, 2 - usize::from(is_hit), "{flow}");
        bed.end();
    }
    for (what, data, control) in [("data", 0, 1), ("pfc", 1, 0), ("any", 0, 0)] {
        let mut bed = Bed::new(&format!("[{{lose: p1, what: {what}}}]"));
        assert_eq!((bed.receive(&[udp(0, 0, 9, 0)]).len(), bed.receive(&[pfc()]).len()), (data, control), "{what}");
        bed.end();
    }
}

#[test]
fn delayed_frames_arrive_in_order_after_their_time() {
    let mut bed = Bed::new("[{delay: p1, by: 1ms}]");
    let frames = bed.frames(3);
    assert_eq!(bed.receive(&frames), [[0; 0]; 0]);
    assert_eq!(bed.send(&frames), (Vec::new(), 0));
    assert_eq!(bed.board.counters().held(), 6);
    assert_eq!(bed.io.backlog(0, ClassSet::ALL), Some(0), "they have not arrived");
    bed.pass(Nanos(999_999));
    assert_eq!(bed.poll().len(), 0);
    bed.pass(Nanos(1));
    bed.io.free(&mut Burst::new());
    assert_eq!(bed.io.backlog(0, ClassSet::ALL), Some(3));
    assert_eq!(bed.mem().sent_all(0), frames);
    assert_eq!(bed.poll(), frames);
    assert_eq!(bed.counts(), [6]);
    bed.end();
}

#[test]
fn delay_holds_a_bounded_number_and_lets_the_rest_pass() {
    let mut bed = Bed::new("[{delay: p1, by: 1s, toward: switch}, {late: p1, response: 1s, toward: switch}]");
    let frames = bed.frames(1000);
    let passed: usize = (0..5).map(|_| bed.receive(&frames).len()).sum();
    assert_eq!(passed, 5000 - HELD_FRAMES);
    let control = vec![pfc(); HELD_PFC_FRAMES + 10];
    assert_eq!(bed.receive(&control).len(), 10);
    let faults = bed.board.faults();
    assert_eq!((faults[0].hits[3], faults[0].passed), (HELD_FRAMES as u64, passed as u64));
    assert_eq!((faults[1].hits[PFC_ROW], faults[1].passed), (HELD_PFC_FRAMES as u64, 10));
    let counters = bed.board.counters().clone();
    bed.end();
    assert_eq!(
        counters.ended_of_port(0),
        std::array::from_fn::<u64, ROWS, _>(|row| match row {
            3 => HELD_FRAMES as u64,
            PFC_ROW => HELD_PFC_FRAMES as u64,
            _ => 0,
        })
    );
}

#[test]
fn duplicates_follow_their_originals_in_both_directions() {
    let mut bed = Bed::new("[{duplicate: p1, one_in: 2}]");
    let frames = bed.frames(64);
    let expected: Vec<u16> =
        frames.iter().map(|frame| number(frame)).flat_map(|n| vec![n; if n % 2 == 1 { 2 } else { 1 }]).collect();
    assert_eq!(numbers(&bed.receive(&frames)), expected);
    assert_eq!(numbers(&bed.send(&frames).0), expected);
    assert_eq!(bed.counts(), [64]);
    bed.mem().spare_buffers = 0;
    assert_eq!(bed.receive(&frames).len(), 64, "without buffers there are no copies");
    assert_eq!(bed.board.faults()[0].passed, 32);
    bed.end();
}

#[test]
fn reordered_frames_arrive_behind_later_ones_or_after_a_time() {
    let mut bed = Bed::new(
        "[{reorder: p1, one_in: 4, behind: 2, toward: switch}, {reorder: p1, one_in: 4, behind: 2, toward: host}]",
    );
    let frames = bed.frames(10);
    let expected = [0, 1, 2, 4, 5, 3, 6, 8, 9, 7];
    assert_eq!(numbers(&bed.receive(&frames)), expected);
    assert_eq!(numbers(&bed.send(&frames).0), expected);
    let mut all = Bed::new("[{reorder: p1, behind: 3, one_in: 2}]");
    let twelve = all.frames(12);
    // The frames 1, 3, 5 and so on wait; each passing one counts for all that wait.
    assert_eq!(numbers(&all.receive(&twelve)), [0, 2, 4, 6, 1, 8, 3, 10, 5]);
    all.end();
    let more = bed.frames(2);
    assert_eq!(numbers(&bed.receive(&more)), [10], "the second one waits");
    bed.pass(REORDER_WAIT);
    assert_eq!(numbers(&bed.poll()), [11]);
    bed.end();
}

#[test]
fn corrupted_frames_have_one_wrong_bit_behind_their_headers() {
    let mut bed = Bed::new("[{corrupt: p1, toward: switch}]");
    let frames = bed.frames(200);
    let received = bed.receive(&frames);
    for (before, after) in frames.iter().zip(&received) {
        let wrong: Vec<(usize, u32)> = before
            .iter()
            .zip(after)
            .enumerate()
            .map(|(at, (a, b))| (at, (a ^ b).count_ones()))
            .filter(|(_, bits)| *bits > 0)
            .collect();
        assert!(wrong.len() == 1 && wrong[0].1 == 1 && wrong[0].0 >= 42, "{wrong:?}");
    }
    let runts = [vec![], vec![1; 3], vec![2; 14]];
    assert_eq!(bed.receive(&runts).len(), 3);
    bed.end();
}

#[test]
fn marks_are_for_capable_packets_and_keep_the_checksum() {
    let mut bed = Bed::new("[{mark: p1}]");
    let ecn = |frame: &[u8]| frame[15] & 3;
    let frames: Vec<Vec<u8>> = (0..4).map(|ecn| udp(26, ecn, 9, 0)).collect();
    let received = bed.receive(&frames);
    assert_eq!(received.iter().map(|frame| ecn(frame)).collect::<Vec<u8>>(), [0, 3, 3, 3]);
    for frame in &received {
        let (header, _) = etherparse::Ipv4Header::from_slice(&frame[14..]).unwrap();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
    }
    assert_eq!(bed.counts(), [2], "one was marked before, and one is not capable");
    bed.end();
}

fn pauses(frames: &[Vec<u8>]) -> Vec<(ClassSet, u16)> {
    let one = |frame: &Vec<u8>| match mac_control::parse(frame) {
        Some(MacControl::Pfc(frame)) => (frame.enabled, frame.quanta[3].0),
        other => panic!("{other:?}"),
    };
    frames.iter().map(one).collect()
}

#[test]
fn storm_repeats_xoff_and_ends_with_xon() {
    let (three, gap) = (ClassSet::only(3), Nanos(838_848));
    let mut bed = Bed::new("[{storm: p1, for: 2ms}]");
    assert_eq!(pauses(&bed.poll()), [(three, u16::MAX)]);
    assert_eq!(bed.poll().len(), 0);
    bed.pass(gap);
    assert_eq!(pauses(&bed.poll()), [(three, u16::MAX)]);
    bed.pass(Nanos(2_000_000));
    assert_eq!(pauses(&bed.poll()), [(three, 0)]);
    assert_eq!(bed.poll().len(), 0);
    assert_eq!(bed.counts(), [2], "XON is none of the storm");
    let id = bed.board.add(&[Fault::new(0, FaultKind::Storm { priorities: ClassSet::from_bits(0x18) })]).unwrap()[0];
    assert_eq!(pauses(&bed.poll()), [(ClassSet::from_bits(0x18), u16::MAX)]);
    assert_eq!(bed.board.remove(Some(id)), Ok(1));
    assert_eq!(pauses(&bed.poll()), [(ClassSet::from_bits(0x18), 0)]);
    bed.end();
}

#[test]
fn pfc_to_the_host_is_late_or_ignored_and_data_is_not() {
    let mut bed = Bed::new("[{late: p1, response: 10us}, {ignore: p1, at: 1ms}]");
    let data = bed.frames(1);
    assert_eq!(bed.send(&[pfc(), data[0].clone()]).0, data);
    bed.pass(Nanos(10_000));
    bed.io.free(&mut Burst::new());
    assert_eq!(bed.mem().sent_all(0), [pfc()]);
    assert_eq!(bed.receive(&[pfc()]).len(), 1, "PFC of the host is in time");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.send(&[pfc(), data[0].clone()]).0, data);
    bed.pass(Nanos(10_000));
    bed.io.free(&mut Burst::new());
    assert_eq!(bed.mem().sent_all(0).len(), 0);
    bed.end();
}

#[test]
fn frames_that_a_device_refuses_keep_their_order_and_stop_the_switch() {
    let mut bed = Bed::new("[{duplicate: p1, one_in: 50}]");
    bed.mem().set_room(0, Some(5));
    let frames = bed.frames(10);
    let (first, refused) = bed.send(&frames);
    assert_eq!((numbers(&first), refused), (vec![0, 1, 2, 3, 4], 0));
    let more = bed.frames(3);
    assert_eq!(bed.send(&more), (Vec::new(), 3), "the device must take the others first");
    bed.mem().set_room(0, Some(2));
    bed.io.free(&mut Burst::new());
    assert_eq!(numbers(&bed.mem().sent_all(0)), [5, 6]);
    bed.mem().set_room(0, None);
    let (rest, refused) = bed.send(&more);
    assert_eq!((numbers(&rest), refused), (vec![7, 8, 9, 10, 11, 12], 0));
    bed.end();
}

#[test]
fn copies_keep_their_order_at_a_device_that_refuses_frames() {
    let mut bed = Bed::new("[{duplicate: p1, toward: host}]");
    for room in [0, 3, 60, 63, 64, 100] {
        bed.mem().set_room(0, Some(room));
        let frames = bed.frames(64);
        let (mut sent, refused) = bed.send(&frames);
        assert_eq!(refused, 0);
        bed.mem().set_room(0, None);
        bed.io.free(&mut Burst::new());
        sent.extend(bed.mem().sent_all(0));
        let expected: Vec<u16> = numbers(&frames).into_iter().flat_map(|number| [number; 2]).collect();
        assert_eq!(numbers(&sent), expected, "room for {room}");
    }
    bed.end();
}

#[test]
fn burst_is_full_while_the_ring_has_more() {
    let lists = [
        "[{lose: p1, one_in: 3}]",
        "[{lose: p1, chance: 99%}]",
        "[{delay: p1, by: 1ms, one_in: 2}]",
        "[{duplicate: p1, one_in: 5}]",
        "[{reorder: p1, one_in: 7}]",
        "[{storm: p1}]",
    ];
    for list in lists {
        let mut bed = Bed::new(list);
        bed.mem().receive_multiple = 8;
        bed.frames(4000).iter().for_each(|frame| bed.mem().inject(0, frame));
        loop {
            let mut burst = Burst::new();
            bed.io.rx(0, 32, &mut burst);
            let is_full = burst.len() == 32;
            bed.io.free(&mut burst);
            if !is_full {
                break;
            }
        }
        assert_eq!(bed.mem().backlog(0, ClassSet::ALL), Some(0), "{list}");
        bed.end();
    }
}

#[test]
fn faults_end_with_the_switch_and_held_frames_arrive() {
    let mut bed = Bed::new("[{delay: p1, by: 1s}, {storm: p1}]");
    let frames = bed.frames(3);
    assert_eq!(pauses(&bed.receive(&frames)), [(ClassSet::only(3), u16::MAX)]);
    assert_eq!(bed.send(&frames).0.len(), 0);
    assert!(!bed.io.settle());
    let received = bed.poll();
    assert_eq!(pauses(&received[..1]), [(ClassSet::only(3), 0)]);
    assert_eq!(&received[1..], frames);
    assert_eq!(bed.mem().sent_all(0), frames);
    bed.board.add(&[Fault::new(0, FaultKind::Lose)]).unwrap();
    assert_eq!(bed.receive(&frames), frames, "no fault begins any more");
    assert!(bed.io.settle());
    assert_eq!(bed.board.counters().ended_of_port(0), [0; ROWS]);
    bed.end();
}

#[test]
fn storms_with_a_common_priority_end_with_one_xon() {
    let (both, three) = (ClassSet::from_bits(0x18), ClassSet::only(3));
    let mut bed = Bed::new("[{storm: p1, priorities: 3, for: 2ms}, {storm: p1, priorities: [3, 4], for: 4ms}]");
    assert_eq!(pauses(&bed.poll()), [(both, u16::MAX)]);
    bed.pass(Nanos(2_000_000));
    assert_eq!(pauses(&bed.poll()), [(both, u16::MAX)], "no XON of the first one");
    bed.pass(Nanos(2_000_000));
    bed.mem().spare_buffers = 0;
    assert_eq!(bed.poll().len(), 0);
    bed.mem().spare_buffers = usize::MAX;
    assert_eq!(pauses(&bed.poll()), [(both, 0)], "XON waits for a buffer");
    assert_eq!(bed.poll().len(), 0);
    bed.mem().spare_buffers = 0;
    let id = bed.board.add(&[Fault::new(0, FaultKind::Storm { priorities: three })]).unwrap()[0];
    assert_eq!(bed.poll().len(), 0);
    assert_eq!(bed.board.faults().last().map(|fault| (fault.id, fault.hits[PFC_ROW])), Some((id, 0)));
    bed.mem().spare_buffers = usize::MAX;
    assert_eq!(pauses(&bed.poll()), [(three, u16::MAX)]);
    bed.end();
}

#[test]
fn only_held_frames_and_storms_keep_an_lcore_busy() {
    let mut bed = Bed::new("[{lose: p1}, {storm: p1, at: 1ms, for: 1ms}, {delay: p2, by: 1ms}]");
    let after = |bed: &Bed, nanos| Ticks(bed.time.load(Ordering::Relaxed) + nanos);
    bed.poll();
    assert!(!bed.io.is_busy(after(&bed, 900_000)));
    assert!(bed.io.is_busy(after(&bed, 1_100_000)), "the storm begins before the end of the rest");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.poll().len(), 1);
    bed.pass(Nanos(1_000_000));
    assert!(bed.io.is_busy(after(&bed, 1)), "XON is due");
    assert_eq!(bed.poll().len(), 1);
    assert!(!bed.io.is_busy(after(&bed, 1_000_000)), "it is over");
    let frames = bed.frames(1);
    bed.mem().inject(1, &frames[0]);
    bed.io.rx(1, 32, &mut Burst::new());
    assert!(bed.io.is_busy(after(&bed, 1)), "a frame is held");
    bed.end();
}

#[test]
fn reordered_frames_that_left_by_their_time_make_room() {
    let mut bed = Bed::new("[{reorder: p1, behind: 64, toward: switch}]");
    for _ in 0..3 {
        let frames = bed.frames(8);
        assert_eq!(bed.receive(&frames).len(), 0);
        bed.pass(REORDER_WAIT);
        assert_eq!(bed.poll(), frames);
    }
    assert_eq!((bed.counts(), bed.board.faults()[0].passed), (vec![24], 0));
    bed.end();
}

#[test]
fn frames_that_leave_early_keep_room_for_pfc() {
    let mut hold = Hold::new(1, 2);
    for _ in 0..3 * HELD_FRAMES {
        if let Ok(ticket) = hold.delay(1, (0, 0), Ticks(10)) {
            hold.hasten(ticket, 0);
            hold.pop(0);
        }
    }
    for _ in 0..HELD_PFC_FRAMES {
        hold.delay(1, (0, PFC_ROW), Ticks(10)).unwrap();
    }
    assert_eq!(hold.delay(1, (0, PFC_ROW), Ticks(10)), Err(1));
}

#[test]
fn corruption_spares_the_padding() {
    let mut bed = Bed::new("[{corrupt: p1, toward: switch}]");
    let mut frame = udp(0, 0, 9, 0);
    let end = frame.len();
    frame.resize(1000, 0);
    for _ in 0..50 {
        let received = bed.receive(std::slice::from_ref(&frame));
        assert_eq!(received[0][end..], frame[end..]);
        assert_ne!(received[0][..end], frame[..end]);
    }
    bed.end();
}
