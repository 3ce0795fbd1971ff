//! Runs without any privilege: the embedded default needs none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{Process, mortal};
use crate::program::{HOLDFAST, PATIENCE, dpdk_leftovers, is_root, report, run_arguments};

/// A copy of the program that every user can run. It runs as UID 65534 if the tests run as root.
pub struct Nobody {
    directory: tempfile::TempDir,
}

impl Nobody {
    /// Copies the program, because only root may have access to the checkout.
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

    /// Writes a configuration that an unprivileged user can read, and returns its path.
    pub fn config(&self, text: &str) -> String {
        let path = self.path("switch.yaml");
        fs::write(&path, text).expect("a configuration written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
        path.display().to_string()
    }

    /// Returns the command `holdfast run` with `args`, without a home, a runtime directory or other environment.
    pub fn run(&self, args: &[&str]) -> Command {
        let mut command = mortal("setpriv");
        if is_root() {
            // A change of the user clears the death signal, so it is set again.
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig", "KILL"]);
        }
        command.arg("--").arg(self.path("holdfast")).arg("run").args(run_arguments()).args(args);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOLDFAST_SOCKET", "off").current_dir("/");
        command
    }
}

#[test]
fn incast_runs_without_privileges() {
    let nobody = Nobody::new();
    let process = Process::spawn(nobody.run(&["--duration", "1s", "--json", "--metrics", "off"]));
    let pid = process.pid();
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(report(&ended)["verdict"]["outcome"], "kept");
    assert!(ended.stderr.lines().all(|line| line.starts_with("t=")), "{}", ended.stderr);
    assert_eq!(dpdk_leftovers(pid), [""; 0]);
}

/// A file with capabilities grants them to all code that it loads. So it must not load code that an unprivileged user
/// selects.
#[test]
fn a_program_with_capabilities_loads_no_code_that_its_user_names() {
    let nobody = Nobody::new();
    let config = nobody.config("ports: [{name: p1, device: ring, speed: 10G}]\nhosts: [{name: h1, port: p1}]\neal: {args: [-d, /nonexistent.so]}\n");
    let refused = |nobody: &Nobody| {
        let ended = Process::spawn(nobody.run(&[&config, "--duration", "1s", "--metrics", "off"])).wait(PATIENCE);
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        ended.stderr
    };
    let text = refused(&nobody);
    assert!(text.contains("nonexistent.so") && !text.contains("capabilities"), "DPDK tries it: {text}");
    let mut setcap = Command::new("setcap");
    setcap.arg("cap_net_raw+p").arg(nobody.path("holdfast"));
    if !is_root() || !setcap.status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: only root gives a file capabilities, by setcap, where the file system has them");
    }
    let text = refused(&nobody);
    assert!(
        text.contains("no permission for the EAL argument `-d`, because the program's file has capabilities"),
        "{text}"
    );
    let device = "net_af_xdp0,iface=lo,xdp_prog=/nonexistent.o";
    nobody.config(&format!("ports: [{{name: p1, device: \"{device}\", speed: 10G}}]\n"));
    let text = refused(&nobody);
    assert!(
        text.contains("no permission for `net_af_xdp0`, which runs code that its arguments name, because"),
        "{text}"
    );
}
