//! Bad requests to the socket and to the metrics server. Each one receives an error or loses its connection. None slows
//! the fast path or delays the answer to a good request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::process::wait_for;
use crate::rig::{PATIENCE, Switch, sum};

/// Number of simultaneous connections.
const MANY: usize = 1000;

/// Largest growth of the median poll gap over the quiet one, in histogram buckets. A bucket is a power of two, so this
/// is a factor of four.
const BUCKETS_MORE: usize = 2;

/// Longest time that a client tries to enter the kernel's accept queue.
const QUEUE_TIME: Duration = Duration::from_secs(5);

/// A connection to either server.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// The two servers of one switch.
struct Both {
    switch: Switch,
    metrics: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Socket,
    Metrics,
}

impl Both {
    fn start() -> Self {
        let config = include_str!("../../conf/incast.yaml").replace("127.0.0.1:9464", "127.0.0.1:0");
        let mut switch = Switch::served(&config);
        let metrics = switch.process.metrics_address(PATIENCE);
        Self { switch, metrics }
    }

    fn connect(&self, server: Server) -> std::io::Result<Box<dyn Stream>> {
        if server == Server::Socket {
            return Ok(Box::new(self.switch.connect()?));
        }
        // A TCP listener with a full queue does not refuse: the connection attempt only times out.
        let stream = TcpStream::connect_timeout(&self.metrics, QUEUE_TIME)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Box::new(stream))
    }

    /// Returns the answer to `bytes`. It is empty if the server closes the connection without an answer.
    fn say(&self, server: Server, bytes: &[u8]) -> String {
        let mut stream = self.connect(server).expect("there is room for one");
        // The server may close the connection before it has read all bytes.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Asserts that both servers answer a good request.
    #[track_caller]
    fn assert_good(&self, when: &str) {
        assert_eq!(self.switch.get("version")["version"]["api"], "v1", "{when}");
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        wait_for("metrics", PATIENCE, || {
            self.say(Server::Metrics, request).contains("holdfast_build_info").then_some(())
        });
    }
}

/// Returns the polls per bucket of the poll-gap histogram (powers of two in nanoseconds), and the frames received.
fn polls(switch: &Switch) -> (Vec<u64>, u64) {
    let state = switch.get("state");
    let gaps = state["lcores"][0]["poll_gaps"].as_array().expect("a histogram").iter();
    (gaps.map(|count| count.as_u64().expect("a count")).collect(), sum(&state["ports"], "received_frames"))
}

/// Returns the bucket of the median poll gap between two readings.
fn median((before, _): &(Vec<u64>, u64), (after, _): &(Vec<u64>, u64)) -> usize {
    let gaps: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    let half = gaps.iter().sum::<u64>() / 2;
    let mut below = 0;
    gaps.iter()
        .position(|count| {
            below += count;
            below > half
        })
        .expect("it polls")
}

/// Runs `harm` against a switch and asserts that the switch forwards as before.
fn unharmed(both: &Both, what: &str, harm: impl FnOnce()) {
    let quiet = polls(&both.switch);
    wait_for("frames", PATIENCE, || (polls(&both.switch).1 > quiet.1 + 10_000).then_some(()));
    let before = polls(&both.switch);
    harm();
    // On a busy machine `harm` may be over before the next frame.
    let after = wait_for(&format!("frames after {what}"), PATIENCE, || {
        Some(polls(&both.switch)).filter(|after| after.1 > before.1)
    });
    let (was, is) = (median(&quiet, &before), median(&before, &after));
    assert!(is <= was + BUCKETS_MORE, "{what}: half of the gaps were below 2^{was} ns and are below 2^{is}");
    both.assert_good(what);
}

/// Returns pseudo-random bytes. They depend only on `seed`, so each run sends the same bytes.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

#[test]
fn malformed_request_gets_4xx_or_a_closed_connection() {
    let both = Both::start();
    unharmed(&both, "rubbish", || {
        for server in [Server::Socket, Server::Metrics] {
            for seed in 0..100 {
                let mut bytes = noise(seed, 1 + seed as usize * 7);
                // Half of the requests begin with a valid request line.
                if seed % 2 == 0 {
                    bytes.splice(0..0, *b"GET /v1/ports HTTP/1.1\r\n");
                }
                // The end of the header. Without it the server waits for more bytes until its time limit.
                bytes.extend_from_slice(b"\r\n\r\n");
                let answer = both.say(server, &bytes);
                let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
                assert!(is_refused, "{server:?}, seed {seed}: {answer}");
            }
            for request in [
                "GET /v1/ports HTTP/9.9\r\n\r\n",
                "GET\r\n\r\n",
                "GET /v1/\u{0}ports HTTP/1.1\r\nHost: x\r\n\r\n",
                "POST /v1/watermarks/clear HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                "POST /v1/watermarks/clear HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nzz",
                "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                "GET /v1/%2e%2e/config HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            ] {
                let answer = both.say(server, request.as_bytes());
                assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{server:?}, {request:?}: {answer}");
            }
        }
    });
    both.switch.end();
}

#[test]
fn oversized_request_gets_4xx_or_a_closed_connection() {
    let both = Both::start();
    unharmed(&both, "huge requests", || {
        for server in [Server::Socket, Server::Metrics] {
            let huge = "x".repeat(8 << 20);
            for (what, request) in [
                ("target", format!("GET /{huge} HTTP/1.1\r\nHost: x\r\n\r\n")),
                ("header", format!("GET /v1/ports HTTP/1.1\r\nHost: x\r\nX: {huge}\r\n\r\n")),
                ("headers", format!("GET /v1/ports HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(100_000))),
                ("body", format!("POST /v1/ports HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{huge}", huge.len())),
            ] {
                let answer = both.say(server, request.as_bytes());
                assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{server:?}, {what}: {answer:.200}");
            }
        }
    });
    both.switch.end();
}

/// A header beyond 16 KiB is answered with 431. One beyond 64 KiB has no answer.
#[test]
fn a_long_header_is_refused_by_both_servers() {
    let both = Both::start();
    for (server, path, remedy) in [
        (Server::Socket, "/v1/version", "send fewer and shorter header fields"),
        (Server::Metrics, "/healthz", "send fewer header fields"),
    ] {
        let ask = |len: usize| {
            let field = "x".repeat(len);
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: {field}\r\n\r\n");
            both.say(server, request.as_bytes())
        };
        assert!(ask(15_000).starts_with("HTTP/1.1 200"), "{server:?}");
        let refused = ask(20_000);
        assert!(refused.starts_with("HTTP/1.1 431") && refused.contains(remedy), "{server:?}: {refused}");
        assert_eq!(ask(200_000), "", "{server:?}");
    }
    both.assert_good("after long headers");
    both.switch.end();
}

/// Returns the bytes that client `number` of a thousand sends, and whether they are a good request.
fn said_by(number: usize, good: &[u8]) -> (Vec<u8>, bool) {
    match number {
        // The first hundred occupy their connections for as long as the server permits.
        0..100 => (b"G".to_vec(), false),
        _ if number.is_multiple_of(3) => (good.to_vec(), true),
        _ if number % 3 == 1 => ([&noise(number as u64, 40)[..], b"\r\n\r\n"].concat(), false),
        _ => (b"GET /".to_vec(), false),
    }
}

#[test]
fn excess_clients_are_served_and_slow_clients_are_disconnected() {
    let both = Both::start();
    for (server, path) in [(Server::Socket, "/v1/version"), (Server::Metrics, "/healthz")] {
        unharmed(&both, "a thousand clients", || {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            let (mut slow, mut good) = (Vec::new(), Vec::new());
            for number in 0..MANY {
                let (bytes, is_good) = said_by(number, request.as_bytes());
                let mut client = both.connect(server).expect("a connection");
                // The server may have answered and closed the connection already.
                let _ = client.write_all(&bytes);
                if is_good { &mut good } else { &mut slow }.push(client);
            }
            // Each has sent its request before a later client connects, and only older connections give way.
            for client in &mut good {
                let mut answer = Vec::new();
                // A reset may follow the answer.
                let _ = client.read_to_end(&mut answer);
                let answer = String::from_utf8_lossy(&answer);
                assert!(answer.starts_with("HTTP/1.1 200 "), "{server:?}: {answer:?}");
            }
            for _ in 0..50 {
                assert!(both.say(server, request.as_bytes()).starts_with("HTTP/1.1 200 "), "{server:?}");
            }
            for mut client in slow {
                let is_cut = || (client.write_all(b"G").is_err() || client.read(&mut [0; 512]).is_err()).then_some(());
                wait_for("a slow client that is cut", PATIENCE, is_cut);
            }
        });
    }
    let state: Value = both.switch.get("state");
    assert_eq!(sum(&state["ports"], "lossless_dropped_frames"), 0, "and nothing was lost meanwhile");
    both.switch.end();
}

#[test]
fn client_that_sends_byte_by_byte_is_disconnected() {
    let both = Both::start();
    let cut = &|server| {
        let mut client = both.connect(server).expect("there is room for one");
        // The header would take 200 seconds to send; a connection may last ten.
        let header = b"GET /v1/version HTTP/1.1\r\nHost: x\r\nX: ".iter().chain(std::iter::repeat(&b'x'));
        let sent = header.take(1000).take_while(|byte| {
            std::thread::sleep(Duration::from_millis(20));
            client.write_all(&[**byte]).is_ok()
        });
        let sent = sent.count();
        assert!(sent < 400, "{server:?}: {sent} bytes in 20 ms each went out");
    };
    // Both servers run in parallel, because each test takes as long as a connection may last.
    std::thread::scope(|scope| {
        for server in [Server::Socket, Server::Metrics] {
            scope.spawn(move || cut(server));
        }
    });
    both.switch.end();
}

#[test]
fn many_valid_requests_do_not_slow_the_fast_path() {
    let both = Both::start();
    unharmed(&both, "many requests", || {
        std::thread::scope(|scope| {
            for name in ["state", "fdb", "ports", "groups"] {
                let both = &both;
                scope.spawn(move || (0..50).for_each(|_| drop(both.switch.get(name))));
            }
        });
    });
    both.switch.end();
}
