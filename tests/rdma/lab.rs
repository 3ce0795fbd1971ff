//! Four guests and the switch between them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::guest::{Guest, PATIENCE, Starting};
use crate::image::Image;
use crate::metrics::Exposition;
use crate::process::{Process, mortal};

/// Guests. The first receives what the others send.
pub const GUESTS: usize = 4;

/// How the switch holds back guests whose frames it cannot store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pfc {
    /// It stops polling their queues.
    Queue,
    /// It does not.
    Off,
}

/// The guests and their switch. Dropping this value ends all of them.
pub struct Lab {
    /// The guests, by their number less 1.
    pub guests: Vec<Guest>,
    switch: Switch,
    directory: tempfile::TempDir,
}

/// A running switch.
pub struct Switch {
    process: Process,
    metrics: SocketAddr,
}

impl Lab {
    /// Starts a switch and the guests.
    #[track_caller]
    pub fn start(pfc: Pfc) -> Self {
        Self::configured(pfc, "")
    }

    /// Starts a switch with the further lines `more` of its configuration, and the guests.
    #[track_caller]
    pub fn configured(pfc: Pfc, more: &str) -> Self {
        let image = Image::make();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let switch = Switch::start(pfc, directory.path(), more);
        let starting: Vec<_> = (1..=GUESTS).map(|number| Starting::new(&image, number, directory.path())).collect();
        let mut guests: Vec<_> = starting.into_iter().map(Starting::wait).collect();
        guests.iter_mut().for_each(Guest::queue_by_priority);
        let mut lab = Self { guests, switch, directory };
        lab.meet();
        lab
    }

    /// Kills the switch without notice.
    pub fn kill_switch(&mut self) {
        self.switch.process.signal("KILL");
    }

    /// Starts another switch in place of the one that was killed.
    #[track_caller]
    pub fn start_switch(&mut self, pfc: Pfc) {
        self.switch = Switch::start(pfc, self.directory.path(), "");
    }

    /// Waits until each guest reaches the first. Each ping also lets the switch learn both addresses.
    #[track_caller]
    pub fn meet(&mut self) {
        let receiver = self.guests[0].ipv4();
        for sender in &mut self.guests[1..] {
            let ping = format!("for i in $(seq 60); do ping -c 1 -W 1 {receiver} && exit 0; done; exit 1");
            let (status, said) = sender.try_run(&ping);
            assert_eq!(status, 0, "{}: {said}; the switch said {}", sender.ipv4(), self.switch.process.stderr());
        }
    }

    /// Returns the metrics of the switch.
    #[track_caller]
    pub fn metrics(&mut self) -> Exposition {
        self.switch.metrics()
    }
}

impl Switch {
    /// Returns its metrics.
    #[track_caller]
    pub fn metrics(&mut self) -> Exposition {
        assert!(self.process.is_running(), "the switch ended: {}", self.process.stderr());
        let mut stream = TcpStream::connect(self.metrics).expect("a switch that listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: holdfast\r\nConnection: close\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        Exposition::parse(body)
    }

    #[track_caller]
    fn start(pfc: Pfc, directory: &Path, more: &str) -> Self {
        Self::with(&(configuration(pfc, directory) + more), directory)
    }

    /// Starts a switch by this configuration, which it finds in `directory`.
    #[track_caller]
    pub fn with(configuration: &str, directory: &Path) -> Self {
        let file = directory.join("switch.yaml");
        std::fs::write(&file, configuration).expect("a configuration written");
        let mut command = mortal(env!("CARGO_BIN_EXE_holdfast"));
        command.arg("run").arg(&file).args(["--metrics", "127.0.0.1:0"]);
        let mut process = Process::spawn(command);
        let metrics = process.metrics_address(Duration::from_secs(60));
        Self { process, metrics }
    }
}

/// Configuration of the switch. The port of the first guest is slow enough to be the bottleneck where four guests and
/// the switch share two CPUs. Class 3 has less memory than the guests can have in flight. A guest that gets no CPU for
/// some seconds does not count as stuck.
fn configuration(pfc: Pfc, directory: &Path) -> String {
    let pfc = match pfc {
        Pfc::Queue => "queue",
        Pfc::Off => "off",
    };
    let head = "preset: roce
buffer: {size: 1MiB}
stuck_after: 30s
classes:
  3: {limit: 40kB, headroom: 40kB, scheduler: {weight: 1}, ecn: {kmin: 20kB, kmax: 100kB, pmax: 20%}}
lcores: {poll_gap: 10ms, idle: {wait: sleep, after: 50us, longest: 500us, wake: 8ms, lossless: true}}
ports:
";
    let port = |number: usize| {
        let (path, speed) = (directory.join(format!("vm{number}")), if number == 1 { "10M" } else { "100M" });
        format!(
            "  - {{name: vm{number}, device: \"vhost:{}\", queues: 8, speed: {speed}, pfc: {pfc}}}\n",
            path.display()
        )
    };
    (1..=GUESTS).map(port).fold(head.to_owned(), |text, port| text + &port)
}
