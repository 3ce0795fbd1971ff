//! The web server: `/metrics` for Prometheus, `/healthz` and `/readyz` for service managers and orchestrators.
//!
//! The cost of unknown clients is bounded ([`super::bounded`]).

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::bounded::{Bounded, HEADER_MAX, busy, hang_up_after, is_too_long};
use super::collector::SwitchCollector;
use super::current::Current;
use super::health::State;

/// Most simultaneous connections.
pub const MAX_CONNECTIONS: usize = 64;

/// Longest duration of a connection. A scrape takes milliseconds; Prometheus gives up after 10 s by default.
pub const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// Serves the metrics of `current` on `listener`. The future does not end by itself. To end it, drop it or the runtime
/// on which it was spawned; open connections are then cut.
///
/// # Errors
/// None is known for a running server; the result is that of the library.
pub async fn serve(listener: TcpListener, current: Arc<Current>) -> io::Result<()> {
    serve_for(listener, current, CONNECTION_TIME).await
}

async fn serve_for(listener: TcpListener, current: Arc<Current>, time: Duration) -> io::Result<()> {
    let told = format!("all {MAX_CONNECTIONS} connections are in use; retry in a second\n");
    let busy = busy("text/plain; charset=utf-8", &told);
    axum::serve(Bounded::new(listener, MAX_CONNECTIONS, time, busy), router(current)).await
}

/// The routes for `current`.
fn router(current: Arc<Current>) -> Router {
    let collector = Arc::new(SwitchCollector::new(current.clone()));
    let alive = current.clone();
    Router::new()
        .route("/metrics", get(move || std::future::ready(metrics(&collector))))
        .route("/healthz", get(move || std::future::ready(reason(look(&alive).not_alive))))
        .route("/readyz", get(move || std::future::ready(reason(look(&current).not_ready))))
        .layer(axum::middleware::from_fn(refuse_long_headers))
        .layer(axum::middleware::map_response(hang_up_after))
}

/// Answers requests whose header is too long with status 431.
async fn refuse_long_headers(request: Request, next: Next) -> Response {
    if is_too_long(&request) {
        let text = format!("the header of the request is longer than {HEADER_MAX} bytes; send fewer header fields\n");
        return (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text).into_response();
    }
    next.run(request).await
}

fn metrics(collector: &SwitchCollector) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], collector.text()).into_response()
}

fn look(current: &Current) -> State {
    let switch_view = current.get();
    switch_view.health.look(&switch_view.counters, Instant::now())
}

/// Status 200, or 503 with the reasons.
fn reason(why_not: String) -> Response {
    if why_not.is_empty() { "ok\n".into_response() } else { (StatusCode::SERVICE_UNAVAILABLE, why_not).into_response() }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::run;
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream as Client};

    /// Runs `client` against a server whose connections last for at most `time`.
    fn with_server(time: Duration, client: impl FnOnce(SocketAddr) + Send + 'static) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let client = tokio::task::spawn_blocking(move || client(address));
            tokio::select! {
                result = serve_for(listener, Current::new(run()), time) => panic!("the server ended: {result:?}"),
                result = client => result.unwrap(),
            }
        });
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut client = Client::connect(address).unwrap();
        write!(client, "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn server_answers_metrics_and_health_and_refuses_other_requests() {
        with_server(CONNECTION_TIME, |address| {
            let metrics = ask(address, "GET /metrics").to_lowercase();
            assert!(metrics.starts_with("http/1.1 200"), "{metrics}");
            assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
            assert!(metrics.contains("\nholdfast_port_received_frames_total{port=\"p1\",tc=\"3\"} 6000000\n"));
            assert!(ask(address, "GET /healthz").ends_with("ok\n"));
            let unready = ask(address, "GET /readyz");
            assert!(unready.starts_with("HTTP/1.1 503"), "{unready}");
            assert!(unready.ends_with("\r\n\r\nthe PFC test of the ports is still running\n"), "{unready}");
            assert!(ask(address, "GET /").starts_with("HTTP/1.1 404"));
            assert!(ask(address, "POST /metrics").starts_with("HTTP/1.1 405"));
        });
    }

    /// Returns the answer to a header with a field of `len` bytes; empty if the connection is cut.
    fn ask_at_length(address: SocketAddr, len: usize) -> String {
        let mut client = Client::connect(address).unwrap();
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: {}\r\n\r\n", "y".repeat(len));
        // The server may close the connection in the middle.
        let _ = client.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn a_header_beyond_the_bound_is_refused_and_one_far_beyond_is_cut() {
        with_server(CONNECTION_TIME, |address| {
            assert!(ask_at_length(address, 15_000).ends_with("ok\n"));
            let refused = ask_at_length(address, 17_000);
            assert!(refused.starts_with("HTTP/1.1 431") && refused.contains("longer than 16384 bytes"), "{refused}");
            assert_eq!(ask_at_length(address, 200_000), "");
            assert!(ask(address, "GET /healthz").ends_with("ok\n"), "it serves on");
        });
    }

    #[test]
    fn connection_beyond_the_limit_is_served_and_the_oldest_gets_503() {
        with_server(Duration::from_secs(3600), |address| {
            let mut idle: Vec<_> = (0..MAX_CONNECTIONS).map(|_| Client::connect(address).unwrap()).collect();
            idle[0].write_all(b"GET /metrics HTTP/1.1\r\nHo").unwrap();
            assert!(ask(address, "GET /healthz").ends_with("ok\n"));
            let mut told = String::new();
            idle[0].read_to_string(&mut told).unwrap();
            assert!(told.starts_with("HTTP/1.1 503") && told.contains("\r\nRetry-After: 1\r\n"), "{told}");
            assert!(told.ends_with("\r\n\r\nall 64 connections are in use; retry in a second\n"), "{told}");
            for mut client in idle.drain(1..) {
                client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                // The connection is closed or reset; the client does not have to wait.
                let end = client.read_to_end(&mut Vec::new()).err().map(|error| error.kind());
                assert!(!matches!(end, Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)), "{end:?}");
            }
        });
    }

    #[test]
    fn hundred_slow_clients_keep_no_check_from_its_answer() {
        for request in ["", "GET /metrics HTTP/1.1\r\nHo", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"] {
            with_server(CONNECTION_TIME, move |address| {
                let slow = || {
                    let mut client = Client::connect(address).unwrap();
                    // The server may have cut it.
                    let _ = client.write_all(request.as_bytes());
                    client
                };
                let mut slow_clients: Vec<_> = (0..100).map(|_| slow()).collect();
                for check in 0..50 {
                    let answer = ask(address, "GET /healthz");
                    // The fixture's lcore polls once, so that after a second it counts as stopped.
                    let is_answered = answer.ends_with("ok\n") || answer.contains("has not polled");
                    assert!(is_answered, "{request:?}, check {check}: {answer}");
                    // Clients that were cut come back.
                    (0..10).for_each(|at| slow_clients[(check * 10 + at) % 100] = slow());
                }
            });
        }
    }
}
