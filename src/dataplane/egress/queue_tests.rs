use std::collections::VecDeque;

use arrayvec::ArrayVec;
use proptest::prelude::*;

use super::queue::{Queue, Slab};
use super::slots::{CHUNK, Slots, Unpacked};
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::frame::run::{Run, RunKind};
use crate::io::Burst;
use crate::sets::{BURST, FrameSet};
use crate::units::{Bytes, Cells};

#[test]
fn look_ahead_at_the_start_of_a_chunk_prefetches_the_next_chunk() {
    let (mut slab, mut queue) = (Slab::new(5 * CHUNK, 1), Queue::default());
    (0..2 * CHUNK + 3).for_each(|number| queue.push(&mut slab, number, FrameDesc::new(64, Cells(1), 0, 0, 0)).unwrap());
    let mut asked = Vec::new();
    while !queue.is_empty() {
        let mut ahead = Vec::new();
        queue.look_ahead(&slab, |number| ahead.push(*number));
        asked.push(ahead);
        queue.pop(&mut slab);
    }
    let expected = |taken: usize| match taken {
        0 => (CHUNK..2 * CHUNK).collect(),
        CHUNK => (2 * CHUNK..2 * CHUNK + 3).collect(),
        _ => Vec::new(),
    };
    assert_eq!(asked, (0..2 * CHUNK + 3).map(expected).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn queues_over_one_slab_are_fifos(operations in prop::collection::vec((0_usize..4, 0_u8..9), 0..500)) {
        let mut slab = Slab::new(50, 4);
        let mut queues = vec![Queue::default(); 4];
        let mut model = vec![VecDeque::new(); 4];
        for (number, (queue, operation)) in operations.into_iter().enumerate() {
            if operation < 2 {
                let desc = FrameDesc::new(64 + number as u16, Cells(1 + (number % 7) as u32), 0, 0, queue as u8);
                let full = slab.held() == 50;
                prop_assert_eq!(queues[queue].push(&mut slab, number, desc).is_err(), full);
                if !full {
                    model[queue].push_back(number);
                }
            } else if operation == 2 {
                // A frame that is taken and put back changes nothing.
                if let Some((number, desc)) = queues[queue].pop(&mut slab) {
                    prop_assert!(queues[queue].push_front(&mut slab, number, desc).is_ok());
                }
            } else if operation == 4 {
                // Takes as many frames as a burst has room for, from chunk to chunk, and puts them back, the last
                // one first.
                let (mut packets, mut descs) = (Burst::new(), ArrayVec::<FrameDesc, BURST>::new());
                loop {
                    let first = queues[queue].first(&slab);
                    let most = first.len().min(packets.remaining_capacity());
                    let run = first[..most].iter().fold(Run::default(), |run, desc| run.and(*desc));
                    if run.frames == 0 {
                        break;
                    }
                    queues[queue].take(&mut slab, run, &mut packets, &mut descs);
                }
                prop_assert!(packets.iter().eq(model[queue].iter().take(BURST)));
                for (number, desc) in packets.into_iter().zip(descs).rev() {
                    prop_assert!(queues[queue].push_front(&mut slab, number, desc).is_ok());
                }
            } else if operation == 5 {
                // Appends a burst at once, as far as there is room.
                let room = (1..=number % 20).rev().find(|&frames| slab.has_room(frames)).unwrap_or(0);
                for _ in 0..room {
                    let desc = FrameDesc::new(64 + number as u16, Cells(1 + (number % 7) as u32), 0, 0, queue as u8);
                    queues[queue].append(&mut slab, number, desc);
                    model[queue].push_back(number);
                }
                slab.appended(room);
            } else if operation == 7 {
                // Appends every other frame of a burst as a run, the rest to another queue.
                let room = (1..=number % (BURST + 1)).rev().find(|&frames| slab.has_room(frames)).unwrap_or(0);
                let mut burst: Burst<usize> = (0..room).map(|frame| number + frame).collect();
                let desc = |index: usize| {
                    let number = number + index;
                    FrameDesc::new(64 + number as u16, Cells(1 + (number % 7) as u32), 0, 0, queue as u8)
                };
                let all = FrameSet::first(room);
                let even = all & FrameSet::from_bits(0x5555_5555);
                let mut packets = Unpacked::new(&mut burst);
                for (queue, members) in [(queue, even), ((queue + 1) % 4, all - even)] {
                    let Some(first) = members.lowest() else { continue };
                    let metas = std::array::from_fn(|index| Meta { desc: desc(index), ..Meta::EMPTY });
                    queues[queue].append_run(&mut slab, &mut packets, (members, RunKind::of(desc(first))), &metas);
                    model[queue].extend(members.iter().map(|index| number + index));
                }
                prop_assert!(packets.left().is_empty());
                slab.appended(room);
            } else if operation == 8 && queues[queue].frames() as usize <= BURST && !queues[queue].is_empty() {
                let (mut packets, mut descs) = (ArrayVec::new(), ArrayVec::new());
                let (run, _) = queues[queue].as_one_run().expect("one group, and no short frame");
                prop_assert_eq!((run.frames, run.bytes()), (queues[queue].frames(), queues[queue].bytes()));
                queues[queue].take_all(&mut slab, &mut packets, &mut descs);
                prop_assert_eq!(descs.iter().fold(Run::default(), |run, &desc| run.and(desc)), run);
                prop_assert!(packets.into_iter().eq(model[queue].drain(..)));
            } else if operation == 3 {
                // Takes all frames that are in one chunk, or some of them.
                let (mut packets, mut descs) = (ArrayVec::new(), ArrayVec::new());
                let first = queues[queue].first(&slab).to_vec();
                let most = first.len().min(number % (CHUNK + 1));
                let run = first[..most].iter().fold(Run::default(), |run, desc| run.and(*desc));
                prop_assert_eq!(run.bytes(), first[..most].iter().map(|desc| Bytes(desc.frame_len().into())).sum());
                queues[queue].take(&mut slab, run, &mut packets, &mut descs);
                prop_assert_eq!(&descs[..], &first[..most]);
                prop_assert!(packets.into_iter().eq(model[queue].drain(..most)));
            } else {
                let popped = queues[queue].pop(&mut slab).map(|(number, _)| number);
                prop_assert_eq!(popped, model[queue].pop_front());
            }
            for (queue, model) in queues.iter().zip(&model) {
                prop_assert_eq!(queue.frames() as usize, model.len());
                let lengths = queue.descs(&slab).map(|desc| usize::from(desc.frame_len()) - 64);
                prop_assert!(lengths.eq(model.iter().copied()));
                prop_assert_eq!(queue.bytes(), model.iter().map(|n| Bytes(64 + *n as u64)).sum());
                prop_assert_eq!(queue.cells(), model.iter().map(|n| Cells(1 + (n % 7) as u32)).sum());
                if let Some(first) = model.front() {
                    prop_assert_eq!(queue.head_len(&slab), Bytes(64 + *first as u64));
                }
            }
        }
    }
}

#[test]
fn a_queue_is_one_run_until_another_group_or_a_short_frame_comes() {
    let (mut slab, mut queue) = (Slab::new(50, 1), Queue::default());
    let (usual, other) = (FrameDesc::new(64, Cells(1), 0, 3, 0), FrameDesc::new(64, Cells(1), 0, 4, 0));
    for (desc, is_one_run) in [(usual, true), (usual, true), (other, false), (usual, false)] {
        queue.push(&mut slab, 0, desc).unwrap();
        assert_eq!(queue.as_one_run().is_some(), is_one_run);
    }
    while queue.pop(&mut slab).is_some() {}
    queue.push(&mut slab, 0, other).unwrap();
    assert!(queue.as_one_run().is_some(), "the others have left");
    queue.push_front(&mut slab, 0, FrameDesc::new(59, Cells(1), 0, 4, 0)).unwrap();
    assert!(queue.as_one_run().is_none(), "the wire pads a frame");
}

/// A packet that counts its drops.
struct Counted(std::rc::Rc<std::cell::Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn slots_drop_exactly_the_packets_that_they_hold() {
    let drops = std::rc::Rc::new(std::cell::Cell::new(0));
    let (mut slab, mut queue) = (Slab::new(64, 1), Queue::default());
    let desc = FrameDesc::new(64, Cells(1), 0, 0, 0);
    let mut burst: Burst<Counted> = (0..BURST).map(|_| Counted(drops.clone())).collect();
    let mut packets = Unpacked::new(&mut burst);
    queue.append_run(
        &mut slab,
        &mut packets,
        (FrameSet::ALL, RunKind::of(desc)),
        &[Meta { desc, ..Meta::EMPTY }; BURST],
    );
    slab.appended(BURST);
    assert!(burst.is_empty());
    let run = (0..10).fold(Run::default(), |run, _| run.and(desc));
    let (mut taken, mut descs) = (Burst::new(), ArrayVec::new());
    queue.take(&mut slab, run, &mut taken, &mut descs);
    assert_eq!((drops.get(), taken.len()), (0, 10));
    drop(taken);
    assert_eq!(drops.get(), 10);
    drop(slab);
    assert_eq!(drops.get(), BURST as u32);
}

#[test]
#[should_panic(expected = "a run of packets")]
fn a_slot_gives_its_packet_once() {
    let (mut slots, mut out) = (Slots::with_capacity(1), Burst::new());
    slots.add_chunk();
    (0..3).for_each(|slot| slots.put(0, slot, slot));
    slots.take_run(0, (0, 3), &mut out);
    slots.take_run(0, (2, 3), &mut out);
}

#[test]
#[should_panic(expected = "packets that are there")]
fn a_burst_gives_its_packet_once() {
    let (mut slots, mut burst): (Slots<usize>, Burst<usize>) = (Slots::with_capacity(1), (0..4).collect());
    slots.add_chunk();
    let mut packets = Unpacked::new(&mut burst);
    slots.put_run((0, 0), &mut packets, FrameSet::first(2), |_, _| {});
    slots.put_run((0, 2), &mut packets, FrameSet::only(1), |_, _| {});
}
