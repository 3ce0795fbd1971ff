//! Handshakes between lcores, and between them and the control thread.
//!
//! Every wait of a model yields, so that loom runs the thread waited for.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::fdb_view::{FdbWindow, Showing};
use crate::forward::Fdb;
use crate::mailbox::mailbox;
use crate::reserves::QueueReserves;
use crate::sets::{CLASSES, PortSet};
use crate::shutdown::Shutdown;
use crate::units::Cells;

/// Two lcores end. Each has a frame in the ring to the other when it drains; the other drops it and publishes the
/// release. No lcore ends with a frame in its ring or without the release of its own frame.
///
/// The ring and the tallies are relaxed atomics here: only the handshake orders them.
pub fn lcores_end_with_empty_rings_and_all_releases(starts: [fn(); 2]) {
    let shutdown = Arc::new(Shutdown::new(2));
    // Frames in the ring to each lcore, and released frames that it had admitted.
    let rings: Arc<[AtomicUsize; 2]> = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let releases: Arc<[AtomicUsize; 2]> = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let lcores = [0, 1].map(|lcore| {
        let (shutdown, rings, releases) = (shutdown.clone(), rings.clone(), releases.clone());
        thread::spawn(move || {
            starts[lcore]();
            let other = 1 - lcore;
            rings[other].store(1, Ordering::Relaxed);
            let mut emptying = shutdown.drained();
            loop {
                let (released, is_over) = emptying.round(|| {
                    if rings[lcore].load(Ordering::Relaxed) == 1 {
                        rings[lcore].store(2, Ordering::Relaxed);
                        releases[other].store(1, Ordering::Relaxed);
                    }
                    releases[lcore].load(Ordering::Relaxed)
                });
                if is_over {
                    assert_eq!(rings[lcore].load(Ordering::Relaxed), 2, "a frame is left in the ring");
                    assert_eq!(released, 1, "an lcore ends with cells charged");
                    return;
                }
                thread::yield_now();
            }
        })
    });
    lcores.into_iter().for_each(|lcore| lcore.join().unwrap());
}

/// Settings that are sent one after the other are applied in order, each whole, and their memory comes back.
pub fn settings_are_applied_whole_and_in_order(starts: [fn(); 2]) {
    let (mut sender, mut receiver) = mailbox::<[usize; 2]>();
    let lcore = thread::spawn(move || {
        starts[1]();
        let mut applied = 0;
        for _ in 0..3 {
            receiver.receive(|value| {
                assert_eq!(*value, [applied + 1; 2], "a setting is skipped, or half another");
                applied += 1;
            });
            thread::yield_now();
        }
        (receiver, applied)
    });
    starts[0]();
    let mut sent = 0;
    for _ in 0..3 {
        if sender.send(Box::new([sent + 1; 2])).is_ok() {
            sent += 1;
        }
        thread::yield_now();
    }
    let (mut receiver, mut applied) = lcore.join().unwrap();
    receiver.receive(|_| applied += 1);
    assert_eq!(applied, sent, "a setting is lost");
    assert!(sender.is_idle(), "its memory does not come back");
}

/// The control thread requests a whole database, and before it is shown the part behind its first bucket. An answer has
/// the entries of the part that was requested last, and no others.
pub fn fdb_answer_has_the_part_that_was_requested_last(starts: [fn(); 2]) {
    let window = Arc::new(FdbWindow::default());
    let shown = window.clone();
    let lcore = thread::spawn(move || {
        starts[1]();
        let (fdb, mut showing) = (Fdb::of_buckets(2), Showing::default());
        for _ in 0..3 {
            let asked = shown.asked();
            if asked != showing.shown {
                shown.show(&mut showing, asked, &fdb, PortSet::ALL);
            }
            thread::yield_now();
        }
    });
    starts[0]();
    for from in [0, 1] {
        window.ask(from);
        if let Some(part) = window.answer() {
            check(from, &part.entries);
        }
        thread::yield_now();
    }
    if let Some(part) = window.answer() {
        check(1, &part.entries);
    }
    lcore.join().unwrap();
}

fn check(from: usize, entries: &[crate::forward::fdb::Sighting]) {
    let stations: Vec<u64> = entries.iter().map(|seen| seen.station.to_number()).collect();
    assert_eq!(stations, (from as u64 + 1..=2).collect::<Vec<_>>(), "from bucket {from}");
}

/// Two lcores fill and empty their queues, and read the sum. The unused reserves never exceed the reserves, and are
/// exact in the end. `share` gives the lcores their views.
pub fn unused_reserves_are_counted_once_by_two_lcores(share: fn([Arc<QueueReserves>; 2]) -> [Arc<QueueReserves>; 2]) {
    const RESERVE: u32 = 4;
    let mut reserves = [Cells(0); CLASSES];
    reserves[1] = Cells(RESERVE);
    let views = QueueReserves::fleet(reserves, &[0, 1], 2).into_iter().map(Arc::new).collect::<Vec<_>>();
    let views: [Arc<QueueReserves>; 2] = views.try_into().expect("two");
    let writers = share(views.clone());
    let lcores = [0, 1].map(|lcore| {
        let view = writers[lcore].clone();
        thread::spawn(move || {
            for (before, after) in [(0, 3), (3, 5), (5, 1)] {
                view.update(lcore, 1, Cells(before), Cells(after));
                let unused = view.unused();
                assert!(unused.0 <= 2 * RESERVE, "{unused:?} of {RESERVE} each");
            }
        })
    });
    lcores.into_iter().for_each(|lcore| lcore.join().unwrap());
    assert_eq!(views[0].unused(), Cells(2 * (RESERVE - 1)), "a change is lost");
    assert!(views[0].covers(1, 1, Cells(3)) && !views[0].covers(1, 1, Cells(4)), "a queue of one cell, of four");
}
