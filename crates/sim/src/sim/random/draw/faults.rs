//! Draws the faults of a fabric.

use super::super::draft::{Cable, Draft, FaultDraft, FaultKindDraft};
use super::{DrawRng, Mood, net};
use crate::sets::ClassSet;

/// Adds up to three faults; most fabrics get none.
pub fn draw(rng: &mut DrawRng, mood: &Mood, draft: &mut Draft) {
    let count = match rng.between(0, 99) {
        _ if mood.is_stuck || mood.watches => 1,
        0..55 if mood.promises => 0,
        0..20 => 0,
        20..85 => 1,
        _ => rng.between(2, 3),
    };
    for _ in 0..count {
        let at = rng.between(5_000, draft.duration * 3 / 4);
        // The watchdog detects a storm after 10 ms.
        let longest = if mood.watches { 25_000_000 } else { draft.duration };
        let time = Some(rng.spread(if mood.watches { 12_000_000 } else { 2_000 }, longest));
        let kind = kind(rng, mood, draft);
        // The run can drain only if the fault ends; few faults last for ever.
        let is_for_good = matches!(kind, FaultKindDraft::Storm(..)) && !mood.watches && rng.percent(3)
            || matches!(kind, FaultKindDraft::Late(..) | FaultKindDraft::Dead(_)) && rng.percent(20);
        draft.faults.push(FaultDraft { at, time: if is_for_good { None } else { time }, kind });
    }
}

fn kind(rng: &mut DrawRng, mood: &Mood, draft: &Draft) -> FaultKindDraft {
    let host = draft.hosts[rng.between(0, draft.hosts.len() as u64 - 1) as usize].clone();
    // The destination of a flow: a fault there affects traffic.
    let target = draft.flows[rng.between(0, draft.flows.len() as u64 - 1) as usize].to;
    let cable = if !draft.links.is_empty() && rng.percent(40) {
        Cable::Link(draft.links[rng.between(0, draft.links.len() as u64 - 1) as usize].id)
    } else {
        Cable::Host(host.id)
    };
    if mood.watches || mood.is_stuck && rng.percent(60) {
        return FaultKindDraft::Storm(target, ClassSet::EMPTY);
    }
    let switch = draft.switches[rng.between(0, draft.switches.len() as u64 - 1) as usize].clone();
    match rng.between(0, if mood.promises { 59 } else { 99 }) {
        0..15 => {
            let bits = if rng.percent(70) { 0 } else { rng.between(1, 255) as u8 };
            FaultKindDraft::Storm(target, ClassSet::from_bits(bits))
        }
        15..25 => FaultKindDraft::Dead(target),
        25..40 => FaultKindDraft::Slow(target, net::receiver(rng, draft.host(target).rate)),
        40..48 => {
            let most = if mood.promises { 60 * 512 * 1000 / host.rate } else { 30_000 };
            FaultKindDraft::Late(host.id, rng.between(0, most))
        }
        48..60 => FaultKindDraft::Lose(cable, "data", rng.between(1, 300) as u16, rng.percent(50)),
        60..80 => {
            let what = rng.pick(&["pfc", "any"]);
            FaultKindDraft::Lose(cable, what, rng.between(10, 1000) as u16, rng.percent(30))
        }
        80..86 => FaultKindDraft::Down(cable),
        86..91 => FaultKindDraft::Shut(cable),
        _ => {
            let lcore = rng.maybe(50, |rng| rng.between(0, u64::from(switch.lcores) - 1) as u8);
            FaultKindDraft::Stall(switch.id, lcore)
        }
    }
}
