//! Capabilities of the program's file.

use caps::{CapSet, Capability};

/// Capabilities that ports need: for interfaces and taps, raw sockets, locked memory, and hugepages on the port's NUMA
/// node.
const WANTED: [Capability; 4] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_IPC_LOCK, Capability::CAP_SYS_NICE];

/// Makes the permitted capabilities effective. A file with effective capabilities (`setcap ...+ep`) does not start
/// where one of them is unavailable, as in a container. A file with permitted ones (`+p`) starts everywhere and uses
/// those it gets.
///
/// Must run before the first thread starts: capabilities belong to a thread. The code that needs a missing capability
/// reports it.
pub fn raise() {
    for capability in WANTED {
        if let Ok(true) = caps::has_cap(None, CapSet::Permitted, capability) {
            let _ = caps::raise(None, CapSet::Effective, capability);
        }
    }
}
