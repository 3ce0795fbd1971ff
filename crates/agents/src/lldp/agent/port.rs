//! The agent of one port.

use super::loops::OwnNumbers;
use super::neighbours::{Heard, Neighbours};
use super::transmit::Transmitter;
use super::{Event, EventKind, LldpCounts, Output, Timing, after, neighbour_name};
use crate::lldp::compare::{Comparison, compare};
use crate::lldp::local::Stated;
use crate::lldp::remedy::remedy;
use crate::lldp::view::{NeighbourView, PortView};
use crate::units::Nanos;
use crate::wire::lldp::{Lldpdu, Parsed, Refusal, parse};

/// The state of a port.
#[derive(Debug)]
pub struct PortAgent {
    index: usize,
    /// The statement; `None`: LLDP is off (adminStatus, clause 9.2.5.1).
    stated: Option<Stated>,
    is_up: bool,
    /// Timers, while LLDP and the link are up.
    transmitter: Option<Transmitter>,
    /// Earliest instant of the next begin (reinitDelay).
    restart: Nanos,
    neighbours: Neighbours,
    counts: LldpCounts,
}

impl PortAgent {
    /// A port without link.
    pub fn new(index: usize, stated: Option<Stated>) -> Self {
        let neighbours = Neighbours::default();
        let counts = LldpCounts::default();
        Self { index, stated, is_up: false, transmitter: None, restart: Nanos(0), neighbours, counts }
    }

    /// Replaces the statement. The end of LLDP is told by a data unit of TTL 0 (clause 9.1.2.2), as is the end of a
    /// sender that goes on under another name.
    pub fn configure(&mut self, stated: Option<Stated>, now: Nanos, timing: &Timing, output: &mut Output) {
        if self.stated == stated {
            return;
        }
        let is_same_sender = match (&self.stated, &stated) {
            (Some(old), Some(new)) => old.pdu.is_same_sender(&new.pdu),
            _ => false,
        };
        if !is_same_sender && self.transmitter.is_some() {
            self.send(0, output);
        }
        let (was_on, is_on) = (self.stated.is_some(), stated.is_some());
        self.stated = stated;
        match (was_on, is_on) {
            (_, false) => {
                (self.transmitter, self.restart) = (None, after(now, timing.restart_delay));
                self.forget(now, output);
            }
            (false, true) => self.begin(now, timing, output),
            (true, true) => {
                if let Some(transmitter) = &mut self.transmitter {
                    transmitter.note_change(now, timing);
                }
                self.compare(now, output);
            }
        }
    }

    /// Takes the state of the link.
    ///
    /// Clause 9.2.9, in substance: without a link neighbours age, and a port that comes up begins without neighbours.
    pub fn link(&mut self, is_up: bool, now: Nanos, timing: &Timing, output: &mut Output) {
        if self.is_up == is_up {
            return;
        }
        (self.is_up, self.transmitter) = (is_up, None);
        if is_up {
            self.forget(now, output);
            self.begin(now, timing, output);
        }
    }

    /// Begins to send, if LLDP and the link are up.
    fn begin(&mut self, now: Nanos, timing: &Timing, output: &mut Output) {
        if self.is_up && self.stated.is_some() {
            self.transmitter = Some(Transmitter::new(now.max(self.restart), timing));
            self.transmit(now, timing, output);
        }
    }

    /// Acts on the time.
    pub fn tick(&mut self, now: Nanos, timing: &Timing, output: &mut Output) {
        self.age(now, output);
        self.transmit(now, timing, output);
    }

    /// The next instant at which [`PortAgent::tick`] has work.
    pub fn due(&self) -> Option<Nanos> {
        let sends = self.transmitter.as_ref().map(Transmitter::due);
        sends.into_iter().chain(self.neighbours.due()).min()
    }

    /// Takes a received frame. Returns the own port that has sent it, if one of `own` has.
    pub fn received(
        &mut self,
        frame: &[u8],
        own: &OwnNumbers,
        now: Nanos,
        timing: &Timing,
        output: &mut Output,
    ) -> Option<usize> {
        if !self.is_up || self.stated.is_none() {
            return None;
        }
        let parsed = match parse(frame) {
            Ok(parsed) => parsed,
            Err(Refusal::NotLldp) => return None,
            Err(_) => {
                self.counts.frames_in += 1;
                self.counts.frames_discarded += 1;
                self.counts.frames_in_errors += 1;
                return None;
            }
        };
        self.counts.frames_in += 1;
        self.counts.frames_in_errors += u64::from(parsed.discarded > 0);
        self.counts.tlvs_discarded += u64::from(parsed.discarded);
        self.counts.tlvs_unrecognized += u64::from(parsed.unrecognized);
        if let Some(from) = own.port(&parsed.pdu) {
            return Some(from);
        }
        self.hear(parsed, now, timing, output);
        None
    }

    /// Takes the data unit of a neighbour.
    fn hear(&mut self, parsed: Parsed, now: Nanos, timing: &Timing, output: &mut Output) {
        self.age(now, output);
        let name = neighbour_name(&parsed.pdu);
        match self.neighbours.take(parsed, now) {
            Heard::Same => {}
            Heard::New => {
                self.counts.inserts += 1;
                self.tell(name, now, EventKind::New, output);
                self.compare(now, output);
                if let Some(transmitter) = &mut self.transmitter {
                    transmitter.note_new_neighbour(now, timing);
                }
                self.transmit(now, timing, output);
            }
            Heard::Changed => {
                self.tell(name, now, EventKind::Changed, output);
                self.compare(now, output);
            }
            Heard::ShutDown(last) => self.drop_one(&last, now, EventKind::ShutDown, output),
            Heard::NoRoom { is_first } => {
                self.counts.frames_discarded += 1;
                self.counts.drops += 1;
                if is_first {
                    self.tell(name, now, EventKind::TooMany, output);
                }
            }
        }
    }

    fn transmit(&mut self, now: Nanos, timing: &Timing, output: &mut Output) {
        if self.transmitter.as_mut().is_some_and(|transmitter| transmitter.take(now, timing)) {
            self.send(timing.ttl(), output);
        }
    }

    fn send(&mut self, ttl: u16, output: &mut Output) {
        let Some(stated) = &self.stated else { return };
        let emitted = Lldpdu { ttl, ..stated.pdu.clone() }.emit(stated.source);
        self.counts.length_errors += u64::from(emitted.omitted);
        self.counts.frames_out += u64::from(output.send(self.index, emitted.frame));
    }

    fn age(&mut self, now: Nanos, output: &mut Output) {
        let aged = self.neighbours.age(now);
        self.counts.ageouts += aged.len() as u64;
        for pdu in &aged {
            self.drop_one(pdu, now, EventKind::AgedOut, output);
        }
    }

    fn forget(&mut self, now: Nanos, output: &mut Output) {
        for pdu in self.neighbours.clear() {
            self.drop_one(&pdu, now, EventKind::Removed, output);
        }
    }

    /// Counts and tells the end of a neighbour. Without its PFC TLV the absence of others may count.
    fn drop_one(&mut self, pdu: &Lldpdu, now: Nanos, kind: EventKind, output: &mut Output) {
        self.counts.deletes += 1;
        self.tell(neighbour_name(pdu), now, kind, output);
        if pdu.dot1.pfc.is_some() {
            self.compare(now, output);
        }
    }

    /// Compares all neighbours with the statement of the port, and tells changes of the result.
    fn compare(&mut self, now: Nanos, output: &mut Output) {
        let Some(stated) = &self.stated else { return };
        let with_pfc = self.neighbours.iter().filter(|neighbour| neighbour.pdu.dot1.pfc.is_some()).count();
        let index = self.index;
        for neighbour in self.neighbours.iter_mut() {
            let is_elsewhere = with_pfc > usize::from(neighbour.pdu.dot1.pfc.is_some());
            let comparison = compare(stated, &neighbour.pdu, is_elsewhere);
            let old = std::mem::replace(&mut neighbour.comparison, comparison);
            let kinds = changes(&old, &neighbour.comparison, &neighbour.pdu);
            let name = neighbour_name(&neighbour.pdu);
            kinds
                .into_iter()
                .for_each(|kind| output.tell(Event { port: index, at: now, neighbour: name.clone(), kind }));
        }
    }

    fn tell(&self, neighbour: String, at: Nanos, kind: EventKind, output: &mut Output) {
        output.tell(Event { port: self.index, at, neighbour, kind });
    }

    /// The state for observers.
    pub fn view(&self, now: Nanos) -> PortView {
        PortView {
            port: self.index,
            is_enabled: self.stated.is_some(),
            is_up: self.is_up,
            is_too_many: self.neighbours.is_too_many(now),
            has_probes: false,
            loop_with: None,
            is_blocked: false,
            counts: self.counts,
            neighbours: self.neighbours.iter().map(|neighbour| NeighbourView::new(neighbour, now)).collect(),
        }
    }
}

/// The events that follow from a new comparison.
fn changes(old: &Comparison, new: &Comparison, peer: &Lldpdu) -> Vec<EventKind> {
    let kinds = |comparison: &Comparison| comparison.differences.iter().map(|one| one.kind()).collect::<Vec<_>>();
    let (before, after) = (kinds(old), kinds(new));
    let gone = before.into_iter().filter(|kind| !after.contains(kind)).map(EventKind::Agrees);
    let found = new.differences.iter().filter(|one| !old.differences.contains(one));
    let found = found.map(|one| EventKind::Differs(one.clone(), remedy(one, peer)));
    gone.chain(found).collect()
}
