//! What systemd is told of a switch that it has started (`Type=notify`): that it runs, that it polls, that it ends. See
//! sd_notify(3).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use crate::dataplane::Counters;

use super::RunError;

/// Where systemd listens.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Microseconds within which it wants a sign of life, and of which process.
const WATCHDOG: (&str, &str) = ("WATCHDOG_USEC", "WATCHDOG_PID");
/// Time between two looks at the lcores.
const PERIOD: Duration = Duration::from_millis(100);

/// A way to tell systemd.
#[derive(Debug)]
pub(super) struct Notifier {
    socket: UnixDatagram,
    /// How often it wants a sign of life: half of what it waits.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// That of the environment; none if nobody wants to be told.
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
            // The control thread has other things to do than to wait for systemd.
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = connect().map_err(|error| RunError::Notify { socket: name.clone(), error })?;
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number(WATCHDOG.1).is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number(WATCHDOG.0).filter(|time| *time > 0 && is_ours);
        Ok(Some(Self { socket, watchdog: watchdog.map(|time| Duration::from_micros(time) / 2) }))
    }

    /// Tells that the switch runs once every lcore has polled, and then that it still does while all of them go on polling: a
    /// switch of which one hangs is to be started anew.
    pub async fn tell(self: Arc<Self>, counters: Arc<Counters>) {
        let polls = || counters.lcores.iter().map(|lcore| lcore.polls.get()).collect::<Vec<u64>>();
        let mut pulse = Pulse::new(counters.lcores.len());
        let mut looks = tokio::time::interval(PERIOD);
        while !pulse.beats(&polls()) {
            looks.tick().await;
        }
        let (ports, lcores) = (counters.ports.len(), counters.lcores.len());
        self.send(&format!("READY=1\nSTATUS={ports} ports, dataplane lcores: {lcores}"));
        let Some(watchdog) = self.watchdog else { return };
        let mut told = tokio::time::Instant::now();
        loop {
            looks.tick().await;
            if told.elapsed() + PERIOD >= watchdog && pulse.beats(&polls()) {
                told = tokio::time::Instant::now();
                self.send("WATCHDOG=1");
            }
        }
    }

    /// Tells that the switch ends, which takes as long as its queues take to drain.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    fn send(&self, text: &str) {
        // Whoever asked to be told and has gone does not stop a switch.
        let _ = self.socket.send(text.as_bytes());
    }
}

/// Whether lcores poll.
#[derive(Debug)]
struct Pulse(Vec<u64>);

impl Pulse {
    /// Of lcores that have not polled yet.
    fn new(lcores: usize) -> Self {
        Self(vec![0; lcores])
    }

    /// Whether every lcore has polled since this was last true.
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
    fn one_lcore_that_hangs_is_enough() {
        let mut pulse = Pulse::new(2);
        assert!(!pulse.beats(&[0, 0]), "none has polled yet");
        assert!(!pulse.beats(&[5, 0]), "one has not");
        assert!(pulse.beats(&[6, 1]));
        assert!(!pulse.beats(&[6, 1]), "none has polled since");
        assert!(!pulse.beats(&[900, 1]), "the second hangs");
        assert!(pulse.beats(&[901, 2]));
    }
}
