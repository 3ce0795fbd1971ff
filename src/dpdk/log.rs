//! DPDK's log, kept in memory so that it does not spill onto a terminal, and quoted where something failed.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use dpdk_sys::{HF_LOG_CRIT, HF_LOG_WARNING, libc};

use crate::sync::{AtomicBool, AtomicI32, Ordering};

/// Messages kept; older ones go.
const KEPT: usize = 256;

/// Messages quoted in an error.
const QUOTED: usize = 3;

/// What DPDK says after each failure of a device, when the reason was given before.
const NOISE: &[&str] = &[
    "Driver cannot attach the device",
    "Failed to attach device on primary process",
    "probe failed.",
    "vdev_probe(): failed to initialize",
    "Cannot init memory",
];

/// Bytes kept of one message.
const LONGEST: usize = 512;

/// Whether messages are written to standard error as well.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Where standard error is while it is redirected; -1 while it is not.
static TRUE_STDERR: AtomicI32 = AtomicI32::new(-1);

static LOG: Mutex<Log> = Mutex::new(Log { messages: VecDeque::new(), total: 0 });

/// The last messages.
struct Log {
    messages: VecDeque<(c_int, String)>,
    /// Messages ever, so that a place in the log can be remembered.
    total: u64,
}

/// A place in the log.
#[derive(Clone, Copy)]
pub(super) struct Mark(u64);

/// Sends DPDK's log here; `verbose` passes it on to standard error.
pub(super) fn install(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
    // SAFETY: `sink` is a plain function that lives for the program and does not unwind. Should the stream not be
    // made, DPDK goes on logging where it did, which harms nobody.
    let _ = unsafe { dpdk_sys::hf_log_to(Some(sink)) };
}

/// The end of the log as it is.
pub(super) fn mark() -> Mark {
    Mark(LOG.lock().unwrap_or_else(PoisonError::into_inner).total)
}

/// The last warnings and errors since `mark`, in one line; `otherwise` if there were none.
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

/// Takes one message from DPDK, on whatever thread logs it.
unsafe extern "C" fn sink(level: c_int, text: *const c_char, length: usize) {
    // SAFETY: the C library passes `length` bytes of its stream's buffer, which nothing writes during this call.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    // A panic of DPDK logs at this level and then aborts: its reason must be seen.
    if level <= HF_LOG_CRIT as c_int || VERBOSE.load(Ordering::Relaxed) {
        write_stderr(bytes);
    }
    let text = String::from_utf8_lossy(&bytes[..length.min(LONGEST)]).trim_end().to_owned();
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    if log.messages.len() == KEPT {
        log.messages.pop_front();
    }
    log.messages.push_back((level, text));
    log.total += 1;
}

/// Writes to the true standard error; what cannot be written is not worth an error.
fn write_stderr(bytes: &[u8]) {
    let redirected = TRUE_STDERR.load(Ordering::Relaxed);
    let fd = if redirected >= 0 { redirected } else { libc::STDERR_FILENO };
    // SAFETY: the buffer is valid for its length; a bad file descriptor only makes the call fail.
    let _ = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Standard output and error go to memory while this lives: EAL prints its usage on the one and its fatal errors,
/// which are in the log too, on the other.
pub(super) struct Redirect {
    memory: File,
    saved: [(RawFd, OwnedFd); 2],
}

impl Redirect {
    /// Starts; `None`, and nothing changed, where the system does not allow it.
    pub(super) fn start() -> Option<Self> {
        let _ = std::io::stdout().flush();
        // SAFETY: the name is a string with a zero at its end; the result is checked below.
        let memory = unsafe { libc::memfd_create(c"dpdk-output".as_ptr(), libc::MFD_CLOEXEC) };
        if memory < 0 {
            return None;
        }
        // SAFETY: memfd_create just returned this descriptor, and nobody else knows it.
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

    /// Ends, and returns the first lines of what was printed.
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

/// A second descriptor for the same file.
fn duplicate(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: fcntl fails on a descriptor that is not open, and touches no memory of ours.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: fcntl just returned this descriptor, and nobody else knows it.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}
