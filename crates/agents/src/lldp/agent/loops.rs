//! Own data units that come back: two ports, or a port with itself, are on one link.

use std::collections::BTreeMap;

use crate::lldp::local::Stated;
use crate::units::Nanos;
use crate::wire::lldp::Lldpdu;

/// The numbers by which own data units are recognized, by port.
#[derive(Debug)]
pub(super) struct OwnNumbers(Vec<Option<u64>>);

impl OwnNumbers {
    /// The numbers that ports state.
    pub fn of(stated: &[Option<Stated>]) -> Self {
        Self(stated.iter().map(|stated| stated.as_ref()?.pdu.instance).collect())
    }

    /// The own port that has sent a data unit.
    pub fn port(&self, pdu: &Lldpdu) -> Option<usize> {
        let number = pdu.instance?;
        self.0.iter().position(|own| *own == Some(number))
    }
}

/// The loops that are known, by receiving and sending port, with the instants until which they hold. Of a segment with
/// several own ports all pairs are kept, so that the order of the frames does not matter.
#[derive(Debug, Default)]
pub(super) struct Loops(BTreeMap<(usize, usize), Nanos>);

impl Loops {
    /// Notes that `port` has received a data unit of the own port `from`. The life of the data unit itself does not
    /// count, since a peer may have changed it.
    pub fn note(&mut self, port: usize, from: usize, until: Nanos) {
        self.0.insert((port, from), until);
    }

    /// Forgets the loops of `port`, whose link or LLDP has ended.
    pub fn forget(&mut self, port: usize) {
        self.0.retain(|&(at, from), _| at != port && from != port);
    }

    /// Forgets loops that have not been seen for the life of a data unit.
    pub fn expire(&mut self, now: Nanos) {
        self.0.retain(|_, until| *until > now);
    }

    /// The receiving and the sending port of each loop.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.keys().copied()
    }
}
