//! Raw bindings to the part of DPDK that Holdfast uses, made from the headers installed on the machine, and a C shim
//! for what those headers only define inline.
//!
//! Nothing here is safe to call without DPDK's own documentation at hand; `holdfast::dpdk` is the safe layer.

#[cfg(not(target_arch = "x86_64"))]
compile_error!("Holdfast's DPDK layer reads the x86 time stamp counter; build with --no-default-features elsewhere");

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
