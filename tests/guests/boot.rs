//! How a guest's kernel starts.

use std::time::{Duration, Instant};

/// Returns words for the command line of every guest's kernel.
///
/// On a busy machine the kernel's timer is late at its start. That would end the kernel in a test of interrupts
/// (`no_timer_check`), or give it a wrong frequency of the time stamp counter, and the switch a wrong rate.
/// Without KVM, the counter is that of the machine, so its frequency is measured here.
pub fn kernel_words() -> String {
    let (start, began) = both_clocks();
    std::thread::sleep(Duration::from_millis(20));
    let (end, ended) = both_clocks();
    let khz = u128::from(end - start) * 1_000_000 / ended.duration_since(began).as_nanos();
    format!("console=ttyS0 quiet panic=-1 tsc=reliable tsc_early_khz={khz} no_timer_check")
}

/// The time stamp counter and the time at one moment: the closest of several pairs, since this thread may lose its CPU
/// between both.
fn both_clocks() -> (u64, Instant) {
    let pair = || (Instant::now(), holdfast::dpdk::now().0, Instant::now());
    let pairs = std::iter::repeat_with(pair).take(10);
    let closest = pairs.min_by_key(|(before, _, after)| after.duration_since(*before)).expect("ten pairs");
    (closest.1, closest.0)
}
