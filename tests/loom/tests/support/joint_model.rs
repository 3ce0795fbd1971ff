//! Models of a port by which several lcores send: the time of its wire, and what they tell each other about it.
//!
//! The ticks that lcores hold are also counted beside the wire, with std's atomics. loom does not reorder those, and
//! switches threads only before operations of its own. So the count changes together with the wire, and is exact.

use std::array;
use std::fmt::Debug;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::sync::Arc;
use loom::thread;

use crate::joint_wire::{JointWire, Taken};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::told::{Depth, Heard, Told};
use crate::units::{Bytes, Cells};

/// The first tick of the wire that the lcores may take.
const EARLIEST: u64 = 100;

/// Number of ticks that they may take.
const TICKS: u64 = 10;

/// Ticks by which an lcore polls later than another.
const DELAY: u64 = 4;

/// Ticks of the longest frame. The delay and the ticks that a burst gives back are not more.
pub const LONGEST: u64 = 4;

/// The exact count of ticks: those taken and not given back, and those charged without being taken.
#[derive(Default)]
struct Truth {
    held: AtomicU64,
    charged: AtomicU64,
    /// Bursts that took all the time left. The last frame of each may end later.
    ending: AtomicU64,
}

/// An lcore that sends on the wire at an instant, with the exact count for comparison.
struct Lcore {
    wire: Arc<JointWire>,
    truth: StdArc<Truth>,
    /// Ticks by which the lcore polls later than the first one.
    delay: u64,
    /// Ticks that it takes for the end of the last frame.
    last: u64,
}

impl Lcore {
    /// Takes up to `wanted` ticks for a burst, and settles them. Returns the ticks in which frames could start.
    ///
    /// The frames need `beyond` ticks more than were taken. A negative number gives ticks back, if more were taken.
    /// `most` is the bound of what all lcores hold together, without the end of this one's last frame.
    fn send(&self, wanted: u64, most: u64, beyond: i64) -> u64 {
        let (truth, earliest) = (&self.truth, EARLIEST + self.delay);
        let taken = self.wire.take(wanted, self.last, earliest, earliest + TICKS - 1);
        let Some(Taken { starting: taken, last, until }) = taken else { return 0 };
        assert!(until >= earliest + taken + last, "it ends before its own ticks");
        assert!((1..=wanted).contains(&taken), "{taken} ticks taken of {wanted}");
        let is_ending = taken < wanted;
        assert_eq!(last, if is_ending { self.last } else { 0 }, "the ticks of the last frame");
        let held = truth.held.fetch_add(taken + last, Ordering::SeqCst) + taken;
        assert!(held <= most, "{held} ticks are held of {most}");
        let others = truth.ending.fetch_add(is_ending.into(), Ordering::SeqCst);
        assert_eq!(others, 0, "a frame starts beside the last one of another lcore");

        let beyond = if beyond + taken as i64 > 0 { beyond } else { 0 };
        self.wire.settle(beyond - last as i64);
        truth.ending.fetch_sub(is_ending.into(), Ordering::SeqCst);
        truth.held.fetch_sub(last + beyond.min(0).unsigned_abs(), Ordering::SeqCst);
        truth.charged.fetch_add(beyond.max(0).unsigned_abs(), Ordering::SeqCst);
        taken
    }

    fn charge(&self, ticks: u64) {
        self.truth.charged.fetch_add(ticks, Ordering::SeqCst);
        self.wire.charge(ticks, EARLIEST + self.delay);
    }
}

/// Runs `scripts` concurrently on one wire, by lcores that take `last` ticks for the end of the last frame. Returns the
/// wire, the ticks held and the ticks charged at the end.
fn on_one_wire<const LCORES: usize>(
    starts: [fn(); LCORES],
    delays: [u64; LCORES],
    last: u64,
    scripts: [fn(&Lcore); LCORES],
) -> (Lcore, u64, u64) {
    let (wire, truth) = (Arc::new(JointWire::default()), StdArc::new(Truth::default()));
    let lcore = |delay| Lcore { wire: wire.clone(), truth: truth.clone(), delay, last };
    let threads = array::from_fn::<_, LCORES, _>(|number| {
        let (start, script, lcore) = (starts[number], scripts[number], lcore(delays[number]));
        thread::spawn(move || {
            start();
            script(&lcore);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let [held, charged] = [&truth.held, &truth.charged].map(|count| count.load(Ordering::SeqCst));
    (lcore(0), held, charged)
}

/// Three lcores want more time than the wire has, and give back what they do not need. They never hold more than the
/// wire has, and the rest is free at the end.
pub fn joint_wire_never_grants_three_lcores_more_than_it_has(start: fn()) {
    let script: fn(&Lcore) = |lcore| {
        lcore.send(6, TICKS, -2);
    };
    let (lcore, held, _) = on_one_wire([start; 3], [0; 3], LONGEST, [script; 3]);
    assert_eq!(lcore.wire.free_at(), EARLIEST + held, "the time of the wire is wrong");
    assert_eq!(lcore.send(TICKS, TICKS, 0), TICKS - held, "time of the wire is lost");
}

/// An lcore takes time twice and gives some back. Another, which polls later, needs more time than it took. Only time
/// before the later instant can be lost.
pub fn joint_wire_loses_no_time_after_the_later_poll(start: fn()) {
    let early: fn(&Lcore) = |lcore| {
        lcore.send(6, TICKS + DELAY, -2);
        lcore.send(2, TICKS + DELAY, 0);
    };
    let late: fn(&Lcore) = |lcore| {
        lcore.send(5, TICKS + DELAY, 3);
        lcore.send(3, TICKS + DELAY, 0);
    };
    let (lcore, held, charged) = on_one_wire([start; 2], [0, DELAY], LONGEST, [early, late]);
    let least = EARLIEST + held + charged;
    let free_at = lcore.wire.free_at();
    assert!((least..=least + DELAY).contains(&free_at), "the time of the wire is wrong: {free_at}, at least {least}");
}

/// Two lcores each want more time than there is, and take `last` ticks for the end of the last frame. While one of them
/// holds those, the other cannot start a frame, although it polls later. The time is exact once both have settled.
///
/// Time is lost before the later instant only, and only if the lcore that polls then is the first.
pub fn frame_does_not_start_while_another_lcore_holds_the_end_of_the_wire(start: fn(), last: u64) {
    let script: fn(&Lcore) = |lcore| {
        lcore.send(TICKS + DELAY, TICKS + DELAY, -2);
        lcore.send(TICKS + DELAY, TICKS + DELAY, 3);
    };
    let (lcore, held, charged) = on_one_wire([start; 2], [0, DELAY], last, [script; 2]);
    let least = EARLIEST + held + charged;
    let free_at = lcore.wire.free_at();
    assert!([least, least + DELAY].contains(&free_at), "the time of the wire is wrong: {free_at}, at least {least}");
}

/// An lcore sends a PFC frame while two others take time and give some back. The wire is charged for all of them.
/// `starts` are those of the lcores that take and of the one that charges.
pub fn joint_wire_is_charged_for_pfc_frames_beside_takes(starts: [fn(); 2]) {
    let takes: fn(&Lcore) = |lcore| {
        lcore.send(4, TICKS, -1);
    };
    let charges: fn(&Lcore) = |lcore| lcore.charge(3);
    let starts = [starts[0], starts[0], starts[1]];
    let (lcore, held, charged) = on_one_wire(starts, [0; 3], LONGEST, [takes, takes, charges]);
    assert_eq!(lcore.wire.free_at(), EARLIEST + held + charged, "the time of the wire is wrong");
}

/// Cells that two lcores hold for a port. Their sum shows the cells of each.
const CELLS: [u32; 2] = [3, 16];

/// A depth of so many cells of a hundred bytes.
fn depth(cells: u32) -> Depth {
    Depth { cells: Cells(cells), bytes: Bytes(u64::from(cells) * 100) }
}

/// Two lcores tell the frames that they hold. Their frames for port 1 leave in the poll in which the first ones
/// for port 0 stay. A third lcore that sees port 0 sees a depth told before. If it no longer sees port 1, it sees that
/// no frame waits for that port.
pub fn depths_are_seen_with_their_ports(starts: [fn(); 2]) {
    let told = Arc::new(Told::new(2, 3));
    let mut threads = Vec::new();
    for (lcore, cells) in CELLS.into_iter().enumerate() {
        told.tell_depth(lcore, 1, 0, depth(1));
        told.tell_standing(lcore, PortSet::only(1));
        let told = told.clone();
        threads.push(thread::spawn(move || {
            starts[0]();
            told.tell_depth(lcore, 0, 0, depth(cells));
            told.tell_depth(lcore, 1, 0, depth(0));
            told.tell_standing(lcore, PortSet::only(0));
        }));
    }
    let seen = told.clone();
    threads.push(thread::spawn(move || {
        starts[1]();
        let ports = seen.standing_elsewhere(2);
        let [filled, emptied] = [0, 1].map(|port| seen.elsewhere(2, port, 0));
        assert!(!ports.is_empty(), "an lcore holds frames for no port");
        assert!(!ports.contains(0) || filled.cells.0 > 0, "a port is seen before its depth");
        assert!(ports.contains(1) || filled == depth(CELLS[0] + CELLS[1]), "an lcore's depth is missing");
        assert!(ports.contains(1) || emptied == depth(0), "a port is gone before its depth");
    }));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let others = [CELLS[1], CELLS[0], CELLS[0] + CELLS[1]].map(depth);
    assert_eq!([0, 1, 2].map(|lcore| told.elsewhere(lcore, 0, 0)), others, "the depths of other lcores");
    assert_eq!(told.standing_elsewhere(2), PortSet::only(0));
}

/// An lcore holds more frames in its second poll, for a port that it has told already. Another lcore sees the depth of
/// one of the polls, whole, and never that of the first after that of the second.
pub fn depths_are_whole_and_in_order(starts: [fn(); 2]) {
    let told = Arc::new(Told::new(1, 2));
    let held = told.clone();
    let holder = thread::spawn(move || {
        starts[0]();
        held.tell_depth(0, 0, 0, depth(3));
        held.tell_standing(0, PortSet::only(0));
        held.tell_depth(0, 0, 0, depth(5));
    });
    let sender = thread::spawn(move || {
        starts[1]();
        let mut last = 0;
        for _ in 0..3 {
            let (ports, seen) = (told.standing_elsewhere(1), told.elsewhere(1, 0, 0));
            assert!([0, 3, 5].map(depth).contains(&seen), "a depth that was not told: {seen:?}");
            assert!(ports.is_empty() || seen.cells.0 > 0, "a port is seen before its depth");
            assert!(seen.cells.0 >= last, "a depth is older than one before");
            last = seen.cells.0;
        }
    });
    holder.join().unwrap();
    sender.join().unwrap();
}

/// The watchdogs of two owners drop frames. One begins with port 0 before it ends dropping those of port 1. An
/// lcore that sees a port sees its queues. Once the port is gone, it sees none.
pub fn dropping_queues_are_seen_with_their_ports(starts: [fn(); 2]) {
    let told = Arc::new(Told::new(3, 2));
    told.tell_dropping(0, 1, ClassSet::only(0));
    let first: fn(&Told) = |told| {
        told.tell_dropping(0, 0, ClassSet::only(1));
        told.tell_dropping(0, 1, ClassSet::EMPTY);
    };
    let second: fn(&Told) = |told| told.tell_dropping(1, 2, ClassSet::first(2));
    let owners = [first, second].map(|script| {
        let told = told.clone();
        thread::spawn(move || {
            starts[0]();
            script(&told);
        })
    });
    let seen = told.clone();
    let sender = thread::spawn(move || {
        starts[1]();
        let ports = seen.dropping_ports();
        let [begun, ended, other] = [0, 1, 2].map(|port| seen.dropping(port));
        assert!(!ports.contains(0) || begun == ClassSet::only(1), "a port is seen before its queues");
        assert!(!ports.contains(2) || other == ClassSet::first(2), "a port is seen before its queues");
        assert!(ports.contains(1) || ended.is_empty(), "a port is gone before its queues");
        assert!(ports.contains(0) || ports.contains(1), "an owner's ports are of two instants");
    });
    owners.into_iter().for_each(|owner| owner.join().unwrap());
    sender.join().unwrap();
    assert_eq!(told.dropping_ports(), PortSet::only(0) | PortSet::only(2));
}

/// Remembers whether the words of a port say that something is not over, like [`Heard::keep`].
type Keep = fn(&mut Heard, usize, bool);

/// Words about port 0 that an lcore tells another.
struct Topic<W> {
    tell: fn(&Told, W),
    /// The ports of which something is told.
    ports: fn(&Told) -> PortSet,
    words: fn(&Told) -> W,
}

/// An lcore that remembers the words which another has told.
struct Hearer<W> {
    told: Arc<Told>,
    topic: Topic<W>,
    heard: Heard,
    words: W,
    keep: Keep,
}

impl<W: Copy + Debug + Default + PartialEq> Hearer<W> {
    fn hear(&mut self) {
        let ports = (self.topic.ports)(&self.told);
        for port in self.heard.look(ports).iter() {
            self.words = (self.topic.words)(&self.told);
            (self.keep)(&mut self.heard, port, self.words != W::default());
        }
    }
}

/// An lcore has told `words`, which another has heard, and has withdrawn them since. It tells and withdraws them once
/// more while the other looks three times. After one further look, the other remembers none.
fn withdrawn_words_are_forgotten<W>(words: W, topic: Topic<W>, keep: Keep)
where
    W: Copy + Debug + Default + PartialEq + Send + 'static,
{
    let (told, tell, none) = (Arc::new(Told::new(1, 2)), topic.tell, W::default());
    let mut hearer = Hearer { told: told.clone(), topic, heard: Heard::default(), words: none, keep };
    tell(&told, words);
    hearer.hear();
    assert_eq!(hearer.words, words);
    tell(&told, none);
    let teller = thread::spawn(move || [words, none].into_iter().for_each(|words| tell(&told, words)));
    let hearer = thread::spawn(move || {
        for _ in 0..3 {
            hearer.hear();
            assert!([words, none].contains(&hearer.words), "words that were not told: {:?}", hearer.words);
        }
        hearer
    });
    teller.join().unwrap();
    let mut hearer = hearer.join().unwrap();
    hearer.hear();
    assert_eq!(hearer.words, none, "withdrawn words are remembered");
}

/// An lcore tells and withdraws frames that it holds. A depth that is newer than the set of ports is read again.
pub fn withdrawn_depths_of_other_lcores_are_forgotten(keep: Keep) {
    let topic = Topic::<[Depth; CLASSES]> {
        tell: |told, depths| {
            depths.iter().enumerate().for_each(|(queue, depth)| told.tell_depth(0, 0, queue, *depth));
            told.tell_standing(0, PortSet::only_if(depths != [depth(0); CLASSES], 0));
        },
        ports: |told| told.standing_elsewhere(1),
        words: |told| array::from_fn(|queue| told.elsewhere(1, 0, queue)),
    };
    withdrawn_words_are_forgotten([0, 3, 0].map(depth), topic, keep);
}

/// The watchdog of an owner begins and ends dropping frames. Queues that are newer than the set of ports are read
/// again.
pub fn ended_dropping_of_another_owner_is_forgotten(keep: Keep) {
    let topic = Topic::<ClassSet> {
        tell: |told, queues| told.tell_dropping(0, 0, queues),
        ports: |told| told.dropping_ports(),
        words: |told| told.dropping(0),
    };
    withdrawn_words_are_forgotten(ClassSet::only(1), topic, keep);
}
