use super::*;
use proptest::prelude::*;

/// One tick is 0.1 ms.
const HZ: u64 = 10_000;
const MS: u64 = HZ / 1000;

fn spec(action: WatchdogAction) -> WatchdogSpec {
    WatchdogSpec { detection: Nanos(200_000_000), restoration: Nanos(200_000_000), action }
}

fn set(bits: u8) -> ClassSet {
    ClassSet::from_bits(bits)
}

/// A watchdog with times of 200 ms and 200 ms, which looks every 50 ms, and the queues that it observes.
struct Bed {
    watchdog: Watchdog,
    now: u64,
    backlog: ClassSet,
    pausing: ClassSet,
    sent: [u64; 8],
    paused: [u64; 8],
    /// Events: queue, time in ms, and whether a storm began (true) or ended.
    events: Vec<(usize, u64, bool)>,
}

impl Bed {
    fn new(action: WatchdogAction) -> Self {
        let watchdog = Watchdog::new(spec(action), ClassSet::ALL, HZ);
        Self {
            watchdog,
            now: 0,
            backlog: ClassSet::ALL,
            pausing: ClassSet::EMPTY,
            sent: [0; 8],
            paused: [0; 8],
            events: Vec::new(),
        }
    }

    /// Runs for `ms` while the peer pauses `pausing`, and polls at every tick. Queues with frames send when they are
    /// not paused.
    fn run(&mut self, ms: u64, pausing: u8) {
        self.pausing = set(pausing);
        for _ in 0..ms * MS {
            self.look();
            self.pass(1);
            (self.backlog - self.pausing).iter().for_each(|queue| self.sent[queue] += 1);
        }
    }

    /// Stands still for `ms`: the lcore does not poll, and no queue sends. The timers pause `pausing` for the first
    /// `held` ms.
    fn stall(&mut self, ms: u64, pausing: u8, held: u64) {
        self.pausing = set(pausing);
        self.pass(held * MS);
        self.pausing = ClassSet::EMPTY;
        self.pass((ms - held) * MS);
    }

    /// Pauses all queues for `on` ticks and then for `off` ticks none. The gap is too short for a frame. Polls at every
    /// tick.
    fn hold(&mut self, on: u64, off: u64) {
        for (ticks, pausing) in [(on, ClassSet::ALL), (off, ClassSet::EMPTY)] {
            self.pausing = pausing;
            for _ in 0..ticks {
                self.look();
                self.pass(1);
            }
        }
    }

    fn pass(&mut self, ticks: u64) {
        self.now += ticks;
        self.pausing.iter().for_each(|queue| self.paused[queue] += ticks);
    }

    fn look(&mut self) {
        if self.watchdog.is_due(Ticks(self.now)) {
            let events = self.watchdog.tick(Ticks(self.now), self.backlog, &self.sent, &self.paused);
            let ms = self.now / MS;
            self.events.extend(events.detected.iter().map(|queue| (queue, ms, true)));
            self.events.extend(events.restored.iter().map(|queue| (queue, ms, false)));
        }
    }
}

#[test]
fn a_storm_is_found_after_its_time_and_restored_after_quiet() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.run(1010, 0);
    bed.run(500, 1 << 3);
    bed.run(1000, 0);
    // The pause began at 1010 and was seen from 1050 on; it ended at 1510, which was seen at 1550.
    assert_eq!(bed.events, [(3, 1250, true), (3, 1750, false)]);
}

#[test]
fn a_storm_shorter_than_its_time_does_nothing() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    for _ in 0..20 {
        bed.run(199, 0xff);
        bed.run(7, 0);
    }
    assert_eq!(bed.events, []);
}

#[test]
fn a_pause_of_more_than_99_percent_is_a_storm_and_one_of_less_is_none() {
    for (on, off, storms) in [(999, 5, true), (980, 20, false)] {
        let mut bed = Bed::new(WatchdogAction::Drop);
        for _ in 0..100 {
            bed.hold(on, off);
        }
        assert_eq!(!bed.watchdog.storm().is_empty(), storms, "{on} of {}", on + off);
    }
}

#[test]
fn a_queue_without_frames_or_that_sends_is_in_no_storm() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.backlog = !ClassSet::only(3);
    for _ in 0..40 {
        bed.run(50, 0xff);
        bed.sent[4] += 1;
    }
    assert_eq!(bed.watchdog.storm(), !set(0b1_1000));
}

#[test]
fn watchdog_detects_storms_of_watched_queues_only() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.watchdog = Watchdog::new(spec(WatchdogAction::Drop), set(0b1_1000), HZ);
    bed.run(1000, 0xff);
    assert_eq!(bed.watchdog.storm(), set(0b1_1000));
}

#[test]
fn eight_storms_at_once_begin_and_end_once() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.run(10_000, 0xff);
    bed.run(10_000, 0);
    let all = |ms, began| (0..8).map(move |queue| (queue, ms, began));
    assert_eq!(bed.events, all(200, true).chain(all(10_200, false)).collect::<Vec<_>>());
}

#[test]
fn storm_with_quiet_shorter_than_restoration_continues() {
    let mut bed = Bed::new(WatchdogAction::Forward);
    bed.run(300, 1 << 3);
    for _ in 0..50 {
        bed.run(190, 0);
        bed.run(1, 1 << 3);
    }
    assert_eq!(bed.events, [(3, 200, true)]);
    bed.run(1000, 0);
    assert_eq!(bed.events.len(), 2);
}

#[test]
fn storm_after_restoration_needs_the_full_detection_time() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.run(400, 1 << 3);
    bed.run(200, 0);
    bed.run(1, 0);
    assert_eq!(bed.events, [(3, 200, true), (3, 600, false)]);
    bed.run(599, 1 << 3);
    assert_eq!(bed.events[2..], [(3, 850, true)], "since 601, seen from 650 on");
}

#[test]
fn a_queue_that_loses_its_frames_in_a_storm_stays_in_it() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.run(300, 1 << 3);
    bed.backlog = ClassSet::EMPTY;
    bed.run(3000, 1 << 3);
    assert_eq!((bed.watchdog.storm(), bed.events.len()), (ClassSet::only(3), 1));
}

#[test]
fn watchdog_action_selects_dropping_and_ignoring() {
    for (action, dropping, ignoring) in
        [(WatchdogAction::Drop, 8, 8), (WatchdogAction::Forward, 0, 8), (WatchdogAction::Alert, 0, 0)]
    {
        let mut bed = Bed::new(action);
        bed.run(150, 1 << 3);
        assert_eq!([bed.watchdog.storm(), bed.watchdog.dropping(), bed.watchdog.ignoring()], [ClassSet::EMPTY; 3]);
        bed.run(150, 1 << 3);
        let found = [bed.watchdog.storm(), bed.watchdog.dropping(), bed.watchdog.ignoring()];
        assert_eq!(found, [8, dropping, ignoring].map(set), "{action:?}");
    }
}

#[test]
fn lcore_stall_does_not_count_as_a_storm() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    // Timers of a fast link expire while the lcore stands still.
    bed.run(100, 0xff);
    bed.stall(1000, 0xff, 3);
    bed.run(100, 0);
    // Timers of a slow link do not. The lcore now receives the XON that arrived meanwhile, and the queues send.
    bed.run(100, 0xff);
    bed.stall(320, 0xff, 320);
    bed.run(100, 0);
    assert_eq!(bed.events, []);
}

#[test]
fn storm_that_outlasts_an_lcore_stall_is_found_after_it() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.run(100, 1 << 3);
    bed.stall(320, 1 << 3, 320);
    bed.run(100, 1 << 3);
    assert_eq!(bed.events, [(3, 470, true)]);
}

#[test]
fn lcore_stall_does_not_count_as_quiet_time() {
    let mut bed = Bed::new(WatchdogAction::Drop);
    bed.run(300, 1 << 3);
    bed.stall(5000, 0, 0);
    bed.run(100, 1 << 3);
    assert_eq!(bed.events, [(3, 200, true)]);
}

#[test]
fn watchdog_at_extreme_times_does_not_overflow() {
    let longest =
        WatchdogSpec { detection: Nanos(u64::MAX), restoration: Nanos(u64::MAX), action: WatchdogAction::Drop };
    let shortest = WatchdogSpec { detection: Nanos(0), restoration: Nanos(0), action: WatchdogAction::Drop };
    for spec in [longest, shortest] {
        for hz in [0, 1, u64::MAX] {
            let mut watchdog = Watchdog::new(spec, ClassSet::ALL, hz);
            for now in [0, 1, 2, u64::MAX / 2, u64::MAX - 1, u64::MAX, u64::MAX, 5] {
                watchdog.tick(Ticks(now), ClassSet::ALL, &[0; 8], &[now; 8]);
            }
        }
    }
}

#[test]
fn interval_is_at_most_a_quarter_of_the_detection_time() {
    for (detection, interval) in [(200, 50), (100, 25), (400, 100), (410, 82), (5000, 100)] {
        let detection = Nanos(detection * 1_000_000);
        let watchdog = Watchdog::new(WatchdogSpec { detection, ..spec(WatchdogAction::Drop) }, ClassSet::ALL, HZ);
        assert_eq!(watchdog.interval, interval * MS, "{detection}");
    }
}

/// Length of the random schedules in ticks.
const END: usize = 8000;

/// The schedule of one queue, tick by tick.
#[derive(Debug, Clone)]
struct Story {
    paused: Vec<bool>,
    backlog: Vec<bool>,
    sends: bool,
}

/// Generates alternating stretches of true and false.
fn stretches(on: std::ops::Range<usize>, off: impl Strategy<Value = usize>) -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec((on, off), 40).prop_map(|stretches| {
        let ticks = stretches.into_iter().flat_map(|(on, off)| [(true, on), (false, off)]);
        let mut line: Vec<bool> = ticks.flat_map(|(on, len)| std::iter::repeat_n(on, len)).take(END).collect();
        line.resize(END, false);
        line
    })
}

fn story() -> impl Strategy<Value = Story> {
    let paused = stretches(0..1500, prop_oneof![3 => 0_usize..6, 2 => 0_usize..150, 2 => 0_usize..900]);
    let backlog = stretches(0..6000, 0_usize..200);
    (paused, backlog, any::<bool>()).prop_map(|(paused, backlog, sends)| Story { paused, backlog, sends })
}

/// The state of a queue at a look.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: u64,
    backlog: bool,
    sent: u64,
    paused: u64,
    late: bool,
}

/// Runs the schedules of eight queues. Returns the state of the queues and the events of every look.
fn watch(watchdog: &mut Watchdog, stories: &[Story], stalls: &[(usize, usize)]) -> Vec<([Look; 8], WatchdogEvents)> {
    let (mut sent, mut paused, mut looks, mut last) = ([0_u64; 8], [0_u64; 8], Vec::new(), 0);
    for tick in 0..END {
        let now = tick as u64;
        let asleep = stalls.iter().any(|&(from, len)| (from..from + len).contains(&tick));
        let backlog: ClassSet = (0..8).filter(|&q| stories[q].backlog[tick]).collect();
        if !asleep && watchdog.is_due(Ticks(now)) {
            let late = now - last > 2 * watchdog.interval;
            let shown = std::array::from_fn(|q| Look {
                at: now,
                backlog: backlog.contains(q),
                sent: sent[q],
                paused: paused[q],
                late,
            });
            looks.push((shown, watchdog.tick(Ticks(now), backlog, &sent, &paused)));
            last = now;
        }
        for queue in 0..8 {
            let story = &stories[queue];
            paused[queue] += u64::from(story.paused[tick]);
            sent[queue] += u64::from(story.sends && !asleep && story.backlog[tick] && !story.paused[tick]);
        }
    }
    looks
}

/// Whether the last look detects a storm, by definition: since some earlier look, every look is evidence, and the
/// pauses sum to the detection time.
fn is_storm(looks: &[Look], detection: u64) -> bool {
    let last = looks.len() - 1;
    (0..last).any(|first| {
        let start = looks[first];
        let evidence = (first + 1..=last).all(|index| {
            let (look, before) = (looks[index], looks[index - 1]);
            let paused_all_the_time = look.paused - before.paused == look.at - before.at;
            look.backlog
                && look.sent == start.sent
                && (look.paused - start.paused) as f64 > 0.99 * (look.at - start.at) as f64
                && (!look.late || paused_all_the_time)
        });
        start.backlog && evidence && !looks[last].late && looks[last].paused - start.paused >= detection
    })
}

/// Whether the last look ends a storm, by definition: since some look at least a restoration time ago, the queue was
/// not paused.
fn is_quiet(looks: &[Look], restoration: u64) -> bool {
    let last = looks[looks.len() - 1];
    (0..looks.len() - 1).any(|first| {
        looks[first + 1..].iter().all(|look| !look.late && look.paused == looks[first].paused)
            && last.at - looks[first].at >= restoration
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn watchdog_events_agree_with_the_definition_of_a_storm(
        stories in prop::collection::vec(story(), 8),
        stalls in prop::collection::vec((0..END, 0_usize..500), 0..6),
        (detection, restoration) in (40_u64..800, 1_u64..800),
        watched: u8,
    ) {
        let spec = WatchdogSpec {
            detection: Nanos(detection * 1_000_000_000 / HZ),
            restoration: Nanos(restoration * 1_000_000_000 / HZ),
            action: WatchdogAction::Drop,
        };
        let looks = watch(&mut Watchdog::new(spec, set(watched), HZ), &stories, &stalls);
        for queue in 0..8 {
            let (mut storm, mut since) = (false, 0);
            let line: Vec<Look> = looks.iter().map(|(shown, _)| shown[queue]).collect();
            for (index, (_, events)) in looks.iter().enumerate() {
                let known = &line[since..=index];
                let turns = set(watched).contains(queue) && known.len() > 1
                    && if storm { is_quiet(known, restoration) } else { is_storm(known, detection) };
                prop_assert_eq!(events.detected.contains(queue), turns && !storm, "queue {} at {}", queue, line[index].at);
                prop_assert_eq!(events.restored.contains(queue), turns && storm, "queue {} at {}", queue, line[index].at);
                if turns {
                    (storm, since) = (!storm, index);
                }
            }
        }
    }

    #[test]
    fn watchdog_events_of_a_queue_do_not_depend_on_other_queues(stories in prop::collection::vec(story(), 8)) {
        let idle = Story { paused: vec![false; END], backlog: vec![false; END], sends: false };
        let watchdog = Watchdog::new(spec(WatchdogAction::Drop), ClassSet::ALL, HZ);
        let together = watch(&mut watchdog.clone(), &stories, &[]);
        for queue in 0..8 {
            let mut alone = vec![idle.clone(); 8];
            alone[queue] = stories[queue].clone();
            let bit = ClassSet::only(queue);
            for ((_, events), (_, alone)) in together.iter().zip(watch(&mut watchdog.clone(), &alone, &[])) {
                let of_this = WatchdogEvents { detected: events.detected & bit, restored: events.restored & bit };
                prop_assert_eq!(of_this, alone);
            }
        }
    }

    #[test]
    fn continuous_pause_is_found_within_one_interval_of_detection_time(
        detection_us in 400_u64..10_000_000,
        hz in prop_oneof![Just(1_000_000_000_000_u64), 1_000_000_u64..4_000_000_000],
        begins in 0.0..4.0_f64,
    ) {
        let detection = Nanos(detection_us * 1000);
        let mut watchdog = Watchdog::new(WatchdogSpec { detection, ..spec(WatchdogAction::Drop) }, ClassSet::only(0), hz);
        let begins = (begins * watchdog.interval as f64) as u64;
        let mut found = None;
        while found.is_none() {
            let now = watchdog.due;
            let events = watchdog.tick(now, ClassSet::only(0), &[7; 8], &[now.0.saturating_sub(begins); 8]);
            found = (events.detected == ClassSet::only(0)).then(|| now.0 - begins);
            prop_assert!(now.0 < begins + 3 * watchdog.detection, "not found");
        }
        let took = found.unwrap_or(0);
        // Intervals are whole ticks, rounded up.
        let rounding = watchdog.detection / watchdog.interval + 1;
        prop_assert!(took >= watchdog.detection, "{} of {}", took, watchdog.detection);
        prop_assert!(took <= watchdog.detection + watchdog.interval + rounding, "{} of {}", took, watchdog.detection);
    }
}
