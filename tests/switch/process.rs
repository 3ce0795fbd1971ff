//! Programs that tests start: their output is collected while they run, and they always end with the test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Text before the address of the metrics, which a switch prints if it left the choice of the port to the kernel.
const METRICS_NOTE: &str = "note: metrics at http://";

/// Interval between two checks of a condition, and of the end of a program.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_AT_END: Duration = Duration::from_millis(3);

/// Returns a command that is killed with the thread that starts it, so none is left when a test itself is killed. A
/// switch has no API unless the test gives it a socket: the default socket would be the same for all.
pub fn mortal(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.env("HOLDFAST_SOCKET", "off");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// Waits until `ready` returns a value; panics with `what` after `limit`.
#[track_caller]
pub fn wait_for<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        match ready() {
            Some(value) => return value,
            None if Instant::now() > end => panic!("no {what} within {limit:?}"),
            None => sleep(LOOK),
        }
    }
}

/// A running program.
pub struct Process {
    child: Child,
    name: String,
    stdout: Collector,
    stderr: Collector,
}

/// The result of a program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status: the code, or the signal that ended it.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// Returns the lines of standard error without the note about the metrics.
    pub fn told(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| !line.starts_with(METRICS_NOTE)).collect()
    }
}

impl Process {
    /// Starts `command`.
    #[track_caller]
    pub fn spawn(mut command: Command) -> Self {
        let name = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        let stdout = Collector::start(child.stdout.take().expect("it is piped"));
        let stderr = Collector::start(child.stderr.take().expect("it is piped"));
        Self { child, name, stdout, stderr }
    }

    /// Returns the process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the program a signal: `INT`, `TERM`, `KILL`.
    pub fn signal(&self, signal: &str) {
        let order = format!("kill -{signal} {}", self.pid());
        let status = Command::new("sh").args(["-c", &order]).status().expect("there is a shell");
        assert!(status.success(), "{order}");
    }

    /// Whether the program still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_none()
    }

    /// Returns its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Returns the address of the metrics of a switch with `--metrics 127.0.0.1:0`. The kernel chooses a free port, and
    /// the switch prints it.
    #[track_caller]
    pub fn metrics_address(&mut self, limit: Duration) -> SocketAddr {
        wait_for("address of the metrics", limit, || {
            let told = self.stderr();
            let address = told.split_once(METRICS_NOTE).and_then(|(_, rest)| rest.split_once("/metrics\n"));
            assert!(address.is_some() || self.is_running(), "it ended: {}{told}", self.stdout());
            Some(address?.0.parse().expect("an address"))
        })
    }

    /// Returns its standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits for the end of the program; panics after `limit`.
    #[track_caller]
    pub fn wait(mut self, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return Ended { status, stdout: self.stdout.finish(), stderr: self.stderr.finish() };
            }
            if Instant::now() > end {
                panic!("{} did not end within {limit:?}; it said {:?} {:?}", self.name, self.stdout(), self.stderr());
            }
            sleep(LOOK_AT_END);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a stream to its end in its own thread, so the writer never blocks.
struct Collector {
    text: Arc<Mutex<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    fn start(stream: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = text.clone();
        let thread = std::thread::spawn(move || {
            let mut lines = BufReader::new(stream);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { text, thread: Some(thread) }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the whole text: the stream ends with its writer.
    fn finish(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.text()
    }
}
