//! Raw bindings to the part of DPDK that Holdfast uses, generated from the installed headers, and a C shim over the
//! functions that those headers define inline.
//!
//! Callers must follow DPDK's own documentation for every function here. `holdfast::dpdk` is the safe layer.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "Holdfast's DPDK layer reads the counter of x86-64 or arm64; build with --no-default-features elsewhere"
);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod processor;

pub use libc;

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;
