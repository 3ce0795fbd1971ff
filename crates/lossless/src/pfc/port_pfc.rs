//! The PFC state of one port, in both directions.

use super::{
    Answers, Generator, JudgedPoll, Obedience, PauseTimers, PfcMode, PriorityMap, Received, Watchdog, WatchdogEvents,
    WatchdogSpec,
};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Nanos, Quanta, Ticks};
use crate::wire::mac_control::PfcFrame;

/// The PFC settings of one port.
#[derive(Debug, Clone, Copy)]
pub struct PortPfcSpec {
    /// Whether PFC is generated and obeyed, and for which priorities.
    pub mode: PfcMode,
    /// Lossless priority groups of the port.
    pub lossless_groups: ClassSet,
    /// Queues of the classes that are lossless at the port.
    pub lossless_queues: ClassSet,
    /// Map from the priorities of received PFC frames to queues.
    pub map: PriorityMap,
    /// Rate by which pause times are counted.
    pub rate: BitRate,
    /// Time that the peer has to stop: [`crate::headroom::reaction`].
    pub reaction: Nanos,
    /// Settings of the watchdog; `None`: no watchdog. A port with [`PfcMode::Off`] never has one.
    pub watchdog: Option<WatchdogSpec>,
}

/// The PFC state of one port: the pauses that it sends, those that it receives, and the watchdog over these.
#[derive(Debug, Clone)]
pub struct PortPfc {
    mode: PfcMode,
    /// Priorities for which PFC frames are sent.
    generated: ClassSet,
    /// Priorities for which received PFC frames are obeyed.
    obeyed: ClassSet,
    /// Queues that these priorities pause.
    obeyed_queues: ClassSet,
    /// Map from the priorities of received PFC frames to queues.
    map: PriorityMap,
    generator: Generator,
    timers: PauseTimers,
    watchdog: Option<Watchdog>,
    /// Pauses received during the last poll. Their time counts from the next poll on: the instant of a poll is older
    /// than the frames that arrive while it runs, and a pause must not end early.
    arrived: PfcFrame,
    /// Queues whose rings of the device took no more frames, and the poll in which they did not ([`PfcMode::Nic`]).
    held: (ClassSet, Ticks),
    /// Whether the peer stops at XOFF; `None`: the port sends no PFC frames.
    obedience: Option<Box<Obedience>>,
}

impl PortPfc {
    /// Creates the state of a port by `spec` on a clock of `hz` ticks per second, with no pause in either direction.
    #[must_use]
    pub fn new(spec: &PortPfcSpec, hz: u64) -> Self {
        let PortPfcSpec { mode, map, rate, .. } = *spec;
        let obeyed = mode.obeyed(spec.lossless_queues, &map);
        let generated = mode.generated(spec.lossless_groups);
        let mut pfc = Self {
            mode,
            generated,
            obeyed,
            obeyed_queues: map.queues(obeyed),
            map,
            generator: if mode.sends_frames() { Generator::new(rate, hz) } else { Generator::without_refresh() },
            timers: PauseTimers::with_map(rate, hz, map),
            watchdog: None,
            arrived: PfcFrame::default(),
            held: (ClassSet::EMPTY, Ticks(0)),
            obedience: mode.sends_frames().then(|| Box::new(Obedience::new(rate, spec.reaction, hz))),
        };
        pfc.set_watchdog(spec.watchdog, hz);
        pfc
    }

    /// Goes on from `before`, the state of this port with other settings, which holds no priority of its peer: with the
    /// peer's pauses, because the peer remembers them, and with all counts and times.
    pub fn go_on_from(&mut self, before: &Self) {
        self.timers.go_on_from(&before.timers);
        self.generator.go_on_from(&before.generator);
        self.arrived = before.arrived;
        if let (Some(obedience), Some(before)) = (&mut self.obedience, &before.obedience) {
            obedience.go_on_from(before);
        }
    }

    /// Gives the peer `reaction` to stop, on a clock of `hz` ticks per second: its cable changes. Pauses that go on
    /// keep their deadlines.
    pub fn set_reaction(&mut self, reaction: Nanos, hz: u64) {
        if let Some(obedience) = &mut self.obedience {
            obedience.set_reaction(reaction, hz);
        }
    }

    /// Changes the settings of the watchdog to `spec`, on a clock of `hz` ticks per second. A running watchdog keeps
    /// its storms and its evidence. Returns the queues whose storms have ended, because the port has no watchdog any
    /// more.
    pub fn set_watchdog(&mut self, spec: Option<WatchdogSpec>, hz: u64) -> ClassSet {
        match (&mut self.watchdog, spec.filter(|_| self.mode.sends_frames())) {
            (Some(watchdog), Some(spec)) => {
                watchdog.set_spec(spec);
                ClassSet::EMPTY
            }
            (watchdog, spec) => {
                let ended = watchdog.as_ref().map_or(ClassSet::EMPTY, Watchdog::storm);
                *watchdog = spec.map(|spec| Watchdog::new(spec, self.obeyed_queues, hz));
                ended
            }
        }
    }

    /// Sends PFC frames for the lossless `groups` from now on. Pauses of others end: XON is due.
    pub fn set_lossless_groups(&mut self, groups: ClassSet) {
        self.generated = self.mode.generated(groups);
        self.generator.set_all(self.generator.xoff() & self.generated);
    }

    /// Obeys pauses of the `queues` of lossless classes from now on. Pauses of others are forgotten. Returns the queues
    /// whose storms have ended, because the watchdog does not observe them any more.
    pub fn set_lossless_queues(&mut self, queues: ClassSet) -> ClassSet {
        self.obeyed = self.mode.obeyed(queues, &self.map);
        self.obeyed_queues = self.map.queues(self.obeyed);
        let obeyed = self.obeyed_queues;
        self.watchdog.as_mut().map_or(ClassSet::EMPTY, |watchdog| watchdog.watch(obeyed))
    }

    /// Queues that obey pauses.
    #[must_use]
    pub fn obeyed_queues(&self) -> ClassSet {
        self.obeyed_queues
    }

    /// Priorities for which PFC frames are sent.
    #[must_use]
    pub fn generated(&self) -> ClassSet {
        self.generated
    }

    /// Sets the priorities in `wanted` to XOFF if PFC frames are sent for them, and all others to XON. Returns the
    /// priorities that were not at XOFF before.
    #[inline]
    pub fn set_xoff(&mut self, wanted: ClassSet) -> ClassSet {
        let xoff = wanted & self.generated;
        let fresh = xoff - self.generator.xoff();
        self.generator.set_all(xoff);
        fresh
    }

    /// Returns the priorities for which the port holds its peer at XOFF. The PFC frame with the last change may still
    /// be due.
    #[inline]
    #[must_use]
    pub fn xoff(&self) -> ClassSet {
        self.generator.xoff()
    }

    /// Makes a PFC frame due that announces the state of each priority for which PFC is generated.
    pub fn announce(&mut self) {
        self.generator.repeat(self.generated);
    }

    /// Whether XOFF and XON are sent as PFC frames. Otherwise a due frame counts as sent at once: the switch polls no
    /// receive queue that carries a priority at XOFF.
    #[inline]
    #[must_use]
    pub fn sends_frames(&self) -> bool {
        self.mode.sends_frames()
    }

    /// Returns the PFC frame to send now, if one is due. It stays due until [`PortPfc::sent`].
    #[inline]
    #[must_use]
    pub fn due(&self, now: Ticks) -> Option<PfcFrame> {
        self.generator.due(now)
    }

    /// Records that `frame`, which was due, has left at `now`.
    pub fn sent(&mut self, frame: &PfcFrame, now: Ticks) {
        self.generator.sent(frame, now);
        if let Some(obedience) = &mut self.obedience {
            obedience.sent(frame, now);
        }
    }

    /// Whether the peer was told of a pause that lasts, so that [`PortPfc::judge_peer`] must see each poll.
    #[must_use]
    pub fn is_judging(&self) -> bool {
        self.obedience.as_ref().is_some_and(|obedience| obedience.is_watching())
    }

    /// Judges the last poll when the next one begins: see [`Obedience::judge`].
    #[inline]
    pub fn judge_peer(&mut self, now: Ticks, poll: JudgedPoll, received: impl Fn(usize) -> Received) {
        if let Some(obedience) = &mut self.obedience {
            obedience.judge(now, poll, received);
        }
    }

    /// The answers of the peer to XOFF of each priority; `None`: the port sends none.
    #[must_use]
    pub fn answers(&self) -> Option<&[Answers; CLASSES]> {
        self.obedience.as_ref().filter(|_| !self.generated.is_empty()).map(|obedience| obedience.answers())
    }

    /// The answers of the peer to XOFF of each priority, if they have changed since the last call.
    pub fn take_answers(&mut self) -> Option<&[Answers; CLASSES]> {
        let obedience = self.obedience.as_mut()?;
        obedience.take_change().then(|| obedience.answers())
    }

    /// Obeys a received PFC frame from now on. The time of its pauses counts from the next poll on.
    pub fn receive_pause(&mut self, frame: &PfcFrame, now: Ticks) {
        self.timers.receive(frame, now);
        self.arrived.enabled |= frame.enabled;
        for priority in frame.enabled.iter() {
            self.arrived.quanta[priority] = frame.quanta[priority];
        }
    }

    /// Restarts at `now` the time of the pauses that the last poll received. They are obeyed since then.
    /// Returns whether there were any.
    #[inline]
    pub fn start_pauses(&mut self, now: Ticks) -> bool {
        let has_arrived = !self.arrived.enabled.is_empty();
        if has_arrived {
            self.timers.receive(&self.arrived, now);
            self.arrived = PfcFrame::default();
        }
        has_arrived
    }

    /// Ends the pauses whose time is over at `now`. Returns whether there were any.
    #[inline]
    pub fn end_pauses(&mut self, now: Ticks) -> bool {
        self.timers.end(now)
    }

    /// Returns the priorities of `frame` that the port obeys in general, and ignores now because of the watchdog.
    #[must_use]
    pub fn ignored(&self, frame: &PfcFrame) -> ClassSet {
        match &self.watchdog {
            Some(watchdog) => self.map.priorities_of(watchdog.ignoring()) & self.obeyed & frame.enabled,
            None => ClassSet::EMPTY,
        }
    }

    /// Returns the priorities that the peer pauses at `now`, whether obeyed or not.
    #[inline]
    pub fn paused(&mut self, now: Ticks) -> ClassSet {
        self.timers.paused(now)
    }

    /// Queues that may not send at `now`: paused (IEEE 802.1Q clause 36.1.3.2), unless the watchdog ignores the pause.
    #[inline]
    pub fn stopped_queues(&mut self, now: Ticks) -> ClassSet {
        let paused = self.timers.paused_queues(now) & self.obeyed_queues;
        if paused.is_empty() { paused } else { self.stopped_of(paused, now) }
    }

    /// Those of the `paused` queues that may not send at `now`. A device that obeys is asked again in each poll.
    #[inline]
    fn stopped_of(&self, paused: ClassSet, now: Ticks) -> ClassSet {
        let paused = if self.mode.is_obeyed_by_device() { paused & self.held_at(now) } else { paused };
        paused - self.ignoring()
    }

    fn held_at(&self, now: Ticks) -> ClassSet {
        if self.held.1 == now { self.held.0 } else { ClassSet::EMPTY }
    }

    /// Whether the device obeys the peer by a transmit ring for each priority.
    #[inline]
    #[must_use]
    pub fn is_obeyed_by_device(&self) -> bool {
        self.mode.is_obeyed_by_device() && !self.obeyed_queues.is_empty()
    }

    /// Records the queues whose rings took all frames that they were offered at `now`, and those whose rings took none.
    /// The peer's PFC frames end in the device, so a full ring of a lossless queue counts as a pause of the peer. It
    /// lasts until the ring takes frames, or as long as the longest pause after the last refusal.
    pub fn note_rings(&mut self, taken: ClassSet, refused: ClassSet, now: Ticks) {
        let refused = refused & self.obeyed_queues;
        self.held = (self.held_at(now) | refused, now);
        let (on, off) = (self.priorities_of(refused), self.priorities_of(taken) & self.timers.running());
        if (on | off).is_empty() {
            return;
        }
        let mut frame = PfcFrame { enabled: on | off, ..PfcFrame::default() };
        for priority in on.iter() {
            frame.quanta[priority] = Quanta(u16::MAX);
        }
        self.timers.receive(&frame, now);
    }

    /// Priorities that the device obeys for `queues`.
    fn priorities_of(&self, queues: ClassSet) -> ClassSet {
        self.map.priorities_of(queues) & self.obeyed
    }

    /// Queues that may not send, for other lcores, until they are told otherwise. They do not end a pause by its time:
    /// its refresh may wait unread while this lcore stands still.
    #[must_use]
    pub fn stopped_for_others(&self) -> ClassSet {
        (self.map.queues(self.timers.running()) & self.obeyed_queues) - self.ignoring()
    }

    /// Queues that may not send at `now`, like [`PortPfc::stopped_queues`], for an observer: it changes no state.
    /// Between two polls, a pause that arrived in the last one still holds.
    #[must_use]
    pub fn stopped_queues_at(&self, now: Ticks) -> ClassSet {
        let paused = self.timers.paused_at(now) | self.timers.paused_at(Ticks(0)) & self.arrived.enabled;
        self.stopped_of(self.map.queues(paused) & self.obeyed_queues, now)
    }

    /// Returns the total ticks, up to `now`, for which the port has paused its peer, by priority.
    #[must_use]
    pub fn sent_ticks(&self, now: Ticks) -> [u64; CLASSES] {
        self.generator.paused_ticks(now)
    }

    /// Returns the total ticks, up to `now`, for which the peer has paused the port, by priority, obeyed or not.
    #[must_use]
    pub fn received_ticks(&self, now: Ticks) -> [u64; CLASSES] {
        self.timers.paused_ticks(now)
    }

    /// Whether the watchdog's check of the queues is due.
    #[inline]
    #[must_use]
    pub fn is_check_due(&self, now: Ticks) -> bool {
        self.watchdog.as_ref().is_some_and(|watchdog| watchdog.is_due(now))
    }

    /// Instant of the watchdog's next check of the queues: far in the future on a port without a watchdog.
    #[must_use]
    pub fn next_check(&self) -> Ticks {
        self.watchdog.as_ref().map_or(Ticks(u64::MAX), Watchdog::due)
    }

    /// Runs the watchdog's check. `waiting` are the queues that hold frames now, and `sent` the total frames that each
    /// queue has sent.
    pub fn check(&mut self, now: Ticks, waiting: ClassSet, sent: &[u64; CLASSES]) -> WatchdogEvents {
        let Some(watchdog) = &mut self.watchdog else { return WatchdogEvents::default() };
        watchdog.tick(now, waiting, sent, &self.timers.paused_queue_ticks(now))
    }

    /// Queues in a storm.
    #[must_use]
    pub fn storm(&self) -> ClassSet {
        self.watchdog.as_ref().map_or(ClassSet::EMPTY, Watchdog::storm)
    }

    /// Queues whose pauses the watchdog ignores.
    #[must_use]
    pub fn ignoring(&self) -> ClassSet {
        self.watchdog.as_ref().map_or(ClassSet::EMPTY, Watchdog::ignoring)
    }

    /// Queues whose frames the watchdog discards.
    #[inline]
    #[must_use]
    pub fn dropping(&self) -> ClassSet {
        self.watchdog.as_ref().map_or(ClassSet::EMPTY, Watchdog::dropping)
    }

    /// Records that the link went down at `now`: the pauses end in both directions.
    pub fn link_down(&mut self, now: Ticks) {
        self.timers.clear(now);
        self.arrived = PfcFrame::default();
        self.shut(now);
    }

    /// Records that the port sends no more at `now`, although it may have a link: its own pauses end. Those of its peer
    /// go on, as the peer remembers them.
    pub fn shut(&mut self, now: Ticks) {
        self.generator.link_down(now);
        if let Some(obedience) = &mut self.obedience {
            obedience.clear();
        }
    }

    /// Whether no timer runs: no XOFF must be refreshed, no pause must end, and the watchdog sees no storm. If the port
    /// `can_send`, no PFC frame is due either.
    #[must_use]
    pub fn is_at_rest(&self, can_send: bool, now: Ticks) -> bool {
        let is_told = self.xoff().is_empty() && (!can_send || self.due(now).is_none());
        let is_free = self.arrived.enabled.is_empty() && self.timers.paused_at(now).is_empty();
        is_told && is_free && self.storm().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pfc::WatchdogAction;

    /// Ticks per second. At this rate a quantum of 512 bits lasts one tick.
    const HZ: u64 = 1_000_000;
    const RATE: BitRate = BitRate(512_000_000);
    const MS: u64 = HZ / 1000;

    fn watchdog(action: WatchdogAction) -> WatchdogSpec {
        WatchdogSpec { detection: Nanos(20_000_000), restoration: Nanos(20_000_000), action }
    }

    /// A port whose group 3 and queue 4 are lossless: priority 4 of a received frame pauses queue 3, and 3 queue 4.
    fn spec(mode: PfcMode) -> PortPfcSpec {
        PortPfcSpec {
            mode,
            lossless_groups: ClassSet::only(3),
            lossless_queues: ClassSet::only(4),
            map: PriorityMap::new([0, 1, 2, 4, 3, 5, 6, 7]),
            rate: RATE,
            reaction: Nanos(1000),
            watchdog: Some(watchdog(WatchdogAction::Drop)),
        }
    }

    fn port() -> PortPfc {
        PortPfc::new(&spec(PfcMode::Symmetric), HZ)
    }

    fn frame(enabled: ClassSet, quanta: u16) -> PfcFrame {
        PfcFrame { enabled, quanta: [Quanta(quanta); CLASSES] }
    }

    /// Pauses all priorities and runs the watchdog's checks from `from` to `to`, while queue 4 holds frames.
    fn storm(pfc: &mut PortPfc, from: u64, to: u64) {
        for now in (from..to).step_by(MS as usize / 4).map(Ticks) {
            pfc.receive_pause(&frame(ClassSet::ALL, u16::MAX), now);
            if pfc.is_check_due(now) {
                pfc.check(now, ClassSet::only(4), &[0; CLASSES]);
            }
        }
    }

    #[test]
    fn class_that_becomes_lossy_ends_its_pauses_in_both_directions() {
        let mut pfc = port();
        pfc.set_xoff(ClassSet::only(3));
        pfc.sent(&pfc.due(Ticks(0)).expect("XOFF"), Ticks(0));
        storm(&mut pfc, 0, 30 * MS);
        assert_eq!((pfc.storm(), pfc.stopped_queues(Ticks(30 * MS))), (ClassSet::only(4), ClassSet::EMPTY));
        assert_eq!(pfc.set_lossless_queues(ClassSet::EMPTY), ClassSet::only(4), "its storm has ended");
        pfc.set_lossless_groups(ClassSet::EMPTY);
        let xon = pfc.due(Ticks(31 * MS)).expect("XON");
        assert_eq!((xon.enabled, xon.quanta[3]), (ClassSet::only(3), Quanta(0)));
        pfc.sent(&xon, Ticks(31 * MS));
        assert_eq!(pfc.set_xoff(ClassSet::only(3)), ClassSet::EMPTY);
        assert_eq!((pfc.due(Ticks(32 * MS)), pfc.stopped_queues(Ticks(32 * MS))), (None, ClassSet::EMPTY));
        // Lossless again, and the peer's pause is the one that it remembers.
        assert_eq!(pfc.set_lossless_queues(ClassSet::only(4)), ClassSet::EMPTY);
        pfc.set_lossless_groups(ClassSet::only(3));
        assert_eq!(pfc.set_xoff(ClassSet::only(3)), ClassSet::only(3));
        assert_eq!(pfc.stopped_queues(Ticks(32 * MS)), ClassSet::only(4));
        storm(&mut pfc, 32 * MS, 51 * MS);
        assert_eq!(pfc.storm(), ClassSet::EMPTY, "evidence of a storm begins anew");
        storm(&mut pfc, 51 * MS, 55 * MS);
        assert_eq!(pfc.storm(), ClassSet::only(4));
    }

    #[test]
    fn xoff_is_limited_to_generated_priorities_and_returns_fresh_ones() {
        let mut pfc = port();
        assert_eq!(pfc.generated(), ClassSet::only(3));
        assert_eq!(pfc.set_xoff(ClassSet::ALL), ClassSet::only(3));
        assert_eq!(pfc.set_xoff(ClassSet::ALL), ClassSet::EMPTY, "XOFF already");
        let due = pfc.due(Ticks(0)).expect("XOFF is due");
        assert_eq!((due.enabled, due.quanta[3]), (ClassSet::only(3), Quanta(u16::MAX)));
        pfc.sent(&due, Ticks(0));
        assert_eq!((pfc.due(Ticks(1)), pfc.sent_ticks(Ticks(5))[3]), (None, 5));
        let mut off = PortPfc::new(&spec(PfcMode::Off), HZ);
        assert_eq!(
            (off.set_xoff(ClassSet::ALL), off.xoff(), off.due(Ticks(0))),
            (ClassSet::EMPTY, ClassSet::EMPTY, None)
        );
    }

    #[test]
    fn pause_stops_the_mapped_obeyed_queue_until_its_time_from_the_next_poll_ends() {
        let mut pfc = port();
        pfc.receive_pause(&frame(ClassSet::ALL, 100), Ticks(1000));
        assert_eq!(pfc.stopped_queues(Ticks(1000)), ClassSet::only(4), "at once, and no lossy queue");
        assert_eq!(pfc.stopped_queues_at(Ticks(1500)), ClassSet::only(4), "its time has not begun");
        pfc.start_pauses(Ticks(1050));
        assert_eq!(pfc.paused(Ticks(1150)), ClassSet::ALL, "obeyed or not");
        assert_eq!(pfc.stopped_queues_at(Ticks(1150)), ClassSet::only(4));
        pfc.start_pauses(Ticks(1150));
        assert_eq!(pfc.stopped_queues(Ticks(1151)), ClassSet::EMPTY, "a pause starts once");
        assert_eq!(pfc.received_ticks(Ticks(2000)), [151; CLASSES]);
    }

    #[test]
    fn asymmetric_port_obeys_all_priorities_and_port_without_pfc_none() {
        for (mode, stopped) in [(PfcMode::Asymmetric, ClassSet::ALL), (PfcMode::Off, ClassSet::EMPTY)] {
            let mut pfc = PortPfc::new(&spec(mode), HZ);
            pfc.receive_pause(&frame(ClassSet::ALL, 100), Ticks(0));
            assert_eq!((pfc.stopped_queues(Ticks(1)), pfc.paused(Ticks(1))), (stopped, ClassSet::ALL), "{mode:?}");
        }
    }

    #[test]
    fn queue_in_a_storm_ignores_its_pauses_and_drops() {
        let mut pfc = port();
        storm(&mut pfc, 0, 30 * MS);
        assert_eq!(
            (pfc.storm(), pfc.ignoring(), pfc.dropping()),
            (ClassSet::only(4), ClassSet::only(4), ClassSet::only(4))
        );
        assert_eq!(pfc.ignored(&frame(ClassSet::ALL, 1)), ClassSet::only(3), "the priority that pauses queue 4");
        let now = Ticks(30 * MS);
        assert_eq!((pfc.stopped_queues(now), pfc.stopped_queues_at(now)), (ClassSet::EMPTY, ClassSet::EMPTY));
    }

    #[test]
    fn new_watchdog_settings_keep_a_storm_and_a_removed_watchdog_ends_it() {
        let mut pfc = port();
        storm(&mut pfc, 0, 30 * MS);
        assert_eq!(pfc.set_watchdog(Some(watchdog(WatchdogAction::Alert)), HZ), ClassSet::EMPTY);
        assert_eq!(
            (pfc.storm(), pfc.ignoring(), pfc.dropping()),
            (ClassSet::only(4), ClassSet::EMPTY, ClassSet::EMPTY)
        );
        assert_eq!(pfc.set_watchdog(None, HZ), ClassSet::only(4));
        assert_eq!((pfc.storm(), pfc.is_check_due(Ticks(u64::MAX))), (ClassSet::EMPTY, false));
        let mut off = PortPfc::new(&spec(PfcMode::Off), HZ);
        off.set_watchdog(Some(watchdog(WatchdogAction::Drop)), HZ);
        assert!(!off.is_check_due(Ticks(u64::MAX)), "a port without PFC has nothing to watch");
    }

    #[test]
    fn link_down_ends_the_pauses_of_both_directions() {
        let mut pfc = port();
        pfc.set_xoff(ClassSet::only(3));
        let xoff = pfc.due(Ticks(0)).expect("XOFF is due");
        pfc.sent(&xoff, Ticks(0));
        pfc.receive_pause(&frame(ClassSet::ALL, 100), Ticks(0));
        pfc.link_down(Ticks(10));
        pfc.start_pauses(Ticks(20));
        assert_eq!((pfc.paused(Ticks(20)), pfc.stopped_queues_at(Ticks(20))), (ClassSet::EMPTY, ClassSet::EMPTY));
        assert_eq!((pfc.sent_ticks(Ticks(50))[3], pfc.received_ticks(Ticks(50))), (10, [10; CLASSES]));
        pfc.announce();
        assert_eq!(pfc.due(Ticks(50)).map(|frame| frame.enabled), Some(ClassSet::only(3)), "the next peer hears XOFF");
    }

    #[test]
    fn port_is_at_rest_without_xoff_pause_storm_and_due_frame() {
        let mut pfc = port();
        assert!(pfc.is_at_rest(true, Ticks(0)));
        pfc.announce();
        assert!(!pfc.is_at_rest(true, Ticks(0)) && pfc.is_at_rest(false, Ticks(0)), "the frame leaves by no link");
        let xon = pfc.due(Ticks(0)).expect("an announcement is due");
        pfc.sent(&xon, Ticks(0));
        pfc.set_xoff(ClassSet::only(3));
        assert!(!pfc.is_at_rest(false, Ticks(0)), "XOFF");
        pfc.set_xoff(ClassSet::EMPTY);
        pfc.receive_pause(&frame(ClassSet::only(7), 100), Ticks(0));
        assert!(!pfc.is_at_rest(false, Ticks(0)), "a pause whose end the gauges must show");
        pfc.start_pauses(Ticks(0));
        assert!(pfc.is_at_rest(false, Ticks(101)));
        storm(&mut pfc, MS, 31 * MS);
        pfc.link_down(Ticks(31 * MS));
        assert!(!pfc.is_at_rest(false, Ticks(31 * MS)), "the watchdog has yet to see the end of the storm");
    }
}
