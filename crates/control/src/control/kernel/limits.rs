//! Sizes of the kernel's tables of neighbours.

use std::fs::{self, File};

use crate::netlink::Namespace;
use crate::router::kernel::KernelLimits;

/// The network namespace of the first process: only the machine's first namespace shows the sizes.
const FIRST: &str = "/proc/1/ns/net";

/// Reads the sizes, in the namespace of the switch or in that of the first process.
pub fn read() -> KernelLimits {
    let here = read_here();
    if here != KernelLimits::default() {
        return here;
    }
    let first = File::open(FIRST).ok().map(|file| Namespace::from_file("of the first process", file.into()));
    first.and_then(|namespace| namespace.run(read_here).ok()).unwrap_or_default()
}

fn read_here() -> KernelLimits {
    let limit = |family: &str| {
        let path = format!("/proc/sys/net/{family}/neigh/default/gc_thresh3");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    KernelLimits { ipv4: limit("ipv4"), ipv6: limit("ipv6") }
}
