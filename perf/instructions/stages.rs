//! Single stages through their public functions, per call: they show which part of the pipeline a change affects.
//!
//! Each count includes two or three instructions of the loop around the call.

use std::hint::black_box;
use std::sync::Arc;

use holdfast::dataplane::egress::queue::{Queue, Slab};
use holdfast::dataplane::frame::desc::FrameDesc;
use holdfast::forward::fdb::Station;
use holdfast::forward::{Fdb, FdbSpec};
use holdfast::mmu::{ExactPool, GroupProfile, Lease, Pools, PortLedger, PortProfile, SharedPool, Tallies, Threshold};
use holdfast::plan::ring::ring;
use holdfast::qos::wred::XorShift;
use holdfast::qos::{MarkMap, QueueDiscipline, Scheduler, Shaper, Trust, WredProfile};
use holdfast::sets::{BURST, ClassSet};
use holdfast::units::{Alpha, BitRate, Bytes, Cells, Nanos, Probability, Ticks};
use holdfast::wire::{self, MacAddr};

use crate::frames::{Headers, VLAN, template};

/// Calls per count.
const CALLS: u32 = 8192;
const HZ: u64 = 1_000_000_000;

/// Counts [`CALLS`] calls of `stage`, after an eighth as many to warm up.
fn run(mut stage: impl FnMut(u32)) -> u64 {
    for call in 0..CALLS / 8 {
        stage(call);
    }
    measured_stage(&mut stage);
    u64::from(CALLS)
}

#[inline(never)]
fn measured_stage(stage: &mut impl FnMut(u32)) {
    for call in 0..CALLS {
        stage(call);
    }
}

fn parse(frame: &[u8]) -> u64 {
    assert!(wire::parse(frame).is_ok(), "a frame that is refused is cheaper");
    run(|_| {
        let _ = black_box(wire::parse(black_box(frame)));
    })
}

/// The parser of most frames, in the form that reads words.
pub fn parse_usual() -> u64 {
    let frame = template(Headers::Udp, 0x6a, None);
    assert!(wire::parse_usual(&frame).is_some());
    run(|_| {
        black_box(wire::parse_usual(black_box(&frame)));
    })
}

/// The second parser, for frames that differ a little: here by a VLAN tag.
pub fn parse_plain() -> u64 {
    let frame = template(Headers::Udp, 0x6a, Some(VLAN));
    assert!(wire::parse_plain(&frame).is_some());
    run(|_| {
        black_box(wire::parse_plain(black_box(&frame)));
    })
}

pub fn parse_ipv4() -> u64 {
    parse(&template(Headers::Udp, 0x6a, None))
}

pub fn parse_tagged() -> u64 {
    parse(&template(Headers::Udp, 0x6a, Some(VLAN)))
}

pub fn parse_ipv6() -> u64 {
    parse(&template(Headers::Ipv6, 0x6a, None))
}

pub fn classify() -> u64 {
    let map = MarkMap::identity();
    run(|call| {
        black_box(map.class(Trust::Dscp, 0, black_box(Some(call as u8 & 63)), None));
    })
}

fn station(number: u16) -> Station {
    Station::new(1, MacAddr::local(1, number).to_number())
}

/// A database with 1,024 stations.
fn fdb() -> Fdb {
    let mut fdb = Fdb::new(&FdbSpec { capacity: 16_384, ageing: Nanos(300 * HZ), entries: vec![], seed: 0 }, HZ);
    for number in 0..1024 {
        fdb.learn(station(number), 0);
    }
    fdb
}

pub fn fdb_lookup() -> u64 {
    let fdb = fdb();
    run(|call| {
        black_box(fdb.lookup(station(call as u16 & 1023)));
    })
}

/// Learns a station that has not moved.
pub fn fdb_learn() -> u64 {
    let mut fdb = fdb();
    run(|call| {
        black_box(fdb.learn(station(call as u16 & 1023), 0));
    })
}

/// Checks a station that has not moved, without writing.
pub fn fdb_known() -> u64 {
    let fdb = fdb();
    let seen = fdb.just_seen(0);
    run(|call| {
        black_box(fdb.is_known(station(call as u16 & 1023), seen));
    })
}

/// A ledger of lossless groups with `reserve` cells each, and its pools.
fn ledger(reserve: u32) -> (PortLedger, Pools) {
    let group = GroupProfile {
        lossless: true,
        reserve: Cells(reserve),
        threshold: Threshold::Dynamic(Alpha::from_exponent(-3).expect("an alpha")),
        xon_offset: Cells(8),
        xon_floor: Cells(8),
        headroom: Cells(100),
    };
    let pool = || Lease::new(SharedPool::new(Cells(60_000)));
    let pools = Pools { shared: [pool(), pool()], headroom: ExactPool::new(Cells(1000)) };
    (PortLedger::new(&PortProfile::independent([group; 8])), pools)
}

/// Admits and releases a frame of one cell, while `held` other cells stay.
fn admit_release(reserve: u32, held: u32) -> u64 {
    let (mut ledger, mut pools) = ledger(reserve);
    for _ in 0..held {
        let _ = ledger.admit(3, Cells(1), &mut pools);
    }
    run(|_| {
        black_box(ledger.admit(black_box(3), black_box(Cells(1)), &mut pools));
        ledger.release(black_box(3), black_box(Cells(1)), &mut pools);
    })
}

pub fn ledger_reserve() -> u64 {
    admit_release(8, 0)
}

pub fn ledger_shared() -> u64 {
    admit_release(8, 16)
}

/// Admits a burst in two groups together, one cell per frame, and releases it.
pub fn ledger_together() -> u64 {
    let (mut ledger, mut pools) = ledger(0);
    let half = BURST as u32 / 2;
    let cells = [half, 0, 0, half, 0, 0, 0, 0].map(Cells);
    run(|_| {
        black_box(ledger.admit_burst(black_box(&cells), black_box(ClassSet::from_bits(0b1001)), &mut pools));
        ledger.release(black_box(3), black_box(Cells(half)), &mut pools);
        ledger.release(black_box(0), black_box(Cells(half)), &mut pools);
    })
}

/// Takes a burst of cells through an empty lease, gives them back and returns the lease. The count is per burst.
pub fn lease() -> u64 {
    let mut lease = Lease::new(SharedPool::new(Cells(60_000)));
    run(|_| {
        for _ in 0..BURST {
            black_box(lease.take(black_box(Cells(1))));
        }
        for _ in 0..BURST {
            lease.give(black_box(Cells(1)));
        }
        lease.flush();
    })
}

/// Releases that alternate between two groups, published and read once per burst. The count is per burst.
pub fn tally() -> u64 {
    let tallies = Arc::new(Tallies::new(2, 4));
    let mut writer = tallies.writer(0);
    run(|_| {
        for frame in 0..BURST {
            writer.release(black_box(1), black_box(3 * (frame & 1)), Cells(1));
        }
        writer.publish();
        black_box(tallies.released(1, 0) + tallies.released(1, 3));
    })
}

/// Pushes and pops a frame in a queue that holds others.
pub fn queue() -> u64 {
    let mut slab: Slab<usize> = Slab::new(1024, 1);
    let mut queue = Queue::default();
    for frame in 0..64 {
        let _ = queue.push(&mut slab, frame, FrameDesc::new(64, Cells(1), 1, 3, 3));
    }
    run(|call| {
        let _ = black_box(queue.push(&mut slab, call as usize, black_box(FrameDesc::new(64, Cells(1), 1, 3, 3))));
        black_box(queue.pop(&mut slab));
    })
}

fn scheduler(ready: ClassSet) -> u64 {
    let mut disciplines = [QueueDiscipline::Dwrr { weight: 10 }; 8];
    disciplines[6] = QueueDiscipline::Strict;
    let mut scheduler = Scheduler::new(disciplines);
    run(|_| {
        black_box(scheduler.choose(black_box(ready), |_| 1000));
    })
}

pub fn scheduler_one() -> u64 {
    scheduler(ClassSet::only(3))
}

pub fn scheduler_seven() -> u64 {
    scheduler(!ClassSet::only(6))
}

pub fn shaper() -> u64 {
    let mut shaper = Shaper::new(BitRate(400_000_000_000), HZ, Nanos(10_000));
    run(|call| {
        let now = Ticks(HZ + u64::from(call) * 10);
        if black_box(shaper.is_free(now)) {
            shaper.charge(black_box(64), now);
        }
    })
}

pub fn wred() -> u64 {
    let pmax: Probability = "20%".parse().expect("a probability");
    let wred = WredProfile::new(Bytes(100_000), Bytes(400_000), pmax).expect("a profile");
    let mut rng = XorShift::new(7);
    run(|call| {
        black_box(wred.judge(black_box(Bytes(100_000 + 32 * u64::from(call))), || rng.roll()));
    })
}

/// A burst through a ring of three-word items, both ends. The count is per burst.
pub fn handoff() -> u64 {
    let (mut producer, mut consumer) = ring::<[u64; 3]>(1024);
    run(|call| {
        for _ in 0..BURST {
            let _ = black_box(producer.push([u64::from(call); 3]));
        }
        producer.publish();
        consumer.refresh();
        while let Some(item) = consumer.pop() {
            black_box(item);
        }
        consumer.release();
    })
}
