//! The decisions of the packet path, one at a time: admission, classification, scheduling, parsing, forwarding.
//!
//! `cargo bench --bench decisions`, or `make perf`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast::forward::{Fdb, FdbSpec};
use holdfast::mmu::{GroupProfile, Lease, Ledger, SharedPool, Threshold};
use holdfast::qos::{MarkMap, QueueDiscipline, Scheduler, Trust};
use holdfast::units::{Alpha, Cells, Nanos};
use holdfast::wire::{MacAddr, parse};

/// Decisions in an iteration, as in a burst.
const BURST: u64 = 32;

fn admission(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("admission");
    group.throughput(Throughput::Elements(BURST));
    for groups in [4 * 8, 32 * 8] {
        let profile = GroupProfile {
            lossless: true,
            reserve: Cells(8),
            threshold: Threshold::Dynamic(Alpha::from_exponent(-3).expect("an alpha")),
            xon_offset: Cells(8),
            xon_floor: Cells(8),
            headroom: Cells(100),
        };
        let mut lease = Lease::new(SharedPool::new(Cells(60_000)));
        let mut ledgers = vec![Ledger::new(profile); groups];
        // Beyond the reserve: the longer way.
        for ledger in &mut ledgers {
            let _ = ledger.admit(Cells(8), &mut lease);
        }
        let mut next = 0;
        group.bench_function(format!("admit and release, {groups} groups"), |bencher| {
            bencher.iter(|| {
                for _ in 0..BURST {
                    next = (next + 7) % groups;
                    black_box(ledgers[next].admit(Cells(1), &mut lease));
                    ledgers[next].release(Cells(1), &mut lease);
                }
            });
        });
    }
    group.finish();
}

fn classification(criterion: &mut Criterion) {
    let map = MarkMap::identity();
    let mut group = criterion.benchmark_group("classification");
    group.throughput(Throughput::Elements(BURST));
    group.bench_function("dscp", |bencher| {
        bencher.iter(|| {
            for dscp in 0..BURST as u8 {
                black_box(map.class(Trust::Dscp, 0, Some(black_box(dscp)), None));
            }
        });
    });
    group.finish();
}

fn scheduler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduler");
    group.throughput(Throughput::Elements(BURST));
    for (name, ready) in [("one queue", 0b1000), ("eight queues", 0xff)] {
        let mut disciplines = [QueueDiscipline::Dwrr { weight: 10 }; 8];
        disciplines[6] = QueueDiscipline::Strict;
        let mut scheduler = Scheduler::new(disciplines);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..BURST {
                    black_box(scheduler.choose(black_box(ready & !(1 << 6)), |_| 1000));
                }
            });
        });
    }
    group.finish();
}

fn headers(criterion: &mut Criterion) {
    let mut frame = [0_u8; 64];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 26 << 2 | 2, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..42].copy_from_slice(&[0xc0, 0, 0x12, 0xb7, 0, 30, 0, 0]);
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(BURST));
    group.bench_function("IPv4 UDP, 64 B", |bencher| {
        bencher.iter(|| {
            for _ in 0..BURST {
                black_box(parse(black_box(&frame)).is_ok());
            }
        });
    });
    group.finish();
}

fn forwarding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("forwarding database");
    group.throughput(Throughput::Elements(BURST));
    for stations in [1_u16, 1024, 32_768] {
        let spec = FdbSpec { capacity: 65_536, ageing: Nanos(300_000_000_000), entries: vec![] };
        let mut fdb = Fdb::new(&spec, 1_000_000_000);
        for station in 0..stations {
            fdb.learn(fdb.locate(1, MacAddr::local(1, station)), 0);
        }
        let mut next = 0_u16;
        group.bench_function(format!("learn and look up, {stations} stations"), |bencher| {
            bencher.iter(|| {
                for _ in 0..BURST {
                    next = next.wrapping_mul(5).wrapping_add(1);
                    black_box(fdb.learn(fdb.locate(1, MacAddr::local(1, next % stations)), 0));
                    black_box(fdb.lookup(fdb.locate(1, MacAddr::local(1, next.rotate_left(5) % stations))));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(decisions, admission, classification, scheduler, headers, forwarding);
criterion_main!(decisions);
