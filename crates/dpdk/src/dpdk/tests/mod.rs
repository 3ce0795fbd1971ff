//! Tests on a real DPDK, without hugepages or privileges.
//!
//! EAL starts once per process. Under nextest each test has its own process. Under `cargo test` the tests share one
//! EAL, which is then never shut down. A test that needs its own process runs this test program again.

mod af_packet;
mod buffers;
mod devices;
mod links;
mod start;
mod wire;

use std::process::Command;
use std::sync::OnceLock;

use super::*;
use crate::io::{Burst, Packet, Ports};
use crate::sets::{BURST, ClassSet};

/// Environment variable set in a test that runs as its own process.
const CHILD: &str = "HOLDFAST_DPDK_TEST_CHILD";

pub(super) fn eal() -> &'static Eal {
    static EAL: OnceLock<Eal> = OnceLock::new();
    EAL.get_or_init(|| {
        let cpu = allowed_cpus()[0];
        // The worker shares the main lcore's CPU, as on a machine with one.
        Eal::init(&EalOptions { main_cpu: cpu, worker_cpus: vec![cpu], ..EalOptions::default() }).unwrap()
    })
}

pub(super) fn pool(name: &str, count: u32) -> Mempool {
    Mempool::create(eal(), name, count, 2048 + 128, 32, None).unwrap()
}

/// Creates a link with both ends started, and returns it with their queues.
fn link(name: &str, size: u32, pool: &Mempool) -> (RingLink, PortQueues, PortQueues) {
    let mut link = RingLink::new(eal(), name, size, &PortConfig::default(), pool).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    let (switch, host) = (link.switch.queues().unwrap(), link.host.queues().unwrap());
    (link, switch, host)
}

fn frame(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

/// Runs this test again as its own process. Returns true in that process.
pub(super) fn in_child(test: &str, as_nobody: bool) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    if as_nobody {
        command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "sh",
        ]);
        command.env_remove("XDG_RUNTIME_DIR").env("HOME", "/nonexistent");
    }
    // The user of the test may have no access to the program's path, so it is passed as an open file.
    let file = std::fs::File::open(program).unwrap();
    command.args(["-c", "exec /proc/self/fd/0 \"$@\"", "sh", "--exact", test, "--nocapture", "--test-threads=1"]);
    let output = command.stdin(file).current_dir("/").env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{} {text}", output.status);
    assert!(!text.contains("EAL:") && !text.contains("Usage:"), "DPDK wrote to the terminal: {text}");
    false
}
