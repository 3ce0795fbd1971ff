//! Rare and important events, reported at once: derived from the difference of two snapshots, one line each.
//!
//! Each kind has at most one line a second; the next line counts the events since the previous one.

use std::time::Duration;

use super::notice::{Notice, NoticeKind};
use super::snapshot::{PortSnapshot, Snapshot};
use super::switch_view::SwitchView;
use crate::pfc::WatchdogAction;
use crate::plan::DropReason;
use crate::qos::only_class;
use crate::route::PuntCause;
use crate::sets::{CLASSES, ClassSet};
use crate::text::format::{frames, grouped};
use crate::units::Nanos;

/// Least time between two lines of a kind.
const QUIET: Duration = Duration::from_secs(1);

/// An event at one place that occurred `count` times since the previous snapshot.
struct Event {
    kind: NoticeKind,
    class: Option<usize>,
    text: String,
    count: u64,
}

impl Event {
    fn new(kind: NoticeKind, text: String) -> Self {
        Self { kind, class: None, text, count: 1 }
    }

    fn times(self, count: u64) -> Self {
        Self { count, ..self }
    }

    fn of_class(self, class: Option<usize>) -> Self {
        Self { class, ..self }
    }
}

type Finder = fn(&SwitchView, &PortSnapshot, &PortSnapshot, usize) -> Vec<Event>;

/// The label of each kind with its finder, which compares the previous and the current snapshot of one port.
const KINDS: [(&str, Finder); 17] = [
    ("watchdog", |switch_view, before, now, port| storms(switch_view, before, now, port)),
    ("watchdog", |switch_view, before, now, port| restores(switch_view, before, now, port)),
    ("peer", |switch_view, before, now, port| peers(switch_view, before, now, port, true)),
    ("peer", |switch_view, before, now, port| peers(switch_view, before, now, port, false)),
    ("backlog", |switch_view, before, now, port| backlogs(switch_view, before, now, port)),
    ("shed", |switch_view, before, now, port| sheds(switch_view, before, now, port)),
    ("port xoff", |switch_view, before, now, port| port_xoffs(switch_view, before, now, port)),
    ("stuck", |switch_view, before, now, port| stucks(switch_view, before, now, port)),
    ("stuck", |switch_view, before, now, port| moves(switch_view, before, now, port)),
    ("flood", |switch_view, before, now, port| floods(switch_view, before, now, port)),
    ("flood", |switch_view, before, now, port| punt_floods(switch_view, before, now, port)),
    ("stations", |switch_view, before, now, port| full_shares(switch_view, before, now, port)),
    ("spanning tree", |switch_view, before, now, port| bpdus(switch_view, before, now, port)),
    ("link", |switch_view, before, now, port| links(switch_view, before, now, port)),
    ("neighbours", |switch_view, before, now, port| evictions(switch_view, before, now, port)),
    ("linux", |switch_view, before, now, port| withheld(switch_view, before, now, port)),
    ("device", |switch_view, before, now, port| transmit_losses(switch_view, before, now, port)),
];

/// The events of one kind that are not yet reported.
#[derive(Debug, Default)]
struct Waiting {
    /// Time of the last line.
    reported: Option<Duration>,
    /// The last event since then, and the number of events.
    last: Option<Notice>,
    count: u64,
}

/// Reports the events between successive snapshots.
#[derive(Debug, Default)]
pub struct Events {
    before: Snapshot,
    waiting: [Waiting; KINDS.len()],
}

impl Events {
    /// Notices about the events since the previous snapshot, or since the start.
    #[must_use]
    pub fn next(&mut self, switch_view: &SwitchView, now: Snapshot) -> Vec<Notice> {
        let mut nothing = PortSnapshot::default();
        nothing.device.link_up = true;
        let mut notices = Vec::new();
        for ((label, find), waiting) in KINDS.iter().zip(&mut self.waiting) {
            for (port, counters) in now.ports.iter().enumerate() {
                let before = self.before.ports.get(port).unwrap_or(&nothing);
                for event in find(switch_view, before, counters, port) {
                    waiting.count += event.count;
                    let notice = Notice::new(event.kind, format!("{label}: {}", event.text));
                    waiting.last = Some(notice.at_port(switch_view.port_name(port)).of_class(event.class));
                }
            }
            notices.extend(waiting.notice(now.at));
        }
        self.before = now;
        notices
    }
}

impl Waiting {
    fn notice(&mut self, at: Duration) -> Option<Notice> {
        let is_quiet = self.reported.is_none_or(|reported| at >= reported + QUIET);
        if self.count == 0 || !is_quiet {
            return None;
        }
        self.reported = Some(at);
        let more = std::mem::take(&mut self.count) - 1;
        Some(self.last.take()?.and_more(more).at(at))
    }
}

/// The queues whose counter grew, with the growth.
fn grown(before: &[u64; CLASSES], now: &[u64; CLASSES]) -> Vec<(usize, u64)> {
    let growth = (0..CLASSES).map(|queue| (queue, now[queue].saturating_sub(before[queue])));
    growth.filter(|(_, count)| *count > 0).collect()
}

fn storms(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let watchdog = switch_view.spec.ports.get(port).and_then(|port| port.live.watchdog);
    let (detection, action) = watchdog.map_or((Nanos(0), WatchdogAction::Alert), |spec| (spec.detection, spec.action));
    let does = match action {
        WatchdogAction::Drop => "dropping",
        WatchdogAction::Forward => "sending despite the pause",
        WatchdogAction::Alert => "the queue stays paused",
    };
    let text = |queue| {
        let (port, queue) = (switch_view.port_name(port), switch_view.queue_name(queue));
        format!("{port} {queue} paused for {detection}: {does}")
    };
    let storms = grown(&before.watchdog_storms, &now.watchdog_storms).into_iter();
    let event = |(queue, count)| {
        Event::new(NoticeKind::WatchdogStorm, text(queue)).times(count).of_class(switch_view.class_of_queue(queue))
    };
    storms.map(event).collect()
}

fn restores(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let text = |queue| format!("{} {} restored", switch_view.port_name(port), switch_view.queue_name(queue));
    let restores = grown(&before.watchdog_restores, &now.watchdog_restores).into_iter();
    let event = |(queue, count)| {
        Event::new(NoticeKind::WatchdogRestored, text(queue)).times(count).of_class(switch_view.class_of_queue(queue))
    };
    restores.map(event).collect()
}

/// Priorities whose XOFF the peer has begun to disobey, or, without `disobeys`, is not known any more to disobey.
fn peers(
    switch_view: &SwitchView,
    before: &PortSnapshot,
    now: &PortSnapshot,
    port: usize,
    disobeys: bool,
) -> Vec<Event> {
    let was = before.peer.disobeyed;
    let is = if switch_view.flow_control.get(port).defeats_pfc() { ClassSet::EMPTY } else { now.peer.disobeyed };
    let event = |priority| {
        let place = format!("{} {}", switch_view.port_name(port), switch_view.group_name(priority));
        let (kind, text) = if disobeys {
            let late = now.lateness(ClassSet::only(priority));
            (NoticeKind::PeerDisobeys, format!("{place}: the peer does not stop at XOFF: {late}"))
        } else {
            let is_seen = now.peer.obeyed.contains(priority);
            let what = if is_seen { "the peer stops at XOFF" } else { "its link is new: the peer is not judged yet" };
            (NoticeKind::PeerObeys, format!("{place}: {what}"))
        };
        Event::new(kind, text).of_class(only_class(&switch_view.spec.classes.tc_to_group, priority))
    };
    let changed = if disobeys { is - was } else { was - is };
    changed.iter().map(event).collect()
}

fn backlogs(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let count = now.backlog_xoffs.saturating_sub(before.backlog_xoffs);
    let port = switch_view.port_name(port);
    // Zero if the device cannot count them.
    let left = if now.backlog_frames == 0 { "frames".to_owned() } else { frames(now.backlog_frames) };
    let text = || format!("{port} has {left} waiting: its lossless classes are paused by its own backlog");
    let event = || Event::new(NoticeKind::Backlog, text()).times(count);
    (count > 0).then(event).into_iter().collect()
}

/// Frames that the lcore dropped at the receive ring because it was overloaded.
fn sheds(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let of = |counters: &PortSnapshot, class: usize| counters.drops[class][DropReason::Shed as usize];
    let shed = |class: usize| of(now, class).saturating_sub(of(before, class));
    let text = |class: usize| {
        format!(
            "{} dropped {} of class {class}: its core is overloaded",
            switch_view.port_name(port),
            frames(shed(class))
        )
    };
    let classes = (0..CLASSES).filter(|&class| shed(class) > 0);
    classes.map(|class| Event::new(NoticeKind::Shed, text(class)).of_class(Some(class))).collect()
}

/// Frames of all classes that a port dropped for a reason since the snapshot before.
fn dropped(before: &PortSnapshot, now: &PortSnapshot, reason: DropReason) -> u64 {
    let of = |counters: &PortSnapshot| counters.drops.iter().map(|row| row[reason as usize]).sum::<u64>();
    of(now).saturating_sub(of(before))
}

/// Frames beyond the flood limits (`storm_control`).
fn floods(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let kinds = [
        (DropReason::StormBroadcast, "broadcast frames"),
        (DropReason::StormMulticast, "multicast frames"),
        (DropReason::StormUnknown, "frames to unknown stations"),
    ];
    let event = |(reason, frames)| {
        let count = dropped(before, now, reason);
        let text = format!("{} received {frames} beyond its limit: they are dropped", switch_view.port_name(port));
        (count > 0).then(|| Event::new(NoticeKind::Flood, text))
    };
    kinds.into_iter().filter_map(event).collect()
}

/// Frames for the switch itself beyond the rates of their port. Own probes count as such too where a loop is elsewhere.
fn punt_floods(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let event = |(cause, label, _): &(PuntCause, &str, u32)| {
        let of = |counters: &PortSnapshot| counters.punt_policed[*cause as usize];
        let count = of(now).saturating_sub(of(before));
        let port = switch_view.port_name(port);
        let text = || format!("{port} received {label} for the switch beyond its rate: {} are dropped", frames(count));
        (count > 0 && *cause != PuntCause::LoopProbe).then(|| Event::new(NoticeKind::Flood, text()))
    };
    PuntCause::TABLE.iter().filter_map(event).collect()
}

/// Stations of a port that gave way. A flood goes on for long, so a line comes with the first and whenever their number
/// has grown sixteenfold.
fn full_shares(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let steps = |counters: &PortSnapshot| counters.fdb_evicted.checked_ilog(16).map_or(0, |step| step + 1);
    let name = switch_view.port_name(port);
    let limit = switch_view.spec.ports.get(port).map_or(u32::MAX, |port| port.fdb_limit);
    let reason = match now.fdb_stations >= u64::from(limit) {
        true => format!("{name} is at its limit of {} stations", grouped(limit.into())),
        false => format!("the forwarding database is full, and {name} has most"),
    };
    let text = || format!("{reason}: its oldest give way, {} so far", grouped(now.fdb_evicted));
    (steps(now) > steps(before)).then(|| Event::new(NoticeKind::StationLimit, text())).into_iter().collect()
}

fn bpdus(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    // Once: a bridge sends one every two seconds.
    let of = |counters: &PortSnapshot| dropped(&PortSnapshot::default(), counters, DropReason::Bpdu);
    let text = || {
        format!(
            "{} received a BPDU: its peer runs spanning tree, and this switch does not; make sure that no loop exists",
            switch_view.port_name(port)
        )
    };
    (of(before) == 0 && of(now) > 0).then(|| Event::new(NoticeKind::SpanningTree, text())).into_iter().collect()
}

/// Port XOFF is a gauge, not a counter: an XOFF that begins and ends between two snapshots is not seen.
fn port_xoffs(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let name = switch_view.port_name(port);
    let text = || format!("{name} has no buffer left except its insurance: the whole port is XOFF");
    let event = || Event::new(NoticeKind::PortXoff, text());
    (now.port_xoff && !before.port_xoff).then(event).into_iter().collect()
}

fn stucks(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let count = now.egress_stucks.saturating_sub(before.egress_stucks);
    let limit = switch_view.spec.ports.get(port).and_then(|port| port.live.stuck_after).unwrap_or(Nanos(0));
    let name = switch_view.port_name(port);
    let text = || format!("{name} accepted no frame for {limit}: frames for this port are dropped");
    let event = || Event::new(NoticeKind::Stuck, text()).times(count);
    (count > 0).then(event).into_iter().collect()
}

fn moves(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let text = || format!("{} accepts frames again", switch_view.port_name(port));
    let event = || Event::new(NoticeKind::StuckEnded, text());
    (before.egress_stuck && !now.egress_stuck).then(event).into_iter().collect()
}

fn links(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let what = || match switch_view.spec.lags.group_of(port) {
        _ if now.device.link_up => "is up again".to_owned(),
        _ if switch_view.is_shut(port) => "is shut: frames for this port are dropped".to_owned(),
        None => "is down: frames for this port are dropped".to_owned(),
        Some(group) => format!("is down: other active members of {} carry its flows, if there are any", group.name),
    };
    let kind = if now.device.link_up { NoticeKind::LinkUp } else { NoticeKind::LinkDown };
    let event = || Event::new(kind, format!("{} {}", switch_view.port_name(port), what()));
    (before.device.link_up != now.device.link_up).then(event).into_iter().collect()
}

/// A number that grows for long: told at the first, and each time that it has doubled.
fn doubled(kind: NoticeKind, before: u64, now: u64, text: impl Fn() -> String) -> Vec<Event> {
    let is_told = now.leading_zeros() < before.leading_zeros();
    is_told.then(|| Event::new(kind, text())).into_iter().collect()
}

/// Frames that Linux did not get.
fn withheld(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let text = || {
        format!(
            "{}: {} did not reach Linux: their senders exceed the port's share of its neighbours",
            switch_view.port_name(port),
            frames(now.linux_withheld)
        )
    };
    doubled(NoticeKind::LinuxWithheld, before.linux_withheld, now.linux_withheld, text)
}

/// Neighbours that gave way.
fn evictions(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let text = || {
        format!(
            "{}: {} of its share gave way to others: a host there uses many addresses",
            switch_view.port_name(port),
            grouped(now.neighbours_evicted)
        )
    };
    doubled(NoticeKind::NeighbourLimit, before.neighbours_evicted, now.neighbours_evicted, text)
}

fn transmit_losses(switch_view: &SwitchView, before: &PortSnapshot, now: &PortSnapshot, port: usize) -> Vec<Event> {
    let lost = now.device.tx_errors.saturating_sub(before.device.tx_errors);
    let text = || format!("{} lost {} that its device had accepted", switch_view.port_name(port), frames(lost));
    (lost > 0).then(|| Event::new(NoticeKind::TransmitLoss, text())).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::quiet;
    use super::*;
    use crate::forward::LagSpec;
    use crate::pfc::WatchdogSpec;

    const ACTIONS: [WatchdogAction; 2] = [WatchdogAction::Drop, WatchdogAction::Forward];

    fn watched() -> SwitchView {
        let mut switch_view = quiet();
        for (port, action) in switch_view.spec.ports.iter_mut().zip(ACTIONS) {
            let (detection, restoration) = (Nanos(200_000_000), Nanos(200_000_000));
            port.live.watchdog = Some(WatchdogSpec { detection, restoration, action });
            port.live.stuck_after = Some(Nanos(500_000_000));
        }
        switch_view
    }

    /// The lines of a snapshot taken after this many tenths of a second.
    fn look(events: &mut Events, switch_view: &SwitchView, tenths: u64) -> Vec<String> {
        texts(events.next(switch_view, Snapshot::take(switch_view, Duration::from_millis(tenths * 100))))
    }

    fn texts(notices: Vec<Notice>) -> Vec<String> {
        notices.into_iter().map(|notice| notice.text).collect()
    }

    #[test]
    fn notice_names_kind_port_class_and_further_events() {
        let (switch_view, mut events) = (watched(), Events::default());
        switch_view.counters.ports[1].watchdog_storms[3].add(3);
        let snapshot = Snapshot::take(&switch_view, Duration::from_secs(1));
        let notices = events.next(&switch_view, snapshot);
        let [notice] = &notices[..] else { panic!("{notices:?}") };
        assert_eq!((notice.kind.name(), notice.port.as_deref()), ("watchdog_storm", Some("p2")));
        assert_eq!((notice.class, notice.more), (Some(3), 2));
        switch_view.devices[0].publish(&crate::stats::DeviceStats { link_up: false, ..Default::default() });
        let notices = events.next(&switch_view, Snapshot::take(&switch_view, Duration::from_secs(2)));
        assert_eq!((notices[0].kind.name(), notices[0].class), ("link_down", None));
    }

    #[test]
    fn each_kind_of_event_is_reported_in_one_line() {
        let switch_view = watched();
        let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
        let mut events = Events::default();
        assert_eq!(look(&mut events, &switch_view, 1), [""; 0]);
        p2.watchdog_storms[3].add(1);
        p1.backlog_xoffs.add(1);
        p1.backlog_frames.set(300);
        p1.port_xoff.set(1);
        let expected = [
            "t=12.3s watchdog: p2 class 3 paused for 200ms: sending despite the pause",
            "t=12.3s backlog: p1 has 300 frames waiting: its lossless classes are paused by its own backlog",
            "t=12.3s port xoff: p1 has no buffer left except its insurance: the whole port is XOFF",
        ];
        assert_eq!(look(&mut events, &switch_view, 123), expected);
        assert_eq!(look(&mut events, &switch_view, 140), [""; 0], "a lasting state is reported once");
        p1.watchdog_storms[4].add(1);
        p2.watchdog_restores[3].add(1);
        let expected =
            ["t=15.0s watchdog: p1 class 4 paused for 200ms: dropping", "t=15.0s watchdog: p2 class 3 restored"];
        assert_eq!(look(&mut events, &switch_view, 150), expected);
        p1.egress_stucks.add(1);
        p1.egress_stuck.set(1);
        let expected = ["t=17.0s stuck: p1 accepted no frame for 500ms: frames for this port are dropped"];
        assert_eq!(look(&mut events, &switch_view, 170), expected);
        p1.egress_stuck.set(0);
        assert_eq!(look(&mut events, &switch_view, 171), ["t=17.1s stuck: p1 accepts frames again"]);
    }

    #[test]
    fn backlog_that_the_device_cannot_count_is_told_without_a_number() {
        let (switch_view, mut events) = (watched(), Events::default());
        look(&mut events, &switch_view, 1);
        switch_view.counters.ports[0].backlog_xoffs.add(1);
        let expected = ["t=2.0s backlog: p1 has frames waiting: its lossless classes are paused by its own backlog"];
        assert_eq!(look(&mut events, &switch_view, 20), expected);
    }

    #[test]
    fn links_and_transmit_losses_are_told() {
        let switch_view = watched();
        let mut events = Events::default();
        assert_eq!(look(&mut events, &switch_view, 1), [""; 0], "all links are up");
        let publish = |link_up, tx_errors| {
            switch_view.devices[1].publish(&crate::stats::DeviceStats { link_up, tx_errors, ..Default::default() });
        };
        publish(false, 40);
        let expected = [
            "t=1.0s link: p2 is down: frames for this port are dropped",
            "t=1.0s device: p2 lost 40 frames that its device had accepted",
        ];
        assert_eq!(look(&mut events, &switch_view, 10), expected);
        publish(true, 40);
        assert_eq!(look(&mut events, &switch_view, 30), ["t=3.0s link: p2 is up again"]);
    }

    #[test]
    fn neighbours_that_gave_way_are_told_each_time_that_they_have_doubled() {
        let (switch_view, mut events) = (watched(), Events::default());
        let told = [0, 1, 1, 2, 3, 3, 900, 1023, 1024].map(|evicted| {
            let mut now = Snapshot::take(&switch_view, Duration::from_secs(1 + evicted));
            now.ports[1].neighbours_evicted = evicted;
            events.next(&switch_view, now).len()
        });
        assert_eq!(told, [0, 1, 0, 1, 0, 0, 1, 0, 1]);
        let mut now = Snapshot::take(&switch_view, Duration::from_secs(5000));
        now.ports[1].neighbours_evicted = 5000;
        let expected =
            "t=5000.0s neighbours: p2: 5,000 of its share gave way to others: a host there uses many addresses";
        assert_eq!(texts(events.next(&switch_view, now)), [expected]);
        let mut now = Snapshot::take(&switch_view, Duration::from_secs(6000));
        now.ports[1].linux_withheld = 3000;
        let expected = "t=6000.0s linux: p2: 3,000 frames did not reach Linux: their senders exceed the port's share of \
                        its neighbours";
        assert_eq!(texts(events.next(&switch_view, now)), [expected]);
    }

    #[test]
    fn link_of_a_group_member_that_goes_down_leaves_its_flows_to_the_others() {
        let mut switch_view = watched();
        let ports = [0, 1].into_iter().collect();
        let group = LagSpec { name: "bond0".to_owned(), ports, min_links: 1, is_negotiated: false };
        switch_view.spec.lags.groups.push(group);
        let mut events = Events::default();
        look(&mut events, &switch_view, 1);
        switch_view.devices[1].publish(&crate::stats::DeviceStats { link_up: false, ..Default::default() });
        let expected = ["t=1.0s link: p2 is down: other active members of bond0 carry its flows, if there are any"];
        assert_eq!(look(&mut events, &switch_view, 10), expected);
    }

    #[test]
    fn floods_and_spanning_tree_are_told() {
        let (switch_view, mut events) = (watched(), Events::default());
        look(&mut events, &switch_view, 1);
        let drop = |reason, frames| switch_view.counters.ports[1].drops[8][reason as usize].add(frames);
        drop(DropReason::StormUnknown, 70);
        drop(DropReason::Bpdu, 1);
        let expected = [
            "t=1.0s flood: p2 received frames to unknown stations beyond its limit: they are dropped",
            "t=1.0s spanning tree: p2 received a BPDU: its peer runs spanning tree, and this switch does not; make \
             sure that no loop exists",
        ];
        assert_eq!(look(&mut events, &switch_view, 10), expected);
        drop(DropReason::Bpdu, 1);
        assert_eq!(look(&mut events, &switch_view, 30), [""; 0], "a bridge sends one every two seconds");
    }

    #[test]
    fn port_at_its_limit_of_stations_is_told_once_and_when_sixteen_times_as_many_gave_way() {
        let (mut switch_view, mut events) = (watched(), Events::default());
        switch_view.spec.ports[1].fdb_limit = 4096;
        look(&mut events, &switch_view, 1);
        let lcore = &switch_view.counters.lcores[0];
        lcore.fdb_stations[1].set(4096);
        assert_eq!(look(&mut events, &switch_view, 2), [""; 0], "at the limit, and none gave way");
        let tell = |events: &mut Events, evicted, tenths| {
            lcore.fdb_evicted[1].set(evicted);
            look(events, &switch_view, tenths)
        };
        let expected = ["t=1.0s stations: p2 is at its limit of 4,096 stations: its oldest give way, 3 so far"];
        assert_eq!(tell(&mut events, 3, 10), expected);
        assert_eq!(tell(&mut events, 15, 30), [""; 0]);
        let expected = ["t=5.0s stations: p2 is at its limit of 4,096 stations: its oldest give way, 1,024 so far"];
        assert_eq!(tell(&mut events, 1024, 50), expected);
        lcore.fdb_stations[1].set(4000);
        let expected =
            ["t=7.0s stations: the forwarding database is full, and p2 has most: its oldest give way, 9,000 so far"];
        assert_eq!(tell(&mut events, 9000, 70), expected);
    }

    #[test]
    fn port_that_floods_the_switch_is_told() {
        let (switch_view, mut events) = (watched(), Events::default());
        look(&mut events, &switch_view, 1);
        (0..70).for_each(|_| switch_view.counters.lcores[0].count_policed(PuntCause::Arp, 1));
        switch_view.counters.lcores[0].count_policed(PuntCause::LoopProbe, 0);
        let expected = ["t=1.0s flood: p2 received arp for the switch beyond its rate: 70 frames are dropped"];
        assert_eq!(look(&mut events, &switch_view, 10), expected);
        assert_eq!(look(&mut events, &switch_view, 30), [""; 0]);
    }

    #[test]
    fn peer_that_disobeys_is_told_once_and_when_it_obeys_again() {
        let switch_view = watched();
        let mut events = Events::default();
        let p2 = &switch_view.counters.ports[1];
        p2.pfc_late_frames[3].add(1234);
        p2.pfc_late_pauses[3].add(3);
        assert_eq!(look(&mut events, &switch_view, 10), [""; 0]);
        p2.pfc_disobeyed_mask.set(1 << 3);
        let expected =
            "t=2.0s peer: p2 class 3: the peer does not stop at XOFF: 1,234 frames came too late after 3 XOFFs";
        assert_eq!(look(&mut events, &switch_view, 20), [expected]);
        assert_eq!(look(&mut events, &switch_view, 40), [""; 0]);
        p2.pfc_disobeyed_mask.set(0);
        p2.pfc_obeyed_mask.set(1 << 3);
        assert_eq!(look(&mut events, &switch_view, 60), ["t=6.0s peer: p2 class 3: the peer stops at XOFF"]);
    }

    #[test]
    fn events_are_limited_to_one_line_per_second_with_a_count() {
        let switch_view = watched();
        let mut events = Events::default();
        let mut reported = Vec::new();
        for tenths in 1..=25 {
            // Two events in each snapshot for two seconds, then none.
            switch_view.counters.ports[0].backlog_xoffs.add(if tenths <= 20 { 2 } else { 0 });
            reported.extend(look(&mut events, &switch_view, tenths));
        }
        let counts: Vec<&str> =
            reported.iter().map(|line| line.split("own backlog").nth(1).unwrap_or_default()).collect();
        assert_eq!(counts, [" (and 1 more)", " (and 19 more)", " (and 17 more)"], "{reported:?}");
        assert!(reported[2].starts_with("t=2.1s "), "{reported:?}");
    }

    #[test]
    fn storm_of_classes_that_share_a_queue_names_the_queue() {
        let mut switch_view = watched();
        switch_view.spec.classes.tc_to_queue[4] = 3;
        switch_view.counters.ports[0].watchdog_storms[3].add(1);
        let lines = look(&mut Events::default(), &switch_view, 10);
        assert_eq!(lines, ["t=1.0s watchdog: p1 queue 3 paused for 200ms: dropping"]);
    }
}
