//! `Type=notify` units of systemd: the test owns the notification socket.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use crate::launch::{finish, run};
use crate::process::{Process, wait_for};
use crate::program::{PATIENCE, is_root};
use crate::threads::Stopped;

/// Watchdog period of systemd. A test waits for some notifications.
const WATCHDOG: Duration = Duration::from_millis(1000);

struct Systemd {
    socket: UnixDatagram,
    told: Vec<String>,
}

impl Systemd {
    fn listen(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).expect("an address of its own");
        socket.set_nonblocking(true).expect("our own socket");
        Self { socket, told: Vec::new() }
    }

    /// Returns all notifications so far.
    fn told(&mut self) -> &[String] {
        let mut buffer = [0; 512];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.told.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        &self.told
    }

    fn count(&mut self, text: &str) -> usize {
        self.told().iter().filter(|told| *told == text).count()
    }
}

#[test]
fn systemd_is_notified_of_ready_watchdog_and_stopping() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("notify");
    let mut systemd = Systemd::listen(&SocketAddr::from_pathname(&path).expect("a short path"));
    let mut command = run(&["--duration", "0", "--metrics", "off"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
    let start = Instant::now();
    let process = Process::spawn(command);
    let first = wait_for("word", PATIENCE, || systemd.told().first().cloned());
    assert!(first.starts_with("READY=1\nSTATUS=5 ports, dataplane lcores: "), "{first}");
    assert!(!process.stdout().contains("lossless: "), "it runs");
    wait_for("three signs of life", PATIENCE, || (systemd.count("WATCHDOG=1") >= 3).then_some(()));
    // There are two notifications in each period, so one may be late, but not one at each reading.
    assert!(start.elapsed() >= WATCHDOG, "{:?} for three", start.elapsed());
    assert_eq!(systemd.count("STOPPING=1"), 0);
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(systemd.told().last().map(String::as_str), Some("STOPPING=1"));
    assert_eq!(systemd.count(&first), 1, "once");
}

#[test]
fn watchdog_of_systemd_ends_no_switch_whose_control_thread_is_slow() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("notify");
    let mut systemd = Systemd::listen(&SocketAddr::from_pathname(&path).expect("a short path"));
    let mut command = run(&["--duration", "0", "--metrics", "off"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
    let process = Process::spawn(command);
    wait_for("sign of life", PATIENCE, || (systemd.count("WATCHDOG=1") >= 1).then_some(()));
    // A single step of a reload, or a machine without a CPU for it.
    let main = Stopped::new(process.pid());
    let before = systemd.count("WATCHDOG=1");
    wait_for("signs of life", PATIENCE, || (systemd.count("WATCHDOG=1") >= before + 4).then_some(()));
    drop(main);
    process.signal("TERM");
    assert_eq!(process.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn abstract_notify_socket_works_and_foreign_watchdog_is_ignored() {
    let name = format!("holdfast-test-notify-{}", std::process::id());
    let mut systemd = Systemd::listen(&SocketAddr::from_abstract_name(&name).expect("a short name"));
    let mut command = run(&["--duration", "1s", "--metrics", "off"]);
    // The watchdog expects another process, not this one.
    command.env("NOTIFY_SOCKET", format!("@{name}")).env("WATCHDOG_USEC", "200000").env("WATCHDOG_PID", "1");
    let ended = finish(command);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let told = systemd.told();
    assert!(told.len() == 2 && told[0].starts_with("READY=1") && told[1] == "STOPPING=1", "{told:?}");
}

#[test]
fn notify_socket_without_listener_is_a_one_line_error() {
    let mut command = run(&["--duration", "1s", "--metrics", "off"]);
    command.env("NOTIFY_SOCKET", "/nowhere/notify");
    let ended = finish(command);
    assert_eq!((ended.status.code(), ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(
        ended.stderr.starts_with("error: NOTIFY_SOCKET is `/nowhere/notify`, which cannot be reached"),
        "{}",
        ended.stderr
    );
}
