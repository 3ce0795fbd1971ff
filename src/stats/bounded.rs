//! A listener that bounds what strangers can cost: so many connections, each for so long; others wait in the kernel's
//! queue. Whoever connects and says nothing is cut soon, so that idle ones keep nobody out for long. Whatever is served
//! runs in the control thread beside other things.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// How long a connection may last before its first byte comes.
const FIRST_BYTE_TIME: Duration = Duration::from_secs(1);

/// A listener, TCP or Unix, that accepts only while it has a permit left.
#[derive(Debug)]
pub struct Bounded<L> {
    listener: L,
    permits: Arc<Semaphore>,
    time: Duration,
}

impl<L> Bounded<L> {
    /// Of all connections to `listener`, `connections` at once, each for no longer than `time`.
    #[must_use]
    pub fn new(listener: L, connections: usize, time: Duration) -> Self {
        Self { listener, permits: Arc::new(Semaphore::new(connections)), time }
    }
}

impl<L: Listener> Listener for Bounded<L> {
    type Io = Limited<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Limited<L::Io>, L::Addr) {
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (stream, address) = self.listener.accept().await;
        let now = Instant::now();
        let first = Box::pin(tokio::time::sleep_until(now + self.time.min(FIRST_BYTE_TIME)));
        (Limited { stream, end: first, last: Some(now + self.time), _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once its time is up, whether its peer sends slowly, reads slowly or does nothing.
#[derive(Debug)]
pub struct Limited<S> {
    stream: S,
    end: Pin<Box<Sleep>>,
    /// When its time is up, as long as it has said nothing and `end` is sooner.
    last: Option<Instant>,
    _permit: OwnedSemaphorePermit,
}

impl<S: Unpin> Limited<S> {
    /// Fails if the time is up; else `stream`'s own answer, with a wake-up at the end of the time.
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
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.until_end(cx, |stream, cx| stream.poll_read(cx, buf));
        if buf.filled().len() > before
            && let Some(last) = self.last.take()
        {
            self.end.as_mut().reset(last);
        }
        read
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
