//! The thread of mirrors: it takes copies from the lcores and exports them.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::config::Config;
use crate::mirror::facts::SwitchFacts;
use crate::mirror::{Board, Exporter, Failing, Inject, MirrorConfig};
use crate::plan::exception::{EXCEPTION_FRAMES, ExceptionLink, ExceptionPort, exception_channel};
use crate::plan::mirror::{CopyFrame, MirrorSpec};
use crate::plan::spec::SwitchSpec;
use crate::plan::{Counters, LcoreControl};
use crate::pulse::{PERIOD, Pulse};
use crate::route::InjectTo;
use crate::sync::{AtomicBool, Ordering};
use crate::units::{Nanos, Ticks};

/// Name of the thread.
const NAME: &str = "mirror";
/// Time between two looks at the rings while copies come, while there are sessions, and without sessions.
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(5);
const PARKED: Duration = PERIOD;
/// Interval at which the state is published.
const PUBLISH: Nanos = Nanos(100_000_000);
/// Longest time to wait for the writers of files at the end. A disk that hangs may hold them for ever.
const END_TIME: Duration = Duration::from_secs(2);
/// Interval between two looks whether they have ended.
const END_LOOK: Duration = Duration::from_millis(1);
/// Looks at the end, so that copies that fill the rings meanwhile do not keep the thread.
const LAST_LOOKS: usize = 4;

/// The thread before it runs.
pub(super) struct Prepared {
    links: Vec<ExceptionLink<CopyFrame>>,
    switch: SwitchSpec,
    system: String,
    program: &'static str,
    config: MirrorConfig,
    board: Arc<Board>,
}

/// The running thread.
pub(super) struct MirrorThread {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Name of the system and sessions that the thread is to have from now on.
    wanted: Mutex<Option<Wanted>>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Wanted {
    facts: SwitchFacts,
    config: MirrorConfig,
    spec: MirrorSpec,
}

impl Shared {
    fn wanted(&self) -> std::sync::MutexGuard<'_, Option<Wanted>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the thread of the switch of `config`, which is called `system`, and the lcores' ends of its rings.
pub(super) fn prepare(
    config: &Config,
    system: &str,
    program: &'static str,
) -> (Prepared, Vec<ExceptionPort<CopyFrame>>) {
    let switch = config.switch.clone();
    let longest = switch.ports.iter().map(|port| usize::from(port.mtu) + 14 + 8).max().unwrap_or_default();
    let (ends, links) = (0..switch.lcores).map(|_| exception_channel(longest)).unzip();
    let (system, config) = (system.to_owned(), config.mirror.clone());
    (Prepared { links, switch, system, program, config, board: Arc::default() }, ends)
}

impl Prepared {
    /// The state of the sessions.
    pub fn board(&self) -> Arc<Board> {
        self.board.clone()
    }

    /// Starts the thread. The lcores write `counters`, and date copies by `clock`, whose rate is `hz`.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(
        self,
        control: &Arc<LcoreControl>,
        counters: &Arc<Counters>,
        clock: fn() -> Ticks,
        hz: u64,
    ) -> std::io::Result<MirrorThread> {
        let exporter = Exporter::new(&self.switch, &self.system, counters.clone()).of_program(self.program);
        self.start_with(exporter, control, clock, hz)
    }

    /// Starts the thread with `exporter`, otherwise like [`Prepared::start`].
    fn start_with(
        self,
        exporter: Exporter,
        control: &Arc<LcoreControl>,
        clock: fn() -> Ticks,
        hz: u64,
    ) -> std::io::Result<MirrorThread> {
        let shared = Arc::new(Shared::default());
        let facts = SwitchFacts::new(&self.switch, &self.system);
        *shared.wanted() = Some(Wanted { facts, config: self.config, spec: self.switch.mirror.clone() });
        let worker = Worker {
            pulse: Pulse::start(NAME),
            exporter,
            owners: self.switch.ports.iter().map(|port| port.lcore).collect(),
            links: self.links,
            taken: Vec::new(),
            control: control.clone(),
            shared: shared.clone(),
            board: self.board,
            failing: Failing::default(),
            start: Instant::now(),
            published: None,
            wall: WallClock { clock, hz: hz.max(1), at: Ticks(0), wall: 0, until: None },
        };
        let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(move || worker.run())?;
        Ok(MirrorThread { shared, thread })
    }
}

/// Access to the thread.
pub(super) struct MirrorHandle {
    shared: Arc<Shared>,
    thread: Thread,
}

impl MirrorHandle {
    /// Replaces the sessions, the name of the system and the facts of its ports. The lcores must get theirs after this
    /// call: copies of sessions that the thread does not know are discarded.
    pub fn configure(&self, system: &str, config: &MirrorConfig, switch: &SwitchSpec) {
        let (facts, config, spec) = (SwitchFacts::new(switch, system), config.clone(), switch.mirror.clone());
        *self.shared.wanted() = Some(Wanted { facts, config, spec });
        self.thread.unpark();
    }
}

impl MirrorThread {
    /// Access to the thread.
    pub fn handle(&self) -> MirrorHandle {
        MirrorHandle { shared: self.shared.clone(), thread: self.thread.thread().clone() }
    }

    /// Exports the copies that the lcores have made, and ends the thread. The lcores should have ended, or no longer
    /// copy. Writers of files that do not end in two seconds are left: a disk that hangs must not keep the switch.
    pub fn end(self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // A panic of the thread has been printed, and the switch ends anyway.
        let _ = self.thread.join();
    }
}

/// The time of day by an lcore's clock.
struct WallClock {
    clock: fn() -> Ticks,
    hz: u64,
    /// A point on both clocks.
    at: Ticks,
    wall: u64,
    /// Time at which another point is needed.
    until: Option<Ticks>,
}

impl WallClock {
    /// Readings of both clocks. The one that took least time counts: the thread may lose its CPU during the others.
    const READINGS: usize = 4;

    /// Compares the clocks once a second. Between, differences of times are exact.
    fn compare(&mut self) {
        let now = (self.clock)();
        if self.until.is_some_and(|until| now < until && now >= self.at) {
            return;
        }
        let reading = || {
            let before = (self.clock)();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let took = (self.clock)().0.saturating_sub(before.0);
            (took, Ticks(before.0 + took / 2), wall.as_nanos() as u64)
        };
        let best = (0..Self::READINGS).map(|_| reading()).min_by_key(|(took, ..)| *took);
        if let Some((_, at, wall)) = best {
            (self.at, self.wall, self.until) = (at, wall, Some(Ticks(at.0.saturating_add(self.hz))));
        }
    }

    /// Nanoseconds since 1970 in UTC.
    fn time_of(&self, at: Ticks) -> u64 {
        let nanos = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(self.hz)) as u64;
        if at < self.at {
            self.wall.saturating_sub(nanos(self.at.0 - at.0))
        } else {
            self.wall.saturating_add(nanos(at.0 - self.at.0))
        }
    }
}

/// Sends by the lcore that owns the port.
struct Outputs<'a> {
    links: &'a mut [ExceptionLink<CopyFrame>],
    owners: &'a [u8],
}

impl Inject for Outputs<'_> {
    fn inject(&mut self, port: u8, bytes: &[u8]) -> bool {
        let owner = self.owners.get(usize::from(port)).copied().map(usize::from);
        let link = owner.and_then(|owner| self.links.get_mut(owner));
        link.is_some_and(|link| link.inject(bytes, InjectTo::Link(port), 0))
    }
}

struct Worker {
    pulse: Pulse,
    exporter: Exporter,
    links: Vec<ExceptionLink<CopyFrame>>,
    /// The lcore that sends by each port.
    owners: Vec<u8>,
    /// Copies of a look, with the index of their lcore.
    taken: Vec<(usize, Box<CopyFrame>)>,
    control: Arc<LcoreControl>,
    shared: Arc<Shared>,
    board: Arc<Board>,
    failing: Failing,
    start: Instant,
    published: Option<Nanos>,
    wall: WallClock,
}

impl Worker {
    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.pulse.beat();
            let taken = self.look();
            std::thread::park_timeout(match () {
                () if taken > 0 => BUSY,
                () if self.exporter.is_active() => IDLE,
                () => PARKED,
            });
        }
        for _ in 0..LAST_LOOKS {
            if self.look() == 0 {
                break;
            }
        }
        self.end_files();
        self.publish();
    }

    fn publish(&mut self) {
        let view = self.exporter.view();
        let events = self.failing.next(&view, self.now());
        self.board.publish(view, events);
    }

    /// Ends the writers of files, and waits a limited time for their last copies.
    fn end_files(&mut self) {
        self.exporter.close_files();
        let end = Instant::now() + END_TIME;
        while !self.exporter.unfinished().is_empty() && Instant::now() < end {
            self.exporter.flush(self.now());
            std::thread::sleep(END_LOOK);
        }
        self.exporter.flush(self.now());
        for path in self.exporter.unfinished() {
            super::warn(&format!(
                "`{}`: not written within {}s, and its last copies are lost; check whether its disk hangs",
                path.display(),
                END_TIME.as_secs()
            ));
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Looks at everything once. Returns the number of copies.
    fn look(&mut self) -> usize {
        let now = self.now();
        self.follow(now);
        self.wall.compare();
        for (lcore, link) in self.links.iter_mut().enumerate() {
            self.taken.extend(std::iter::from_fn(|| link.receive()).take(EXCEPTION_FRAMES).map(|copy| (lcore, copy)));
        }
        // Copies of different lcores in the order of their events.
        self.taken.sort_by_key(|(_, copy)| copy.at);
        let taken = std::mem::take(&mut self.taken);
        let count = taken.len();
        for (_, copy) in &taken {
            if self.exporter.is_stale(copy) {
                // The sessions were replaced after this look began.
                self.follow(now);
            }
            let mut outputs = Outputs { links: &mut self.links, owners: &self.owners };
            self.exporter.take(copy, self.wall.time_of(copy.at), now, &mut outputs);
        }
        self.give_back(taken);
        self.exporter.tick(self.control.links(), now);
        self.exporter.flush(now);
        if self.published.is_none_or(|before| now.0 - before.0 >= PUBLISH.0) {
            self.published = Some(now);
            self.publish();
        }
        count
    }

    /// Returns the buffers of copies to their lcores.
    fn give_back(&mut self, mut taken: Vec<(usize, Box<CopyFrame>)>) {
        for (lcore, copy) in taken.drain(..) {
            self.links[lcore].give_back(copy);
        }
        self.taken = taken;
    }

    /// Replaces the sessions if others are wanted.
    fn follow(&mut self, now: Nanos) {
        let wanted = self.shared.wanted().take();
        if let Some(Wanted { facts, config, spec }) = wanted {
            self.exporter.set_facts(facts);
            self.exporter.configure(&config, &spec, now);
            self.published = None;
        }
    }
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
