//! A listener that bounds the cost of unknown clients: the number of connections, and the duration of each.
//!
//! When every place is taken, the oldest connection of the client that has most gives way to a new one. So slow clients
//! keep no other from its answer, and a client with many connections takes no place of one with few. A client is an
//! address, the first half of an IPv6 address, or the user behind a Unix socket.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::connect_info::Connected;
use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{Instant, Sleep};

/// Longest time from the connection until the header of the request is complete.
const HEADER_TIME: Duration = Duration::from_secs(1);

/// Most bytes of a request's header, including the request line: longer headers are answered with status 431.
pub const HEADER_MAX: usize = 16 * 1024;

/// Bytes of a header after which a connection is cut without an answer. Headers between the two limits may come from
/// faulty clients and are answered. Beyond this limit no received data is stored.
const HEADER_CUT: usize = 4 * HEADER_MAX;

/// The client that a connection counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// An address, or the network of a host with IPv6, which may choose any address in it.
    Network(IpAddr),
    /// The number of a user of this machine; `None` if the kernel does not tell.
    User(Option<u32>),
}

impl Client {
    fn user(self) -> Option<u32> {
        match self {
            Self::User(number) => number,
            Self::Network(_) => None,
        }
    }

    fn at(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
            address => address,
        })
    }
}

/// The other end of a connection, for handlers of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The number of the user; `None`: a network has none, or the kernel does not tell.
    pub user: Option<u32>,
}

impl<L: Clients> Connected<IncomingStream<'_, Bounded<L>>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Bounded<L>>) -> Self {
        Self { user: stream.io().place.client.user() }
    }
}

/// A listener that knows its clients.
pub trait Clients: Listener {
    /// The client of `stream`, which came from `address`.
    fn client(stream: &Self::Io, address: &Self::Addr) -> Client;
}

impl Clients for TcpListener {
    fn client(_: &Self::Io, address: &Self::Addr) -> Client {
        Client::at(address.ip())
    }
}

impl Clients for UnixListener {
    fn client(stream: &Self::Io, _: &Self::Addr) -> Client {
        Client::User(stream.peer_cred().ok().map(|user| user.uid()))
    }
}

/// Taken places by the order in which they were taken.
type Taken = BTreeMap<u64, (Client, Arc<Seat>)>;

/// The places of a listener.
#[derive(Debug)]
struct Places {
    most: usize,
    /// The number of the last place, and the taken ones.
    taken: Mutex<(u64, Taken)>,
}

/// The side of a place that its connection looks at.
#[derive(Debug, Default)]
struct Seat(Mutex<(bool, Option<Waker>)>);

/// A place of a connection, which is free again when this is dropped.
#[derive(Debug)]
struct Place {
    client: Client,
    number: u64,
    seat: Arc<Seat>,
    places: Arc<Places>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a place for `client`. If all are taken, a connection gives way.
    fn take(self: &Arc<Self>, client: Client) -> Place {
        let mut taken = lock(&self.taken);
        let (number, places) = &mut *taken;
        if places.len() >= self.most
            && let Some(oldest) = oldest_of_greatest(places)
            && let Some((_, seat)) = places.remove(&oldest)
        {
            seat.give_up();
        }
        *number += 1;
        let seat = Arc::<Seat>::default();
        places.insert(*number, (client, seat.clone()));
        Place { client, number: *number, seat, places: self.clone() }
    }
}

/// The oldest place of the client that has most.
fn oldest_of_greatest(places: &Taken) -> Option<u64> {
    let mut counts = BTreeMap::new();
    for (client, _) in places.values() {
        *counts.entry(*client).or_insert(0) += 1;
    }
    let most = counts.values().max()?;
    places.iter().find(|(_, (client, _))| counts.get(client) == Some(most)).map(|(number, _)| *number)
}

impl Seat {
    fn give_up(&self) {
        let mut state = lock(&self.0);
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    /// Whether the connection must end. Otherwise its task is woken when it must.
    fn must_end(&self, context: &Context<'_>) -> bool {
        let mut state = lock(&self.0);
        state.1 = Some(context.waker().clone());
        state.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.taken).1.remove(&self.number);
    }
}

/// A listener, TCP or Unix, that serves only as many connections as it has places.
#[derive(Debug)]
pub struct Bounded<L> {
    listener: L,
    places: Arc<Places>,
    time: Duration,
    busy: Bytes,
}

impl<L> Bounded<L> {
    /// Serves at most `connections` of `listener` at once, each for at most `time`. One that gives way is told `busy`.
    #[must_use]
    pub fn new(listener: L, connections: usize, time: Duration, busy: Bytes) -> Self {
        Self { listener, places: Places::new(connections), time, busy }
    }
}

/// The answer to a client whose connection gives way: status 503 with `body`, which has this content type.
#[must_use]
pub fn busy(content_type: &str, body: &str) -> Bytes {
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nRetry-After: 1\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    answer.into()
}

impl<L: Clients> Listener for Bounded<L> {
    type Io = Limited<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Limited<L::Io>, L::Addr) {
        // Earlier connections have their turn, so that none gives way before its request was looked at.
        tokio::task::yield_now().await;
        let (stream, address) = self.listener.accept().await;
        let place = self.places.take(L::client(&stream, &address));
        (Limited::new(stream, self.time, (place, self.busy.clone())), address)
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when its time is over or when it gives way, whether its peer sends slowly, reads slowly or
/// does nothing.
#[derive(Debug)]
pub struct Limited<S> {
    stream: S,
    end: Pin<Box<Sleep>>,
    /// The parser state and the end of the connection's time, until the header of the request is complete.
    header: Option<(Header, Instant)>,
    /// Bytes received until the header was complete.
    header_bytes: usize,
    place: Place,
    /// The answer if the connection gives way; empty once there is another.
    busy: Bytes,
}

impl<S> Limited<S> {
    fn new(stream: S, time: Duration, place: (Place, Bytes)) -> Self {
        let now = Instant::now();
        let end = Box::pin(tokio::time::sleep_until(now + time.min(HEADER_TIME)));
        let (place, busy) = place;
        Self { stream, end, header: Some((Header::default(), now + time)), header_bytes: 0, place, busy }
    }
}

impl<S: AsyncWrite + Unpin> Limited<S> {
    /// Fails if the time is over or the connection gives way; otherwise returns the result of `step`, with a wake-up at
    /// the end of the time.
    fn until_end<T>(
        &mut self,
        context: &mut Context<'_>,
        step: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if self.place.seat.must_end(context) {
            // A new connection has room for the answer; without room there is none.
            let busy = std::mem::take(&mut self.busy);
            let _ = Pin::new(&mut self.stream).poll_write(context, &busy);
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        step(Pin::new(&mut self.stream), context)
    }

    /// Handles received bytes: a complete header extends the time. Fails if the header exceeds [`HEADER_CUT`].
    fn received(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some((header, last)) = &mut self.header else { return Ok(()) };
        self.header_bytes += bytes.len();
        if self.header_bytes > HEADER_CUT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if header.ends_in(bytes) {
            self.end.as_mut().reset(*last);
            self.header = None;
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Limited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.until_end(cx, |stream, cx| stream.poll_read(cx, buf));
        match self.received(&buf.filled()[before..]) {
            Ok(()) => read,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.until_end(cx, |stream, cx| stream.poll_write(cx, bytes));
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.busy.clear();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.until_end(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.until_end(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

/// Bytes of the header of `request` as it was sent, including the request line.
fn header_bytes<B>(request: &Request<B>) -> usize {
    // `GET /v1 HTTP/1.1\r\n`, and `name: value\r\n` for each field.
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + uri + " HTTP/1.1\r\n".len() + 1;
    request.headers().iter().fold(line, |sum, (name, value)| sum + name.as_str().len() + value.len() + ": \r\n".len())
}

/// Whether the header of `request` is longer than [`HEADER_MAX`].
pub fn is_too_long<B>(request: &Request<B>) -> bool {
    header_bytes(request) > HEADER_MAX
}

/// Makes `answer` the last one on its connection: an idle client would otherwise occupy a place.
pub async fn hang_up_after(mut answer: Response) -> Response {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Parser state: the position in a request's header after the bytes so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Header {
    /// Only line ends so far, which may precede a request.
    #[default]
    Before,
    /// In a line that is not empty.
    Line,
    /// At the start of a line after the first.
    LineBegins,
}

impl Header {
    /// Processes `bytes`; returns whether they complete the header, which an empty line does.
    fn ends_in(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            *self = match (*self, byte) {
                (Self::LineBegins, b'\n') => return true,
                (Self::Line, b'\n') => Self::LineBegins,
                (state, b'\r' | b'\n') => state,
                _ => Self::Line,
            };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of bytes of `text` after which the header is complete. It must not depend on how they are split.
    fn end(text: &str) -> Option<usize> {
        let end_by = |len: usize| {
            let mut header = Header::default();
            let pieces = text.as_bytes().chunks(len);
            pieces
                .scan(0, |read, piece| {
                    *read += piece.len();
                    Some((*read, header.ends_in(piece)))
                })
                .find_map(|(read, has_ended)| has_ended.then_some(read))
        };
        let (single, whole) = (end_by(1), end_by(text.len()));
        assert_eq!(single.is_some(), whole.is_some(), "{text:?}");
        single
    }

    const NEAR: Client = Client::Network(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    const ROOT: Client = Client::User(Some(0));

    fn is_out(place: &Place) -> bool {
        lock(&place.seat.0).0
    }

    #[test]
    fn oldest_place_of_the_client_with_most_gives_way() {
        let places = Places::new(4);
        let few = places.take(ROOT);
        let many: Vec<_> = (0..100).map(|_| places.take(NEAR)).collect();
        let out: Vec<usize> = (0..100).filter(|&at| is_out(&many[at])).collect();
        assert_eq!(out, (0..97).collect::<Vec<_>>());
        assert!(!is_out(&few));
        let second = places.take(ROOT);
        assert!(is_out(&many[97]) && !is_out(&few) && !is_out(&second));
        drop(many);
        assert_eq!(lock(&places.taken).1.len(), 2, "a place that gave way is free once");
    }

    #[test]
    fn ipv6_client_is_its_network_and_mapped_address_is_ipv4() {
        let client = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:127.0.0.1"), NEAR);
    }

    #[test]
    fn bytes_of_a_header_are_counted_as_they_were_sent() {
        let text = "GET /v1/ports?x HTTP/1.1\r\nhost: x\r\nx-long: yes\r\n";
        let request = Request::builder().method("GET").uri("/v1/ports?x").header("host", "x").header("x-long", "yes");
        assert_eq!(header_bytes(&request.body(()).unwrap()), text.len());
    }

    #[test]
    fn a_header_ends_with_its_first_empty_line() {
        assert_eq!(end("GET / HTTP/1.1\r\nHost: x\r\n\r\nrest"), Some(27));
        assert_eq!(end("GET / HTTP/1.1\n\n"), Some(16));
        assert_eq!(end("GET / HTTP/1.1\r\nHost: x\r\n"), None);
        assert_eq!(end("\r\n\r\n\n\n"), None, "a request has not begun");
        assert_eq!(end("\r\nGET / HTTP/1.1\r\n\r\n"), Some(20));
    }
}
