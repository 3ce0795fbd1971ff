//! The archives of a static build: of the lists here, those that pkg-config names for the DPDK that is there.
//! packaging/parts reads the lists too.

use std::env;
use std::path::PathBuf;

use crate::fail;

/// DPDK's libraries: those in use, and those that the drivers below need. `argparse` and `log` are of 23.11 and later.
const STATIC_LIBRARIES: &[&str] = &[
    "argparse",
    "cryptodev",
    "dmadev",
    "eal",
    "ethdev",
    "fib",
    "gso",
    "hash",
    "kvargs",
    "log",
    "lpm",
    "mbuf",
    "mempool",
    "meter",
    "net",
    "pci",
    "rcu",
    "rib",
    "ring",
    "security",
    "telemetry",
    "timer",
    "vhost",
];

/// Drivers, buses and mempool handlers. docs/releases.md lists them for users. DPDK 25.11 has neither `common_iavf` nor
/// `net_igc`: others contain them.
const STATIC_DRIVERS: &[&str] = &[
    "bus_auxiliary",
    "bus_pci",
    "bus_vdev",
    "bus_vmbus",
    "common_iavf",
    "common_mlx5",
    "mempool_ring",
    "net_af_packet",
    "net_af_xdp",
    "net_bnxt",
    "net_e1000",
    "net_ena",
    "net_gve",
    "net_i40e",
    "net_iavf",
    "net_ice",
    "net_igc",
    "net_ixgbe",
    "net_memif",
    "net_mlx4",
    "net_mlx5",
    "net_netvsc",
    "net_null",
    "net_ring",
    "net_tap",
    "net_vhost",
    "net_virtio",
    "net_vmxnet3",
];

/// Other libraries that those of DPDK need.
const STATIC_SYSTEM: &[&str] =
    &["mlx5", "mlx4", "ibverbs", "nl-route-3", "nl-3", "xdp", "bpf", "elf", "z", "zstd", "bsd", "md", "numa"];

/// The driver that needs libxdp, libbpf and libelf, and those with the libraries that they need.
const XDP: &str = "net_af_xdp";
const XDP_SYSTEM: &[&str] = &["xdp", "bpf", "elf", "z", "zstd"];

/// Prints the link lines of a build that needs no shared library of DPDK, and the drivers in it. `words` are those of
/// `pkg-config --static --libs`.
pub fn link(paths: &[PathBuf], words: &[String]) {
    let multiarch = multiarch();
    for path in paths.iter().map(PathBuf::as_path).chain(std::iter::once(multiarch.as_path())) {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    let has = |library: &&&str| words.contains(&format!("-l:librte_{library}.a"));
    let mut drivers: Vec<&str> = STATIC_DRIVERS.iter().filter(has).copied().collect();
    let mut system = system(words);
    if !links_xdp(&system) {
        println!("cargo:warning=the archives of this system do not link {XDP}: the program has not this driver");
        println!("cargo:without={XDP}");
        drivers.retain(|driver| *driver != XDP);
        system.retain(|library| !XDP_SYSTEM.contains(library));
    }
    // Drivers, buses and mempool handlers register by constructors, which nothing else refers to.
    for library in STATIC_LIBRARIES.iter().filter(has).chain(&drivers) {
        println!("cargo:rustc-link-lib=static:-bundle,+whole-archive=rte_{library}");
    }
    for library in system {
        println!("cargo:rustc-link-lib=static:-bundle={library}");
    }
    println!("cargo:drivers={}", drivers.join(","));
}

/// Returns the libraries of `STATIC_SYSTEM` that pkg-config names, each by its last place. There it stands before those
/// that it needs itself.
fn system(words: &[String]) -> Vec<&'static str> {
    let last = |library: &&str| words.iter().rposition(|word| *word == format!("-l{library}"));
    let mut placed: Vec<(usize, &str)> =
        STATIC_SYSTEM.iter().filter_map(|library| Some((last(library)?, *library))).collect();
    placed.sort_unstable();
    placed.into_iter().map(|(_, library)| library).collect()
}

/// Whether the archives under the AF_XDP driver are complete: libelf of Debian 13 lacks functions of its own.
fn links_xdp(system: &[&str]) -> bool {
    let directory = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let source = directory.join("xdp.c");
    if let Err(error) = std::fs::write(&source, "int main(void) { return 0; }\n") {
        fail(&error.to_string(), "the output directory cannot be written");
    }
    let mut command = cc::Build::new().get_compiler().to_command();
    command.arg("-static").arg(&source).arg("-o").arg(directory.join("xdp"));
    command.args(["-Wl,-u,xsk_socket__create_shared", "-Wl,-u,bpf_xdp_attach"]);
    command.args(system.iter().filter(|name| XDP_SYSTEM.contains(name)).map(|name| format!("-l{name}")));
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns the directory of the compiler's static C library, in which Debian has those of other packages too.
fn multiarch() -> PathBuf {
    let compiler = cc::Build::new().get_compiler();
    let output = compiler.to_command().arg("-print-file-name=libc.a").output();
    let path = output.ok().map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let directory = path.and_then(|path| path.canonicalize().ok()).and_then(|path| path.parent().map(PathBuf::from));
    directory.unwrap_or_else(|| fail("no libc.a", "the static C library was not found"))
}
