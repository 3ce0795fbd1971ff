//! Measures single decisions of the packet path: admission, classification, scheduling, parsing, forwarding.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast::forward::fdb::Station;
use holdfast::forward::{Fdb, FdbSpec};
use holdfast::mmu::{
    ExactPool, GroupProfile, HeadroomPolicy, Lease, Pools, PortLedger, PortProfile, SharedPool, Threshold,
};
use holdfast::qos::{MarkMap, QueueDiscipline, Scheduler, Trust};
use holdfast::sets::ClassSet;
use holdfast::units::{Alpha, Cells, Nanos};
use holdfast::wire::{MacAddr, parse};

/// Decisions per iteration, as in a burst.
const BURST: u64 = 64;

/// A port whose first `classes` groups are lossless, with reserves, shared buffer and headroom.
fn port_profile(policy: HeadroomPolicy, classes: usize) -> PortProfile {
    let group = |group| GroupProfile {
        lossless: group < classes,
        reserve: Cells(8),
        threshold: Threshold::Dynamic(Alpha::from_exponent(-3).expect("an alpha")),
        xon_offset: Cells(8),
        xon_floor: Cells(8),
        headroom: Cells(100),
    };
    PortProfile {
        reserve: [Cells(8), Cells(8)],
        policy,
        insurance: Cells(100),
        ..PortProfile::independent(std::array::from_fn(group))
    }
}

/// Leases of `lcores` lcores on the same pools.
fn hands(lcores: usize) -> Vec<Pools> {
    let shared = [SharedPool::new(Cells(60_000)), SharedPool::new(Cells(60_000))];
    let headroom = ExactPool::new(Cells(1000));
    let hand =
        || Pools { shared: shared.each_ref().map(|pool| Lease::new(Arc::clone(pool))), headroom: headroom.clone() };
    (0..lcores).map(|_| hand()).collect()
}

/// Lcore, port and group of arriving packets, in an order that neither a cache nor a predictor can learn.
fn arrivals(ports: usize, classes: usize, lcores: usize) -> Vec<(usize, usize, usize)> {
    let mut state = 1_u64;
    let mut roll = |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % sides
    };
    let mut arrival = || {
        let port = roll(ports);
        (port % lcores, port, roll(classes))
    };
    (0..4096).map(|_| arrival()).collect()
}

/// Admission of a packet beyond the reserves, by the number of ports, classes and lcores with a lease. The cost should
/// not depend on them.
fn admission(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("admission");
    group.throughput(Throughput::Elements(BURST));
    group.sample_size(20).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
    let sizes = [4, 8, 16, 32].into_iter().flat_map(|ports| [1, 2, 4, 8].map(|classes| (ports, classes)));
    let sizes: Vec<_> = sizes.flat_map(|size| [1, 2, 4, 8].map(|lcores| (size, lcores))).collect();
    for policy in [HeadroomPolicy::Independent, HeadroomPolicy::Dynamic] {
        for &((ports, classes), lcores) in &sizes {
            // `SharedPool` is left out: it differs only outside this path. One size shows the cost of `Dynamic`.
            if policy == HeadroomPolicy::Dynamic && (classes, lcores) != (8, 1) {
                continue;
            }
            let mut ledgers = vec![PortLedger::new(&port_profile(policy, classes)); ports];
            let mut pools = hands(lcores);
            for (port, ledger) in ledgers.iter_mut().enumerate() {
                for group in 0..classes {
                    let _ = ledger.admit(group, Cells(16), &mut pools[port % lcores]);
                }
            }
            let arrivals = arrivals(ports, classes, lcores);
            let mut bursts = arrivals.chunks_exact(BURST as usize).cycle();
            let name = format!("{policy:?}, {ports} ports, {classes} classes, {lcores} lcores");
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    for &(lcore, port, group) in bursts.next().expect("a cycle") {
                        let pools = &mut pools[lcore];
                        black_box(ledgers[port].admit(group, Cells(1), pools));
                        ledgers[port].release(group, Cells(1), pools);
                    }
                });
            });
        }
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
    for (name, ready) in [("one queue", ClassSet::only(3)), ("eight queues", ClassSet::ALL)] {
        let mut disciplines = [QueueDiscipline::Dwrr { weight: 10 }; 8];
        disciplines[6] = QueueDiscipline::Strict;
        let mut scheduler = Scheduler::new(disciplines);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..BURST {
                    black_box(scheduler.choose(black_box(ready - ClassSet::only(6)), |_| 1000));
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
        let spec = FdbSpec { capacity: 65_536, ageing: Nanos(300_000_000_000), entries: vec![], seed: 0 };
        let mut fdb = Fdb::new(&spec, 1_000_000_000);
        for station in 0..stations {
            fdb.learn(Station::new(1, MacAddr::local(1, station).to_number()), 0);
        }
        let mut next = 0_u16;
        group.bench_function(format!("learn and look up, {stations} stations"), |bencher| {
            bencher.iter(|| {
                for _ in 0..BURST {
                    next = next.wrapping_mul(5).wrapping_add(1);
                    black_box(fdb.learn(Station::new(1, MacAddr::local(1, next % stations).to_number()), 0));
                    black_box(
                        fdb.lookup(Station::new(1, MacAddr::local(1, next.rotate_left(5) % stations).to_number())),
                    );
                }
            });
        });
    }
    group.finish();
}

criterion_group!(decisions, admission, classification, scheduler, headers, forwarding);
criterion_main!(decisions);
