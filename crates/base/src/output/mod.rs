//! Lines on standard output and standard error that never make their caller wait for the reader.
//!
//! While [`Writers`] exist, each stream has a bounded queue and a thread that writes it. Lines beyond the bound are
//! left out and counted; a line says how many once the stream is read again. Without [`Writers`] the caller writes, and
//! gives up on a stream that is not read.
//!
//! [`tell`] writes to standard error with a [`Severity`], which systemd's journal keeps.
//!
//! # Example
//!
//! ```
//! use holdfast_base::output::{self, Severity, Stream};
//!
//! output::tell(Severity::Info, "note: this returns at once");
//! assert_eq!(output::left_out(Stream::Err), 0);
//! ```

mod severity;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::pulse::{PERIOD, Pulse};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

pub use self::severity::{Severity, is_journal};

/// Most lines and bytes that wait for the reader of a stream.
const MOST_LINES: usize = 1024;
const MOST_BYTES: usize = 256 << 10;
/// Most bytes that a pipe takes without blocking once `poll` reports room (`PIPE_BUF`).
const PIECE: usize = 4096;
/// Longest wait for a reader while a switch starts.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest wait at the end for a reader that takes nothing, and for one that reads slowly.
const LAST_PATIENCE: Duration = Duration::from_secs(3);
const LAST_TIME: Duration = Duration::from_secs(10);

/// A standard stream of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Both streams, with their labels.
    pub const TABLE: [(Self, &'static str); 2] = [(Self::Out, "stdout"), (Self::Err, "stderr")];

    fn queue(self) -> &'static Queue {
        static QUEUES: [Queue; 2] = [Queue::new(Stream::Out), Queue::new(Stream::Err)];
        &QUEUES[self as usize]
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Out => "standard output",
            Self::Err => "standard error",
        }
    }

    /// A descriptor of its own, which stays even if the stream is redirected for a while.
    fn descriptor(self) -> io::Result<OwnedFd> {
        match self {
            Self::Out => io::stdout().as_fd().try_clone_to_owned(),
            Self::Err => io::stderr().as_fd().try_clone_to_owned(),
        }
    }

    /// Writes from the calling thread, and waits at most `patience` for a reader that takes nothing.
    fn write_now(self, bytes: &[u8], patience: Duration) -> io::Result<()> {
        match self {
            Self::Out => write_within(io::stdout().as_fd(), bytes, patience),
            Self::Err => write_within(io::stderr().as_fd(), bytes, patience),
        }
    }
}

/// Writes `text` to standard error, or leaves it out if the stream is not read. For systemd's journal each line begins
/// with its severity.
pub fn tell(severity: Severity, text: &str) {
    write(Stream::Err, severity.lines(text, is_journal()).as_bytes());
}

/// Writes `text` to standard error after all earlier lines, and waits a limited time for its reader.
///
/// # Errors
/// The error of the system, or [`ErrorKind::TimedOut`] if the stream is not read.
pub fn tell_last(severity: Severity, text: &str) -> io::Result<()> {
    write_last(Stream::Err, &severity.lines(text, is_journal()))
}

/// Writes `bytes`, which count as one line, to `stream`, or leaves them out if the stream is not read.
pub fn write(stream: Stream, bytes: &[u8]) {
    let queue = stream.queue();
    if queue.push(bytes) {
        return;
    }
    let patience = if queue.is_stalled.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
    if stream.write_now(bytes, patience).is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
        queue.is_stalled.store(true, Ordering::Relaxed);
        queue.leave_out(&mut queue.lock());
    }
}

/// Writes `text` after all earlier lines, and waits a limited time for its reader.
///
/// # Errors
/// The error of the system, or [`ErrorKind::TimedOut`] if the stream is not read.
pub fn write_last(stream: Stream, text: &str) -> io::Result<()> {
    let queue = stream.queue();
    if queue.push_always(text.as_bytes()) {
        return queue.wait_until_empty(LAST_PATIENCE, LAST_TIME);
    }
    let patience = if queue.is_stalled.load(Ordering::Relaxed) { Duration::ZERO } else { LAST_PATIENCE };
    stream.write_now(text.as_bytes(), patience)
}

/// Lines of `stream` that were left out because it was not read.
#[must_use]
pub fn left_out(stream: Stream) -> u64 {
    stream.queue().left_out.load(Ordering::Relaxed)
}

/// Writes `bytes` to the file, and waits at most `patience` for a reader that takes nothing.
///
/// # Errors
/// The error of the system, or [`ErrorKind::TimedOut`].
pub fn write_within(file: BorrowedFd<'_>, bytes: &[u8], patience: Duration) -> io::Result<()> {
    for piece in bytes.chunks(PIECE) {
        let (end, mut remaining) = (Instant::now() + patience, piece);
        while !remaining.is_empty() {
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).unwrap_or_default();
            match poll(&mut [PollFd::new(&file, PollFlags::OUT)], Some(&left)) {
                Ok(0) => return Err(ErrorKind::TimedOut.into()),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match rustix::io::write(file, remaining) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => remaining = &remaining[written..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Writes `piece` however long its reader takes.
fn write_through(file: BorrowedFd<'_>, piece: &[u8]) -> io::Result<()> {
    loop {
        match write_within(file, piece, Duration::from_secs(3600)) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            result => return result,
        }
    }
}

/// The lines of a stream that wait for its thread.
struct Queue {
    stream: Stream,
    state: Mutex<State>,
    /// Wakes the thread of the stream, and those who wait for it.
    changed: Condvar,
    /// Lines left out since the start of the program.
    left_out: AtomicU64,
    /// Whether a reader took nothing for as long as a caller without a queue can wait.
    is_stalled: AtomicBool,
}

struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines left out since the last line that told about it.
    untold: u64,
    /// Whether a thread writes the lines.
    is_open: bool,
    /// Whether the thread has a line in hand.
    is_writing: bool,
    /// Pieces written so far: the progress of the reader.
    pieces: u64,
    /// Error of the last line.
    failure: Option<ErrorKind>,
}

impl Queue {
    const fn new(stream: Stream) -> Self {
        let state = State {
            lines: VecDeque::new(),
            bytes: 0,
            untold: 0,
            is_open: false,
            is_writing: false,
            pieces: 0,
            failure: None,
        };
        let (left_out, is_stalled) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { stream, state: Mutex::new(state), changed: Condvar::new(), left_out, is_stalled }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_open(&self, is_open: bool) {
        self.lock().is_open = is_open;
        self.changed.notify_all();
    }

    /// Queues a line or leaves it out. Returns false, without doing either, if no thread writes the queue.
    fn push(&self, line: &[u8]) -> bool {
        let mut state = self.lock();
        if !state.is_open {
            return false;
        }
        // After a gap lines wait for some room, so that one notice stands for many of them.
        let share = if state.untold > 0 { 2 } else { 1 };
        if state.lines.len() >= MOST_LINES / share || state.bytes + line.len() > MOST_BYTES / share {
            self.leave_out(&mut state);
            return true;
        }
        self.add(state, line);
        true
    }

    fn leave_out(&self, state: &mut State) {
        state.untold += 1;
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    /// Queues a line beyond the bound too, if a thread writes the queue.
    fn push_always(&self, line: &[u8]) -> bool {
        let state = self.lock();
        let is_open = state.is_open;
        if is_open {
            self.add(state, line);
        }
        is_open
    }

    fn add(&self, mut state: MutexGuard<'_, State>, line: &[u8]) {
        let notice = self.notice(&mut state);
        for line in notice.into_iter().chain([line.to_vec()]) {
            state.bytes += line.len();
            state.lines.push_back(line);
        }
        self.changed.notify_all();
    }

    /// The line about lines that were left out since the last one.
    fn notice(&self, state: &mut State) -> Option<Vec<u8>> {
        let count = std::mem::take(&mut state.untold);
        let text = || format!("note: {count} lines were left out because {} was not read", self.stream.name());
        let is_journal = self.stream == Stream::Err && is_journal();
        (count > 0).then(|| Severity::Warning.lines(&text(), is_journal).into_bytes())
    }

    /// The next line; `None` if the queue is closed and empty. `idle` runs at least once a second.
    fn next(&self, idle: &impl Fn()) -> Option<Vec<u8>> {
        let mut state = self.lock();
        state.is_writing = false;
        self.changed.notify_all();
        loop {
            idle();
            let line = state.lines.pop_front();
            if let Some(line) = &line {
                state.bytes -= line.len();
            }
            let line = line.or_else(|| self.notice(&mut state));
            if line.is_some() || !state.is_open {
                state.is_writing = line.is_some();
                return line;
            }
            let waited = self.changed.wait_timeout(state, PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes the lines by `write` until the queue is closed.
    fn run(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>, idle: impl Fn()) {
        while let Some(line) = self.next(&idle) {
            let mut failure = None;
            for piece in line.chunks(PIECE) {
                failure = write(piece).err().map(|error| error.kind());
                self.lock().pieces += 1;
                self.changed.notify_all();
                if failure.is_some() {
                    break;
                }
            }
            self.lock().failure = failure;
        }
    }

    /// Waits until all lines are written, for at most `time`, and at most `patience` without progress. Returns the
    /// error of the last line.
    fn wait_until_empty(&self, patience: Duration, time: Duration) -> io::Result<()> {
        let (mut state, last) = (self.lock(), Instant::now() + time);
        let (mut pieces, mut end) = (state.pieces, Instant::now() + patience);
        while state.is_writing || !state.lines.is_empty() || state.untold > 0 {
            if state.pieces != pieces {
                (pieces, end) = (state.pieces, Instant::now() + patience);
            }
            let left = end.min(last).saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.is_stalled.store(true, Ordering::Relaxed);
                return Err(ErrorKind::TimedOut.into());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.failure.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

/// The threads of both streams. Dropping it waits a limited time for their readers.
#[derive(Debug)]
pub struct Writers(());

impl Writers {
    /// Starts the threads, which inherit the CPUs of the caller, and has panics printed by them.
    ///
    /// # Errors
    /// If the system refuses a descriptor or a thread.
    pub fn start() -> io::Result<Self> {
        for (stream, label) in Stream::TABLE {
            let file = stream.descriptor()?;
            stream.queue().set_open(true);
            let run = move || {
                let pulse = Pulse::start(label);
                let write = |piece: &[u8]| pulse.outside(|| write_through(file.as_fd(), piece));
                stream.queue().run(write, || pulse.beat());
            };
            let started = std::thread::Builder::new().name(label.to_owned()).spawn(run);
            started.inspect_err(|_| stream.queue().set_open(false))?;
        }
        std::panic::set_hook(Box::new(tell_panic));
        Ok(Self(()))
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        for (stream, _) in Stream::TABLE {
            // A stream that is not read loses its last lines; the error cannot be reported on it.
            let stalled = stream.queue().is_stalled.load(Ordering::Relaxed);
            let patience = if stalled { Duration::ZERO } else { LAST_PATIENCE };
            let _ = stream.queue().wait_until_empty(patience, LAST_TIME);
            stream.queue().set_open(false);
        }
    }
}

/// Prints a panic like the standard library, but never waits for the reader: the switch must notice that a thread
/// ended.
fn tell_panic(info: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let trace = std::backtrace::Backtrace::capture();
    let trace =
        if trace.status() == std::backtrace::BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
    tell(Severity::Error, &format!("thread '{}' {info}{trace}", thread.name().unwrap_or("unnamed")));
}

#[cfg(test)]
mod tests;
