//! Output to closed or full destinations, and text that does not belong in the output.

use std::fs::File;
use std::process::Stdio;

use crate::launch::{finish, run};
use crate::process::mortal;
use crate::program::{Config, HOLDFAST};

const SHORT: [&str; 4] = ["--duration", "1s", "--metrics", "off"];

/// Returns a device on which every write fails, as on a full disk.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("/dev/full").into()
}

#[test]
fn run_exits_cleanly_when_reader_closes_pipe() {
    let mut command = mortal("sh");
    let script = "{ \"$0\" run --duration 2s --metrics off; echo \"code $?\" >&2; } | head -n 1";
    command.args(["-c", script, HOLDFAST]);
    let ended = finish(command);
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    assert_eq!(ended.stderr, "code 0\n");
}

#[test]
fn full_disk_is_a_one_line_error() {
    for more in [&[][..], &["--json"]] {
        let mut child = run(&[&SHORT, more].concat());
        let output = child.stdin(Stdio::null()).stdout(full()).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("t=")).collect();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert_eq!(said.len(), 1, "{stderr}");
        assert!(
            said[0].starts_with("error: the report cannot be written: no storage space; is the disk full?"),
            "{stderr}"
        );
    }
}

#[test]
fn unwritable_stderr_causes_no_panic() {
    for (config, code) in [("", 0), ("/nonexistent/switch.yaml", 2)] {
        let args: Vec<&str> = [config].into_iter().filter(|path| !path.is_empty()).chain(SHORT).collect();
        let status = run(&args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(full()).status().expect("it runs");
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
    // A configuration whose warnings cannot be written.
    let config = Config::new(
        "preset: roce\nports: [{name: p1, device: ring, speed: 10G, pfc: off}]\nhosts: [{name: h1, port: p1}]\n",
    );
    let path = config.path();
    let args = [&[path.as_str()][..], &SHORT].concat();
    let status = run(&args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(full()).status().expect("it runs");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn dpdk_logs_only_with_verbose() {
    let ended = finish(run(&SHORT));
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("\nlossless: KEPT\n"), "{}", ended.stdout);

    let ended = finish(run(&[&SHORT[..], &["--verbose"]].concat()));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("EAL: "), "{}", ended.stderr);
    for complaint in ["already stopped", "rror", "nvalid"] {
        assert!(!ended.stderr.contains(complaint), "{}", ended.stderr);
    }
}
