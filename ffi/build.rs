//! Generates bindings to the DPDK that pkg-config finds, and compiles a C shim over the inline functions of DPDK.

use std::env;
use std::path::PathBuf;
use std::process::{Command, exit};

mod archives;

/// The oldest DPDK whose interfaces this crate uses.
const OLDEST: &str = "22.11";

/// Command that installs the requirements on Debian and Ubuntu.
const REMEDY: &str = "apt-get install libdpdk-dev libclang-dev pkg-config gcc";

/// The DPDK functions in use. Each function also brings in the types of its signature.
const FUNCTIONS: &[&str] = &[
    "hf_.*",
    "rte_cpu_get_intrinsics_support",
    "rte_eal_(init|cleanup|remote_launch|wait_lcore|get_runtime_dir|hotplug_add|hotplug_remove)",
    "rte_eal_alarm_(set|cancel)",
    "rte_eth_(from_rings|stats_get|stats_reset|macaddr_get|call_rx_callbacks|call_tx_callbacks)",
    "rte_eth_get_monitor_addr",
    "rte_eth_(rx|tx)_queue_setup",
    "rte_eth_promiscuous_(disable|enable)",
    "rte_eth_dev_(adjust_nb_rx_tx_desc|close|configure|count_total|get_mtu|get_port_by_name)",
    "rte_eth_dev_(flow_ctrl_get|flow_ctrl_set|get_dcb_info|priority_flow_ctrl_set)",
    "rte_eth_dev_(info_get|set_mtu|socket_id|start|stop)",
    "rte_eth_dev_set_link_(down|up)",
    "rte_flow_create",
    "rte_fib6?_(create|free|add|delete|lookup_bulk|get_rib)",
    "rte_get_(main_lcore|tsc_hz)",
    "rte_lcore_(count|is_enabled)",
    "rte_mempool_(avail_count|free|calc_obj_size)",
    "rte_pktmbuf_(free_bulk|pool_create)",
    "rte_power_(monitor|pause)",
    "rte_rib6?_(insert|lookup_exact|get_nh|set_nh)",
    "rte_ring_(create|free)",
    "rte_strerror",
    "rte_version",
];

/// Structs with both a packing and an alignment, which Rust cannot express. Holdfast reads no field of them.
const OPAQUE: &[&str] = &["rte_arp_hdr", "rte_arp_ipv4", "rte_gtp_psc_generic_hdr", "rte_l2tpv2_combined_msg_hdr"];

fn main() {
    for file in ["build.rs", "archives.rs", "wrapper.h", "shim.h", "shim.c", "interrupts.h", "interrupts.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let is_static = env::var_os("CARGO_FEATURE_STATIC").is_some();
    // Unless the build is static, this prints the link lines of the shared libraries. EAL loads drivers at run time.
    let found = pkg_config::Config::new().atleast_version(OLDEST).cargo_metadata(!is_static).probe("libdpdk");
    match found {
        Ok(library) => {
            println!("cargo:version={}", library.version);
            if is_static {
                archives::link(&library.link_paths, &words_of_pkg_config(&["--static", "--libs", "libdpdk"]));
            } else {
                // In-process links call functions of this driver, so it is linked here. pkg-config lists no drivers.
                println!("cargo:rustc-link-lib=dylib=rte_net_ring");
            }
        }
        Err(error) => {
            fail(&first_line(&error.to_string()), &format!("DPDK {OLDEST} or newer was not found by pkg-config"));
        }
    }
    let flags = words_of_pkg_config(&["--cflags", "libdpdk"]);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());

    let mut shim = cc::Build::new();
    shim.files(["shim.c", "interrupts.c"]).opt_level(2);
    if is_static {
        shim.define("HF_STATIC", None);
    }
    for flag in &flags {
        shim.flag(flag);
    }
    if let Err(error) = shim.try_compile("holdfast_shim") {
        fail(&first_line(&error.to_string()), "the C shim over DPDK's inline functions did not compile");
    }

    if let Err(error) = clang_sys::load() {
        fail(&first_line(&error), "libclang, which reads DPDK's headers, was not found");
    }
    let mut builder = bindgen::Builder::default()
        .header("wrapper.h")
        .clang_args(&flags)
        .allowlist_var("HF_.*")
        .allowlist_type("hf_.*")
        // rte_flow passes these by untyped pointers.
        .allowlist_type("rte_flow_(item_(eth|ipv4|ipv6|vlan)|action_queue)")
        .allowlist_var("rte_eth_fp_ops")
        // These are thread-local in C but plain statics in bindgen's output: they would link and then crash.
        .blocklist_item("per_lcore_.*")
        .prepend_enum_name(false)
        .generate_comments(false)
        .derive_default(true)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .formatter(bindgen::Formatter::None);
    for function in FUNCTIONS {
        builder = builder.allowlist_function(function);
    }
    for name in OPAQUE {
        builder = builder.opaque_type(name);
    }
    match builder.generate() {
        Ok(bindings) => {
            if let Err(error) = bindings.write_to_file(out.join("bindings.rs")) {
                fail(&error.to_string(), "the bindings could not be written");
            }
        }
        Err(error) => fail(&first_line(&error.to_string()), "DPDK's headers could not be read"),
    }
}

/// Returns the words that pkg-config prints. The crate of that name omits `-include rte_config.h` and `-march`, without
/// which the headers do not compile, and the names of archives.
fn words_of_pkg_config(arguments: &[&str]) -> Vec<String> {
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        Ok(output) => fail(&first_line(&String::from_utf8_lossy(&output.stderr)), "pkg-config knows no such flags"),
        Err(error) => fail(&error.to_string(), "pkg-config could not be run"),
    }
}

/// Returns the first line that is not blank.
fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Ends the build with one sentence.
fn fail(detail: &str, problem: &str) -> ! {
    eprintln!(
        "error: {problem} ({detail}); run `{REMEDY}`, or build without DPDK: `cargo build --no-default-features`"
    );
    exit(1)
}
