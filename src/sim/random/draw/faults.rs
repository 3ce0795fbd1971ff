//! Draws the faults of a fabric.

use super::super::draft::{Cable, Draft, FaultDraft, FaultKindDraft};
use super::{Dice, Mood, net};

/// Adds up to three faults; most fabrics get none.
pub fn draw(dice: &mut Dice, mood: &Mood, draft: &mut Draft) {
    let count = match dice.between(0, 99) {
        _ if mood.is_stuck || mood.watches => 1,
        0..55 if mood.promises => 0,
        0..20 => 0,
        20..85 => 1,
        _ => dice.between(2, 3),
    };
    for _ in 0..count {
        let at = dice.between(5_000, draft.duration * 3 / 4);
        // The watchdog detects a storm after 10 ms.
        let longest = if mood.watches { 25_000_000 } else { draft.duration };
        let time = Some(dice.spread(if mood.watches { 12_000_000 } else { 2_000 }, longest));
        let kind = kind(dice, mood, draft);
        // The run can drain only if the fault ends; few faults last for ever.
        let is_for_good = matches!(kind, FaultKindDraft::Storm(..)) && !mood.watches && dice.percent(3)
            || matches!(kind, FaultKindDraft::Late(..) | FaultKindDraft::Dead(_)) && dice.percent(20);
        draft.faults.push(FaultDraft { at, time: if is_for_good { None } else { time }, kind });
    }
}

fn kind(dice: &mut Dice, mood: &Mood, draft: &Draft) -> FaultKindDraft {
    let host = draft.hosts[dice.between(0, draft.hosts.len() as u64 - 1) as usize].clone();
    // The destination of a flow: a fault there affects traffic.
    let target = draft.flows[dice.between(0, draft.flows.len() as u64 - 1) as usize].to;
    let cable = if !draft.links.is_empty() && dice.percent(40) {
        Cable::Link(draft.links[dice.between(0, draft.links.len() as u64 - 1) as usize].id)
    } else {
        Cable::Host(host.id)
    };
    if mood.watches || mood.is_stuck && dice.percent(60) {
        return FaultKindDraft::Storm(target, 0);
    }
    let switch = draft.switches[dice.between(0, draft.switches.len() as u64 - 1) as usize].clone();
    match dice.between(0, if mood.promises { 59 } else { 99 }) {
        0..15 => FaultKindDraft::Storm(target, if dice.percent(70) { 0 } else { dice.between(1, 255) as u8 }),
        15..25 => FaultKindDraft::Dead(target),
        25..40 => FaultKindDraft::Slow(target, net::receiver(dice, draft.host(target).rate)),
        40..48 => {
            let most = if mood.promises { 60 * 512 * 1000 / host.rate } else { 30_000 };
            FaultKindDraft::Late(host.id, dice.between(0, most))
        }
        48..60 => FaultKindDraft::Lose(cable, "data", dice.between(1, 300) as u16, dice.percent(50)),
        60..80 => {
            let what = dice.pick(&["pfc", "any"]);
            FaultKindDraft::Lose(cable, what, dice.between(10, 1000) as u16, dice.percent(30))
        }
        80..91 => FaultKindDraft::Down(cable),
        _ => {
            let lcore = dice.maybe(50, |dice| dice.between(0, u64::from(switch.lcores) - 1) as u8);
            FaultKindDraft::Stall(switch.id, lcore)
        }
    }
}
