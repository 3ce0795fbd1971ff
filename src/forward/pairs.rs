//! Who sends to whom: the way of frames whose source and destination have been found before, in one look.
//!
//! A frame is looked up twice in the forwarding database, as its source and as its destination. Where both said the usual,
//! that the one is known here and the other is behind a port that may have the frame, the answer holds for the pair until
//! something changes. A cache of it needs one cache line instead of two and a quarter of the instructions. It answers exactly
//! what the database would; and where much is missed, as with more pairs than it can hold, nobody asks it for a while.

use super::Fdb;
use super::fdb::Station;
use crate::near::prefetch;
use crate::sets::MAX_PORTS;

/// Sets of two pairs, of which two make a cache line: a megabyte.
const SETS: usize = 1 << 15;

/// Frames after which it is judged whether asking has been worth it: several for each pair that there is room for.
const SAMPLE: u32 = 1 << 18;

/// Of a sample, this part may be missed, as a divisor. What is missed costs both ways.
const MISSED: u32 = 4;

/// Frames that go without when it was not worth it: many, since a sample without effect costs twice.
const REST: u32 = 1 << 23;

/// A pair's words have room for so many epochs, of which zero is none, since an empty place would be of it.
const EPOCHS: u64 = 256;

/// The port that the frame leaves by, at the end of a pair's first word.
const EGRESS: u64 = MAX_PORTS as u64 - 1;

const _: () = assert!(MAX_PORTS == 64, "ingress and egress take six bits each");

/// Two pairs. First word, from below: egress (6 bits), lower half of the epoch (4), ingress (6), destination's address (48).
/// Second: source with its VLAN, which is the destination's too (60), upper half of the epoch (4).
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(32))]
struct Set {
    first: [u64; 2],
    second: [u64; 2],
}

/// The pairs of stations of one lcore.
#[derive(Debug)]
pub struct Pairs {
    sets: Box<[Set; SETS]>,
    /// What is from another epoch is not there any more: 1 to 255.
    epoch: u64,
    /// The database's version in this epoch.
    version: u64,
    /// Frames of this sample, and how many of them were not found.
    asked: u32,
    missed: u32,
    /// Frames that still go without.
    rest: u32,
}

/// What the pairs of a burst have in common.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    first: u64,
    second: u64,
}

impl Asking {
    #[inline]
    fn words(self, dst: Station, src: Station) -> (u64, u64) {
        (dst.to_number() >> 12 << 16 | self.first, src.to_number() | self.second)
    }
}

impl Default for Pairs {
    fn default() -> Self {
        let Ok(sets) = vec![Set::default(); SETS].into_boxed_slice().try_into() else {
            unreachable!("a slice of so many is an array of so many");
        };
        Self { sets, epoch: 1, version: 0, asked: 0, missed: 0, rest: 0 }
    }
}

impl Pairs {
    /// For a burst of `frames` that came by `port`: how to ask; `None` if it is not worth it.
    #[inline]
    pub fn ask(&mut self, port: usize, frames: usize, fdb: &Fdb) -> Option<Asking> {
        if self.rest > 0 {
            self.rest = self.rest.saturating_sub(frames as u32);
            return None;
        }
        if self.version != fdb.version() {
            self.version = fdb.version();
            self.forget();
        }
        self.asked += frames as u32;
        if self.asked > SAMPLE {
            self.rest = if self.missed > self.asked / MISSED { REST } else { 0 };
            (self.asked, self.missed) = (0, 0);
        }
        let (lower, upper) = (self.epoch & 15, self.epoch >> 4);
        Some(Asking { first: ((port % MAX_PORTS) as u64) << 10 | lower << 6, second: upper << 60 })
    }

    /// The next epoch. A 256th part of the places is emptied in each, so that none holds what is of the same number but 255
    /// epochs old.
    #[cold]
    fn forget(&mut self) {
        self.epoch = if self.epoch + 1 == EPOCHS { 1 } else { self.epoch + 1 };
        let part = SETS / EPOCHS as usize;
        let begin = self.epoch as usize * part;
        self.sets[begin..begin + part].fill(Set::default());
        if self.epoch == 1 {
            self.sets[..part].fill(Set::default());
        }
    }

    /// Nobody is to ask for the time of a test.
    #[cfg(test)]
    pub fn give_up(&mut self) {
        self.rest = u32::MAX;
    }

    #[inline]
    fn place(dst: Station, src: Station) -> usize {
        let both = dst.to_number() ^ src.to_number().rotate_left(32);
        (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS.ilog2())) as usize
    }

    /// Asks for what is known of a pair, ahead of its use.
    #[inline]
    pub fn prefetch(&self, dst: Station, src: Station) {
        prefetch(&self.sets[Self::place(dst, src)]);
    }

    /// The port that a frame from `src` to `dst` leaves by, if that is known.
    #[inline]
    #[must_use]
    pub fn find(&self, asking: Asking, dst: Station, src: Station) -> Option<usize> {
        let set = &self.sets[Self::place(dst, src)];
        let (first, second) = asking.words(dst, src);
        // Each word without what it is asked for: of the pair that is meant the egress is left, of any other a larger number, since
        // no bit of the second word, moved both ways, is below the seventh in both. No more than one of them is meant. Which it
        // is no branch predictor could know, and of a choice, of "one or the other", and of a comparison with what has just been
        // loaded the compiler made branches that were wrong for every other frame.
        let left = |way: usize| {
            let rest = set.second[way] ^ second;
            set.first[way] ^ first | rest << 6 | rest >> 6
        };
        let egress = left(0).min(left(1));
        (egress <= EGRESS).then_some(egress as usize)
    }

    /// A frame was not found, whatever the database says of it. What is left to ask with for the rest of its burst: nothing
    /// if that frame has changed what holds, since frames that all do would have a part of the cache emptied each.
    #[inline]
    pub fn miss(&mut self, asking: Asking, fdb: &Fdb) -> Option<Asking> {
        self.missed += 1;
        (self.version == fdb.version()).then_some(asking)
    }

    /// The database has said that a frame from `src` to `dst`, which was not found here, leaves by `egress`.
    #[cold]
    pub fn keep(&mut self, asking: Asking, dst: Station, src: Station, egress: usize) {
        let set = &mut self.sets[Self::place(dst, src)];
        let (first, second) = asking.words(dst, src);
        // The older one of the two goes.
        *set = Set { first: [first | egress as u64 & EGRESS, set.first[0]], second: [second, set.second[0]] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::fdb::FdbSpec;
    use crate::units::{Nanos, Ticks};
    use proptest::prelude::*;

    const HZ: u64 = 1_000_000_000;

    fn fdb() -> Fdb {
        Fdb::new(&FdbSpec { capacity: 64, ageing: Nanos(2_000_000_000), entries: Vec::new() }, HZ)
    }

    /// Whose way it is to be: few of both, so that they meet again.
    fn station(number: u8) -> Station {
        Station::new(1 + u16::from(number % 2), 0x0200_0000_0000 + u64::from(number / 2))
    }

    /// What the switch asks the database.
    fn usual(fdb: &Fdb, port: usize, dst: Station, src: Station) -> Option<usize> {
        let egress = fdb.lookup(dst)?;
        fdb.is_known(src, fdb.just_seen(port)).then_some(egress)
    }

    #[derive(Debug, Clone)]
    enum Event {
        Frame { port: usize, dst: u8, src: u8 },
        Heard { port: usize, who: u8 },
        ToldAgain(u8),
        Down(usize),
        Later(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            20 => (0_usize..3, 0_u8..8, 0_u8..8).prop_map(|(port, dst, src)| Event::Frame { port, dst, src }),
            1 => (0_usize..3, 0_u8..8).prop_map(|(port, who)| Event::Heard { port, who }),
            1 => (0_u8..8).prop_map(Event::ToldAgain),
            1 => (0_usize..3).prop_map(Event::Down),
            1 => (0_u64..1_000_000_000).prop_map(Event::Later),
        ]
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_the_database_says(events in prop::collection::vec(event(), 1..400)) {
            let (mut fdb, mut pairs, mut now) = (fdb(), Pairs::default(), 0);
            for event in events {
                match event {
                    Event::Frame { port, dst, src } => {
                        let (dst, src) = (station(dst), station(src & !1 | dst & 1));
                        let asking = pairs.ask(port, 1, &fdb).unwrap();
                        let expected = usual(&fdb, port, dst, src);
                        match (pairs.find(asking, dst, src), expected) {
                            (Some(egress), _) => prop_assert_eq!(Some(egress), expected),
                            (None, Some(egress)) => {
                                pairs.keep(asking, dst, src, egress);
                                prop_assert_eq!(pairs.find(asking, dst, src), Some(egress));
                            }
                            (None, None) => _ = fdb.learn(src, port),
                        }
                    }
                    Event::Heard { port, who } => _ = fdb.learn_remote(station(who), port),
                    Event::ToldAgain(who) => fdb.readvertise(station(who)),
                    Event::Down(port) => fdb.forget_port(port),
                    Event::Later(ticks) => {
                        now += ticks;
                        fdb.set_time(Ticks(now));
                    }
                }
            }
        }
    }

    /// Two stations that know each other, behind ports 0 and 1.
    fn acquainted() -> (Fdb, Pairs, Station, Station) {
        let (mut fdb, mut pairs) = (fdb(), Pairs::default());
        let (one, other) = (station(0), station(2));
        fdb.learn(one, 0);
        fdb.learn(other, 1);
        let asking = pairs.ask(0, 1, &fdb).unwrap();
        pairs.keep(asking, other, one, 1);
        assert_eq!(pairs.find(asking, other, one), Some(1));
        (fdb, pairs, one, other)
    }

    #[test]
    fn a_pair_is_of_the_port_it_came_by() {
        let (fdb, mut pairs, one, other) = acquainted();
        let asking = pairs.ask(2, 1, &fdb).unwrap();
        assert_eq!(pairs.find(asking, other, one), None, "the source has moved");
        let asking = pairs.ask(0, 1, &fdb).unwrap();
        assert_eq!(pairs.find(asking, one, other), None, "the other way is another pair");
    }

    #[test]
    fn a_frame_that_changes_what_holds_ends_the_asking() {
        let (mut fdb, mut pairs, one, _) = acquainted();
        let asking = pairs.ask(2, 1, &fdb).unwrap();
        assert!(pairs.miss(asking, &fdb).is_some(), "nothing has changed");
        fdb.learn(one, 2);
        assert!(pairs.miss(asking, &fdb).is_none(), "a station has moved");
    }

    #[test]
    fn nothing_comes_back_when_epochs_do() {
        let (mut fdb, mut pairs, one, other) = acquainted();
        for _ in 0..3 * EPOCHS {
            fdb.forget_port(2);
            let asking = pairs.ask(0, 1, &fdb).unwrap();
            assert_eq!(pairs.find(asking, other, one), None);
        }
    }

    #[test]
    fn an_empty_place_is_nobodys() {
        let (fdb, mut pairs) = (fdb(), Pairs::default());
        for port in 0..MAX_PORTS {
            let asking = pairs.ask(port, 1, &fdb).unwrap();
            assert_eq!(pairs.find(asking, Station::new(0, 0), Station::new(0, 0)), None);
        }
    }

    #[test]
    fn two_pairs_in_one_place_do_not_drive_each_other_out() {
        let (fdb, mut pairs) = (fdb(), Pairs::default());
        let asking = pairs.ask(0, 1, &fdb).unwrap();
        let dst = Station::new(1, 1);
        let place = |number: u64| Pairs::place(dst, Station::new(1, number));
        let others: Vec<u64> = (3..1 << 20).filter(|&number| place(number) == place(2)).take(2).collect();
        for (egress, number) in [2, others[0], others[1]].into_iter().enumerate() {
            pairs.keep(asking, dst, Station::new(1, number), egress);
        }
        let found = [2, others[0], others[1]].map(|number| pairs.find(asking, dst, Station::new(1, number)));
        assert_eq!(found, [None, Some(1), Some(2)]);
    }

    proptest! {
        /// Of pairs that differ from the one that is asked for in any bits, none is taken for it.
        #[test]
        fn another_pair_is_not_found(dst in 1_u64..1 << 48, src in 1_u64..1 << 48, other in (0_u64..1 << 48, 0_u64..1 << 48), port in 0..MAX_PORTS) {
            let (fdb, mut pairs) = (fdb(), Pairs::default());
            let asking = pairs.ask(port, 1, &fdb).unwrap();
            let station = |number: u64| Station::new(1, number);
            // As if it were in the place of another.
            pairs.keep(asking, station(dst), station(src), 5);
            let set = pairs.sets[Pairs::place(station(dst), station(src))];
            let place = Pairs::place(station(other.0), station(other.1));
            pairs.sets[place] = set;
            let is_same = other == (dst, src);
            prop_assert_eq!(pairs.find(asking, station(other.0), station(other.1)), is_same.then_some(5));
            for bit in 0..48 {
                for near in [(dst ^ 1 << bit, src), (dst, src ^ 1 << bit)].map(|(dst, src)| (station(dst), station(src))) {
                    pairs.sets[Pairs::place(near.0, near.1)] = set;
                    prop_assert_eq!(pairs.find(asking, near.0, near.1), None, "bit {}", bit);
                }
            }
        }
    }

    #[test]
    fn who_would_miss_is_not_asked_for_a_while() {
        let (fdb, mut pairs) = (fdb(), Pairs::default());
        let mut frames: u32 = 0;
        // Each frame is of a new pair, as far as the cache can tell.
        while let Some(asking) = pairs.ask(0, 32, &fdb) {
            (0..32).for_each(|_| _ = pairs.miss(asking, &fdb));
            frames += 32;
            assert!(frames <= 2 * SAMPLE, "it should have given up");
        }
        let rested = (0..).take_while(|_| pairs.ask(0, 32, &fdb).is_none()).count() as u32;
        assert!((REST / 32 - 2..=REST / 32).contains(&rested), "{rested} bursts");
        // Where little is missed it goes on.
        for _ in 0..4 * SAMPLE / 32 {
            let asking = pairs.ask(0, 32, &fdb).expect("worth it");
            (0..7).for_each(|_| _ = pairs.miss(asking, &fdb));
        }
    }
}
