//! SIGINT and SIGTERM: no incomplete file stays behind, and the exit code is 128 plus the number of the signal.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::files;
use super::progress::Line;

/// Number of the signal that was received; 0 before.
static CAME: AtomicU8 = AtomicU8::new(0);
const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;

/// The effect of the first signal. The second always ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// The first signal ends the process.
    Ends,
    /// The first signal is recorded for [`code`].
    Asks,
}

/// Handles signals from now on. A signal that was ignored before, as in the background of a script, stays ignored.
pub fn listen(first: First) -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let runtime = holdfast::linux::runtime()?;
    let inside = runtime.enter();
    let open = |number, kind| (!is_ignored(&status, number)).then(|| signal(kind)).transpose();
    let mut interrupt = open(INTERRUPT, SignalKind::interrupt())?;
    let mut terminate = open(TERMINATE, SignalKind::terminate())?;
    drop(inside);
    thread::spawn(move || {
        let mut next = || {
            runtime.block_on(async {
                tokio::select! {
                    () = come(&mut interrupt) => INTERRUPT,
                    () = come(&mut terminate) => TERMINATE,
                }
            })
        };
        if first == First::Asks {
            CAME.store(next(), Ordering::Relaxed);
        }
        let signal = next();
        // Held until the exit, so that no further file is created.
        let _parts = files::abandon();
        Line::default().over();
        // A failed write cannot be reported.
        let _ = writeln!(io::stderr(), "error: interrupted");
        std::process::exit(i32::from(exit_code(signal)));
    });
    Ok(())
}

/// The exit code after a recorded signal; `None` before any signal.
pub fn code() -> Option<u8> {
    Some(CAME.load(Ordering::Relaxed)).filter(|signal| *signal > 0).map(exit_code)
}

fn exit_code(signal: u8) -> u8 {
    128 + signal
}

async fn come(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether a signal is ignored according to `/proc/self/status`.
fn is_ignored(status: &str, signal: u8) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signal_is_read_from_proc_status() {
        let status = "Name:\tx\nSigIgn:\t0000000000004000\n";
        assert!(is_ignored(status, TERMINATE) && !is_ignored(status, INTERRUPT) && !is_ignored("", TERMINATE));
    }
}
