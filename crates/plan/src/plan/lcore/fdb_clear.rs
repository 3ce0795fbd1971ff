//! Requests to remove learned stations from the forwarding databases of all lcores.

use crate::sets::PortSet;
use crate::sync::{AtomicU64, Ordering};

/// The stations that a request removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClearedStations {
    /// Those behind these ports.
    pub ports: PortSet,
    /// Those in this VLAN; `None`: in all.
    pub vlan: Option<u16>,
}

/// A request to all lcores, and their answers.
#[derive(Debug)]
pub(super) struct FdbClear {
    /// Number of the last request, stored after its content. Zero: there was none.
    asked: AtomicU64,
    ports: AtomicU64,
    /// The VLAN; zero, which is no VLAN: all.
    vlan: AtomicU64,
    answers: Box<[Answer]>,
}

/// The answer of an lcore.
#[derive(Debug, Default)]
struct Answer {
    /// The last request that it has carried out.
    number: AtomicU64,
    /// Stations behind its own ports that it has removed for it.
    removed: AtomicU64,
}

impl FdbClear {
    pub fn new(lcores: usize) -> Self {
        let answers = (0..lcores).map(|_| Answer::default()).collect();
        Self { asked: AtomicU64::new(0), ports: AtomicU64::new(0), vlan: AtomicU64::new(0), answers }
    }

    /// Makes a request, unless an lcore has not carried out the one before. Returns its number.
    pub fn request(&self, stations: ClearedStations) -> Option<u64> {
        let number = self.asked.load(Ordering::Relaxed);
        self.removed(number)?;
        self.ports.store(stations.ports.bits(), Ordering::Relaxed);
        self.vlan.store(stations.vlan.unwrap_or(0).into(), Ordering::Relaxed);
        self.asked.store(number + 1, Ordering::Release);
        Some(number + 1)
    }

    /// Number of the last request.
    #[inline]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// The stations of the last request, which does not change until every lcore has answered it.
    pub fn stations(&self) -> ClearedStations {
        let vlan = u16::try_from(self.vlan.load(Ordering::Relaxed)).ok().filter(|vlan| *vlan != 0);
        ClearedStations { ports: PortSet::from_bits(self.ports.load(Ordering::Relaxed)), vlan }
    }

    /// Says that `lcore` has carried out request `number`, and has removed so many stations behind its own ports.
    pub fn answer(&self, lcore: usize, number: u64, removed: u64) {
        self.answers[lcore].removed.store(removed, Ordering::Relaxed);
        self.answers[lcore].number.store(number, Ordering::Release);
    }

    /// Stations that all lcores have removed for request `number`, the last one; `None` until each has answered.
    pub fn removed(&self, number: u64) -> Option<u64> {
        let is_answered = self.answers.iter().all(|answer| answer.number.load(Ordering::Acquire) == number);
        is_answered.then(|| self.answers.iter().map(|answer| answer.removed.load(Ordering::Relaxed)).sum())
    }
}
