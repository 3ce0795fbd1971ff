//! A port that floods the switch with source addresses: the stations of others are learned and known as before.

use holdfast::plan::SwitchSpec;

use crate::harness::*;

/// The port that floods. Ports 1 and 2 have a lossless flow, and port 3 gets new stations.
const HOSTILE: usize = 0;
/// Source addresses of the flood.
const ADDRESSES: u64 = 50_000;
/// Frames of the flood in a poll.
const AT_ONCE: u64 = 32;
/// New stations at port 3.
const NEW: usize = 100;
const CAPACITY: u32 = 16_384;

fn spec_of_limit(limit: u32) -> SwitchSpec {
    let mut spec = spec(4);
    spec.fdb.capacity = CAPACITY;
    spec.ports.iter_mut().for_each(|port| port.fdb_limit = limit);
    spec
}

/// A frame of the flood: lossy, to station 1, from an address of its own.
fn hostile(number: u64) -> Vec<u8> {
    let mut frame = frame(HOSTILE, 1, 0, 60);
    // An odd factor: no two numbers give one address.
    let address = number.wrapping_mul(0x9e37_79b9_7f4b).to_be_bytes();
    frame[6..12].copy_from_slice(&address[2..]);
    frame[6] = 0x0a;
    frame
}

/// Floods with the addresses from `begin` on for `polls` polls, beside a lossless flow from port 1 to port 2. Returns
/// the lossless frames that arrived.
fn flood(bed: &mut Bed, begin: u64, polls: u64) -> usize {
    let mut arrived = 0;
    for poll in 0..polls {
        (0..AT_ONCE).for_each(|index| bed.io.inject(HOSTILE, &hostile(begin + poll * AT_ONCE + index)));
        bed.io.inject(1, &frame(1, 2, LOSSLESS_DSCP, CELL));
        bed.run(1000);
        arrived += bed.data(2).iter().filter(|frame| frame.len() == CELL).count();
        drop(bed.data(1));
    }
    bed.run(100_000);
    arrived + bed.data(2).iter().filter(|frame| frame.len() == CELL).count()
}

/// The lossless frames from port 1 to each of the `stations` that arrive at `port`.
fn reached(bed: &mut Bed, stations: std::ops::Range<usize>, port: usize) -> usize {
    drop(bed.data(port));
    for station in stations {
        bed.io.inject(1, &frame(1, station, LOSSLESS_DSCP, CELL));
        bed.run(2000);
    }
    bed.run(100_000);
    bed.data(port).iter().filter(|frame| frame.len() == CELL).count()
}

/// By the limit of the port, and by the size of the table alone.
#[test]
fn flood_of_addresses_at_one_port_costs_other_ports_nothing() {
    for limit in [CAPACITY / 2, u32::MAX] {
        let mut bed = Bed::learned(&spec_of_limit(limit));
        for station in 2000..2000 + NEW {
            bed.io.inject(3, &frame(station, 1, 0, 60));
            bed.run(2000);
        }
        let polls = ADDRESSES / AT_ONCE;
        assert_eq!(flood(&mut bed, 1, polls), polls as usize, "frames of the lossless flow");
        let entries = bed.counters.lcores[0].fdb_stations[HOSTILE].get();
        assert!(entries <= u64::from(limit) && entries >= u64::from(CAPACITY / 2), "{entries} of {limit}");
        for round in 0..3_usize {
            let new = 1000 + round * NEW..1000 + (round + 1) * NEW;
            for station in new.clone() {
                bed.io.inject(3, &frame(station, 1, 0, 60));
                flood(&mut bed, ADDRESSES * 2 + station as u64 * AT_ONCE, 1);
            }
            assert_eq!(reached(&mut bed, new, 3), NEW, "new stations in round {round}, limit {limit}");
            bed.now += HZ / 4;
        }
        assert_eq!(reached(&mut bed, 2000..2000 + NEW, 3), NEW, "known stations, limit {limit}");
        bed.assert_empty();
    }
}

#[test]
fn flood_replaces_a_bounded_number_of_stations_on_every_lcore() {
    const LIMIT: u32 = 1000;
    let mut bed = Bed::learned(&spec_of_limit(LIMIT));
    flood(&mut bed, 1, 2 * u64::from(LIMIT) / AT_ONCE);
    for round in 1..5_u64 {
        bed.now += HZ / 4;
        let of = |bed: &Bed| bed.counters.lcores[0].fdb_evicted[HOSTILE].get();
        let before = of(&bed);
        flood(&mut bed, round * 100_000, 100);
        let evicted = of(&bed) - before;
        assert!((100..=2 * 128).contains(&evicted), "{evicted} in a tick or two");
        for lcore in &bed.counters.lcores {
            // Other lcores hear the frames before of what they replace.
            let entries = lcore.fdb_stations[HOSTILE].get();
            assert!((LIMIT as u64 - 8..=LIMIT as u64 + 8).contains(&entries), "{entries} of {LIMIT}");
        }
    }
    let refused: u64 = bed.counters.lcores.iter().map(|lcore| lcore.fdb_refused[HOSTILE].get()).sum();
    assert!(refused > 4 * 2900, "{refused}");
}
