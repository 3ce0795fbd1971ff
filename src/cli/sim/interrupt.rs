//! SIGINT and SIGTERM: nothing half written is left, and the exit code is 128 and the signal's number.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::files;
use super::progress::Line;

/// The signal that came, 0 before.
static CAME: AtomicU8 = AtomicU8::new(0);
const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;

/// What the first signal does. The second ends the process, whatever it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It ends the process.
    Ends,
    /// It is remembered: [`code`].
    Asks,
}

/// Listens from now on. A signal that was ignored before, as in the background of a script, stays that.
pub fn listen(first: First) -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
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
        // Held to the end, so that nothing is begun after it.
        let _parts = files::abandon();
        Line::default().over();
        // Nobody is left to tell if this fails.
        let _ = writeln!(io::stderr(), "error: interrupted");
        std::process::exit(i32::from(exit_code(signal)));
    });
    Ok(())
}

/// Exit code of who was asked to end; `None`: nobody has asked.
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

/// Whether `/proc/self/status` says that a signal is ignored.
fn is_ignored(status: &str, signal: u8) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_seen() {
        let status = "Name:\tx\nSigIgn:\t0000000000004000\n";
        assert!(is_ignored(status, TERMINATE) && !is_ignored(status, INTERRUPT) && !is_ignored("", TERMINATE));
    }
}
