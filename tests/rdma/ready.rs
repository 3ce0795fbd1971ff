//! Check for the programs that the test needs.

use std::path::Path;

use crate::image::{PROGRAMS, RXE, RXE_NAME};

/// Whether all programs are installed. If not, prints the missing one; with `CI=true` it panics.
pub fn machine_is_ready() -> bool {
    let Err(missing) = check() else { return true };
    let ci = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
    assert!(!ci, "guests with RDMA cannot run here: {missing}");
    eprintln!("SKIPPED: guests with RDMA cannot run here: {missing}");
    false
}

fn check() -> Result<(), String> {
    let remedy = "run `make test-rdma`, or docker/install-packages guest rdma";
    for program in PROGRAMS.into_iter().chain(["qemu-system-x86_64", "busybox"]) {
        let is_there = |directory: &&str| Path::new(directory).join(program).exists();
        if !["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin"].iter().any(is_there) {
            return Err(format!("there is no `{program}`; {remedy}"));
        }
    }
    let absent = [RXE, RXE_NAME].into_iter().find(|file| !Path::new(file).exists());
    absent.map_or(Ok(()), |file| Err(format!("there is no {file}; {remedy}")))
}
