//! A listener that bounds the cost of unknown clients: the number of connections, and the duration of each. A client
//! without a place is immediately answered to try again ([`super::refusal`]).
//!
//! A client has little time to send its request, so silent and slow clients do not block others for long. The server
//! runs in the control thread beside other tasks.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::refusal::Refusals;

/// Longest time from the connection until the header of the request is complete.
const HEADER_TIME: Duration = Duration::from_secs(1);

/// Most bytes of a request's header, including the request line: longer headers are answered with status 431.
pub const HEADER_MAX: usize = 16 * 1024;

/// Bytes of a header after which a connection is cut without an answer. Headers between the two limits may come from
/// faulty clients and are answered. Beyond this limit no received data is stored.
const HEADER_CUT: usize = 4 * HEADER_MAX;

/// A listener, TCP or Unix, that serves only as many connections as it has permits, and refuses the others.
#[derive(Debug)]
pub struct Bounded<L> {
    listener: L,
    permits: Arc<Semaphore>,
    time: Duration,
    refusals: Refusals,
}

impl<L> Bounded<L> {
    /// Serves at most `connections` of `listener` at once, each for at most `time`; the others receive `refusals`.
    #[must_use]
    pub fn new(listener: L, connections: usize, time: Duration, refusals: Refusals) -> Self {
        Self { listener, permits: Arc::new(Semaphore::new(connections)), time, refusals }
    }
}

impl<L: Listener> Listener for Bounded<L> {
    type Io = Limited<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Limited<L::Io>, L::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await;
            match self.permits.clone().try_acquire_owned() {
                Ok(permit) => return (Limited::new(stream, self.time, permit), address),
                Err(_) => self.refusals.refuse(stream).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when its time is over, whether its peer sends slowly, reads slowly or does nothing.
#[derive(Debug)]
pub struct Limited<S> {
    stream: S,
    end: Pin<Box<Sleep>>,
    /// The parser state and the end of the connection's time, until the header of the request is complete.
    header: Option<(Header, Instant)>,
    /// Bytes received until the header was complete.
    header_bytes: usize,
    _permit: OwnedSemaphorePermit,
}

impl<S> Limited<S> {
    fn new(stream: S, time: Duration, permit: OwnedSemaphorePermit) -> Self {
        let now = Instant::now();
        let end = Box::pin(tokio::time::sleep_until(now + time.min(HEADER_TIME)));
        Self { stream, end, header: Some((Header::default(), now + time)), header_bytes: 0, _permit: permit }
    }
}

impl<S: Unpin> Limited<S> {
    /// Fails if the time is over; otherwise returns the result of `step`, with a wake-up at the end of the time.
    fn until_end<T>(
        &mut self,
        context: &mut Context<'_>,
        step: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
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

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
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
        self.until_end(cx, |stream, cx| stream.poll_write(cx, bytes))
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
