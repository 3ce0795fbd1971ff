//! Link arguments of the tests.

#[path = "../../ffi/surround.rs"]
mod surround;

fn main() {
    println!("cargo:rerun-if-changed=../../ffi/surround.rs");
    surround::interrupts(std::env::var_os("CARGO_FEATURE_STATIC").is_some());
}
