//! Signals, and what each wants.

use std::fs::File;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The terminal that this process may have been started from.
const TERMINAL: &str = "/dev/tty";
/// SIGHUP in the mask of ignored signals of `/proc/self/status`.
const HANGUP_BIT: u64 = 1;

/// What a signal wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Stop,
    ClearWatermarks,
    Reload,
}

/// Signals that end a run in order, read the configuration again, or clear watermarks. Listened to from before DPDK starts,
/// so that one which comes while it does leaves nothing behind either.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Watermarks are to be cleared.
    clear: Signal,
    /// The configuration is to be read again, or the terminal is gone.
    hangup: Signal,
    /// Whether it hangs on a terminal with whose end it ends.
    has_terminal: bool,
}

impl Signals {
    pub fn listen(runtime: &Runtime) -> std::io::Result<Self> {
        // Before it is listened to, which ends ignoring it: nohup asks for a switch that outlives its terminal.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let has_terminal = !ignores_hangup(&status) && File::open(TERMINAL).is_ok();
        let _inside = runtime.enter();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            clear: signal(SignalKind::user_defined1())?,
            hangup: signal(SignalKind::hangup())?,
            has_terminal,
        })
    }

    pub async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.interrupt.recv() => Order::Stop,
            _ = self.terminate.recv() => Order::Stop,
            _ = self.clear.recv() => Order::ClearWatermarks,
            // The kernel sends the same signal when a terminal goes away, and then there is no terminal any more.
            _ = self.hangup.recv() => {
                if self.has_terminal && File::open(TERMINAL).is_err() { Order::Stop } else { Order::Reload }
            }
        }
    }
}

/// Whether SIGHUP is ignored by what `/proc/self/status` says.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_seen() {
        assert!(ignores_hangup("Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("Name:\tx\nSigIgn:\t0000000000001000\n") && !ignores_hangup(""));
    }
}
