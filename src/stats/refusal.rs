//! Refuses clients when all connections are taken: sends an answer that explains it, and closes the connection.
//!
//! On some systems, closing a connection with unread bytes discards the answer. Many clients treat an answer that
//! arrives before their request as an error. So a refused client may first send its request for a moment, and its bytes
//! are read until it closes the connection.
//!
//! That costs a small task for each client. When there are too many tasks, further clients only receive the answer.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Most clients that are refused patiently at once.
const MAX_PATIENT: usize = 128;

/// Longest time until such a client starts to send, and then until it closes the connection.
const SPEAK_TIME: Duration = Duration::from_millis(100);
const HANG_UP_TIME: Duration = Duration::from_secs(1);

/// Longest time to write the answer to any other client: a new connection has buffer space for it.
const TELL_TIME: Duration = Duration::from_millis(5);

/// Bytes that are discarded in one read, and most reads.
const PIECE_BYTES: usize = 512;
const PIECES: usize = 64;

/// Refuses clients with a fixed answer.
#[derive(Debug)]
pub struct Refusals {
    answer: Bytes,
    patient: Arc<Semaphore>,
}

impl Refusals {
    /// Returns refusals with status 503 and `body`, which has this content type.
    #[must_use]
    pub fn new(content_type: &str, body: &str) -> Self {
        let answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nRetry-After: 1\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        Self { answer: answer.into(), patient: Arc::new(Semaphore::new(MAX_PATIENT)) }
    }

    /// Refuses `stream` without waiting for its client.
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

/// Errors are ignored here: they mean that the client is gone.
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

/// Reads and discards the next bytes; returns their number.
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
