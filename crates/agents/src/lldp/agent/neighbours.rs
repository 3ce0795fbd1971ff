//! The neighbours of a port (802.1AB clauses 9.2.7.7 and 9.2.9).

use super::{MOST_NEIGHBOURS, after};
use crate::lldp::compare::Comparison;
use crate::units::Nanos;
use crate::wire::MacAddr;
use crate::wire::lldp::{Lldpdu, Parsed};

/// A neighbour.
#[derive(Debug, Clone)]
pub struct Neighbour {
    /// Its last data unit.
    pub pdu: Lldpdu,
    /// Source address of the frame.
    pub source: MacAddr,
    /// Instant of its first data unit.
    pub since: Nanos,
    /// Instant of its last data unit.
    pub heard: Nanos,
    /// Instant at which its information expires (rxInfoTTL).
    pub expires: Nanos,
    /// Its statements beside the settings of the port.
    pub comparison: Comparison,
}

/// The effect of a data unit on the neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A new neighbour.
    New,
    /// Other statements of a known neighbour.
    Changed,
    /// Nothing new.
    Same,
    /// A known neighbour has stopped; its last data unit.
    ShutDown(Box<Lldpdu>),
    /// There is no room. `is_first`: there was until now.
    NoRoom {
        /// Whether the time without room begins.
        is_first: bool,
    },
}

/// All neighbours of a port, oldest first.
#[derive(Debug, Default)]
pub struct Neighbours {
    list: Vec<Neighbour>,
    /// End of the time in which neighbours may be missing here (tooManyNeighborsTimer).
    too_many_until: Nanos,
}

impl Neighbours {
    /// All neighbours, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Neighbour> {
        self.list.iter()
    }

    /// All neighbours, oldest first.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Neighbour> {
        self.list.iter_mut()
    }

    /// Whether neighbours may be missing (tooManyNeighbors).
    pub fn is_too_many(&self, now: Nanos) -> bool {
        now < self.too_many_until
    }

    /// Takes a data unit.
    ///
    /// Clause 9.2.7.7.5, in substance: without room the new data unit may be discarded, and the timer runs at least as
    /// long as it would have held.
    pub fn take(&mut self, parsed: Parsed, now: Nanos) -> Heard {
        let Parsed { pdu, source, .. } = parsed;
        let known = self.list.iter().position(|neighbour| neighbour.pdu.is_same_sender(&pdu));
        let expires = after(now, pdu.ttl);
        match known {
            Some(at) if pdu.ttl == 0 => Heard::ShutDown(Box::new(self.list.remove(at).pdu)),
            None if pdu.ttl == 0 => Heard::Same,
            Some(at) => {
                let neighbour = &mut self.list[at];
                let old = std::mem::replace(&mut neighbour.pdu, pdu);
                let is_changed = Lldpdu { ttl: neighbour.pdu.ttl, ..old } != neighbour.pdu;
                (neighbour.source, neighbour.heard, neighbour.expires) = (source, now, expires);
                if is_changed { Heard::Changed } else { Heard::Same }
            }
            None if self.list.len() >= MOST_NEIGHBOURS => {
                let is_first = !self.is_too_many(now);
                self.too_many_until = self.too_many_until.max(expires);
                Heard::NoRoom { is_first }
            }
            None => {
                let comparison = Comparison::default();
                self.list.push(Neighbour { pdu, source, since: now, heard: now, expires, comparison });
                Heard::New
            }
        }
    }

    /// Removes the neighbours whose information has expired, and returns their last data units.
    pub fn age(&mut self, now: Nanos) -> Vec<Lldpdu> {
        self.list.extract_if(.., |neighbour| neighbour.expires <= now).map(|neighbour| neighbour.pdu).collect()
    }

    /// Removes all neighbours, and returns their last data units.
    pub fn clear(&mut self) -> Vec<Lldpdu> {
        self.too_many_until = Nanos(0);
        self.list.drain(..).map(|neighbour| neighbour.pdu).collect()
    }

    /// The next instant at which information expires.
    pub fn due(&self) -> Option<Nanos> {
        self.list.iter().map(|neighbour| neighbour.expires).min()
    }
}
