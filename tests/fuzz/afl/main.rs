//! Calls the target that the first argument names with the inputs of AFL++. Without an argument it prints all names.

use std::hint::black_box;

#[path = "../targets.rs"]
mod targets;

fn main() {
    let Some(name) = std::env::args().nth(1) else {
        return targets::TARGETS.iter().for_each(|(name, _)| println!("{name}"));
    };
    if name == "read-behind-an-allocation" {
        return read_behind_an_allocation();
    }
    let found = targets::TARGETS.iter().find(|(target, _)| *target == name);
    let (_, target) = found.unwrap_or_else(|| panic!("there is no target {name}"));
    afl::fuzz(true, |input| target(input));
}

/// The fault by which run.sh sees that AddressSanitizer reports faults.
fn read_behind_an_allocation() {
    let bytes = black_box(vec![1_u8; 100]);
    // SAFETY: there is no reason. The address is behind the allocation, which is what AddressSanitizer has to report.
    let behind = unsafe { bytes.as_ptr().add(black_box(bytes.len())).read() };
    println!("{behind}");
}
