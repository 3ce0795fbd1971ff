//! Without any privilege: what the embedded default promises to need none for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{Process, mortal};
use crate::program::{HOLDFAST, PATIENCE, dpdk_leftovers, is_root, report, run_arguments};

/// The program where anybody can run it, run as nobody if the tests are root's.
pub struct Nobody {
    directory: tempfile::TempDir,
}

impl Nobody {
    /// Copies it: the checkout may be in a place that is root's alone.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("our own directory");
        let nobody = Self { directory };
        fs::copy(HOLDFAST, nobody.path("holdfast")).expect("a copy of the program");
        nobody
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a configuration that it can read; its path.
    pub fn config(&self, text: &str) -> String {
        let path = self.path("switch.yaml");
        fs::write(&path, text).expect("a configuration written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
        path.display().to_string()
    }

    /// `holdfast run` with `args`, without a home, a runtime directory or anything else in its environment.
    pub fn run(&self, args: &[&str]) -> Command {
        let mut command = mortal("setpriv");
        if is_root() {
            // The death signal goes when the user changes, so it is asked for once more.
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig", "KILL"]);
        }
        command.arg("--").arg(self.path("holdfast")).arg("run").args(run_arguments()).args(args);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOLDFAST_SOCKET", "off").current_dir("/");
        command
    }
}

#[test]
fn the_incast_needs_no_privilege() {
    let nobody = Nobody::new();
    let process = Process::spawn(nobody.run(&["--duration", "1s", "--json", "--metrics", "off"]));
    let pid = process.pid();
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(report(&ended)["verdict"]["outcome"], "kept");
    assert!(ended.stderr.lines().all(|line| line.starts_with("t=")), "{}", ended.stderr);
    assert_eq!(dpdk_leftovers(pid), [""; 0]);
}
