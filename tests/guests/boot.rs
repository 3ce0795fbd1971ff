//! How a guest's kernel starts.

use std::time::{Duration, Instant};

/// Returns words for the command line of every guest's kernel.
///
/// On a busy machine the kernel's timer is late at its start. That would end the kernel in a test of interrupts
/// (`no_timer_check`), or give it a wrong frequency of the time stamp counter, and the switch a wrong rate.
/// Without KVM, the counter is that of the machine, so its frequency is measured here.
pub fn kernel_words() -> String {
    let (start, began) = (holdfast::dpdk::now(), Instant::now());
    std::thread::sleep(Duration::from_millis(20));
    let ticks = holdfast::dpdk::now().0 - start.0;
    let khz = u128::from(ticks) * 1_000_000 / began.elapsed().as_nanos();
    format!("console=ttyS0 quiet panic=-1 tsc=reliable tsc_early_khz={khz} no_timer_check")
}
