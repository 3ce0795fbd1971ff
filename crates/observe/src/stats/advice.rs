//! Advice for the operator, derived from counters: sentences that name the place, the cause and the remedy.
//!
//! [`advices`] judges one snapshot and has no memory. [`Adviser`] remembers the given advice. It gives each advice
//! once, and again only when its cause has doubled.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::needs::{Need, needs, to_bytes};
use super::snapshot::{PortSnapshot, Snapshot};
use super::switch_view::{PfcStanding, SwitchView};
use crate::headroom::headroom;
use crate::pfc::Observed;
use crate::sets::{CLASSES, ClassSet};
use crate::text::format::{frames, grouped, time};
use crate::units::Nanos;

/// The largest `lcores.poll_gap` that the configuration accepts.
const LARGEST_POLL_GAP: Nanos = Nanos(10_000_000);

/// The subject of a piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The headroom is smaller than the observed poll gap requires.
    HeadroomShort,
    /// Poll gaps are longer than configured; headroom still covers them.
    PollGap,
    /// Headroom was full and frames were lost.
    HeadroomFull,
    /// A peer does not stop when it gets XOFF.
    PeerDisobeys,
    /// The dataplane cannot keep up with a port.
    Backlog,
    /// A peer paused a class for too long.
    Watchdog,
    /// A device took no frames.
    Stuck,
    /// A port has as many stations as it may have.
    FdbLimit,
    /// Neighbours of the router gave way to others.
    Neighbours,
    /// Linux did not get frames of hosts beyond the port's share of its neighbours.
    LinuxNeighbours,
}

impl Topic {
    /// The name in JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::HeadroomShort => "headroom_short",
            Self::PollGap => "poll_gap",
            Self::HeadroomFull => "headroom_full",
            Self::PeerDisobeys => "peer_disobeys",
            Self::Backlog => "backlog",
            Self::Watchdog => "watchdog",
            Self::Stuck => "stuck",
            Self::FdbLimit => "fdb_limit",
            Self::Neighbours => "neighbours",
            Self::LinuxNeighbours => "linux_neighbours",
        }
    }
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Advice {
    /// Its [topic](metrics.md#events-and-warnings).
    pub topic: Topic,
    /// Port, port and class, or lcore.
    pub place: String,
    /// A sentence that may change.
    pub text: String,
    /// The cause by which repeated advice is recognized: the place, or a wider scope.
    #[serde(skip)]
    scope: String,
    /// The severity in the topic's own unit, comparable only within one topic.
    #[serde(skip)]
    amount: u64,
}

impl Advice {
    fn new(topic: Topic, place: String, amount: u64, text: impl fmt::Display) -> Self {
        Self { topic, text: format!("{place}: {text}"), scope: place.clone(), place, amount }
    }
}

/// All advice that follows from `snapshot`.
#[must_use]
pub fn advices(switch_view: &SwitchView, snapshot: &Snapshot) -> Vec<Advice> {
    let needs = needs(switch_view, snapshot);
    let mut advices = Vec::new();
    for lcore in 0..snapshot.lcores.len() {
        let is_here = |need: &&Need| usize::from(switch_view.spec.ports[need.port].lcore) == lcore;
        let here: Vec<Need> = needs.iter().filter(is_here).copied().collect();
        let advice = headroom_short(switch_view, snapshot, &here);
        advices.extend(advice.or_else(|| poll_gap(switch_view, snapshot, lcore, &here)));
    }
    for need in needs.iter().filter(|need| need.observed == Observed::Disobeys) {
        advices.push(peer_disobeys(switch_view, &snapshot.ports[need.port], need));
    }
    advices.extend(needs.iter().filter(|need| need.overflows > 0).map(|need| headroom_full(switch_view, need)));
    for (port, counters) in snapshot.ports.iter().enumerate() {
        advices.extend(backlog(switch_view, port, counters));
        advices.extend(watchdog(switch_view, port, counters));
        advices.extend(stuck(switch_view, port, counters));
        advices.extend(fdb_limit(switch_view, port, counters));
        advices.extend(neighbours(switch_view, port, counters));
        advices.extend(linux_neighbours(switch_view, port, counters));
    }
    advices
}

fn place(switch_view: &SwitchView, need: &Need) -> String {
    format!("{} {}", switch_view.port_name(need.port), switch_view.group_name(need.group))
}

/// Advice for all groups of an lcore that lack headroom, since they have one cause. It names the group that lacks
/// most.
fn headroom_short(switch_view: &SwitchView, snapshot: &Snapshot, needs: &[Need]) -> Option<Advice> {
    let lack = |need: &Need| need.needed.0.saturating_sub(need.size.0);
    let short: Vec<&Need> = needs.iter().filter(|need| lack(need) > 0).collect();
    let worst = *short.iter().max_by_key(|need| (lack(need), std::cmp::Reverse((need.port, need.group))))?;
    let gap = snapshot.longest_poll_gap(switch_view, worst.port);
    let (size, needed) = (to_bytes(switch_view, worst.size), to_bytes(switch_view, worst.needed));
    let others = match short.len() - 1 {
        0 => String::new(),
        1 => " (and 1 more group lacks headroom)".to_owned(),
        count => format!(" (and {count} more groups lack headroom)"),
    };
    let lacking = short.iter().map(|need| u64::from(lack(need))).sum();
    let remedy = remedy(switch_view, worst, gap, lacking);
    let (scope, gap) = (format!("lcore {}", switch_view.spec.ports[worst.port].lcore), time(gap));
    let text = format!("headroom {size} is less than the {needed} that a poll gap of {gap} needs{others}; {remedy}");
    // Next time another group may lack most, but the lcore is still the cause.
    Some(Advice { scope, ..Advice::new(Topic::HeadroomShort, place(switch_view, worst), needed.0, text) })
}

/// The remedy for a poll gap of `gap` if all groups together lack `lacking` cells.
fn remedy(switch_view: &SwitchView, need: &Need, gap: Nanos, lacking: u64) -> String {
    let link = &switch_view.links[need.port];
    let is_given = headroom(link).cells > need.size;
    let wanted = round_up(gap);
    let own_cpu = "give the lcore a CPU of its own";
    if gap <= link.poll_gap {
        "write `headroom: auto` for the class".to_owned()
    } else if wanted > LARGEST_POLL_GAP || lacking > u64::from(switch_view.spec.buffer.lossless_shared.0) {
        format!("the buffer is too small for that: {own_cpu}")
    } else if is_given {
        format!("write `headroom: auto` for the class and `lcores.poll_gap: {wanted}`, or {own_cpu}")
    } else {
        format!("write `lcores.poll_gap: {wanted}` or {own_cpu}")
    }
}

/// Rounds a time up to two significant digits.
fn round_up(time: Nanos) -> Nanos {
    let mut unit = 1;
    while time.0 / unit >= 100 {
        unit *= 10;
    }
    Nanos(time.0.div_ceil(unit) * unit)
}

/// Advice on a gap longer than configured, if a lossless group has a peer that continues to send during a gap.
fn poll_gap(switch_view: &SwitchView, snapshot: &Snapshot, lcore: usize, needs: &[Need]) -> Option<Advice> {
    let (gap, configured) = (Nanos(snapshot.lcores[lcore].poll_gap_highest_ns), switch_view.spec.poll_gap);
    let matters = needs.iter().any(|need| !switch_view.is_in_process(need.port));
    if gap <= configured || !matters {
        return None;
    }
    let (gap, configured) = (time(gap), time(configured));
    let text = format!(
        "{gap} passed between two polls, more than `lcores.poll_gap`, which is {configured}; headroom has covered it \
         so far, but give the lcore a CPU of its own"
    );
    Some(Advice::new(Topic::PollGap, format!("lcore {lcore}"), snapshot.lcores[lcore].poll_gap_highest_ns, text))
}

fn peer_disobeys(switch_view: &SwitchView, counters: &PortSnapshot, need: &Need) -> Advice {
    let priority = need.group;
    let word = match switch_view.pfc.get(need.port) {
        Some(PfcStanding::Trusted) => ", against `pfc_proven: true`",
        _ => "",
    };
    let text = format!(
        "the peer does not stop at XOFF{word}: {}; enable PFC for priority {priority} there, and send the class in it; \
         a slow peer needs `peer_response`",
        counters.lateness(ClassSet::only(priority))
    );
    Advice::new(Topic::PeerDisobeys, place(switch_view, need), counters.peer.late_pauses[priority], text)
}

fn headroom_full(switch_view: &SwitchView, need: &Need) -> Advice {
    let (lost, size) = (frames(need.overflows), to_bytes(switch_view, need.size));
    let lost = format!("{lost} lost beyond a headroom of {size}");
    let text = match (need.observed, switch_view.standing(need.port)) {
        (Observed::Disobeys, _) => format!("{lost}: the peer does not stop at XOFF; enable PFC there"),
        (Observed::Obeys, _) => format!("{lost}, though the peer stops in its time; write a larger `headroom`"),
        (Observed::Unseen, PfcStanding::Proven) => {
            format!("{lost}, though the peer obeys PFC; write a larger `headroom`")
        }
        (Observed::Unseen, PfcStanding::Trusted) => {
            format!("{lost}: the peer obeys PFC by `pfc_proven` alone; check it there, or write a larger `headroom`")
        }
        (Observed::Unseen, _) => format!("{lost}: the peer does not seem to obey PFC; enable PFC there"),
    };
    Advice::new(Topic::HeadroomFull, place(switch_view, need), need.overflows, text)
}

fn backlog(switch_view: &SwitchView, port: usize, counters: &PortSnapshot) -> Option<Advice> {
    let times = counters.backlog_xoffs;
    if times == 0 {
        return None;
    }
    // Zero: the device cannot count the frames that wait.
    let waiting = match counters.backlog_highest_frames {
        0 => String::new(),
        highest => format!(", with up to {} waiting", frames(highest)),
    };
    let text = format!(
        "the core cannot keep up: the port's own backlog paused lossless classes {}{waiting}; give the port an lcore of \
         its own or a faster CPU",
        self::times(times)
    );
    Some(Advice::new(Topic::Backlog, switch_view.port_name(port).to_owned(), times, text))
}

fn watchdog(switch_view: &SwitchView, port: usize, counters: &PortSnapshot) -> Option<Advice> {
    let queues = (0..CLASSES).filter(|&queue| counters.watchdog_storms[queue] > 0);
    let names: Vec<String> = queues.map(|queue| switch_view.queue_name(queue)).collect();
    if names.is_empty() {
        return None;
    }
    let storms = counters.watchdog_storms.iter().sum();
    let text = format!(
        "the watchdog found a storm {} ({}): the peer pauses and does not resume; look for a stuck host there",
        times(storms),
        names.join(", ")
    );
    Some(Advice::new(Topic::Watchdog, switch_view.port_name(port).to_owned(), storms, text))
}

fn stuck(switch_view: &SwitchView, port: usize, counters: &PortSnapshot) -> Option<Advice> {
    let stucks = counters.egress_stucks;
    let text = format!(
        "its device accepted no frames {}, and the waiting frames were dropped; check that the peer is present, or \
         raise `stuck_after` if it may stop for that long",
        times(stucks)
    );
    (stucks > 0).then(|| Advice::new(Topic::Stuck, switch_view.port_name(port).to_owned(), stucks, text))
}

fn fdb_limit(switch_view: &SwitchView, port: usize, counters: &PortSnapshot) -> Option<Advice> {
    let evicted = counters.fdb_evicted;
    let text = format!(
        "{} of its stations gave way to new ones; look for a host that forges addresses, or raise `fdb.capacity` and \
         `fdb_limit`",
        grouped(evicted)
    );
    (evicted > 0).then(|| Advice::new(Topic::FdbLimit, switch_view.port_name(port).to_owned(), evicted, text))
}

fn neighbours(switch_view: &SwitchView, port: usize, counters: &PortSnapshot) -> Option<Advice> {
    let evicted = counters.neighbours_evicted;
    let text = format!(
        "{} of its share of the router's neighbours gave way to others; find the host there that uses many addresses, \
         or raise `routing.fib` if its hosts are so many",
        grouped(evicted)
    );
    (evicted > 0).then(|| Advice::new(Topic::Neighbours, switch_view.port_name(port).to_owned(), evicted, text))
}

fn linux_neighbours(switch_view: &SwitchView, port: usize, counters: &PortSnapshot) -> Option<Advice> {
    let withheld = counters.linux_withheld;
    let text = format!(
        "{} frames did not reach Linux, because their senders exceed the port's share of its neighbours; find the host \
         there that uses many addresses, or raise `gc_thresh3` (docs/linux.md) if its hosts are so many",
        grouped(withheld)
    );
    let port = switch_view.port_name(port).to_owned();
    (withheld > 0).then(|| Advice::new(Topic::LinuxNeighbours, port, withheld, text))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

/// Remembers the advice that was given.
#[derive(Debug, Default)]
pub struct Adviser {
    /// The amount of the last advice, by topic and scope.
    given: BTreeMap<(Topic, String), u64>,
}

impl Adviser {
    /// The advice that was not given before, or whose amount has doubled since.
    pub fn fresh(&mut self, advices: Vec<Advice>) -> Vec<Advice> {
        advices.into_iter().filter(|advice| self.is_fresh(advice)).collect()
    }

    fn is_fresh(&mut self, advice: &Advice) -> bool {
        let given = self.given.entry((advice.topic, advice.scope.clone())).or_default();
        let is_fresh = *given == 0 || advice.amount / 2 >= *given;
        if is_fresh {
            *given = advice.amount.max(1);
        }
        is_fresh
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::quiet;
    use super::*;
    use crate::plan::DropReason;
    use crate::stats::PfcStanding;
    use crate::units::{Bytes, Cells};

    /// The switch of [`quiet`] with real cables instead of virtual hosts, and the headroom that they need.
    fn cabled() -> SwitchView {
        let mut switch_view = quiet();
        switch_view.hosts = None;
        for (port, link) in switch_view.spec.ports.iter_mut().zip(&switch_view.links) {
            port.buffer.groups[3].headroom = headroom(link).cells;
        }
        switch_view
    }

    fn texts(switch_view: &SwitchView) -> Vec<String> {
        let advices = advices(switch_view, &Snapshot::take(switch_view, Duration::from_secs(1)));
        advices.into_iter().map(|advice| advice.text).collect()
    }

    fn with_gap(switch_view: &SwitchView, ns: u64) -> Vec<String> {
        switch_view.counters.lcores[0].poll_gap_highest_ns.set(ns);
        texts(switch_view)
    }

    #[test]
    fn run_without_events_gives_no_advice() {
        assert_eq!(texts(&quiet()), [""; 0]);
        assert_eq!(with_gap(&cabled(), 20_000), [""; 0]);
        assert_eq!(with_gap(&quiet(), 9_000_000), [""; 0], "virtual hosts do not send in a gap");
    }

    #[test]
    fn advice_is_given_for_a_poll_gap_beyond_the_headroom() {
        let mut switch_view = cabled();
        insta::assert_snapshot!(with_gap(&switch_view, 95_300).join("\n"), @"p1 class 3: headroom 134.57KiB is less \
                                                                             than the 372.26KiB that a poll gap of \
                                                                             95.3us needs (and 1 more group lacks \
                                                                             headroom); write `lcores.poll_gap: 96us` \
                                                                             or give the lcore a CPU of its own");
        insta::assert_snapshot!(with_gap(&switch_view, 30_000_000).join("\n"), @"p1 class 3: headroom 134.57KiB is \
                                                                                 less than the 85.24MiB that a poll \
                                                                                 gap of 30.00ms needs (and 1 more \
                                                                                 group lacks headroom); the buffer is \
                                                                                 too small for that: give the lcore a \
                                                                                 CPU of its own");
        switch_view.spec.ports[0].buffer.groups[3].headroom = Cells(200);
        insta::assert_snapshot!(with_gap(&switch_view, 25_001).join("\n"), @"p1 class 3: headroom 39.06KiB is less \
                                                                             than the 155.07KiB that a poll gap of \
                                                                             25.0us needs (and 1 more group lacks \
                                                                             headroom); write `headroom: auto` for the \
                                                                             class and `lcores.poll_gap: 26us`, or \
                                                                             give the lcore a CPU of its own");
        insta::assert_snapshot!(with_gap(&switch_view, 15_000).join("\n"), @"p1 class 3: headroom 39.06KiB is less than the 113.86KiB that a poll gap of 15.0us needs; write `headroom: auto` for the class");
        switch_view.spec.ports.iter_mut().for_each(|port| port.buffer.groups[3].headroom = Cells(100_000));
        insta::assert_snapshot!(with_gap(&switch_view, 25_001).join("\n"), @"lcore 0: 25.0us passed between two polls, \
                                                                             more than `lcores.poll_gap`, which is \
                                                                             20.0us; headroom has covered it so far, \
                                                                             but give the lcore a CPU of its own");
    }

    #[test]
    fn advice_is_given_for_neighbours_that_gave_way() {
        let switch_view = quiet();
        let mut snapshot = Snapshot::take(&switch_view, Duration::from_secs(1));
        snapshot.ports[1].neighbours_evicted = 4321;
        let advices = advices(&switch_view, &snapshot);
        assert_eq!((advices.len(), advices[0].topic.label()), (1, "neighbours"));
        assert!(advices[0].text.starts_with("p2: 4,321 of its share"), "{}", advices[0].text);
        (snapshot.ports[1].neighbours_evicted, snapshot.ports[1].linux_withheld) = (0, 5000);
        let advices = super::advices(&switch_view, &snapshot);
        assert_eq!((advices.len(), advices[0].topic.label()), (1, "linux_neighbours"));
        assert!(advices[0].text.starts_with("p2: 5,000 frames did not reach Linux"), "{}", advices[0].text);
    }

    #[test]
    fn advice_uses_the_poll_gap_of_each_lcore() {
        let mut switch_view = cabled();
        switch_view.counters = std::sync::Arc::new(crate::plan::Counters::new(2, 2));
        switch_view.spec.ports[1].lcore = 1;
        switch_view.counters.lcores[1].poll_gap_highest_ns.set(40_000);
        let texts = with_gap(&switch_view, 30_000);
        assert!(texts.len() == 2 && texts[0].contains("30.0us") && texts[1].contains("40.0us"), "{texts:?}");
        assert!(texts[0].starts_with("p1 class 3: ") && texts[1].starts_with("p2 class 3: "), "{texts:?}");
    }

    #[test]
    fn advice_is_given_for_losses_backlogs_storms_and_stuck_ports() {
        let mut switch_view = quiet();
        switch_view.pfc[1] = PfcStanding::Unproven;
        let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
        for port in [p1, p2] {
            port.drops[3][DropReason::HeadroomFull as usize].add(1234);
        }
        p1.backlog_xoffs.add(1);
        p1.backlog_highest_frames.raise(600);
        p2.watchdog_storms[3].add(2);
        p2.watchdog_storms[4].add(1);
        p2.egress_stucks.add(2);
        switch_view.counters.lcores[0].fdb_evicted[1].add(4096);
        insta::assert_snapshot!(texts(&switch_view).join("\n"), @r#"
        p1 class 3: 1,234 frames lost beyond a headroom of 39.06KiB, though the peer obeys PFC; write a larger `headroom`
        p2 class 3: 1,234 frames lost beyond a headroom of 39.06KiB: the peer does not seem to obey PFC; enable PFC there
        p1: the core cannot keep up: the port's own backlog paused lossless classes once, with up to 600 frames waiting; give the port an lcore of its own or a faster CPU
        p2: the watchdog found a storm 3 times (class 3, class 4): the peer pauses and does not resume; look for a stuck host there
        p2: its device accepted no frames 2 times, and the waiting frames were dropped; check that the peer is present, or raise `stuck_after` if it may stop for that long
        p2: 4,096 of its stations gave way to new ones; look for a host that forges addresses, or raise `fdb.capacity` and `fdb_limit`
        "#);
    }

    #[test]
    fn measurement_of_the_peer_overrules_the_word_of_the_operator() {
        let mut switch_view = quiet();
        switch_view.pfc[0] = PfcStanding::Trusted;
        switch_view.witnesses[0] = None;
        let p1 = &switch_view.counters.ports[0];
        p1.drops[3][DropReason::HeadroomFull as usize].add(1234);
        let lost = "p1 class 3: 1,234 frames lost beyond a headroom of 39.06KiB";
        let word = "the peer obeys PFC by `pfc_proven` alone; check it there, or write a larger `headroom`";
        assert_eq!(texts(&switch_view), [format!("{lost}: {word}")]);
        p1.pfc_obeyed_mask.set(1 << 3);
        let stops = "though the peer stops in its time; write a larger `headroom`";
        assert_eq!(texts(&switch_view), [format!("{lost}, {stops}")]);
        p1.pfc_late_frames[3].add(98_765);
        p1.pfc_late_pauses[3].add(7);
        p1.pfc_obeyed_mask.set(0);
        p1.pfc_disobeyed_mask.set(1 << 3);
        let peer = "p1 class 3: the peer does not stop at XOFF, against `pfc_proven: true`: 98,765 frames came too late \
                    after 7 XOFFs; enable PFC for priority 3 there, and send the class in it; a slow peer needs \
                    `peer_response`";
        let lost_by_it = format!("{lost}: the peer does not stop at XOFF; enable PFC there");
        assert_eq!(texts(&switch_view), [peer.to_owned(), lost_by_it]);
        // A device that pauses by itself may have held back the PFC frames.
        switch_view.flow_control.set(0, crate::stats::flow_control::DeviceFlowControl::Pauses);
        let seems = "the peer does not seem to obey PFC; enable PFC there";
        assert_eq!(texts(&switch_view), [format!("{lost}: {seems}")]);
    }

    #[test]
    fn an_advice_is_given_again_when_it_has_doubled() {
        let switch_view = quiet();
        let mut adviser = Adviser::default();
        let mut advised = |more| {
            switch_view.counters.ports[0].backlog_xoffs.add(more);
            adviser.fresh(advices(&switch_view, &Snapshot::take(&switch_view, Duration::ZERO))).len()
        };
        assert_eq!([0, 1, 0, 1, 0, 1, 1].map(&mut advised), [0, 1, 0, 1, 0, 0, 1], "at 1, 2 and 4");
    }

    #[test]
    fn round_up_keeps_two_significant_digits() {
        assert_eq!([7, 99, 101, 95_300, 1_000_000].map(|ns| round_up(Nanos(ns)).0), [7, 99, 110, 96_000, 1_000_000]);
        assert_eq!(to_bytes(&quiet(), Cells(2)), Bytes(400));
    }
}
