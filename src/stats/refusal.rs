//! What is said to whom there is no place for: an answer that says so, and goodbye.
//!
//! A closed connection with bytes unread takes its answer along on some systems, and many a client takes an answer that
//! comes before its request for a mistake. So a refused client may speak first, for a moment, and what it says is read
//! away until it hangs up. That costs a small task for each; when there are too many of them, the others are only told.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Clients that are refused with patience at once.
const MAX_PATIENT: usize = 128;

/// How long one of them may take to begin to speak, and then to hang up.
const SPEAK_TIME: Duration = Duration::from_millis(100);
const HANG_UP_TIME: Duration = Duration::from_secs(1);

/// How long the answer to any other may take: a new connection has room for it.
const TELL_TIME: Duration = Duration::from_millis(5);

/// Bytes that are read away at once, and how often.
const PIECE_BYTES: usize = 512;
const PIECES: usize = 64;

/// Refuses clients with one answer.
#[derive(Debug)]
pub struct Refusals {
    answer: Bytes,
    patient: Arc<Semaphore>,
}

impl Refusals {
    /// Says `body`, which is of this type, with the status 503.
    #[must_use]
    pub fn new(content_type: &str, body: &str) -> Self {
        let answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nRetry-After: 1\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        Self { answer: answer.into(), patient: Arc::new(Semaphore::new(MAX_PATIENT)) }
    }

    /// Refuses `stream`, without waiting for it.
    pub async fn refuse<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, mut stream: S) {
        let answer = self.answer.clone();
        if let Ok(permit) = self.patient.clone().try_acquire_owned() {
            tokio::spawn(async move {
                refuse_patiently(stream, &answer).await;
                drop(permit);
            });
        } else {
            let _ = timeout(TELL_TIME, write(&mut stream, &answer)).await;
        }
    }
}

/// Whatever goes wrong here, the client is gone.
async fn refuse_patiently<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &[u8]) {
    let _ = timeout(SPEAK_TIME, read(&mut stream)).await;
    let goodbye = async {
        write(&mut stream, answer).await?;
        poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await?;
        for _ in 0..PIECES {
            if read(&mut stream).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    let _ = timeout(HANG_UP_TIME, goodbye).await;
}

/// Reads what comes next and forgets it; how many bytes that was.
async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<usize> {
    let mut piece = [0; PIECE_BYTES];
    let mut buffer = ReadBuf::new(&mut piece);
    poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
    Ok(buffer.filled().len())
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}
