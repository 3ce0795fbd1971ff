//! Keeps DPDK's log in memory instead of on the terminal, and quotes it in errors.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dpdk_sys::{HF_LOG_CRIT, HF_LOG_WARNING, libc};

use crate::output::{self, Stream};
use crate::sync::{AtomicBool, AtomicI32, Ordering};

/// Messages kept. Older ones are discarded.
const KEPT: usize = 256;

/// Messages quoted in an error.
const QUOTED: usize = 3;

/// Messages that DPDK logs after each failure of a device, behind the actual reason.
const NOISE: &[&str] = &[
    "Driver cannot attach the device",
    "Failed to attach device on primary process",
    "probe failed.",
    "vdev_probe(): failed to initialize",
    "Cannot init memory",
];

/// Maximum number of bytes kept of one message.
const LONGEST: usize = 512;

/// Longest wait for a reader of the reason of a panic.
const PANIC_PATIENCE: Duration = Duration::from_secs(1);

/// Whether messages are written to standard error as well.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Descriptor of the original standard error during a redirection; -1 otherwise.
static TRUE_STDERR: AtomicI32 = AtomicI32::new(-1);

static LOG: Mutex<Log> = Mutex::new(Log { messages: VecDeque::new(), total: 0 });

/// The last messages.
struct Log {
    messages: VecDeque<(c_int, String)>,
    /// Number of all messages so far, so that a position in the log can be stored.
    total: u64,
}

/// A position in the log.
#[derive(Clone, Copy)]
pub(super) struct Mark(u64);

/// Redirects DPDK's log to this module; `verbose` also writes it to standard error.
pub(super) fn install(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
    // SAFETY: `sink` is a plain function that exists for the whole program and does not unwind. If the stream cannot be
    // made, DPDK continues to log to its previous destination, which is harmless.
    let _ = unsafe { dpdk_sys::hf_log_to(Some(sink)) };
}

/// Returns the current end of the log.
pub(super) fn mark() -> Mark {
    Mark(LOG.lock().unwrap_or_else(PoisonError::into_inner).total)
}

/// Returns the last warnings and errors since `mark` in one line, or `otherwise` if there were none.
pub(super) fn since(mark: Mark, otherwise: &str) -> String {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let new = usize::try_from(log.total - mark.0).unwrap_or(usize::MAX).min(log.messages.len());
    let bad: Vec<&str> = log
        .messages
        .iter()
        .skip(log.messages.len() - new)
        .filter(|(level, text)| *level <= HF_LOG_WARNING as c_int && !text.is_empty())
        .map(|(_, text)| text.as_str())
        .filter(|text| !NOISE.iter().any(|noise| text.contains(noise)))
        .collect();
    if bad.is_empty() { otherwise.to_owned() } else { bad[bad.len().saturating_sub(QUOTED)..].join("; ") }
}

/// Receives one message from DPDK on the thread that logs it.
unsafe extern "C" fn sink(level: c_int, text: *const c_char, length: usize) {
    // SAFETY: the C library passes `length` bytes of its stream's buffer, which nothing writes during this call.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    // DPDK logs the reason of a panic at this level before it aborts, so the message must be visible at once.
    if level <= HF_LOG_CRIT as c_int {
        write_stderr(bytes);
    } else if VERBOSE.load(Ordering::Relaxed) {
        output::write(Stream::Err, bytes);
    }
    let text = String::from_utf8_lossy(&bytes[..length.min(LONGEST)]).trim_end().to_owned();
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    if log.messages.len() == KEPT {
        log.messages.pop_front();
    }
    log.messages.push_back((level, text));
    log.total += 1;
}

/// Writes to the original standard error, ignores failures, and gives up on a reader that takes nothing.
fn write_stderr(bytes: &[u8]) {
    let redirected = TRUE_STDERR.load(Ordering::Relaxed);
    let fd = if redirected >= 0 { redirected } else { libc::STDERR_FILENO };
    // SAFETY: the descriptor is not -1, and a closed one only makes the call fail.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let _ = output::write_within(file, bytes, PANIC_PATIENCE);
}

/// Redirects standard output and standard error to memory while it exists. EAL prints its usage to the one, and its
/// fatal errors, which are also in the log, to the other.
pub(super) struct Redirect {
    memory: File,
    saved: [(RawFd, OwnedFd); 2],
}

impl Redirect {
    /// Starts the redirection. Returns `None`, and changes nothing, if the system does not allow it.
    pub(super) fn start() -> Option<Self> {
        let _ = std::io::stdout().flush();
        // SAFETY: the name is a string with a zero at its end; the result is checked below.
        let memory = unsafe { libc::memfd_create(c"dpdk-output".as_ptr(), libc::MFD_CLOEXEC) };
        if memory < 0 {
            return None;
        }
        // SAFETY: memfd_create just returned this descriptor, so it has no other owner.
        let memory = unsafe { File::from_raw_fd(memory) };
        let saved = [
            (libc::STDOUT_FILENO, duplicate(libc::STDOUT_FILENO)?),
            (libc::STDERR_FILENO, duplicate(libc::STDERR_FILENO)?),
        ];
        TRUE_STDERR.store(saved[1].1.as_raw_fd(), Ordering::Relaxed);
        let redirect = Self { memory, saved };
        // SAFETY: fflush(NULL) writes out the streams of C; dup2 works on descriptors that are open: checked above.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            for (fd, _) in &redirect.saved {
                libc::dup2(redirect.memory.as_raw_fd(), *fd);
            }
        }
        Some(redirect)
    }

    /// Ends the redirection and returns the first lines that were printed.
    pub(super) fn finish(mut self) -> String {
        self.restore();
        let mut text = String::new();
        let _ = self.memory.rewind();
        let _ = (&self.memory).take(LONGEST as u64).read_to_string(&mut text);
        text.lines().map(str::trim).filter(|line| !line.is_empty()).take(QUOTED).collect::<Vec<_>>().join("; ")
    }

    fn restore(&mut self) {
        if TRUE_STDERR.swap(-1, Ordering::Relaxed) < 0 {
            return;
        }
        // SAFETY: as in `start`; the saved descriptors are open for as long as `self` owns them.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            for (fd, saved) in &self.saved {
                libc::dup2(saved.as_raw_fd(), *fd);
            }
        }
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Duplicates a descriptor.
fn duplicate(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: fcntl fails on a descriptor that is not open, and touches no memory of ours.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: fcntl just returned this descriptor, so it has no other owner.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}
