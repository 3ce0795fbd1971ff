use std::collections::HashSet;

use super::*;
use crate::units::{Bytes, Nanos};

const END: u64 = 1_000_000_000;

fn collective(shape: AllReduceShape, hosts: Vec<usize>, times: u64) -> Pattern {
    Pattern::AllReduce(AllReduce { shape, hosts, bytes: Bytes(1000), gap: Nanos(7), times: Some(times) })
}

/// Runs a collective in which each flow takes `ps`. Returns its flows in order of start.
fn run(pattern: &Pattern, ps: u64) -> (Vec<Arrival>, u64) {
    let mut generator = Generator::new(pattern, 0, 1, 1_000, END);
    let (mut started, mut done) = (Vec::new(), 0);
    loop {
        while let Some(arrival) = generator.next() {
            started.push(arrival);
        }
        let Some(&Arrival { at_ps, tag, .. }) = started.get(done) else { break };
        done += 1;
        let before = started.len();
        generator.completed(tag, at_ps + ps, &mut started);
        assert!(started[before..].iter().all(|flow| flow.at_ps == at_ps + ps));
    }
    (started, generator.rounds().expect("a collective"))
}

#[test]
fn ring_passes_a_part_on_in_each_step() {
    let (flows, rounds) = run(&collective(AllReduceShape::Ring, vec![5, 6, 8, 9], 2), 100);
    assert_eq!((flows.len(), rounds), (2 * 4 * 6, 2));
    for (round, start) in [(0, 1_000), (1, 1_000 + 600 + 7_000)] {
        for (step, flows) in flows[round * 24..(round + 1) * 24].chunks(4).enumerate() {
            let pairs: Vec<(usize, usize)> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
            let pairs: HashSet<(usize, usize)> = pairs.into_iter().collect();
            assert_eq!(pairs, HashSet::from([(5, 6), (6, 8), (8, 9), (9, 5)]));
            assert!(flows.iter().all(|flow| flow.at_ps == start + 100 * step as u64 && flow.bytes == 250));
        }
    }
}

#[test]
fn ring_waits_for_the_part_that_it_passes_on() {
    let pattern = collective(AllReduceShape::Ring, vec![0, 1, 2], 1);
    let mut generator = Generator::new(&pattern, 0, 1, 0, END);
    let first: Vec<Arrival> = std::iter::from_fn(|| generator.next()).collect();
    let mut out = Vec::new();
    generator.completed(first[1].tag, 50, &mut out);
    assert_eq!(out.iter().map(|flow| (flow.from, flow.to)).collect::<Vec<_>>(), [(2, 0)]);
}

#[test]
fn tree_sums_upward_before_the_result_goes_down() {
    let (flows, rounds) = run(&collective(AllReduceShape::Tree, vec![10, 11, 12, 13, 14], 1), 100);
    let flows: Vec<(u64, usize, usize)> = flows.iter().map(|flow| (flow.at_ps, flow.from, flow.to)).collect();
    let up = [(1_000, 12, 10), (1_000, 13, 11), (1_000, 14, 11), (1_100, 11, 10)];
    let down = [(1_200, 10, 11), (1_200, 10, 12), (1_300, 11, 13), (1_300, 11, 14)];
    assert_eq!((flows, rounds), ([up, down].concat(), 1));
}

#[test]
fn collective_of_two_hosts_ends() {
    assert_eq!(run(&collective(AllReduceShape::Ring, vec![0, 1], 3), 1).0.len(), 3 * 4);
    assert_eq!(run(&collective(AllReduceShape::Tree, vec![0, 1], 3), 1).0.len(), 3 * 2);
}

#[test]
fn workload_starts_no_flow_at_its_end_or_later() {
    let pattern = collective(AllReduceShape::Ring, vec![0, 1], 1);
    let mut generator = Generator::new(&pattern, 0, 1, 1_000, 1_000);
    assert_eq!(generator.next(), None);
    let mut generator = Generator::new(&pattern, 0, 1, 0, 1_000);
    let (first, mut out) = (generator.next().unwrap(), Vec::new());
    generator.completed(first.tag, 1_000, &mut out);
    assert_eq!(out, []);
}

#[test]
fn workloads_of_a_run_draw_from_streams_of_their_own() {
    let pattern = Pattern::Poisson(Poisson {
        sizes: Distribution::WebSearch.cdf(),
        senders: vec![(0, 1_000), (1, 1_000)],
        receivers: vec![0, 1],
    });
    let first = |number, seed| Generator::new(&pattern, number, seed, 0, END).next();
    assert_eq!(first(0, 1), first(0, 1));
    assert_ne!(first(0, 1), first(1, 1));
    assert_ne!(first(0, 1), first(0, 2));
}
