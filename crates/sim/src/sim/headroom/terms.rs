//! The value of each term of the headroom formula: the worst case is run again without the term's cause.

use super::adversary::{Adversary, Reverse, Sizes};
use super::link::{Link, Peer};
use super::search::{Proof, replay};
use crate::headroom::{LEFT_ROW, largest_frame};
use crate::sim::load::PS;
use crate::units::{Cells, Length, Nanos, WIRE_OVERHEAD};

/// A term, or several terms with one cause, in cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Name of the rows in the formula.
    pub name: &'static str,
    /// Cells that the formula counts for it.
    pub formula: i64,
    /// Cells saved by removing its cause, after the causes of the earlier terms. For the last term, the cells that
    /// remain.
    pub measured: i64,
    /// Method by which its cause was removed.
    pub how: &'static str,
}

impl Term {
    /// Returns the cells that the formula counts beyond the measured need.
    #[must_use]
    pub fn slack(&self) -> i64 {
        self.formula - self.measured
    }
}

/// A cause to remove: name, rows of the formula, method, and a function that removes it.
type Without = (&'static str, &'static [&'static str], &'static str, fn(Link, Adversary) -> (Link, Adversary));

/// Causes in the order of their removal; each is removed in addition to those before it. The causes that share one poll
/// gap come first. Leftover frames have room in that gap only while the frame at the poll is short, and both lie within
/// the gap.
const CAUSES: [Without; 7] = [
    (LEFT_ROW, &[LEFT_ROW], "the previous poll leaves no frames", |link, adversary| {
        (link, Adversary { left: 0, ..adversary })
    }),
    ("frame at the poll", &["frame at the poll"], "it is as short as the other frames", |link, adversary| {
        (link, Adversary { sizes: Sizes::Last(link.worst_frame().frame as u16), ..adversary })
    }),
    ("peer's last frame", &["peer's last frame"], "it is short as well", |link, adversary| {
        (link, Adversary { sizes: Sizes::All(link.worst_frame().frame as u16), ..adversary })
    }),
    ("poll gap", &["poll gap"], "the frame arrives just before the poll", |link, adversary| {
        (link, Adversary { offset_ps: (link.poll_gap.0 - 2) * PS, ..adversary })
    }),
    (
        "transmit ring, our frame ahead",
        &["transmit ring", "our frame ahead"],
        "nothing is sent to the peer",
        |link, adversary| (link, Adversary { reverse: Reverse::Quiet, ..adversary }),
    ),
    ("cable, both ways", &["cable, both ways"], "a cable of length zero", |link, adversary| {
        (Link { cable: Length { mm: 0 }, ..link }, adversary)
    }),
    ("peer's response", &["peer's response", "slower response"], "the peer obeys at once", |link, adversary| {
        (Link { peer: Peer::Takes(Nanos(0)), ..link }, adversary)
    }),
];

/// Returns the terms of `link`, for which `proof` was found. Causes are removed one after the other, and each term is
/// worth the cells that its removal saves. The terms sum to the demand, so their slack is the slack of eta, to the
/// cell.
#[must_use]
pub fn terms(link: &Link, proof: &Proof) -> Vec<Term> {
    let plenty = Cells(2 * proof.formula.0);
    let (mut changed, mut adversary, mut needed) = (*link, proof.worst, i64::from(proof.demand.0));
    let mut terms: Vec<Term> = Vec::new();
    for (name, rows, how, without) in CAUSES {
        (changed, adversary) = without(changed, adversary);
        let remaining = replay(&changed, &adversary, plenty).map_or(0, |run| i64::from(run.used.0));
        let formula = rows.iter().map(|row| in_cells(link, row)).sum();
        terms.push(Term { name, formula, measured: needed - remaining, how });
        needed = remaining;
    }
    terms.push(Term { name: "MAC and PHY", formula: in_cells(link, "MAC and PHY"), measured: 0, how: "not simulated" });
    let formula: i64 = terms.iter().map(|term| term.formula).sum();
    let formula = i64::from(proof.formula.0) - formula;
    // If the formula is given a share of small packets, it counts that share. A peer that sends no small packets does
    // not use it.
    let name = if link.small_packets.is_all() { "PFC frame, rounding" } else { "PFC frame, small packets" };
    terms.push(Term { name, formula, measured: needed, how: "the remainder" });
    terms
}

/// Returns the cells that the formula counts for a row. The rows of single frames count one largest frame each, and one
/// row counts the frames left behind. The bytes of all other rows are converted as worst-case frames.
fn in_cells(link: &Link, name: &str) -> i64 {
    let headroom = link.formula();
    let short = link.worst_frame();
    let bytes = headroom.rows.iter().find(|row| row.name == name).map_or(0, |row| row.value.0);
    let cells = match name {
        "frame at the poll" | "peer's last frame" => u64::from(largest_frame(link.mtu).to_cells_ceil(link.cell).0),
        LEFT_ROW => {
            let without = crate::headroom::HeadroomInput { left: 0, ..link.input() };
            u64::from(headroom.cells.0 - crate::headroom::headroom(&without).cells.0)
        }
        _ => bytes * short.cells / (short.frame + u64::from(WIRE_OVERHEAD)),
    };
    i64::try_from(cells).unwrap_or(i64::MAX)
}
