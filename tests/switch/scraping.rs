//! The web server of a running switch, as Prometheus reads it.
//!
//! The commands of docs/quickstart.md are run here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use crate::launch::{finish, run, start};
use crate::metrics::Exposition;
use crate::process::wait_for;
use crate::program::PATIENCE;

/// Longest time for a server to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Returns the body at `path` if the server answers with 200.
pub fn get(address: SocketAddr, path: &str) -> Option<String> {
    let (head, body) = request(address, path)?;
    head.starts_with("HTTP/1.1 200 ").then_some(body)
}

/// Returns the head and the body of the answer to a GET of `path`.
pub fn request(address: SocketAddr, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(ANSWER)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

pub fn scrape(address: SocketAddr) -> Exposition {
    let (head, body) = request(address, "/metrics").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    Exposition::parse(&body)
}

#[test]
fn metrics_are_well_formed_and_grow() {
    let (process, address) = start(&["--duration", "0"]);
    let first = scrape(address);
    for (name, kind) in [
        ("holdfast_build_info", "gauge"),
        ("holdfast_port_received_frames_total", "counter"),
        ("holdfast_port_dropped_frames_total", "counter"),
        ("holdfast_pfc_sent_xoff_total", "counter"),
        ("holdfast_group_headroom_highest_bytes", "gauge"),
    ] {
        assert_eq!(first.families.get(name).map(String::as_str), Some(kind), "{name}");
    }
    // Every port has all reasons, even those that have not occurred: `rate()` must include the first drop.
    for port in ["p1", "p2", "p3", "p4", "p5"] {
        let full = [("port", port), ("tc", "3"), ("reason", "headroom_full")];
        assert_eq!(first.sum("holdfast_port_dropped_frames_total", &full), 0.0);
        let own_fault = [("port", port), ("reason", "truncated")];
        assert_eq!(first.sum("holdfast_port_dropped_frames_total", &own_fault), 0.0);
    }

    let received = |text: &Exposition| text.sum("holdfast_port_received_frames_total", &[("tc", "3")]);
    let paused = |text: &Exposition| text.sum("holdfast_pfc_sent_xoff_total", &[("priority", "3")]);
    let later = wait_for("growth of counters", PATIENCE, || {
        sleep(Duration::from_millis(100));
        let later = scrape(address);
        (received(&later) > received(&first) && paused(&later) > paused(&first)).then_some(later)
    });
    later.assert_no_counter_fell_since(&first);
    assert_eq!(later.sum("holdfast_port_dropped_frames_total", &[("reason", "headroom_full")]), 0.0);

    assert_eq!(get(address, "/healthz").as_deref(), Some("ok\n"));
    assert!(request(address, "/").expect("an answer").0.starts_with("HTTP/1.1 404 "));
    process.signal("TERM");
    assert_eq!(process.wait(PATIENCE).status.code(), Some(0));
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn metrics_address_in_use_is_a_one_line_error() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let ended = finish(run(&["--duration", "1s", "--metrics", &address]));
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{ended:?}");
    let start = format!("error: metrics cannot be served on {address}: address in use");
    assert!(ended.stderr.starts_with(&start) && ended.stderr.contains("--metrics off"), "{}", ended.stderr);
}
