//! Search for the worst case of a link, and for the smallest eta that is enough for it.

use super::adversary::{Adversary, Sizes, all, largest};
use super::link::Link;
use super::world::World;
use crate::headroom::SmallPackets;
use crate::sim::load::PS;
use crate::sim::outcome::Outcome;
use crate::units::{Cells, Nanos};

/// Traffic class that must not lose frames.
pub(super) const CLASS: usize = 3;

/// Result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Most cells of headroom in use at a time.
    pub used: Cells,
    /// Lossless frames that were dropped.
    pub lost: u64,
    /// Time at which XOFF reached the peer, in picoseconds.
    pub(super) heard_ps: u64,
    /// Whether the peer's pause expired, because it had not processed a refresh in time.
    pub lapsed: bool,
}

/// Result of the search on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Eta by the formula.
    pub formula: Cells,
    /// The smallest eta that loses nothing with any adversary.
    pub demand: Cells,
    /// The adversary that needs that much.
    pub worst: Adversary,
    /// Adversaries tried.
    pub tried: usize,
    /// The smallest eta if every packet is small despite the promise; `None` where the formula already assumes that.
    pub broken: Option<Cells>,
}

/// Runs `adversary` on `link` with `eta` cells of headroom. `None` if the adversary's timing does not fit.
///
/// # Panics
/// If an invariant other than `lossless_kept` is violated: that is a bug.
#[must_use]
pub fn replay(link: &Link, adversary: &Adversary, eta: Cells) -> Option<Run> {
    let world = World::new(link, adversary)?;
    let (Sizes::Framed(len) | Sizes::Last(len)) = adversary.sizes else {
        return Some(judge(link, &world.run(eta, None)));
    };
    // The last frame begins just before the peer stops. That time does not depend on the frames before it.
    let heard = judge(link, &world.run(eta, Some(u64::MAX / PS)));
    let obeys = heard.heard_ps + link.response_ps();
    let last = (obeys - link.time_ps(u64::from(len) + 24)) / PS;
    Some(judge(link, &world.run(eta, Some(last))))
}

/// Tries every adversary. Then confirms with the switch itself that the demand found is enough, and that one cell less
/// is not.
///
/// # Panics
/// If the smallest eta differs from the highest use: the switch would be wrong.
#[must_use]
pub fn prove(link: &Link) -> Proof {
    let formula = link.formula().cells;
    let plenty = Cells(formula.0.saturating_mul(2));
    let adversaries = all(link);
    let tried = adversaries.into_iter().filter_map(|adversary| {
        let run = replay(link, &adversary, plenty)?;
        assert_eq!(run.lost, 0, "{link:?}: {adversary} loses with twice the formula's headroom");
        assert!(!run.lapsed, "{link:?}: {adversary} lets a pause expire before it is refreshed");
        Some((run.used, adversary))
    });
    let tried: Vec<(Cells, Adversary)> = tried.collect();
    // The first of several that are equally bad.
    let (demand, worst) = tried
        .iter()
        .rev()
        .max_by_key(|(used, _)| *used)
        .copied()
        .unwrap_or((Cells(0), Adversary::of(Sizes::All(largest(link)))));
    for (used, adversary) in tried.iter().filter(|(used, _)| used.0 + demand.0 / 50 >= demand.0) {
        let run = replay(link, adversary, demand).map(|run| (run.used, run.lost));
        assert_eq!(run, Some((*used, 0)), "{link:?}: {adversary} with the headroom that it needs");
    }
    let less = replay(link, &worst, Cells(demand.0.saturating_sub(1)));
    assert!(less.is_some_and(|run| run.lost > 0), "{link:?}: {worst} loses nothing with one cell less than it needs");
    let broken = (!link.small_packets.is_all()).then(|| demand_of_all_small(link));
    Proof { formula, demand, worst, tried: tried.len(), broken }
}

/// Returns the highest use of headroom by a peer that sends only small packets, despite the promise.
fn demand_of_all_small(link: &Link) -> Cells {
    let link = Link { small_packets: SmallPackets::ALL, ..*link };
    let plenty = Cells(link.formula().cells.0.saturating_mul(2));
    let runs = all(&link).into_iter().filter_map(|adversary| replay(&link, &adversary, plenty));
    runs.map(|run| run.used).max().unwrap_or(Cells(0))
}

fn judge(link: &Link, outcome: &Outcome) -> Run {
    if let Some(violation) = &outcome.violation {
        assert_eq!(violation.invariant, "lossless_kept", "{violation:?}");
    }
    let port = &outcome.switches[0].ports[0];
    let class = &port.classes[CLASS];
    let heard =
        outcome.pauses.iter().find(|pause| pause.link == 0 && !pause.holds_a && usize::from(pause.priority) == CLASS);
    let heard_ps = heard.map_or(0, |pause| pause.from_ps);
    // No received frame leaves the switch, so a peer that was paused once must stay paused to the end.
    let still_ps = outcome.end_ps.saturating_sub(heard_ps + link.response_ps());
    Run {
        used: Cells(class.headroom_highest_cells as u32),
        lost: class.dropped() + port.missed_lossless_frames,
        heard_ps,
        lapsed: heard.is_some() && outcome.hosts[0].paused_ps[CLASS] + PS < still_ps,
    }
}

/// Returns a time in nanoseconds, rounded up.
pub(super) fn up(ps: u64) -> Nanos {
    Nanos(ps.div_ceil(PS))
}
