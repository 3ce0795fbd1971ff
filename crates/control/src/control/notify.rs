//! Notifies systemd (`Type=notify`) that the switch runs, that it still polls, and that it stops. See sd_notify(3).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::plan::Counters;
use crate::pulse;
use crate::stats::health::CONTROL_THREAD;

use super::RunError;

/// Variable with the path of systemd's notification socket.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Variables with the watchdog timeout of systemd in microseconds, and the process that it applies to.
const WATCHDOG: (&str, &str) = ("WATCHDOG_USEC", "WATCHDOG_PID");
/// Interval between checks of the lcores.
const PERIOD: Duration = Duration::from_millis(100);
/// Longest time without a beat of the control thread. Frames are forwarded without it, and a server that lacks CPUs
/// keeps it waiting for seconds.
const CONTROL_LIMIT: Duration = Duration::from_secs(60);

/// Whether a service manager started the program, and wants to be notified.
pub(super) fn is_wanted() -> bool {
    std::env::var_os(SOCKET).is_some_and(|name| !name.is_empty())
}

/// A connection to systemd's notification socket.
#[derive(Debug)]
pub(super) struct Notifier {
    socket: UnixDatagram,
    /// Interval between watchdog notifications: half of systemd's timeout.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Creates the notifier from the environment; `None` if `NOTIFY_SOCKET` is not set.
    pub fn from_environment() -> Result<Option<Self>, RunError> {
        let Some(name) = std::env::var_os(SOCKET).filter(|name| !name.is_empty()) else { return Ok(None) };
        let name = name.to_string_lossy().into_owned();
        let connect = || {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(&name)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            // The switch must not block on systemd.
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = connect().map_err(|error| RunError::Notify { socket: name.clone(), error })?;
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number(WATCHDOG.1).is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number(WATCHDOG.0).filter(|time| *time > 0 && is_ours);
        Ok(Some(Self { socket, watchdog: watchdog.map(|time| Duration::from_micros(time) / 2) }))
    }

    /// Starts the thread of the notifications. The control thread may need seconds for one step of a reload.
    ///
    /// # Errors
    /// The system refuses the thread.
    pub fn start(self, counters: Arc<Counters>) -> io::Result<NotifierThread> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("notifier".to_owned()).spawn(move || {
            self.run(&counters, &stopped);
            self
        })?;
        Ok(NotifierThread { stop, thread })
    }

    /// Notifies systemd once every lcore has polled. Then sends watchdog notifications for as long as all lcores poll,
    /// so that systemd restarts a switch with an lcore that hangs.
    fn run(&self, counters: &Counters, stopped: &Receiver<()>) {
        let thread = pulse::Pulse::start("notifier");
        let polls = || counters.lcores.iter().map(|lcore| lcore.polls.get()).collect::<Vec<u64>>();
        let mut lcores = Pulse::new(counters.lcores.len());
        let mut notified = None;
        while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            thread.beat();
            match (notified, self.watchdog) {
                (None, _) if lcores.beats(&polls()) => {
                    let (ports, lcores) = (counters.ports.len(), counters.lcores.len());
                    self.send(&format!("READY=1\nSTATUS={ports} ports, dataplane lcores: {lcores}"));
                    notified = Some(Instant::now());
                }
                (Some(last), Some(watchdog))
                    if last.elapsed() + PERIOD >= watchdog && is_controlled() && lcores.beats(&polls()) =>
                {
                    notified = Some(Instant::now());
                    self.send("WATCHDOG=1");
                }
                _ => {}
            }
        }
    }

    fn send(&self, text: &str) {
        // An error is ignored: a missing listener must not stop a switch.
        let _ = self.socket.send(text.as_bytes());
    }
}

/// Whether the control thread runs, slow as it may be.
fn is_controlled() -> bool {
    pulse::look().iter().any(|thread| thread.name == CONTROL_THREAD && thread.age < CONTROL_LIMIT)
}

/// The thread that notifies systemd.
#[derive(Debug)]
pub(super) struct NotifierThread {
    stop: Sender<()>,
    thread: JoinHandle<Notifier>,
}

impl NotifierThread {
    /// Ends the thread, and notifies systemd that the switch stops, which takes as long as draining its queues.
    pub fn stop(self) {
        drop(self.stop);
        if let Ok(notifier) = self.thread.join() {
            notifier.send("STOPPING=1");
        }
    }
}

/// Poll counts of the lcores, to detect one that hangs.
#[derive(Debug)]
struct Pulse(Vec<u64>);

impl Pulse {
    /// Creates the state for `lcores` lcores that have not polled yet.
    fn new(lcores: usize) -> Self {
        Self(vec![0; lcores])
    }

    /// Whether every lcore has polled since this last returned true.
    fn beats(&mut self, polls: &[u64]) -> bool {
        let all = self.0.iter().zip(polls).all(|(before, now)| now != before);
        if all {
            self.0.copy_from_slice(polls);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulse_stops_if_one_lcore_hangs() {
        let mut pulse = Pulse::new(2);
        assert!(!pulse.beats(&[0, 0]), "none has polled yet");
        assert!(!pulse.beats(&[5, 0]), "one has not");
        assert!(pulse.beats(&[6, 1]));
        assert!(!pulse.beats(&[6, 1]), "none has polled since");
        assert!(!pulse.beats(&[900, 1]), "the second hangs");
        assert!(pulse.beats(&[901, 2]));
    }
}
