use std::collections::VecDeque;

use arrayvec::ArrayVec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::queue::{Queue, Slab};
use super::slots::{CHUNK, LeavingFrames, Slots, Unpacked};
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

/// Room of a slab: a few chunks, the last of which is not full.
const ROOM: usize = 3 * CHUNK + 2;

/// Four queues over a slab of [`ROOM`] frames, and what they must hold. A packet is a number, which is the length of
/// its frame beyond 64 bytes too.
struct Bed {
    slab: Slab<usize>,
    queues: Vec<Queue>,
    model: Vec<VecDeque<usize>>,
}

type Checked = Result<(), TestCaseError>;

fn cells(number: usize) -> Cells {
    Cells(1 + (number % 7) as u32)
}

fn desc(number: usize, queue: usize) -> FrameDesc {
    FrameDesc::new(64 + number as u16, cells(number), 0, 0, queue as u8)
}

impl Bed {
    /// The most frames, up to `most`, for which there is room.
    fn room(&self, most: usize) -> usize {
        (1..=most).rev().find(|&frames| self.slab.has_room(frames)).unwrap_or(0)
    }

    fn push(&mut self, queue: usize, number: usize) -> Checked {
        let is_full = self.slab.held() == ROOM as u32;
        prop_assert_eq!(self.queues[queue].push(&mut self.slab, number, desc(number, queue)).is_err(), is_full);
        if !is_full {
            self.model[queue].push_back(number);
        }
        Ok(())
    }

    fn pop(&mut self, queue: usize) -> Checked {
        let popped = self.queues[queue].pop(&mut self.slab).map(|(number, _)| number);
        prop_assert_eq!(popped, self.model[queue].pop_front());
        Ok(())
    }

    /// A frame that is taken and put back changes nothing.
    fn put_one_back(&mut self, queue: usize) -> Checked {
        if let Some((number, desc)) = self.queues[queue].pop(&mut self.slab) {
            prop_assert!(self.queues[queue].push_front(&mut self.slab, number, desc).is_ok());
        }
        Ok(())
    }

    /// Takes as many frames as a burst has room for, from chunk to chunk, and puts them back, the last one first.
    fn put_burst_back(&mut self, queue: usize) -> Checked {
        let (mut packets, mut descs) = (Burst::new(), ArrayVec::<FrameDesc, BURST>::new());
        loop {
            let first = self.queues[queue].first(&self.slab);
            let most = first.len().min(packets.remaining_capacity());
            let run = first[..most].iter().fold(Run::default(), |run, desc| run.and(*desc));
            if run.frames == 0 {
                break;
            }
            self.queues[queue].take(&mut self.slab, run, &mut packets, &mut descs);
        }
        prop_assert!(packets.iter().eq(self.model[queue].iter().take(BURST)));
        for (number, desc) in packets.into_iter().zip(descs).rev() {
            prop_assert!(self.queues[queue].push_front(&mut self.slab, number, desc).is_ok());
        }
        Ok(())
    }

    /// Appends frames one by one, of which the room is asked once.
    fn append(&mut self, queue: usize, number: usize) -> Checked {
        let room = self.room(number % 20);
        for _ in 0..room {
            self.queues[queue].append(&mut self.slab, number, desc(number, queue));
            self.model[queue].push_back(number);
        }
        self.slab.appended(room);
        Ok(())
    }

    /// Appends every other frame of a burst as a run, the rest to another queue.
    fn append_runs(&mut self, queue: usize, number: usize) -> Checked {
        let room = self.room(number % (BURST + 1));
        let mut burst: Burst<usize> = (0..room).map(|frame| number + frame).collect();
        let metas = std::array::from_fn(|index| Meta { desc: desc(number + index, queue), ..Meta::EMPTY });
        let even = FrameSet::first(room) & FrameSet::from_bits(0x5555_5555_5555_5555);
        let mut packets = Unpacked::new(&mut burst);
        for (queue, members) in [(queue, even), ((queue + 1) % 4, FrameSet::first(room) - even)] {
            let kind = RunKind::of(metas[0].desc);
            self.queues[queue].append_run(&mut self.slab, &mut packets, members, kind, &metas);
            self.model[queue].extend(members.iter().map(|index| number + index));
        }
        prop_assert!(packets.left().is_empty());
        self.slab.appended(room);
        Ok(())
    }

    /// Takes all frames that are in one chunk, or some of them.
    fn take_some(&mut self, queue: usize, number: usize) -> Checked {
        let (mut packets, mut descs) = (ArrayVec::new(), ArrayVec::new());
        let first = self.queues[queue].first(&self.slab).to_vec();
        let most = first.len().min(number % (CHUNK + 1));
        let run = first[..most].iter().fold(Run::default(), |run, desc| run.and(*desc));
        prop_assert_eq!(run.bytes(), first[..most].iter().map(|desc| Bytes(desc.frame_len().into())).sum());
        self.queues[queue].take(&mut self.slab, run, &mut packets, &mut descs);
        prop_assert_eq!(&descs[..], &first[..most]);
        prop_assert!(packets.into_iter().eq(self.model[queue].drain(..most)));
        Ok(())
    }

    /// Takes all frames as one run, if they fit a burst.
    fn take_all(&mut self, queue: usize) -> Checked {
        let frames = &mut self.queues[queue];
        let Some((run, _)) = frames.as_one_run().filter(|(run, _)| run.frames as usize <= BURST) else {
            prop_assert!(frames.is_empty() || frames.frames() as usize > BURST);
            return Ok(());
        };
        prop_assert_eq!((run.frames, run.bytes(), run.cells()), (frames.frames(), frames.bytes(), frames.cells()));
        let (mut packets, mut descs) = (ArrayVec::new(), ArrayVec::new());
        frames.take_all(&mut self.slab, &mut packets, &mut descs);
        prop_assert_eq!(descs.iter().fold(Run::default(), |run, &desc| run.and(desc)), run);
        prop_assert!(packets.into_iter().eq(self.model[queue].drain(..)));
        Ok(())
    }

    fn check(&self) -> Checked {
        for (queue, model) in self.queues.iter().zip(&self.model) {
            prop_assert_eq!(queue.frames() as usize, model.len());
            let lengths = queue.descs(&self.slab).map(|desc| usize::from(desc.frame_len()) - 64);
            prop_assert!(lengths.eq(model.iter().copied()));
            prop_assert_eq!(queue.bytes(), model.iter().map(|n| Bytes(64 + *n as u64)).sum());
            prop_assert_eq!(queue.cells(), model.iter().map(|n| cells(*n)).sum());
            if let Some(first) = model.front() {
                prop_assert_eq!(queue.head_len(&self.slab), Bytes(64 + *first as u64));
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn queues_over_one_slab_are_fifos(operations in prop::collection::vec((0_usize..4, 0_u8..9), 0..500)) {
        let mut bed =
            Bed { slab: Slab::new(ROOM, 4), queues: vec![Queue::default(); 4], model: vec![VecDeque::new(); 4] };
        for (number, (queue, operation)) in operations.into_iter().enumerate() {
            match operation {
                0 | 1 => bed.push(queue, number),
                2 => bed.put_one_back(queue),
                3 => bed.put_burst_back(queue),
                4 => bed.append(queue, number),
                5 => bed.append_runs(queue, number),
                6 => bed.take_some(queue, number),
                7 => bed.take_all(queue),
                _ => bed.pop(queue),
            }?;
            bed.check()?;
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
    queue.append_run(&mut slab, &mut packets, FrameSet::ALL, RunKind::of(desc), &[Meta { desc, ..Meta::EMPTY }; BURST]);
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
fn slab_slot_panics_on_a_packet_taken_twice() {
    let (mut slots, mut out) = (Slots::with_capacity(1), Burst::new());
    slots.add_chunk();
    let mut descs = ArrayVec::new();
    (0..3).for_each(|slot| slots.put(0, slot, slot, desc(slot, 0)));
    slots.take_run(0, 0, 3, &mut out, &mut descs);
    slots.take_run(0, 2, 3, &mut out, &mut descs);
}

#[test]
#[should_panic(expected = "packets that are there")]
fn unpacked_burst_panics_on_a_packet_taken_twice() {
    let (mut slots, mut burst): (Slots<usize>, Burst<usize>) = (Slots::with_capacity(1), (0..4).collect());
    slots.add_chunk();
    let mut packets = Unpacked::new(&mut burst);
    slots.put_run(0, 0..2, &mut packets, &mut LeavingFrames::new(FrameSet::first(2)), &[Meta::EMPTY; BURST]);
    slots.put_run(0, 2..3, &mut packets, &mut LeavingFrames::new(FrameSet::only(1)), &[Meta::EMPTY; BURST]);
}

#[test]
#[should_panic(expected = "at most as many slots as members")]
fn a_burst_fills_no_more_slots_than_it_has_members() {
    let (mut slots, mut burst): (Slots<usize>, Burst<usize>) = (Slots::with_capacity(1), (0..4).collect());
    slots.add_chunk();
    slots.put_run(
        0,
        0..3,
        &mut Unpacked::new(&mut burst),
        &mut LeavingFrames::new(FrameSet::first(2)),
        &[Meta::EMPTY; BURST],
    );
}
