//! Starts the flows of virtual hosts after the links of all ports are up.
//!
//! A memif port connects some time after its start. The switch drops frames for a port without a link, and a dropped
//! lossless frame breaks losslessness.

use std::time::{Duration, Instant};

use crate::hosts::StartGate;

/// Longest time for which the flows wait for links.
const LINK_WAIT: Duration = Duration::from_secs(5);
/// Time for which all links must be up. A switch at the far end sees its link up to one look later.
const LINK_SETTLE: Duration = Duration::from_millis(500);

/// Holds the virtual hosts' flows until the links are up.
pub(super) struct HeldHosts {
    gate: Option<StartGate>,
    start: Instant,
    /// The time at which all links were first seen up.
    up_since: Option<Instant>,
}

impl HeldHosts {
    /// Holds the flows behind `gate` from `start` on. With `None` there are no flows to hold.
    pub fn new(gate: Option<StartGate>, start: Instant) -> Self {
        Self { gate, start, up_since: None }
    }

    /// Releases the flows if `all_up` has held for `LINK_SETTLE` at `now`, or if they have waited for `LINK_WAIT`.
    pub fn look(&mut self, all_up: bool, now: Instant) {
        if self.gate.is_none() {
            return;
        }
        self.up_since = self.up_since.or(Some(now)).filter(|_| all_up);
        let is_settled = self.up_since.is_some_and(|since| now - since >= LINK_SETTLE);
        if is_settled || now - self.start >= LINK_WAIT {
            self.gate = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Hosts;

    fn held(start: Instant) -> HeldHosts {
        HeldHosts::new(Some(Hosts::new(&[], 1_000_000_000).close_gate()), start)
    }

    #[test]
    fn flows_start_when_all_links_have_been_up_for_a_while() {
        let start = Instant::now();
        let mut hosts = held(start);
        let mut look = |all_up, ms| {
            hosts.look(all_up, start + Duration::from_millis(ms));
            hosts.gate.is_none()
        };
        assert!(!look(false, 0) && !look(true, 100) && !look(true, 500));
        // A link that went down again restarts the settle time.
        assert!(!look(false, 550) && !look(true, 600) && !look(true, 1000) && look(true, 1100));
    }

    #[test]
    fn flows_start_without_a_link_after_five_seconds() {
        let start = Instant::now();
        let mut hosts = held(start);
        hosts.look(false, start + Duration::from_millis(4999));
        assert!(hosts.gate.is_some());
        hosts.look(false, start + LINK_WAIT);
        assert!(hosts.gate.is_none());
    }
}
