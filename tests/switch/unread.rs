//! A switch whose output nothing reads: it serves and ends as usual.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::launch::run;
use crate::metrics::Exposition;
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::scraping::{get, scrape};

/// Longest time to the end: each stream may wait three seconds for its reader.
const END: Duration = Duration::from_secs(20);
const LEFT_OUT: &str = "holdfast_output_left_out_lines_total";

/// Returns a pipe that holds no more bytes.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().expect("a pipe");
    // Linux gives a new pipe 16 pages.
    writer.write_all(&[b'.'; 16 * 4096]).expect("room for 64 KiB");
    (reader, writer)
}

/// A switch with both streams in full pipes.
struct Unread {
    child: Child,
    metrics: SocketAddr,
    directory: tempfile::TempDir,
    stdout: PipeReader,
    stderr: PipeReader,
}

impl Unread {
    fn start(more: &[&str]) -> Self {
        let (stdout, out) = full_pipe();
        let (stderr, err) = full_pipe();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let metrics = free.local_addr().expect("it is bound");
        drop(free);
        let mut command = run(&[&["--duration", "0", "--metrics", &metrics.to_string()], more].concat());
        command.arg("--socket").arg(directory.path().join("s"));
        command.stdin(Stdio::null()).stdout(Stdio::from(out)).stderr(Stdio::from(err));
        let child = command.spawn().expect("it starts");
        drop(command);
        let switch = Self { child, metrics, directory, stdout, stderr };
        wait_for("health", PATIENCE, || get(metrics, "/healthz"));
        switch
    }

    fn ask(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.directory.path().join("s")).expect("the API");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn left_out(&self, stream: &str) -> f64 {
        let text: Exposition = scrape(self.metrics);
        text.sum(LEFT_OUT, &[("stream", stream)])
    }

    fn signal(&self, signal: &str) {
        let order = format!("kill -{signal} {}", self.child.id());
        let status = std::process::Command::new("sh").args(["-c", &order]).status().expect("a shell");
        assert!(status.success(), "{order}");
    }

    /// Asserts that the switch ends in time after SIGTERM, with an error, since its report was not read.
    fn end(mut self) {
        self.signal("TERM");
        let status = wait_for("end", END, || self.child.try_wait().expect("it is our child"));
        assert_eq!(status.code(), Some(1));
    }
}

#[test]
fn switch_serves_and_ends_in_time_while_its_output_is_not_read() {
    let switch = Unread::start(&["--verbose"]);
    for _ in 0..10 {
        // Lines of its own and the picture of the last second.
        switch.signal("HUP");
        sleep(Duration::from_millis(150));
        assert!(switch.ask("/v1/version").starts_with("HTTP/1.1 200 "));
        assert_eq!(get(switch.metrics, "/healthz").as_deref(), Some("ok\n"));
    }
    let events = switch.ask("/v1/events");
    assert!(events.matches("reload: ").count() > 1, "{events}");
    switch.end();
}

#[test]
fn reader_that_returns_reads_how_many_lines_were_left_out() {
    let mut switch = Unread::start(&["--verbose"]);
    wait_for("lines left out", PATIENCE, || (switch.left_out("stderr") > 0.0).then_some(()));
    let (mut stdout, mut stderr) = (switch.stdout.try_clone().unwrap(), switch.stderr.try_clone().unwrap());
    let drain = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let told = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text.trim_start_matches('.').to_owned()
    });
    switch.signal("TERM");
    let status = wait_for("end", END, || switch.child.try_wait().expect("it is our child"));
    assert_eq!(status.code(), Some(0));
    drop((switch.stdout, switch.stderr));
    drain.join().unwrap().expect("a report");
    let told = told.join().unwrap();
    assert!(told.contains("lines were left out because standard error was not read\n"), "{told}");
}
