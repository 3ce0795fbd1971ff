//! A burst through the pipeline beside the same frames one by one: the same in every count, whichever of the short ways
//! the burst took. Nothing leaves, since all ports are held.

use std::cell::Cell;

use super::differential_tests::{Bed, EGRESSES, PORTS, bytes, same_parts, spec};
use super::*;
use crate::dataplane::fit::Outward;
use crate::pfc::PfcMode;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// A frame, whether it is UDP, which has a short way through the parser, and whether nobody knows its destination.
#[derive(Debug, Clone, Copy)]
struct Sent {
    frame: Frame,
    is_udp: bool,
    is_unknown: bool,
    /// Its source was seen behind another port: it has moved.
    has_moved: bool,
}

impl Sent {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = bytes(&self.frame);
        if self.is_udp {
            let udp = (self.frame.bytes - 34).to_be_bytes();
            bytes[23] = 17;
            bytes[38..40].copy_from_slice(&udp);
        }
        if self.is_unknown {
            bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 99]);
        }
        if self.has_moved {
            let other = Frame { port: (self.frame.port + 1) % PORTS, ..self.frame };
            bytes[6..12].copy_from_slice(&super::differential_tests::bytes(&other)[6..12]);
        }
        bytes
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let ecn = prop_oneof![Just(Ecn::Ect0), Just(Ecn::NotEct)];
    let bytes = prop_oneof![3 => Just(60_u16), 1 => 60_u16..1515];
    let odd = (prop::bool::weighted(0.05), prop::bool::weighted(0.02));
    (0_u8..3, bytes, EGRESSES, ecn, prop::bool::weighted(0.8), odd).prop_map(
        |(class, bytes, egress, ecn, is_udp, (is_unknown, has_moved))| Sent {
            frame: Frame { port: 0, class, bytes, egress, ecn },
            is_udp,
            is_unknown,
            has_moved,
        },
    )
}

/// Roomier than the traces of single frames have it, and mostly without a reserve of the port, or no burst would be admitted
/// at once.
fn roomy(policy: HeadroomPolicy) -> impl Strategy<Value = SwitchSpec> {
    (spec(policy), 1_u32..12, prop::bool::weighted(0.3)).prop_map(|(mut spec, times, has_reserve)| {
        spec.buffer.lossy_shared.0 *= times;
        spec.buffer.lossless_shared.0 *= times;
        spec.buffer.total.0 += 200 * times;
        // Floods leave by all ports: each must obey who holds it.
        spec.ports.iter_mut().for_each(|port| port.pfc = PfcMode::Asymmetric);
        spec.ports[2].mtu = if times % 2 == 0 { 600 } else { 1500 };
        if !has_reserve {
            spec.ports.iter_mut().for_each(|port| port.buffer.reserve = [Cells(0); 2]);
        }
        spec
    })
}

/// Each frame is looked up, made fit and admitted by itself.
fn take_the_long_ways(bed: &mut Bed) {
    bed.pipeline.pairs.give_up();
    // As if no frame left as it is, and as if every port had a queue in a storm, which none has.
    bed.pipeline.outward.fill(Outward::default());
    bed.pipeline.storms = u64::MAX;
}

/// Each burst is a port's; `queued` counts the frames that are in queues at the end.
fn agree(spec: &SwitchSpec, bursts: &[(usize, Vec<Sent>)], queued: &Cell<u64>) -> Result<(), TestCaseError> {
    let (mut whole, mut single) = (Bed::new(spec), Bed::new(spec));
    take_the_long_ways(&mut single);
    for (index, (port, burst)) in bursts.iter().enumerate() {
        for sent in burst {
            let frame = Sent { frame: Frame { port: *port, ..sent.frame }, ..*sent }.bytes();
            whole.io.inject(*port, &frame);
            single.io.inject(*port, &frame);
        }
        for bed in [&mut whole, &mut single] {
            bed.poll();
            bed.poll();
        }
        prop_assert_eq!(whole.drops(), single.drops(), "drops after burst {}", index);
        same_parts(&whole, &single, index)?;
    }
    queued.set(queued.get() + whole.pipeline.held_frames() as u64);
    Ok(())
}

fn bursts_agree(policy: HeadroomPolicy) {
    let config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::with_cases(3000) };
    let bursts = prop::collection::vec((0..PORTS, prop::collection::vec(sent(), 1..33)), 1..12);
    let queued = Cell::new(0);
    let mut runner = TestRunner::new(config);
    if let Err(error) = runner.run(&(roomy(policy), bursts), |(spec, bursts)| agree(&spec, &bursts, &queued)) {
        panic!("{error}");
    }
    assert!(queued.get() > 1000, "only {} frames were queued", queued.get());
}

#[test]
fn a_burst_is_its_frames_with_independent_headroom() {
    bursts_agree(HeadroomPolicy::Independent);
}

#[test]
fn a_burst_is_its_frames_with_a_headroom_pool() {
    bursts_agree(HeadroomPolicy::SharedPool);
}

#[test]
fn a_burst_is_its_frames_with_dynamic_headroom() {
    bursts_agree(HeadroomPolicy::Dynamic);
}
