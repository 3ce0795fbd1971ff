//! Ownership of the socket, its lifetime, and conflicts over its path.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::process::{Process, mortal, wait_for};
use crate::rig::{HOLDFAST, PATIENCE, Switch, run};

#[test]
fn socket_has_mode_0600_and_is_removed_at_shutdown() {
    let switch = Switch::start(&[]);
    let socket = switch.socket();
    assert_eq!(std::fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o600);
    let Switch { process, .. } = switch;
    process.signal("INT");
    let ended = process.wait(PATIENCE);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(!socket.exists());
}

#[test]
fn socket_of_running_switch_is_refused_and_stale_one_is_replaced() {
    let switch = Switch::start(&[]);
    let path = switch.socket().display().to_string();
    let ended = Process::spawn(run(&["--socket", &path])).wait(PATIENCE);
    let expected = format!(
        "error: another switch listens at {path}; give this one a socket of its own with --socket PATH, or none with \
         --socket off\n"
    );
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(1), expected.as_str()));
    assert_eq!(switch.get("version")["version"]["api"], "v1", "the first has it still");

    switch.process.signal("KILL");
    wait_for("end", PATIENCE, || std::os::unix::net::UnixStream::connect(&path).err());
    assert!(Path::new(&path).exists(), "it could not tidy up");
    let next = Process::spawn(run(&["--socket", &path]));
    wait_for("next switch", PATIENCE, || std::os::unix::net::UnixStream::connect(&path).ok());
    next.signal("TERM");
    assert_eq!(next.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn second_switch_on_default_socket_runs_without_api() {
    let runtime = tempfile::tempdir().expect("a temporary directory");
    let usual = |args: &[&str]| {
        let mut command = mortal(HOLDFAST);
        command.args(args).env_remove("HOLDFAST_SOCKET").env("XDG_RUNTIME_DIR", runtime.path());
        command
    };
    let run = ["run", "--duration", "0", "--metrics", "off"];
    let first = Process::spawn(usual(&run));
    let socket = runtime.path().join("holdfast.sock");
    wait_for("first switch", PATIENCE, || socket.exists().then_some(()));
    let second = Process::spawn(usual(&run));
    let note = format!("note: the API is off: another switch listens at {}; give this one", socket.display());
    wait_for("note", PATIENCE, || second.stderr().contains(&note).then_some(()));
    let shown = usual(&["show", "version"]).output().expect("it can be started");
    assert!(String::from_utf8_lossy(&shown.stdout).contains(&first.pid().to_string()), "{shown:?}");
    second.signal("TERM");
    assert_eq!(second.wait(PATIENCE).status.code(), Some(0), "it runs all the same");
    assert!(socket.exists(), "and leaves the first one's alone");
    first.signal("TERM");
    assert_eq!(first.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn unusable_socket_path_is_refused_at_start() {
    for (path, expected) in [
        (
            "/nonexistent/s",
            "error: the API cannot listen at /nonexistent/s: there is no directory /nonexistent; create it (mkdir -p), \
             choose ",
        ),
        (
            "/dev/null",
            "error: /dev/null exists and is not a socket; remove it, or choose another path with --socket PATH\n",
        ),
    ] {
        let ended = Process::spawn(run(&["--socket", path])).wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        assert!(ended.stderr.starts_with(expected) && ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn show_without_listening_switch_fails_with_remedy() {
    for (socket, expected) in [
        (
            "/nonexistent/s",
            "error: no switch listens at /nonexistent/s (there is no directory /nonexistent): start one with `holdfast \
             run`, or give its socket",
        ),
        ("/dev/null", "error: /dev/null exists and is not a socket; give the switch's socket with --socket PATH\n"),
        ("/etc", "error: /etc exists and is not a socket; give the switch's socket with --socket PATH\n"),
        (
            "/etc/passwd/s",
            "error: no switch listens at /etc/passwd/s (there is no directory /etc/passwd): start one with",
        ),
        (&"x".repeat(108), &format!("error: {} is longer than the 107 bytes", "x".repeat(108))),
        ("off", "error: `off` is not a socket; give the switch's socket with --socket PATH\n"),
    ] {
        let output = mortal(HOLDFAST).args(["show", "ports", "--socket", socket]).output().expect("it can be started");
        // No switch can be at the last two.
        let code = if socket == "off" || socket.len() > 107 { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(expected), "{stderr}");
    }
}

/// Binds `path` and sends `answer` to each client, as a program other than the switch would.
fn somebody_else(path: &Path, answer: &'static str) {
    let listener = UnixListener::bind(path).expect("a socket");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut client = client;
            if !answer.is_empty() {
                let _ = client.read(&mut [0; 1000]);
                let _ = client.write_all(answer.as_bytes());
            }
        }
    });
}

#[test]
fn command_fails_when_socket_belongs_to_another_program() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let question = "check that it is a switch's socket and that the switch is running\n";
    for (name, answer, expected) in [
        ("mute", "", "error: "),
        ("ssh", "SSH-2.0-x\r\n", "invalid HTTP version parsed"),
        ("json", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n", "it has no `"),
        ("lost", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "the answer has status 404 Not Found"),
    ] {
        let socket = directory.path().join(name);
        somebody_else(&socket, answer);
        for command in [&["show", "ports"][..], &["clear", "watermarks"], &["why-dropped"]] {
            let output =
                mortal(HOLDFAST).args(command).arg("--socket").arg(&socket).output().expect("it can be started");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{name}: {stderr}");
            assert!(stderr.contains(expected) && stderr.ends_with(question), "{name}: {stderr}");
        }
    }
}
