//! The worst that can happen to a link, and the smallest eta that is enough for it.

use super::adversary::{Adversary, Sizes, all, largest};
use super::link::Link;
use super::world::World;
use crate::mmu::headroom::SmallPackets;
use crate::sim::load::PS;
use crate::sim::outcome::Outcome;
use crate::units::{Cells, Nanos};

/// Class of what must not be lost.
pub(super) const CLASS: usize = 3;

/// What one run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Most cells of headroom that were in use.
    pub used: Cells,
    /// Lossless frames that were dropped.
    pub lost: u64,
    /// When the peer heard XOFF.
    pub(super) heard_ps: u64,
    /// Whether it was let go by time alone: it had not understood in time that the pause goes on.
    pub lapsed: bool,
}

/// What was found of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Eta by the formula.
    pub formula: Cells,
    /// The smallest eta that loses nothing, whatever of all adversaries.
    pub demand: Cells,
    /// Who needs that much.
    pub worst: Adversary,
    /// Adversaries tried.
    pub tried: usize,
    /// The smallest eta if every packet is small after all; `None` where the formula expects that.
    pub broken: Option<Cells>,
}

/// Runs `adversary` on `link` with `eta` cells of headroom. `None` if there is no room for it in time.
///
/// # Panics
/// If anything goes wrong that has nothing to do with headroom: a violated invariant is a bug.
#[must_use]
pub fn replay(link: &Link, adversary: &Adversary, eta: Cells) -> Option<Run> {
    let world = World::new(link, adversary)?;
    let (Sizes::Framed(len) | Sizes::Last(len)) = adversary.sizes else {
        return Some(judge(link, &world.run(eta, None)));
    };
    // The last frame begins just before the peer obeys. When that is does not depend on the frames before it.
    let heard = judge(link, &world.run(eta, Some(u64::MAX / PS)));
    let obeys = heard.heard_ps + link.response_ps();
    let last = (obeys - link.time_ps(u64::from(len) + 24)) / PS;
    Some(judge(link, &world.run(eta, Some(last))))
}

/// Tries everything, and confirms by the switch itself that the demand found is enough and a cell less is not.
///
/// # Panics
/// If the smallest eta is not what the highest use says: the switch would be wrong.
#[must_use]
pub fn prove(link: &Link) -> Proof {
    let formula = link.formula().cells;
    let plenty = Cells(formula.0.saturating_mul(2));
    let adversaries = all(link);
    let tried = adversaries.into_iter().filter_map(|adversary| {
        let run = replay(link, &adversary, plenty)?;
        assert_eq!(run.lost, 0, "{link:?}: {adversary} loses with twice the formula's headroom");
        assert!(!run.lapsed, "{link:?}: {adversary} ends a pause before it is said again");
        Some((run.used, adversary))
    });
    let tried: Vec<(Cells, Adversary)> = tried.collect();
    // Of several that are as bad, the first.
    let (demand, worst) = tried
        .iter()
        .rev()
        .max_by_key(|(used, _)| *used)
        .copied()
        .unwrap_or((Cells(0), Adversary::of(Sizes::All(largest(link)))));
    for (used, adversary) in tried.iter().filter(|(used, _)| used.0 + demand.0 / 50 >= demand.0) {
        let run = replay(link, adversary, demand).map(|run| (run.used, run.lost));
        assert_eq!(run, Some((*used, 0)), "{link:?}: {adversary} with what it needs");
    }
    let less = replay(link, &worst, Cells(demand.0.saturating_sub(1)));
    assert!(less.is_some_and(|run| run.lost > 0), "{link:?}: {worst} loses nothing with a cell less than it needs");
    let broken = (!link.small_packets.is_all()).then(|| demand_of_all_small(link));
    Proof { formula, demand, worst, tried: tried.len(), broken }
}

/// The highest use of headroom by a peer that sends all in small packets, whatever was promised.
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
    // Nothing that came leaves, so that whoever was stopped once is to stand still to the end.
    let still_ps = outcome.end_ps.saturating_sub(heard_ps + link.response_ps());
    Run {
        used: Cells(class.headroom_highest_cells as u32),
        lost: class.dropped() + port.missed_lossless_frames,
        heard_ps,
        lapsed: heard.is_some() && outcome.hosts[0].paused_ps[CLASS] + PS < still_ps,
    }
}

/// A time in whole nanoseconds, none earlier.
pub(super) fn up(ps: u64) -> Nanos {
    Nanos(ps.div_ceil(PS))
}
