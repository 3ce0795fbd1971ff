//! Capabilities that come with the program's file.

use caps::{CapSet, Capability};

/// What ports need: interfaces and taps, raw sockets, locked memory, hugepages on their node.
const WANTED: [Capability; 4] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_IPC_LOCK, Capability::CAP_SYS_NICE];

/// Makes those effective that are permitted. A file that has them effective (`setcap ...+ep`) does not start at all where one
/// of them cannot be had, as in a container; one that has them permitted (`+p`) starts everywhere, and takes what there is.
///
/// Before the first thread: each has its own. What is missing is said by whoever needs it.
pub fn raise() {
    for capability in WANTED {
        if let Ok(true) = caps::has_cap(None, CapSet::Permitted, capability) {
            let _ = caps::raise(None, CapSet::Effective, capability);
        }
    }
}
