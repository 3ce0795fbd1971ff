//! Queues with maximum rates beside others, scheduled by the code of the packet path.

use proptest::prelude::*;

use super::Egress;
use super::chosen::Chosen;
use crate::config;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::port::Port;
use crate::io::memory::MemPacket;
use crate::mmu::QueueAdmission;
use crate::plan::counters::PortCounters;
use crate::plan::spec::SwitchSpec;
use crate::qos::{MaxRate, QueueDiscipline, Shaper};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Bytes, Cells, Nanos, Ticks};

const HZ: u64 = 1_000_000_000;
const PORT_RATE: u64 = 10_000_000_000;
/// Frames that each queue with frames holds at the begin of a poll.
const BACKLOG: u32 = 256;

/// Bytes that each queue sent: of frames, and on the wire; and the time for which each was held.
#[derive(Debug, Default, Clone, Copy)]
struct Sent {
    bytes: [u64; CLASSES],
    wire: [u64; CLASSES],
    held_ns: [u64; CLASSES],
}

impl Sent {
    fn all(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

/// A 10G port with these disciplines and maximum rates. The maxima have the usual burst.
fn spec(disciplines: [QueueDiscipline; CLASSES], maxima: [Option<u64>; CLASSES]) -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports[0].rate = BitRate(PORT_RATE);
    for (queue, discipline) in disciplines.into_iter().enumerate() {
        (spec.queues[queue].discipline, spec.queues[queue].wred) = (discipline, None);
        spec.ports[0].live.max_rates[queue] = maxima[queue].map(|rate| {
            let rate = BitRate(rate);
            MaxRate { rate, burst: MaxRate::usual_burst(rate, Nanos(10_000), discipline, Bytes(9022)) }
        });
    }
    spec
}

/// Time between polls, and of a run.
#[derive(Clone, Copy)]
struct Times {
    gap_ns: u64,
    time_ns: u64,
}

/// Polls the port. The queues in `busy` always have frames of their lengths.
fn run(spec: &SwitchSpec, busy: ClassSet, lens: [u16; CLASSES], times: Times) -> Sent {
    let (mut port, counters) = (Port::new(0, spec, None, HZ), PortCounters::default());
    let mut egress: Egress<MemPacket> = Egress::new(spec, 7, HZ);
    let rule = QueueAdmission::new(spec.queues.map(|queue| queue.admission()));
    let reserves = spec.queue_reserves().remove(0);
    let Times { gap_ns, time_ns } = times;
    let mut sent = Sent::default();
    let mut now = HZ;
    while now < HZ + time_ns {
        for queue in busy.iter() {
            while port.queues[queue].frames() < BACKLOG {
                let desc = FrameDesc::new(lens[queue], Cells(1), 1, queue as u8, queue as u8);
                assert!(port.queues[queue].push(&mut egress.slab, MemPacket::new(&[0; 14]), desc).is_ok());
                port.waiting.insert(queue);
            }
        }
        loop {
            let mut chosen = Chosen::default();
            if port.limited.is_empty() {
                egress.schedule(0, &mut port, &reserves, &rule, Ticks(now), &mut chosen);
            } else {
                port.count_held(&counters, Ticks(now));
                egress.schedule_limited(0, &mut port, &reserves, &rule, Ticks(now), &mut chosen);
            }
            for desc in egress.charges.drain(..) {
                sent.bytes[desc.queue()] += u64::from(desc.frame_len());
                sent.wire[desc.queue()] += Shaper::wire_bytes(desc.frame_len().into());
            }
            if egress.posted.drain(..).count() == 0 {
                break;
            }
        }
        now += gap_ns;
    }
    sent.held_ns = std::array::from_fn(|queue| counters.max_rate_held_ns[queue].get());
    sent
}

const fn dwrr(weight: u8) -> QueueDiscipline {
    QueueDiscipline::Dwrr { weight }
}

/// Wire bytes of a rate in ten milliseconds.
fn due(rate: u64) -> u64 {
    rate / 800
}

const TEN_MS: Times = Times { gap_ns: 2_000, time_ns: 10_000_000 };

fn near(value: u64, wanted: u64) -> bool {
    value.abs_diff(wanted) <= wanted / 50
}

#[test]
fn strict_queue_at_its_maximum_leaves_the_rest_to_others_by_weight() {
    let mut disciplines = [dwrr(1); CLASSES];
    (disciplines[3], disciplines[6]) = (dwrr(3), QueueDiscipline::Strict);
    let busy: ClassSet = [1, 3, 6].into_iter().collect();
    let free = run(&spec(disciplines, [None; CLASSES]), busy, [1000; CLASSES], TEN_MS);
    assert!(free.wire[1] + free.wire[3] == 0, "strict and unlimited: {free:?}");
    let mut maxima = [None; CLASSES];
    maxima[6] = Some(2_000_000_000);
    let sent = run(&spec(disciplines, maxima), busy, [1000; CLASSES], TEN_MS);
    let wanted = [(6, 2_000_000_000), (3, 6_000_000_000), (1, 2_000_000_000)];
    for (queue, rate) in wanted {
        assert!(near(sent.wire[queue], due(rate)), "queue {queue}: {sent:?}");
    }
    // All of the time, less the waits for a poll once the queue has its credit again.
    assert!((7_000_000..9_000_000).contains(&sent.held_ns[6]), "{sent:?}");
    assert_eq!((sent.held_ns[1], sent.held_ns[3]), (0, 0));
}

#[test]
fn minimum_shares_stay_when_a_maximum_frees_capacity() {
    // Weights 5, 3 and 2. Queue 0 may use a fifth of the port and not its half, so the others share by three to two.
    let mut disciplines = [dwrr(1); CLASSES];
    (disciplines[0], disciplines[1], disciplines[2]) = (dwrr(5), dwrr(3), dwrr(2));
    let mut maxima = [None; CLASSES];
    maxima[0] = Some(2_000_000_000);
    let sent = run(&spec(disciplines, maxima), [0, 1, 2].into_iter().collect(), [1500; CLASSES], TEN_MS);
    for (queue, rate) in [(0, 2_000_000_000), (1, 4_800_000_000), (2, 3_200_000_000)] {
        assert!(near(sent.wire[queue], due(rate)), "queue {queue}: {sent:?}");
    }
}

#[test]
fn queue_alone_sends_at_its_maximum_and_no_faster() {
    let mut maxima = [None; CLASSES];
    maxima[3] = Some(1_000_000_000);
    let sent = run(&spec([dwrr(1); CLASSES], maxima), ClassSet::only(3), [1500; CLASSES], TEN_MS);
    assert!(near(sent.wire[3], due(1_000_000_000)), "{sent:?}");
    assert!((9_000_000..10_000_000).contains(&sent.held_ns[3]), "{sent:?}");
}

#[test]
fn maximum_rate_that_never_binds_changes_nothing() {
    let maxima = [Some(PORT_RATE); CLASSES];
    let (busy, lens) = (ClassSet::ALL, [64, 1000, 1500, 9000, 300, 64, 777, 1500]);
    let disciplines: [_; CLASSES] = std::array::from_fn(|queue| dwrr(1 + queue as u8));
    let [limited, free] = [maxima, [None; CLASSES]].map(|maxima| run(&spec(disciplines, maxima), busy, lens, TEN_MS));
    assert_eq!((limited.bytes, limited.held_ns), (free.bytes, [0; CLASSES]));
}

#[test]
fn held_queue_gathers_no_deficit() {
    // Queue 0 is held for most of the time. When its maximum is removed, it gets no more than its half.
    let mut maxima = [None; CLASSES];
    maxima[0] = Some(100_000_000);
    let limited = spec([dwrr(1); CLASSES], maxima);
    let mut port = Port::new(0, &limited, None, HZ);
    let mut egress: Egress<MemPacket> = Egress::new(&limited, 7, HZ);
    let rule = QueueAdmission::new(limited.queues.map(|queue| queue.admission()));
    let (reserves, counters) = (limited.queue_reserves().remove(0), PortCounters::default());
    let mut late = [0_u64; 2];
    for poll in 0..4_000 {
        for queue in [0, 1] {
            while port.queues[queue].frames() < BACKLOG {
                let desc = FrameDesc::new(1000, Cells(1), 1, queue as u8, queue as u8);
                assert!(port.queues[queue].push(&mut egress.slab, MemPacket::new(&[0; 14]), desc).is_ok());
                port.waiting.insert(queue);
            }
        }
        if poll == 3_000 {
            port.set_max_rates(&[None; CLASSES], HZ);
        }
        let now = Ticks(HZ + poll * 2_000);
        let mut chosen = Chosen::default();
        if port.limited.is_empty() {
            egress.schedule(0, &mut port, &reserves, &rule, now, &mut chosen);
        } else {
            port.count_held(&counters, now);
            egress.schedule_limited(0, &mut port, &reserves, &rule, now, &mut chosen);
        }
        egress.posted.clear();
        for desc in egress.charges.drain(..).filter(|_| (3_000..3_020).contains(&poll)) {
            late[desc.queue()] += u64::from(desc.frame_len());
        }
    }
    assert!(late[0].abs_diff(late[1]) <= 1_000 && late[0] > 24_000, "{late:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// All queues have frames. Each gets the lower one of its maximum and its share by weight. The port is busy unless
    /// every queue is limited.
    #[test]
    fn each_queue_gets_its_share_or_its_maximum(
        weights in prop::array::uniform8(1_u8..=20),
        maxima in prop::array::uniform8(prop::option::weighted(0.5, 50_000_000_u64..6_000_000_000)),
        lens in prop::array::uniform8(prop_oneof![Just(60_u16), Just(1514), 60_u16..=9022]),
        busy in 1_u8..,
        gap_ns in 200_u64..8_000,
    ) {
        let (busy, time_ns) = (ClassSet::from_bits(busy), 20_000_000);
        let spec = spec(weights.map(dwrr), maxima);
        let sent = run(&spec, busy, lens, Times { gap_ns, time_ns });
        let weight: u64 = busy.iter().map(|queue| u64::from(weights[queue])).sum();
        let bytes_of = |rate: u64| rate * (time_ns / 1000) / 8_000_000;
        for queue in busy.iter() {
            // A round and a burst.
            let slack = 2 * 512 * weight + 40_000 + 2 * 9022;
            let len = u64::from(lens[queue]);
            if let Some(maximum) = spec.ports[0].live.max_rates[queue] {
                let most = bytes_of(maximum.rate.0) + maximum.burst.0 + len + 24 + 2;
                prop_assert!(sent.wire[queue] <= most, "queue {queue}: {} of {most}", sent.wire[queue]);
            }
            let share = sent.all() * u64::from(weights[queue]) / weight;
            let most = maxima[queue].map_or(u64::MAX, |rate| bytes_of(rate) * len / (len + 24));
            let least = (share.min(most) * 99 / 100).saturating_sub(slack);
            prop_assert!(sent.bytes[queue] >= least, "queue {queue}: {} of {least}: {sent:?}", sent.bytes[queue]);
        }
        if busy.iter().any(|queue| maxima[queue].is_none()) {
            let all: u64 = sent.wire.iter().sum();
            prop_assert!(all >= bytes_of(PORT_RATE) * 99 / 100, "{all}");
        }
    }
}
