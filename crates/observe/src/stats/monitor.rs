//! Observes the running switch: reports events as they occur, and advice when it becomes valid.

use std::sync::Arc;

use super::advice::{Adviser, advices};
use super::current::Current;
use super::events::Events;
use super::losses::Losses;
use super::notice::{Notice, NoticeKind};
use super::snapshot::Snapshot;

/// Remembers the reports about one switch.
#[derive(Debug)]
pub struct Monitor {
    current: Arc<Current>,
    events: Events,
    losses: Losses,
    adviser: Adviser,
}

impl Monitor {
    /// Returns an observer that has not seen `current` yet.
    #[must_use]
    pub fn new(current: Arc<Current>) -> Self {
        Self { current, events: Events::default(), losses: Losses::default(), adviser: Adviser::default() }
    }

    /// Notices to report now. The text of advice begins with `warning: `, that of events with their time.
    #[must_use]
    pub fn look(&mut self, now: Snapshot) -> Vec<Notice> {
        let switch_view = self.current.get();
        let advices = self.adviser.fresh(advices(&switch_view, &now));
        let mut notices = self.losses.next(&switch_view, &now);
        notices.extend(self.events.next(&switch_view, now));
        let advice = advices.into_iter().map(|advice| {
            let notice = Notice::new(NoticeKind::Advice, format!("warning: {}", advice.text));
            let port = switch_view.spec.ports.iter().find(|port| advice.place.split(' ').next() == Some(&port.name));
            port.map_or_else(|| notice.clone(), |port| notice.clone().at_port(&port.name))
        });
        notices.extend(advice);
        notices
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::quiet;
    use super::*;

    #[test]
    fn events_come_first_and_advices_once() {
        let current = Current::new(quiet());
        let switch_view = current.get();
        let mut monitor = Monitor::new(current);
        let mut look = |seconds| {
            let notices = monitor.look(Snapshot::take(&switch_view, Duration::from_secs(seconds)));
            notices.into_iter().map(|notice| notice.text).collect::<Vec<_>>()
        };
        assert_eq!(look(1), [""; 0]);
        switch_view.counters.ports[1].watchdog_storms[3].add(1);
        let lines = look(2);
        assert!(lines.len() == 2 && lines[0].starts_with("t=2.0s watchdog: p2"), "{lines:?}");
        assert!(lines[1].starts_with("warning: p2: the watchdog found a storm once"), "{lines:?}");
        assert_eq!(look(3), [""; 0]);
        switch_view.counters.ports[0].drops[3][crate::plan::DropReason::NoBuffer as usize].add(9);
        let lines = look(4);
        assert!(
            lines.len() == 1 && lines[0].starts_with("t=4.0s lossless drop: p1 class 3 lost 9 frames"),
            "{lines:?}"
        );
    }
}
