//! Link arguments of programs with DPDK. Cargo passes them only to targets of the package whose build script prints
//! them, so the build script of each package with such programs includes this file.

/// Lets drivers find the functions of `ffi/interrupts.c` in place of EAL's. `is_static`: DPDK is part of the program.
pub fn interrupts(is_static: bool) {
    let option = if is_static { "--wrap" } else { "--export-dynamic-symbol" };
    for verb in ["register", "unregister", "unregister_sync", "unregister_pending"] {
        println!("cargo:rustc-link-arg=-Wl,{option}=rte_intr_callback_{verb}");
    }
}
