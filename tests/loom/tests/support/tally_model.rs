//! Model of tallies with two lcores that release cells and one thread that reads.
//!
//! An lcore frees the slot of a cell by a plain write before it counts the cell as released. A reader that counts the
//! cell accesses that slot. loom fails if the write is not ordered before the read. So it also fails if more cells are
//! read than were released.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::tally::Tallies;
use crate::units::Cells;

/// Number of cells that each lcore releases.
const CELLS: u64 = 2;

/// Weight of a cell of the second lcore, so a sum shows the cells of each lcore.
const SECOND: u64 = 16;

/// The slots of each lcore's cells; true means free.
struct Slots([[UnsafeCell<bool>; CELLS as usize]; 2]);

// SAFETY: loom panics before an access that is not ordered against another thread's.
unsafe impl Sync for Slots {}

impl Slots {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(false)))))
    }

    fn free(&self, lcore: usize, cell: usize) {
        // SAFETY: loom panics before the access if it is not ordered against another thread's.
        self.0[lcore][cell].with_mut(|slot| unsafe { *slot = true });
    }

    fn is_free(&self, lcore: usize, cell: usize) -> bool {
        // SAFETY: the same as in `free`.
        self.0[lcore][cell].with(|slot| unsafe { *slot })
    }
}

/// Reads port 0, group 0 twice.
fn read(tallies: &Tallies, slots: &Slots) {
    let mut last = [0; 2];
    for _ in 0..2 {
        let sum = tallies.released(0, 0);
        let cells = [sum % SECOND, sum / SECOND];
        for lcore in 0..2 {
            assert!(cells[lcore] >= last[lcore], "what was released shrank");
            assert!(cells[lcore] <= CELLS, "more is read than was released");
            let free = (0..cells[lcore] as usize).all(|cell| slots.is_free(lcore, cell));
            assert!(free, "a cell counts as released that is not free");
        }
        last = cells;
    }
}

/// Runs `release(lcore)` for two lcores beside a reader. At the end the sum must be exact.
fn beside_a_reader<R>(
    tallies: &Arc<Tallies>,
    slots: &Arc<Slots>,
    starts: [fn(); 2],
    mut release: impl FnMut(usize) -> R,
) where
    R: FnOnce() + Send + 'static,
{
    let mut threads = Vec::new();
    for lcore in 0..2 {
        let release = release(lcore);
        threads.push(thread::spawn(move || {
            starts[0]();
            release();
        }));
    }
    let (seen, freed) = (tallies.clone(), slots.clone());
    threads.push(thread::spawn(move || {
        starts[1]();
        read(&seen, &freed);
    }));
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(tallies.released(0, 0), CELLS + CELLS * SECOND);
}

fn cells_of(lcore: usize) -> Cells {
    Cells([1, SECOND as u32][lcore])
}

/// Publishes each release at once.
pub fn freed_cells_are_seen_with_single_tally_releases(starts: [fn(); 2]) {
    let (tallies, slots) = (Arc::new(Tallies::new(2, 1)), Slots::new());
    beside_a_reader(&tallies, &slots, starts, |lcore| {
        let (mut writer, slots) = (tallies.writer(lcore), slots.clone());
        move || {
            for cell in 0..CELLS as usize {
                slots.free(lcore, cell);
                writer.release(0, 0, cells_of(lcore));
                writer.publish();
            }
        }
    });
}

/// Adds releases up before they are published. The first lcore publishes all together, with those of another group. The
/// second publishes one by one, and the last when its writer is dropped.
pub fn freed_cells_are_seen_with_summed_tally_releases(starts: [fn(); 2]) {
    let (tallies, slots) = (Arc::new(Tallies::new(2, 1)), Slots::new());
    beside_a_reader(&tallies, &slots, starts, |lcore| {
        let (mut writer, slots) = (tallies.writer(lcore), slots.clone());
        move || {
            for cell in 0..CELLS as usize {
                slots.free(lcore, cell);
                writer.release(0, 0, cells_of(lcore));
                if (lcore, cell) == (1, 0) {
                    writer.publish();
                }
            }
            if lcore == 0 {
                writer.release(0, 1, Cells(7));
                writer.publish();
            }
        }
    });
    assert_eq!(tallies.released(0, 1), 7);
}
