//! The processor that DPDK needs, asked for before any code of a library runs.
//!
//! Debian compiles DPDK for x86-64-v2, and its libraries run code of their own before `main`. On an older processor
//! that would end the program by a signal, without a word.

use std::arch::is_x86_feature_detected;

/// The program's first function: the loader calls it before the constructors of the program and of its libraries. It
/// stands in the program alone, since a shared library has no such section.
#[used]
// SAFETY: the section holds addresses of functions that the loader calls with the C convention.
#[unsafe(link_section = ".preinit_array")]
static FIRST: extern "C" fn() = refuse_old_processor;

/// The remedy is a program without DPDK, which runs on each x86-64.
const REFUSAL: &[u8] = b"error: this processor lacks SSE4.2 and POPCNT (x86-64-v2), which DPDK needs: \
    use a newer one (of a virtual machine: its CPU model), or build with `--no-default-features` to check and simulate\n";

/// Ends the program with 1 on a processor that is too old. Nothing but system calls works so early.
extern "C" fn refuse_old_processor() {
    if is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt") {
        return;
    }
    // SAFETY: the text is that long, and neither call needs anything that a constructor would make.
    unsafe {
        libc::write(libc::STDERR_FILENO, REFUSAL.as_ptr().cast(), REFUSAL.len());
        libc::_exit(1);
    }
}
