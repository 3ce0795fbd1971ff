//! Hosts that misbehave affect only the classes and senders that they must affect.

use crate::lab::{Lab, MS};
use holdfast::sets::ClassSet;

/// Interval of refreshes: a little less than half of the longest pause at 10G.
const REFRESH: u64 = 3 * MS / 2;
/// Frames of 1078 B that a 10G link carries in a millisecond.
const LINE: u64 = 1_134;

/// Creates a lab with hosts 0 to 4 at ports of 10G, without congestion of the core. `flows` has the flows of each host.
fn lab(keys: &str, flows: [&str; 5]) -> Lab {
    let mut yaml = format!("preset: roce\n{keys}\nports:\n");
    (0..5).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 10G}}\n"));
    yaml += "hosts:\n";
    for (n, flows) in flows.iter().enumerate() {
        yaml += &format!("  - {{name: h{n}, port: p{n}, flows: [{flows}]}}\n");
    }
    Lab::new(&yaml, 4096, 30)
}

/// Flow 0 goes to host 4. Flow 1, of the same sender and class, goes to host 3. Flow 3 is of that class too, from
/// another sender. Flows 2 and 4 are of class 0, from the first sender and to host 4.
const STORM: [&str; 5] = [
    "{to: h4, rate: 3G}, {to: h3, rate: 3G}, {to: h3, kind: udp, rate: 2G, frame: 1078}",
    "{to: h2, rate: 5G}",
    "{to: h4, kind: udp, rate: 2G, frame: 1078}",
    "",
    "",
];

fn storm(lab: &mut Lab, class: usize, ns: u64) -> Vec<u64> {
    let flows = lab.hosts.flows.len();
    let mut delivered = vec![0; flows];
    for _ in 0..ns / REFRESH {
        lab.pause(4, ClassSet::only(class), 0xffff);
        delivered.iter_mut().zip(lab.delivered_in(REFRESH)).for_each(|(sum, more)| *sum += more);
    }
    delivered
}

/// Asserts that a flow of `tenths` of the line rate delivers its frames in `ns`, within 3 %.
#[track_caller]
fn assert_rate(delivered: u64, tenths: u64, ns: u64) {
    let wanted = LINE * tenths * ns / MS / 10;
    assert!(delivered * 100 > wanted * 97 && delivered * 100 < wanted * 103, "{delivered} of {wanted}");
}

#[test]
fn storm_without_watchdog_stops_only_its_class_of_its_senders() {
    let mut lab = lab("watchdog: off\nbuffer: {size: 4MiB}", STORM);
    lab.run(5 * MS);
    storm(&mut lab, 3, 15 * MS);
    let time = 15 * MS;
    let delivered = storm(&mut lab, 3, time);
    println!("storm, no watchdog: {delivered:?}");
    assert_eq!(delivered[0], 0, "to the host that storms");
    assert_eq!(delivered[1], 0, "of the same class and sender, by back-pressure");
    assert_rate(delivered[2], 2, time);
    assert_rate(delivered[3], 5, time);
    assert_rate(delivered[4], 2, time);
    // The last pause expires, and all flows resume.
    lab.run(20 * MS);
    assert_rate(lab.delivered_in(10 * MS)[1], 3, 10 * MS);
    lab.drain();
    assert_eq!((lab.lost(3), lab.lost(0), lab.missed(3)), (0, 0, 0));
    lab.assert_empty();
}

#[test]
fn watchdog_drop_resumes_flows_that_a_storm_blocked() {
    let keys = "watchdog: {detection: 10ms, restoration: 10ms, action: drop}\nbuffer: {size: 4MiB}";
    let mut lab = lab(keys, STORM);
    lab.run(5 * MS);
    storm(&mut lab, 3, 30 * MS);
    let time = 15 * MS;
    let delivered = storm(&mut lab, 3, time);
    println!("storm, watchdog: {delivered:?}");
    assert_eq!(delivered[0], 0, "to the host that storms: dropped, and counted");
    assert_eq!(lab.counters.ports[4].watchdog_storms[3].get(), 1);
    assert!(lab.all_drops(3) > 0);
    for (flow, tenths) in [(1, 3), (2, 2), (3, 5), (4, 2)] {
        assert_rate(delivered[flow], tenths, time);
    }
    lab.run(40 * MS);
    assert_eq!(lab.counters.ports[4].watchdog_restores[3].get(), 1);
    assert_rate(lab.delivered_in(10 * MS)[0], 3, 10 * MS);
    lab.drain();
    assert_eq!((lab.lost(0), lab.missed(3)), (0, 0));
    assert_eq!(lab.lost(3), lab.all_drops(3), "nothing but what the watchdog dropped");
    lab.assert_empty();
}

#[test]
fn a_dead_host_costs_the_frames_to_it_and_no_others() {
    for link in [true, false] {
        let mut lab = lab("watchdog: off", STORM);
        lab.run(5 * MS);
        lab.die(4, link);
        lab.run(5 * MS);
        let delivered = lab.delivered_in(10 * MS);
        println!("dead host, link seen down {link}: {delivered:?}, drops {}", lab.all_drops(3));
        assert_eq!((delivered[0], delivered[4]), (0, 0));
        for (flow, tenths) in [(1, 3), (2, 2), (3, 5)] {
            assert_rate(delivered[flow], tenths, 10 * MS);
        }
        assert_eq!(lab.all_drops(3) > 0, link, "silent behind a link, it takes frames and nobody can know");
        lab.drain();
        let lost: Vec<_> = [1, 2, 3].map(|flow| lab.hosts.flows[flow].missing()).into();
        assert_eq!(lost, [Some(0); 3]);
        lab.assert_empty();
    }
}

/// A host sends XOFF half of the time, so flows to it have half their rate.
#[test]
fn a_slow_host_slows_only_its_senders() {
    let flows = ["{to: h4, rate: 9G}", "{to: h3, rate: 9G}", "{to: h4, kind: udp, rate: 1G, frame: 1078}", "", ""];
    let mut lab = lab("watchdog: off\nbuffer: {size: 4MiB}", flows);
    let half = |lab: &mut Lab| {
        lab.pause(4, ClassSet::only(3), 0xffff);
        let mut delivered = lab.delivered_in(MS);
        lab.pause(4, ClassSet::only(3), 0);
        delivered.iter_mut().zip(lab.delivered_in(MS)).for_each(|(sum, more)| *sum += more);
        delivered
    };
    (0..5).for_each(|_| drop(half(&mut lab)));
    let delivered =
        (0..5).map(|_| half(&mut lab)).fold([0; 3], |sums, more| [0, 1, 2].map(|flow| sums[flow] + more[flow]));
    println!("slow host: {delivered:?}");
    assert!(delivered[0] > LINE * 4 && delivered[0] < LINE * 6, "{delivered:?}");
    assert_rate(delivered[1], 9, 10 * MS);
    assert_rate(delivered[2], 1, 10 * MS);
    lab.drain();
    assert_eq!((lab.lost(3), lab.lost(0)), (0, 0));
    assert_eq!(lab.xoffs(1, 3), 0, "who sends elsewhere is not paused");
    lab.assert_empty();
}

/// Classes 3 and 4 are lossless; class 0 has half of the link. A sender of each class sends to host 4, and another of
/// class 4 to host 2.
#[test]
fn two_lossless_classes_and_a_lossy_one_each_get_their_share() {
    let keys = "classes:\n  0: {scheduler: {weight: 2}}\n  3: {scheduler: {weight: 1}, ecn: off}\n  \
                4: {lossless: true, scheduler: {weight: 1}}";
    let flows =
        ["{to: h4}", "{to: h4, dscp: 34}", "{to: h4, kind: udp, frame: 1078}", "{to: h2, dscp: 34, rate: 9G}", ""];
    let mut lab = lab(keys, flows);
    lab.run(20 * MS);
    let delivered = lab.delivered_in(10 * MS);
    println!("shares: {delivered:?}");
    for (flow, quarters) in [(0, 1), (1, 1), (2, 2)] {
        let wanted = LINE * 10 * quarters / 4;
        assert!(delivered[flow] * 100 > wanted * 95 && delivered[flow] * 100 < wanted * 105, "{flow}: {delivered:?}");
    }
    assert_rate(delivered[3], 9, 10 * MS);
    // Each lossless sender is paused in its own class alone, and the lossy one never.
    assert!(lab.xoffs(0, 3) > 0 && lab.xoffs(1, 4) > 0);
    assert_eq!((lab.xoffs(0, 4), lab.xoffs(1, 3), lab.xoffs(3, 4)), (0, 0, 0));
    assert_eq!((0..8).map(|class| lab.xoffs(2, class)).sum::<u64>(), 0);
    lab.drain();
    assert_eq!((lab.lost(3), lab.lost(4)), (0, 0));
    assert_eq!((lab.all_drops(3), lab.all_drops(4)), (0, 0));
    assert!(lab.all_drops(0) > 0);
    lab.assert_empty();
}
