//! The state that the lcores that send by one port tell each other, with one writer for each value.

use crossbeam_utils::CachePadded;

use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Bytes, Cells};

/// Frames of one queue that other lcores hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    pub cells: Cells,
    pub bytes: Bytes,
}

/// Bits of the cells in the word of a published depth. A buffer has fewer cells.
const CELL_BITS: u32 = 28;

impl Depth {
    fn pack(self) -> u64 {
        debug_assert!(self.cells.0 >> CELL_BITS == 0, "a buffer has fewer cells");
        self.bytes.0 << CELL_BITS | u64::from(self.cells.0)
    }

    fn unpack(word: u64) -> Self {
        Self { cells: Cells(word as u32 & ((1 << CELL_BITS) - 1)), bytes: Bytes(word >> CELL_BITS) }
    }
}

/// The pauses of one port, written by its owner.
#[derive(Debug)]
struct Pauses {
    /// Queues that are stopped, as the bits of a [`ClassSet`].
    stopped: AtomicU64,
    /// Queues whose frames the watchdog drops, as the bits of a [`ClassSet`].
    dropping: AtomicU64,
    /// Queues that obey pauses, as the bits of a [`ClassSet`].
    obeyed: AtomicU64,
}

/// The depths of one port's queues at an lcore.
type Depths = CachePadded<[AtomicU64; CLASSES]>;

/// The state of one port that lcores tell each other.
#[derive(Debug)]
struct OfPort {
    pauses: CachePadded<Pauses>,
    /// By lcore, as of the end of its last poll.
    depths: Box<[Depths]>,
}

/// The sets of ports that an lcore tells the others.
#[derive(Debug)]
struct OfLcore {
    /// Ports for which frames wait at the end of its poll.
    standing: AtomicU64,
    /// Own ports with queues whose frames the watchdog drops.
    dropping: AtomicU64,
}

/// The state of all joint ports that the lcores of a switch tell each other.
#[derive(Debug)]
pub(crate) struct Told {
    ports: Box<[OfPort]>,
    lcores: Box<[CachePadded<OfLcore>]>,
}

impl Told {
    /// Creates the state of `ports` ports and `lcores` lcores: nothing waits and nothing is paused.
    pub fn new(ports: usize, lcores: usize) -> Self {
        let zero = || AtomicU64::new(0);
        let pauses = || Pauses { stopped: zero(), dropping: zero(), obeyed: zero() };
        let depths = || CachePadded::new(std::array::from_fn(|_| zero()));
        let of_port =
            |_| OfPort { pauses: CachePadded::new(pauses()), depths: (0..lcores).map(|_| depths()).collect() };
        let of_lcore = |_| CachePadded::new(OfLcore { standing: zero(), dropping: zero() });
        Self { ports: (0..ports).map(of_port).collect(), lcores: (0..lcores).map(of_lcore).collect() }
    }

    /// Tells which `queues` of `port` are stopped, until it tells otherwise. Only the port's owner calls it.
    pub fn tell_stopped(&self, port: usize, queues: ClassSet) {
        self.ports[port].pauses.stopped.store(queues.bits().into(), Ordering::Release);
    }

    /// Queues of `port` that are stopped.
    #[inline]
    pub fn stopped(&self, port: usize) -> ClassSet {
        ClassSet::from_bits(self.ports[port].pauses.stopped.load(Ordering::Acquire) as u8)
    }

    /// Notes the `queues` of `port` that obey pauses.
    pub fn note_obeyed(&self, port: usize, queues: ClassSet) {
        self.ports[port].pauses.obeyed.store(queues.bits().into(), Ordering::Relaxed);
    }

    /// Tells that the queues of `port` that obey pauses are stopped: its owner hears none any more.
    pub fn stop_obeyed(&self, port: usize) {
        self.tell_stopped(port, ClassSet::from_bits(self.ports[port].pauses.obeyed.load(Ordering::Relaxed) as u8));
    }

    /// Tells that the watchdog drops the frames of `queues` of `port`, which lcore `owner` owns.
    pub fn tell_dropping(&self, owner: usize, port: usize, queues: ClassSet) {
        self.ports[port].pauses.dropping.store(queues.bits().into(), Ordering::Relaxed);
        let told = &self.lcores[owner].dropping;
        let mut ports = PortSet::from_bits(told.load(Ordering::Relaxed));
        ports.set(port, !queues.is_empty());
        // Release: an lcore that sees the port sees its queues.
        told.store(ports.bits(), Ordering::Release);
    }

    /// Queues of `port` whose frames the watchdog drops.
    pub fn dropping(&self, port: usize) -> ClassSet {
        ClassSet::from_bits(self.ports[port].pauses.dropping.load(Ordering::Relaxed) as u8)
    }

    /// Ports with queues whose frames the watchdog drops.
    #[inline]
    pub fn dropping_ports(&self) -> PortSet {
        let told = self.lcores.iter().map(|lcore| lcore.dropping.load(Ordering::Acquire));
        told.fold(PortSet::EMPTY, |all, ports| all | PortSet::from_bits(ports))
    }

    /// Tells that `lcore` holds `depth` in `queue` of `port`. [`Told::tell_standing`] follows if its ports change.
    #[inline]
    pub fn tell_depth(&self, lcore: usize, port: usize, queue: usize, depth: Depth) {
        let (told, depth) = (&self.ports[port].depths[lcore][queue], depth.pack());
        // A store takes the line from the other lcores, even if it changes nothing.
        if told.load(Ordering::Relaxed) != depth {
            told.store(depth, Ordering::Relaxed);
        }
    }

    /// Tells that `lcore` holds frames for `ports` at the end of its poll.
    #[inline]
    pub fn tell_standing(&self, lcore: usize, ports: PortSet) {
        // Release: an lcore that sees a port sees its depths.
        self.lcores[lcore].standing.store(ports.bits(), Ordering::Release);
    }

    /// Ports for which `lcore` has told that it holds frames, for checks.
    pub fn standing(&self, lcore: usize) -> PortSet {
        PortSet::from_bits(self.lcores[lcore].standing.load(Ordering::Relaxed))
    }

    /// The depth that `lcore` has told, for checks.
    pub fn depth(&self, lcore: usize, port: usize, queue: usize) -> Depth {
        Depth::unpack(self.ports[port].depths[lcore][queue].load(Ordering::Relaxed))
    }

    /// Ports for which lcores other than `lcore` hold frames.
    #[inline]
    pub fn standing_elsewhere(&self, lcore: usize) -> PortSet {
        let others = self.lcores.iter().enumerate().filter(|(other, _)| *other != lcore);
        let told = others.map(|(_, other)| other.standing.load(Ordering::Acquire));
        told.fold(PortSet::EMPTY, |all, ports| all | PortSet::from_bits(ports))
    }

    /// Frames that lcores other than `lcore` hold in `queue` of `port`.
    pub fn elsewhere(&self, lcore: usize, port: usize, queue: usize) -> Depth {
        let others = self.ports[port].depths.iter().enumerate().filter(|(other, _)| *other != lcore);
        let depths = others.map(|(_, depths)| Depth::unpack(depths[queue].load(Ordering::Relaxed)));
        depths.fold(Depth::default(), |sum, depth| Depth {
            cells: sum.cells + depth.cells,
            bytes: sum.bytes + depth.bytes,
        })
    }
}

/// The ports of which an lcore has heard something that is not over.
///
/// Other lcores tell a set of ports, and then words about each. An lcore reads the set first, so a word may be newer
/// than the set: of a port that the set does not have any more, or not yet. If the set alone were remembered, such a
/// word would stay when its port is told and withdrawn before the next look.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heard(PortSet);

impl Heard {
    /// The ports whose words must be read now that the set is `told`. [`Heard::keep`] follows for each of them.
    #[inline]
    pub fn look(&mut self, told: PortSet) -> PortSet {
        told | std::mem::replace(&mut self.0, told)
    }

    /// Remembers whether the words of `port` say that something is not over.
    pub fn keep(&mut self, port: usize, is_standing: bool) {
        self.0 |= PortSet::only_if(is_standing, port);
    }
}
