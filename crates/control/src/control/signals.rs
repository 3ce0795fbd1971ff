//! Signals and the orders that they stand for.

use std::fs::File;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The terminal from which this process may have been started.
const TERMINAL: &str = "/dev/tty";
/// The bit of SIGHUP in the mask of ignored signals in `/proc/self/status`.
const HANGUP_BIT: u64 = 1;

/// The order that a signal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Stop,
    ClearWatermarks,
    Reload,
}

/// Signals that stop a run in order, reload the configuration or clear watermarks. Handled from before DPDK starts, so
/// that a signal during its start is handled in order too.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Signal to clear the watermarks.
    clear: Signal,
    /// Signal that the configuration must be reloaded, or that the terminal is gone.
    hangup: Signal,
    /// Whether the process ends when its terminal is gone.
    has_terminal: bool,
}

impl Signals {
    pub fn listen(runtime: &Runtime) -> std::io::Result<Self> {
        // Read before the handler is installed, which ends the ignoring. nohup starts a switch that must outlive its
        // terminal.
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
            // The kernel sends the same signal when a terminal goes away; then the terminal cannot be opened any more.
            _ = self.hangup.recv() => {
                if self.has_terminal && File::open(TERMINAL).is_err() { Order::Stop } else { Order::Reload }
            }
        }
    }
}

/// Whether SIGHUP is ignored, by the content `status` of `/proc/self/status`.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_sighup_is_read_from_proc_status() {
        assert!(ignores_hangup("Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("Name:\tx\nSigIgn:\t0000000000001000\n") && !ignores_hangup(""));
    }
}
