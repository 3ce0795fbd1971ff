//! A fault that AddressSanitizer must report: `tests/asan.sh` runs it and fails if it passes. Without AddressSanitizer
//! it is undefined behaviour, so no other run takes it.

use std::hint::black_box;

#[test]
#[ignore = "undefined behaviour: tests/asan.sh"]
fn read_behind_an_allocation_is_reported() {
    let bytes = black_box(vec![1_u8; 100]);
    // SAFETY: there is no reason. The address is behind the allocation, which is what AddressSanitizer has to report.
    let behind = unsafe { bytes.as_ptr().add(black_box(bytes.len())).read() };
    println!("{behind}");
}
