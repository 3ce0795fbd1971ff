//! The observer of all links. It records every pause from its first XOFF to its end, and checks that frames and PFC
//! obey the rules on the wire.

use super::load::PS;
use super::outcome::{MOST_PAUSES, Pause};
use super::own::Own;
use super::spec::{End, FaultKind, Lost, Scenario};
use crate::sets::CLASSES;
use crate::units::BitRate;
use crate::wire::mac_control::PfcFrame;

/// Tolerated delay of a refresh. A switch refreshes a pause at half its life, so a refresh with this delay is still in
/// time. A longer delay, for example by a stall, is a fault.
const GRACE_PS: u64 = 1_000 * PS;
const QUANTUM_BITS: u128 = 512;

/// Pauses that the receiver of a wire was sent on it. They hold the receiver's own transmitter.
#[derive(Debug, Clone, Default)]
struct Held {
    until: [u64; CLASSES],
    since: [Option<u64>; CLASSES],
    /// Number of pauses that have begun.
    begun: [u64; CLASSES],
    /// Time of 2^16 quanta on the wire, in picoseconds.
    quanta_ps: u128,
    /// Whether a pause on this wire may expire without XON: PFC frames are lost, or the sender of XOFF is not a switch.
    may_lapse: bool,
}

/// The observer.
#[derive(Debug)]
pub struct Watch {
    /// By wire.
    held: Own<Held>,
    /// Pauses that have ended since the last [`Watch::absorb`].
    recent: Vec<Pause>,
    /// Every pause before, at most [`MOST_PAUSES`].
    pauses: Vec<Pause>,
    /// Number of pauses beyond that limit.
    pub pauses_left_out: u64,
    /// The first violated invariant, with a description.
    pub violation: Option<(&'static str, String)>,
}

impl Watch {
    /// Returns the observer of `scenario`. Wire 2n carries the frames that leave end a of link n, wire 2n + 1 those
    /// that leave end b.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let held = scenario.links.iter().enumerate().flat_map(|(link, node)| {
            [node.a, node.b].map(|from| Held {
                quanta_ps: quanta_ps(node.rate),
                may_lapse: may_lapse(scenario, link, from),
                ..Held::default()
            })
        });
        Self { held: held.collect(), ..Self::absent(0) }
    }

    /// Returns an observer of no wire, for another thread.
    #[must_use]
    pub fn absent(wires: usize) -> Self {
        Self { held: Own::absent(wires), recent: Vec::new(), pauses: Vec::new(), pauses_left_out: 0, violation: None }
    }

    /// Moves the pauses on `wire` to `to`.
    pub fn give(&mut self, wire: usize, to: &mut Self) {
        self.held.give(wire, &mut to.held);
    }

    /// Takes the pauses that `other` has seen end.
    pub fn take_recent(&mut self, other: &mut Self) {
        self.recent.append(&mut other.recent);
    }

    /// Adds the recent pauses to the others, in order of their ends, as far as there is room.
    pub fn absorb(&mut self) {
        self.recent.sort_unstable_by_key(|pause| (pause.to_ps, pause.link, pause.holds_a, pause.priority));
        let count = self.recent.len().min(MOST_PAUSES - self.pauses.len());
        self.pauses_left_out += (self.recent.len() - count) as u64;
        self.pauses.extend(self.recent.drain(..).take(count));
    }

    /// Records a violated invariant, if it is the first.
    pub fn broken(&mut self, invariant: &'static str, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some((invariant, what()));
        }
    }

    /// Records a PFC frame that arrived on `wire` at `at`.
    pub fn pfc_received(&mut self, wire: usize, frame: &PfcFrame, at: u64) {
        for priority in frame.enabled.iter() {
            self.expire(wire, priority, at);
            let quanta = frame.quanta[priority].0;
            let until = at + self.pause_ps(wire, quanta);
            let held = &mut self.held[wire];
            held.until[priority] = until;
            if quanta == 0 {
                self.end(wire, priority, at);
            } else if held.since[priority].is_none() {
                held.since[priority] = Some(at);
                held.begun[priority] += 1;
            }
        }
    }

    /// Ends a pause that expired before `now`. A pause should end by XON, so this violates `pause_refreshed` unless the
    /// pause may expire.
    fn expire(&mut self, wire: usize, priority: usize, now: u64) {
        let held = &self.held[wire];
        let until = held.until[priority];
        if held.since[priority].is_none() || until >= now {
            return;
        }
        let may_lapse = held.may_lapse || now < until + GRACE_PS;
        if !may_lapse {
            let since = held.since[priority].unwrap_or_default();
            self.broken("pause_refreshed", || {
                format!(
                    "on wire {wire} priority {priority} was paused at {} ns, and the pause expired at {} ns: neither \
                     refreshed nor ended by XON",
                    since / PS,
                    until / PS
                )
            });
        }
        self.end(wire, priority, until);
    }

    fn end(&mut self, wire: usize, priority: usize, at: u64) {
        let Some(since) = self.held[wire].since[priority].take() else { return };
        // Wire 2n ends at b; PFC frames on it pause b.
        let holds_a = wire % 2 == 1;
        self.recent.push(Pause { link: wire / 2, holds_a, priority: priority as u8, from_ps: since, to_ps: at });
    }

    /// Checks for expired pauses.
    pub fn look(&mut self, now: u64) {
        for wire in 0..self.held.len() {
            if self.held.get_mut(wire).is_some_and(|held| held.since.iter().any(Option::is_some)) {
                (0..CLASSES).for_each(|priority| self.expire(wire, priority, now.saturating_sub(GRACE_PS)));
            }
        }
    }

    /// Allows pauses on `wire` to expire if its sender polls with a long `gap`. A pause refreshed at the last poll
    /// before half its life may then expire before the next poll.
    pub fn polled_late(&mut self, wire: usize, gap: u64) {
        self.held[wire].may_lapse |= gap + GRACE_PS >= self.pause_ps(wire, u16::MAX) / 2;
    }

    /// Ends all pauses on a link that went down.
    pub fn cut(&mut self, link: usize, now: u64) {
        for wire in [2 * link, 2 * link + 1] {
            (0..CLASSES).for_each(|priority| self.end(wire, priority, now.min(self.held[wire].until[priority])));
        }
    }

    /// Returns the length of a pause of `quanta` on `wire`, in picoseconds.
    #[must_use]
    pub fn pause_ps(&self, wire: usize, quanta: u16) -> u64 {
        ((u128::from(quanta) * self.held[wire].quanta_ps) >> 16) as u64
    }

    /// Returns the number of pauses that PFC frames on `wire` began, by priority.
    #[must_use]
    pub fn begun(&self, wire: usize) -> [u64; CLASSES] {
        self.held[wire].begun
    }

    /// Whether any transmitter is paused at `now`.
    #[must_use]
    pub fn is_anyone_held(&self, now: u64) -> bool {
        let is_held = |held: &Held| (0..CLASSES).any(|n| held.since[n].is_some() && held.until[n] > now);
        self.held.iter().any(is_held)
    }

    /// Ends all pauses at the end of the run. Returns them in the order in which they began.
    pub fn finish(&mut self, now: u64) -> Vec<Pause> {
        for wire in 0..self.held.len() {
            (0..CLASSES).for_each(|priority| self.end(wire, priority, now.min(self.held[wire].until[priority])));
        }
        self.absorb();
        self.pauses.sort_by_key(|pause| (pause.from_ps, pause.link, pause.holds_a, pause.priority));
        std::mem::take(&mut self.pauses)
    }
}

/// Returns the time of 2^16 quanta of 512 bits on the wire, in picoseconds.
fn quanta_ps(rate: BitRate) -> u128 {
    ((QUANTUM_BITS * 1_000_000_000_000) << 16) / u128::from(rate.0.max(1))
}

/// Whether pauses that `from` sends on link `link` may expire: `from` is a host, or faults suppress its PFC frames.
fn may_lapse(scenario: &Scenario, link: usize, from: End) -> bool {
    let End::Port(port) = from else { return true };
    let has_fault = scenario.faults.iter().any(|fault| match fault.kind {
        FaultKind::LinkDown { link: down } => down == link,
        FaultKind::Lose { link: lossy, what, .. } => lossy == link && what != Lost::Data,
        FaultKind::Stall { switch, .. } => switch == port.switch,
        FaultKind::Shut { .. }
        | FaultKind::Storm { .. }
        | FaultKind::Dead { .. }
        | FaultKind::Late { .. }
        | FaultKind::Slow { .. }
        | FaultKind::Garbage { .. } => false,
    });
    has_fault || scenario.is_ever_shut(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quanta;

    fn watch() -> Watch {
        let held = Held { quanta_ps: quanta_ps(BitRate(10_000_000_000)), ..Held::default() };
        Watch { held: [held.clone(), held].into_iter().collect(), ..Watch::absent(2) }
    }

    fn pfc(quanta: u16) -> PfcFrame {
        PfcFrame { enabled: crate::sets::ClassSet::only(3), quanta: [Quanta(quanta); CLASSES] }
    }

    #[test]
    fn a_pause_lasts_from_its_first_xoff_to_xon() {
        let mut watch = watch();
        // A quantum takes 51.2 ns.
        watch.pfc_received(1, &pfc(1000), 100);
        watch.pfc_received(1, &pfc(1000), 40_000_000);
        watch.pfc_received(1, &pfc(0), 60_000_000);
        watch.look(200_000_000);
        assert_eq!(watch.violation, None);
        let pause = Pause { link: 0, holds_a: true, priority: 3, from_ps: 100, to_ps: 60_000_000 };
        assert_eq!(watch.finish(300_000_000), [pause]);
    }

    #[test]
    fn pause_that_expires_without_refresh_is_a_violation() {
        let mut watch = watch();
        watch.pfc_received(0, &pfc(1000), 0);
        watch.look(51_200_000 + GRACE_PS);
        assert_eq!(watch.violation, None);
        watch.look(51_200_000 + 3 * GRACE_PS);
        assert_eq!(watch.violation.as_ref().map(|(name, _)| *name), Some("pause_refreshed"));
        assert_eq!(watch.finish(1 << 40)[0].to_ps, 51_200_000);
    }
}
