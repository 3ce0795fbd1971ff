//! Network namespaces that are removed with the values that represent them.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::mortal;

/// Longest time for a server to answer, even on a machine that runs other work.
const ANSWER: Duration = Duration::from_secs(10);

/// Name prefix of these tests' namespaces; the number of the process that created them follows.
const PREFIX: &str = "holdfast-t";

/// Returns a name prefix that no other rig has, in this process or another.
pub fn unique_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static SWEEP: Once = Once::new();
    SWEEP.call_once(remove_orphans);
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Removes the namespaces of test processes that were killed before they could do so.
fn remove_orphans() {
    for name in list().into_iter().filter(|name| is_orphan(name)) {
        let _ = Command::new("ip").args(["netns", "delete", &name]).output();
    }
}

/// Whether a test process that has ended made the thing with this name.
pub fn is_orphan(name: &str) -> bool {
    let maker = name.strip_prefix(PREFIX).and_then(|remaining| remaining.split_once('-'));
    maker.and_then(|(pid, _)| pid.parse::<u32>().ok()).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// Returns the names of all namespaces of this machine.
pub fn list() -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().expect("there is `ip`");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// A network namespace.
pub struct Namespace {
    name: String,
    is_owned: bool,
}

impl Namespace {
    /// Creates a namespace with its loopback interface up.
    pub fn new(name: String) -> Self {
        let output = Command::new("ip").args(["netns", "add", &name]).output().expect("there is `ip`");
        assert!(output.status.success(), "{output:?}");
        let namespace = Self { name, is_owned: true };
        namespace.run(&["ip", "link", "set", "dev", "lo", "up"]);
        namespace
    }

    /// Represents a namespace that another program creates. Dropping the value removes it.
    pub fn promised(name: String) -> Self {
        Self { name, is_owned: true }
    }

    /// Represents a namespace that another program creates and removes.
    #[allow(dead_code, reason = "not all tests have such programs")]
    pub fn borrowed(name: String) -> Self {
        Self { name, is_owned: false }
    }

    /// The name for `ip`.
    #[allow(dead_code, reason = "not all tests move interfaces")]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs `program` inside.
    pub fn command(&self, program: &str) -> Command {
        // `ip netns exec` would also hide mounts made inside from the outside, such as other namespaces.
        let mut command = mortal("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name)).args(["--", program]);
        command
    }

    /// Runs a program inside and returns its standard output. Panics if it fails.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        self.try_run(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Runs a program inside and returns its standard output, or both streams if it fails.
    pub fn try_run(&self, words: &[&str]) -> Result<String, String> {
        let output = self.command(words[0]).args(&words[1..]).output().expect("there is `nsenter`");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stdout) + &text(&output.stderr))
        }
    }

    /// Returns the body at `path` of the HTTP server at `port` of the loopback interface, if it answers with 200. A
    /// thread enters the namespace, which takes a thousandth of the time of a program.
    pub fn get(&self, port: u16, path: &str) -> Option<String> {
        let namespace = File::open(format!("/run/netns/{}", self.name)).ok()?;
        let connect = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
            TcpStream::connect(("127.0.0.1", port)).ok()
        };
        // A socket stays in the namespace where it was created after the thread has ended.
        let mut stream = std::thread::spawn(connect).join().expect("it does not panic")?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: holdfast\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
    }

    /// Sends `count` datagrams from UDP port `source` to `destination`.
    #[track_caller]
    pub fn send_udp(&self, source: u16, destination: &str, count: usize) {
        let (namespace, destination) = (format!("/run/netns/{}", self.name), destination.to_owned());
        let send = move || {
            let namespace = File::open(namespace)?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let socket = UdpSocket::bind(("0.0.0.0", source))?;
            (0..count).try_for_each(|_| socket.send_to(b"datagram", &destination).map(drop))
        };
        std::thread::spawn(send).join().expect("it does not panic").expect("datagrams that leave");
    }

    /// Opens a UDP socket at `address` inside.
    #[track_caller]
    #[allow(dead_code, reason = "not all tests send by themselves")]
    pub fn udp(&self, address: &str) -> UdpSocket {
        let (namespace, address) = (format!("/run/netns/{}", self.name), address.to_owned());
        let open = move || {
            move_into_link_name_space(File::open(namespace)?.as_fd(), Some(LinkNameSpaceType::Network))?;
            UdpSocket::bind(address)
        };
        std::thread::spawn(open).join().expect("it does not panic").expect("a socket")
    }

    /// Removes the namespace now, with everything in it.
    #[track_caller]
    pub fn remove(&self) {
        let output = Command::new("ip").args(["netns", "delete", &self.name]).output().expect("there is `ip`");
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).output();
    }
}
