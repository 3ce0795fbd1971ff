//! The list of faults, as the control thread keeps it. Each change goes to all lcores or to none.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MOST_FAULTS;
use super::counters::{FaultCounters, PFC_ROW, ROWS};
use super::spec::{Fault, FaultKind, FaultVerb, Toward};
use super::table::{ClassReader, Entry, FaultTable, storm_gap, to_ticks};
use crate::plan::SwitchSpec;
use crate::plan::mailbox::{Receiver, Sender, mailbox};
use crate::sets::CLASSES;
use crate::units::{BitRate, Nanos, Ticks};

/// Longest time for which a reordered frame waits for later ones.
pub const REORDER_WAIT: Nanos = Nanos(10_000_000);

/// The time of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultState {
    /// It begins later.
    Waiting,
    /// It acts.
    Active,
    /// Its time is over.
    Over,
}

impl FaultState {
    /// The word in the API.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Active => "active",
            Self::Over => "over",
        }
    }
}

/// A fault of the list, with its counts.
#[derive(Debug, Clone, Copy)]
pub struct FaultStatus {
    /// Its number.
    pub id: u64,
    /// The order.
    pub fault: Fault,
    /// Whether the configuration injects it, not the API.
    pub is_configured: bool,
    /// Its time.
    pub state: FaultState,
    /// Frames that it hit, by traffic class, then MAC control frames.
    pub hits: [u64; ROWS],
    /// Frames that it let pass for lack of room.
    pub passed: u64,
}

/// The reason why a change was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There are too many faults.
    TooMany {
        /// Faults that are there and not over.
        present: usize,
    },
    /// No fault has this number.
    Unknown(u64),
    /// An lcore has not taken the change before.
    Busy,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { present } => {
                write!(f, "{present} faults are there, and at most {MOST_FAULTS} are possible")
            }
            Self::Unknown(id) => write!(f, "there is no fault {id}"),
            Self::Busy => f.write_str("an lcore has not taken the last change"),
        }
    }
}

impl Refused {
    /// The remedy, as a sentence.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::TooMany { .. } => "remove some with `holdfast fault remove ID` or DELETE /v1/faults/ID",
            Self::Unknown(_) => "`holdfast show faults` or GET /v1/faults lists the numbers",
            Self::Busy => "retry; check that each lcore has a CPU",
        }
    }
}

struct Listed {
    entry: Entry,
    is_configured: bool,
    /// Counts of its slot when it began.
    base: ([u64; ROWS], u64),
    told: FaultState,
}

struct Inner {
    listed: Vec<Listed>,
    classes: Vec<ClassReader>,
    senders: Vec<Sender<FaultTable>>,
    next_id: u64,
    /// Slot to look at first for the next fault. A slot stays free for as long as possible: an lcore that has not taken
    /// a change yet counts in the slots of removed faults.
    next_slot: usize,
    /// Events of faults that were removed.
    events: Vec<FaultEvent>,
}

/// The begin or the end of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultEvent {
    /// The port of the fault.
    pub port: usize,
    /// Whether the fault begins; otherwise it ends.
    pub begins: bool,
    /// The event in a sentence.
    pub text: String,
}

/// The faults of a switch. All methods may be called from any thread; none waits for an lcore.
pub struct FaultBoard {
    inner: Mutex<Inner>,
    counters: Arc<FaultCounters>,
    clock: Box<dyn Fn() -> Ticks + Send + Sync>,
    hz: u64,
    ports: Vec<(String, BitRate)>,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl fmt::Debug for FaultBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultBoard").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Lines about removed faults that wait to be taken, at most.
const MOST_EVENTS: usize = 256;

impl FaultBoard {
    /// A list for `switch` with the faults of its configuration, which begin now by `clock`, of `hz` ticks a second.
    /// Returns with it the receivers of the lcores.
    #[must_use]
    pub fn new(
        switch: &SwitchSpec,
        faults: &[Fault],
        seed: u64,
        clock: impl Fn() -> Ticks + Send + Sync + 'static,
        hz: u64,
    ) -> (Arc<Self>, Vec<Receiver<FaultTable>>) {
        let lcores = usize::from(switch.lcores);
        let (senders, receivers) = (0..lcores).map(|_| mailbox()).unzip();
        let now = clock();
        let board = Self {
            inner: Mutex::new(Inner {
                listed: Vec::new(),
                classes: ClassReader::all(switch),
                senders,
                next_id: 1,
                next_slot: 0,
                events: Vec::new(),
            }),
            counters: Arc::new(FaultCounters::new(switch.ports.len(), lcores)),
            clock: Box::new(clock),
            hz,
            ports: switch.ports.iter().map(|port| (port.name.clone(), port.rate)).collect(),
            seed,
        };
        board.list(&mut board.lock(), faults, true, now);
        (Arc::new(board), receivers)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of the lcores.
    #[must_use]
    pub fn counters(&self) -> &Arc<FaultCounters> {
        &self.counters
    }

    /// The faults as lcores get them.
    #[must_use]
    pub fn table(&self) -> FaultTable {
        self.lock().table()
    }

    /// Adds `faults`, all or none, and returns their numbers. Faults whose time is over make room.
    ///
    /// # Errors
    /// The reason why nothing was added.
    pub fn add(&self, faults: &[Fault]) -> Result<Vec<u64>, Refused> {
        let (mut inner, now) = (self.lock(), (self.clock)());
        if !inner.is_idle() {
            return Err(Refused::Busy);
        }
        let present = inner.listed.iter().filter(|listed| state(&listed.entry, now) != FaultState::Over).count();
        if present + faults.len() > MOST_FAULTS {
            return Err(Refused::TooMany { present });
        }
        self.make_room(&mut inner, faults.len(), now);
        let ids = self.list(&mut inner, faults, false, now);
        inner.publish();
        Ok(ids)
    }

    /// Removes fault `id`, or all if there is none given. Returns the number of removed faults.
    ///
    /// # Errors
    /// The reason why nothing was removed.
    pub fn remove(&self, id: Option<u64>) -> Result<usize, Refused> {
        let (mut inner, now) = (self.lock(), (self.clock)());
        let is_meant = |listed: &Listed| id.is_none_or(|id| listed.entry.id == id);
        let count = inner.listed.iter().filter(|listed| is_meant(listed)).count();
        match id {
            Some(id) if count == 0 => return Err(Refused::Unknown(id)),
            _ if !inner.is_idle() => return Err(Refused::Busy),
            _ => {}
        }
        self.drop_if(&mut inner, now, is_meant);
        inner.publish();
        Ok(count)
    }

    /// Replaces the faults of the configuration by those of another one for `switch`. The new ones begin now.
    ///
    /// # Errors
    /// The reason why nothing was replaced.
    pub fn reconfigure(&self, switch: &SwitchSpec, faults: Option<&[Fault]>) -> Result<(), Refused> {
        let (mut inner, now) = (self.lock(), (self.clock)());
        if !inner.is_idle() {
            return Err(Refused::Busy);
        }
        if let Some(faults) = faults {
            let is_kept = |listed: &Listed| !listed.is_configured && state(&listed.entry, now) != FaultState::Over;
            let present = inner.listed.iter().filter(|listed| is_kept(listed)).count();
            if present + faults.len() > MOST_FAULTS {
                return Err(Refused::TooMany { present });
            }
            self.drop_if(&mut inner, now, |listed| listed.is_configured);
            self.make_room(&mut inner, faults.len(), now);
            self.list(&mut inner, faults, true, now);
        }
        inner.classes = ClassReader::all(switch);
        inner.publish();
        Ok(())
    }

    /// All faults in the order of their numbers.
    #[must_use]
    pub fn faults(&self) -> Vec<FaultStatus> {
        let (inner, now) = (self.lock(), (self.clock)());
        inner.listed.iter().map(|listed| self.status(listed, now)).collect()
    }

    /// Number of faults of `verb` at `port` that act now.
    #[must_use]
    pub fn active(&self, port: usize, verb: FaultVerb) -> usize {
        let (inner, now) = (self.lock(), (self.clock)());
        let is_it = |entry: &Entry| entry.fault.port == port && entry.fault.kind.verb() == verb && entry.is_active(now);
        inner.listed.iter().filter(|listed| is_it(&listed.entry)).count()
    }

    /// Faults that have begun or ended since the last call.
    #[must_use]
    pub fn take_events(&self) -> Vec<FaultEvent> {
        let (mut inner, now) = (self.lock(), (self.clock)());
        let mut events = std::mem::take(&mut inner.events);
        for listed in &mut inner.listed {
            let (before, after) = (listed.told, state(&listed.entry, now));
            listed.told = after;
            if before == FaultState::Waiting && after != before {
                events.push(self.begin(listed));
            }
            if before != FaultState::Over && after == FaultState::Over {
                events.push(self.end(listed, now));
            }
        }
        events
    }

    fn begin(&self, listed: &Listed) -> FaultEvent {
        FaultEvent { port: listed.entry.fault.port, begins: true, text: self.line(listed, "begins") }
    }

    fn line(&self, listed: &Listed, what: &str) -> String {
        let port = self.port_name(listed.entry.fault.port);
        format!("fault {} {what}: {}", listed.entry.id, listed.entry.fault.text(port))
    }

    fn end(&self, listed: &Listed, now: Ticks) -> FaultEvent {
        let hits: u64 = self.status(listed, now).hits.iter().sum();
        let text = format!("{}; frames hit: {hits}", self.line(listed, "ends"));
        FaultEvent { port: listed.entry.fault.port, begins: false, text }
    }

    /// The name of port `port`.
    #[must_use]
    pub fn port_name(&self, port: usize) -> &str {
        self.ports.get(port).map_or("?", |(name, _)| name)
    }

    fn status(&self, listed: &Listed, now: Ticks) -> FaultStatus {
        let slot = usize::from(listed.entry.slot);
        let (now_hits, (base, base_passed)) = (self.counters.of_slot(slot), listed.base);
        FaultStatus {
            id: listed.entry.id,
            fault: listed.entry.fault,
            is_configured: listed.is_configured,
            state: state(&listed.entry, now),
            hits: std::array::from_fn(|row| now_hits[row].saturating_sub(base[row])),
            passed: self.counters.passed_of_slot(slot).saturating_sub(base_passed),
        }
    }

    /// Lists `faults` from `now` on, and returns their numbers.
    fn list(&self, inner: &mut Inner, faults: &[Fault], is_configured: bool, now: Ticks) -> Vec<u64> {
        let room = MOST_FAULTS.saturating_sub(inner.listed.len());
        let mut ids = Vec::new();
        for &fault in faults.iter().take(room) {
            let is_free = |slot: &usize| !inner.listed.iter().any(|listed| usize::from(listed.entry.slot) == *slot);
            let slots = (0..MOST_FAULTS).map(|index| (inner.next_slot + index) % MOST_FAULTS);
            let Some(slot) = slots.into_iter().find(is_free) else { break };
            inner.next_slot = slot + 1;
            let entry = self.entry(fault, inner.next_id, slot, now);
            let base = (self.counters.of_slot(slot), self.counters.passed_of_slot(slot));
            ids.push(entry.id);
            inner.next_id += 1;
            inner.listed.push(Listed { entry, is_configured, base, told: FaultState::Waiting });
        }
        ids
    }

    fn entry(&self, fault: Fault, id: u64, slot: usize, now: Ticks) -> Entry {
        let from = Ticks(now.0.saturating_add(to_ticks(fault.at, self.hz)));
        let until = fault.time.map_or(u64::MAX, |time| from.0.saturating_add(to_ticks(time, self.hz)));
        let rate = self.ports.get(fault.port).map_or(BitRate(1), |(_, rate)| *rate);
        let time = match fault.kind {
            FaultKind::Delay { by } => by,
            FaultKind::Late { response } => response,
            FaultKind::Reorder { .. } => REORDER_WAIT,
            FaultKind::Storm { .. } => storm_gap(rate),
            _ => Nanos(0),
        };
        Entry { id, slot: slot as u8, fault, from, until: Ticks(until), ticks: to_ticks(time, self.hz) }
    }

    /// Removes as many faults whose time is over as `count` further ones need, oldest first.
    fn make_room(&self, inner: &mut Inner, count: usize, now: Ticks) {
        let mut excess = (inner.listed.len() + count).saturating_sub(MOST_FAULTS);
        self.drop_if(inner, now, |listed| {
            let goes = excess > 0 && state(&listed.entry, now) == FaultState::Over;
            excess -= usize::from(goes);
            goes
        });
    }

    fn drop_if(&self, inner: &mut Inner, now: Ticks, mut is_meant: impl FnMut(&Listed) -> bool) {
        let (mut kept, mut events) = (Vec::new(), Vec::new());
        for listed in inner.listed.drain(..) {
            if !is_meant(&listed) {
                kept.push(listed);
                continue;
            }
            let state = state(&listed.entry, now);
            if state == FaultState::Active && listed.told == FaultState::Waiting {
                events.push(self.begin(&listed));
            }
            if state != FaultState::Waiting && listed.told != FaultState::Over {
                events.push(self.end(&listed, now));
            }
        }
        inner.listed = kept;
        let room = MOST_EVENTS.saturating_sub(inner.events.len());
        inner.events.extend(events.into_iter().take(room));
    }

    /// Frames that faults hit, by port, verb, direction and row, of those that are not zero. Held frames that were
    /// lost at the end follow as losses.
    #[must_use]
    pub fn hits(&self) -> Vec<Hit> {
        let mut all = Vec::new();
        for port in 0..self.ports.len() {
            for (verb, _, _) in FaultVerb::TABLE {
                for (_, toward) in Toward::TABLE {
                    let rows = self.counters.of_port(port, verb, toward);
                    all.extend((0..ROWS).map(|row| Hit::new(port, verb, Some(toward), row, rows[row])));
                }
            }
            let rows = self.counters.ended_of_port(port);
            all.extend((0..ROWS).map(|row| Hit::new(port, FaultVerb::Lose, None, row, rows[row])));
        }
        all.retain(|hit| hit.frames > 0);
        all
    }
}

/// Frames that faults of one verb hit at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The port.
    pub port: usize,
    /// The effect.
    pub verb: FaultVerb,
    /// The direction; `None` for held frames that were lost at the end.
    pub toward: Option<Toward>,
    /// Traffic class; `None` for MAC control frames.
    pub class: Option<usize>,
    /// Number of frames.
    pub frames: u64,
}

impl Hit {
    fn new(port: usize, verb: FaultVerb, toward: Option<Toward>, row: usize, frames: u64) -> Self {
        Self { port, verb, toward, class: (row != PFC_ROW && row < CLASSES).then_some(row), frames }
    }
}

fn state(entry: &Entry, now: Ticks) -> FaultState {
    match entry {
        _ if now < entry.from => FaultState::Waiting,
        _ if now < entry.until => FaultState::Active,
        _ => FaultState::Over,
    }
}

impl Inner {
    fn table(&self) -> FaultTable {
        FaultTable { entries: self.listed.iter().map(|listed| listed.entry).collect(), classes: self.classes.clone() }
    }

    fn is_idle(&mut self) -> bool {
        self.senders.iter_mut().all(Sender::is_idle)
    }

    /// Sends the faults to all lcores, which have taken the change before.
    fn publish(&mut self) {
        let table = self.table();
        for sender in &mut self.senders {
            let is_given = sender.send(Box::new(table.clone())).is_ok();
            debug_assert!(is_given, "the lcore has taken all earlier faults");
        }
    }
}
