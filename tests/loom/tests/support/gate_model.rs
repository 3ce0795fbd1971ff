//! Model of the gate of a driver: an lcore that calls the driver, and a thread that frees the driver's memory.
//!
//! loom fails if the lcore reads the memory while the other thread writes it, or without an order between them.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::gate::Gate;

/// The memory of a driver; true means freed.
struct Memory(UnsafeCell<bool>);

// SAFETY: loom panics before an access that is not ordered against another thread's.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

/// The lcore calls the driver twice. The other thread frees the memory and maps it again while the gate is closed. The
/// gate is open or closed at first.
pub fn memory_is_freed_beside_an_lcore(is_closed: bool, starts: [fn(); 2]) {
    let shared = Arc::new((Gate::new(is_closed), Memory(UnsafeCell::new(false))));
    let lcore = {
        let shared = shared.clone();
        thread::spawn(move || {
            starts[0]();
            let (gate, memory) = &*shared;
            for _ in 0..2 {
                if gate.enter() {
                    // SAFETY: loom panics before the access if it is not ordered against the other thread's.
                    assert!(!memory.0.with(|memory| unsafe { *memory }), "the memory is freed");
                    gate.leave();
                }
                thread::yield_now();
            }
        })
    };
    starts[1]();
    let (gate, memory) = &*shared;
    gate.close(thread::yield_now);
    for is_freed in [true, false] {
        // SAFETY: as above.
        memory.0.with_mut(|memory| unsafe { *memory = is_freed });
    }
    gate.open();
    lcore.join().unwrap();
    assert!(gate.enter(), "the gate is open, and the lcore outside");
}
