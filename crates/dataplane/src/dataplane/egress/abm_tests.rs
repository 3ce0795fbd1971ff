//! The meter of ABM: traces worked out by hand, and random ones against a naive restatement.

use std::sync::Arc;

use proptest::prelude::*;

use super::Egress;
use super::abm::AbmMeter;
use crate::config;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::port::Port;
use crate::io::memory::MemPacket;
use crate::mmu::{AbmSpec, LimitPart, QueueAdmission, QueueLimit, Threshold};
use crate::plan::counters::Counters;
use crate::plan::spec::SwitchSpec;
use crate::units::{Alpha, BitRate, Bytes, Cells, Nanos, Ticks};

/// One tick is a nanosecond.
const HZ: u64 = 1_000_000_000;
/// At 8 Gb/s a byte takes a nanosecond.
const RATE: BitRate = BitRate(8_000_000_000);
const ABM: AbmSpec = AbmSpec { interval: Nanos(10_000), congested: Bytes(4_000) };
/// A frame takes 1,000 bytes on the wire.
const FRAME: u16 = 976;

/// A switch of three ports on `lcores` lcores, whose queues 1 and 2 ABM limits.
fn spec(lcores: u8) -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(3);
    (spec.lcores, spec.abm) = (lcores, Some(ABM));
    for (index, port) in spec.ports.iter_mut().enumerate() {
        (port.rate, port.lcore) = (RATE, index as u8 % lcores);
    }
    let threshold = Threshold::Dynamic(Alpha::from_exponent(0).expect("in range"));
    (1..=2).for_each(|queue| spec.queues[queue].limit = Some(QueueLimit { threshold, abm: true }));
    spec
}

/// One lcore's ports, queues and meter.
struct Part {
    ports: Vec<Port>,
    egress: Egress<MemPacket>,
    rule: QueueAdmission,
    meter: Box<AbmMeter>,
    counters: Arc<Counters>,
}

impl Part {
    fn fleet(lcores: u8) -> Vec<Self> {
        let spec = spec(lcores);
        let counters = Arc::new(Counters::of(&spec));
        let part = |meter: Option<Box<AbmMeter>>| Self {
            ports: (0..spec.ports.len()).map(|port| Port::new(port, &spec, None, HZ)).collect(),
            egress: Egress::new(&spec, 7, HZ),
            rule: QueueAdmission::new(spec.queues.map(|queue| queue.admission())),
            meter: meter.expect("ABM is on"),
            counters: counters.clone(),
        };
        AbmMeter::fleet(&spec, HZ).into_iter().map(part).collect()
    }

    /// Sets the depth of queue 1 of `port` to `frames`.
    fn fill(&mut self, port: usize, frames: u32) {
        self.fill_queue(port, 1, frames);
        self.egress.waiting.set(port, frames > 0);
    }

    fn fill_queue(&mut self, port: usize, number: u8, frames: u32) {
        let queue = &mut self.ports[port].queues[usize::from(number)];
        *queue = super::queue::Queue::default();
        for _ in 0..frames {
            let desc = FrameDesc::new(1_000, Cells(5), 0, number, number);
            assert!(queue.push(&mut self.egress.slab, MemPacket::new(&[0; 14]), desc).is_ok());
        }
    }

    /// Counts `frames` that queue 1 of `port` has sent.
    fn send(&self, port: usize, frames: u64) {
        let counters = &self.counters.ports[port];
        counters.tx_frames[1].add(frames);
        counters.tx_bytes[1].add(frames * u64::from(FRAME));
    }

    fn poll(&mut self, now: u64) {
        let Self { ports, egress, rule, meter, counters } = self;
        meter.poll(egress.waiting, ports, rule, &counters.ports, Ticks(now));
    }

    fn drain(&self, port: usize) -> LimitPart {
        self.ports[port].drains[1]
    }
}

fn part(numerator: u64, denominator: u64) -> LimitPart {
    LimitPart::of_ratio(Bytes(numerator), Bytes(denominator))
}

/// An interval is 10,000 bytes of the wire. Port 0 sends 4 frames in the first and 10 in the second.
#[test]
fn drain_rate_is_measured_over_an_interval_with_frames_at_both_ends() {
    let mut it = Part::fleet(1).remove(0);
    it.send(0, 500);
    it.fill(0, 9);
    it.poll(1_000_000);
    assert_eq!(it.drain(0), LimitPart::ONE, "the interval begins");
    it.send(0, 4);
    it.fill(1, 9);
    it.poll(1_009_999);
    assert_eq!(it.drain(0), LimitPart::ONE, "it has not ended");
    it.poll(1_010_000);
    assert_eq!(it.drain(0), part(4, 10));
    assert_eq!(it.drain(1), LimitPart::ONE, "port 1 had no frames at its begin");
    assert_eq!(it.rule.explain(1, LimitPart::ONE, pool()).limit, Some(Cells(500)), "n is two");
    it.send(0, 10);
    it.poll(1_020_000);
    assert_eq!((it.drain(0), it.drain(1)), (LimitPart::ONE, part(0, 10)), "port 1 is starved");
}

/// A burst joins queue 2 shortly before the end of an interval in which queue 1 had frames at the same port.
#[test]
fn queue_that_was_empty_at_the_begin_is_not_measured_beside_another_of_its_port() {
    let mut it = Part::fleet(1).remove(0);
    it.fill(0, 9);
    it.poll(1_000_000);
    it.fill_queue(0, 2, 30);
    it.poll(1_010_000);
    assert_eq!(it.ports[0].drains[2], LimitPart::ONE);
    it.poll(1_020_000);
    assert_eq!(it.ports[0].drains[2], part(0, 10), "now it had frames at both ends");
}

fn pool() -> crate::mmu::LossyPool {
    crate::mmu::LossyPool { free: Cells(1_000), reserved: Cells(0) }
}

#[test]
fn empty_lcore_forgets_its_measurements_at_once() {
    let mut it = Part::fleet(1).remove(0);
    it.fill(0, 9);
    it.fill(1, 9);
    it.poll(1_000_000);
    it.poll(1_010_000);
    assert_eq!(it.drain(0), part(0, 10));
    it.fill(0, 0);
    it.fill(1, 0);
    it.poll(1_010_001);
    assert_eq!(it.drain(0), LimitPart::ONE);
    assert_eq!(it.rule.explain(1, LimitPart::ONE, pool()).limit, Some(Cells(1_000)));
    // A rest of any length is not an interval.
    it.fill(0, 9);
    it.poll(9_000_000_000);
    assert_eq!(it.drain(0), LimitPart::ONE);
}

#[test]
fn congested_queues_of_another_lcore_count_at_the_next_interval() {
    let mut fleet = Part::fleet(2);
    fleet[0].fill(0, 9);
    fleet[0].fill(2, 2);
    fleet[1].fill(1, 9);
    for now in [1_000_000, 1_010_000] {
        fleet.iter_mut().for_each(|part| part.poll(now));
    }
    let limit = |part: &Part| part.rule.explain(1, LimitPart::ONE, pool()).limit;
    assert_eq!(limit(&fleet[0]), Some(part(4_000, 6_000).of(Cells(1_000))), "the other publishes after this one");
    assert_eq!(limit(&fleet[1]), Some(part(4_000, 10_000).of(Cells(1_000))), "two queues, and one of half the mark");
    fleet.iter_mut().for_each(|part| part.poll(1_020_000));
    assert_eq!(limit(&fleet[0]), limit(&fleet[1]));
}

/// One poll of a random trace: time since the one before, and for each port its depth and the frames sent since.
type Step = (u64, [(u32, u64); 3]);

/// Measurements that a meter must have after a history of polls with their time, depths and frames ever sent.
#[derive(Debug, PartialEq)]
struct Measured {
    drains: [LimitPart; 3],
    share: LimitPart,
}

/// Finds the intervals of `history` from its begin, without any state of a meter.
fn naive(history: &[(u64, [u32; 3], [u64; 3])]) -> Measured {
    let idle = || Measured { drains: [LimitPart::ONE; 3], share: LimitPart::ONE };
    let (mut measured, mut began) = (idle(), None);
    for (at, (now, depths, sent)) in history.iter().enumerate() {
        if depths == &[0; 3] {
            (measured, began) = (idle(), None);
            continue;
        }
        let first = *began.get_or_insert(at);
        let (then, depths_then, sent_then) = &history[first];
        if now - then < ABM.interval.0 {
            continue;
        }
        let congestion: u64 = depths.iter().map(|&depth| 4_000.min(u64::from(depth) * 1_000)).sum();
        measured.share = if congestion <= 4_000 { LimitPart::ONE } else { part(4_000, congestion) };
        measured.drains = std::array::from_fn(|port| {
            let is_measured = depths_then[port] > 0 && depths[port] >= 4;
            let bytes = (sent[port] - sent_then[port]) * 1_000;
            if is_measured { part(bytes.min(now - then), now - then) } else { LimitPart::ONE }
        });
        began = Some(at);
    }
    measured
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn abm_drain_meter_agrees_with_the_naive_one(
        steps in prop::collection::vec((1_u64..9_000, prop::array::uniform3((0_u32..8, 0_u64..8))), 1..60),
    ) {
        let mut it = Part::fleet(1).remove(0);
        let (mut now, mut sent, mut history) = (1_000_000, [0; 3], Vec::new());
        let steps: Vec<Step> = steps;
        for (after, ports) in steps {
            now += after;
            // A quarter of the polls find no frames.
            let is_empty = after % 4 == 0;
            for (port, (depth, frames)) in ports.into_iter().enumerate() {
                it.fill(port, if is_empty { 0 } else { depth });
                it.send(port, frames);
                sent[port] += frames;
            }
            history.push((now, ports.map(|(depth, _)| if is_empty { 0 } else { depth }), sent));
            it.poll(now);
            let measured = Measured {
                drains: std::array::from_fn(|port| it.drain(port)),
                share: it.rule.share(1),
            };
            prop_assert_eq!(measured, naive(&history));
        }
    }
}
