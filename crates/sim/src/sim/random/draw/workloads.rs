//! Draws workloads.

use super::super::draft::{Draft, PatternDraft, WorkloadDraft};
use super::DrawRng;
use super::later::{CONTROLS, transport};

/// Most frames of a workload, which keeps runs short.
const BUDGET: u64 = 1_500;
/// Bytes of a frame, in estimates.
const FRAME: u64 = 1_000;
/// Most hosts of a workload.
const MOST_HOSTS: usize = 8;
const SIZES: &[&str] = &["google-rpc", "500B", "8kB", "{table: 0 0 300 50 2000 90 20000 100}"];

/// Adds one or two workloads to `draft`.
pub fn draw(rng: &mut DrawRng, draft: &mut Draft) {
    for _ in 0..rng.between(1, 2) {
        let mut hosts: Vec<usize> = draft.hosts.iter().map(|host| host.id).collect();
        while hosts.len() > MOST_HOSTS || hosts.len() > 2 && rng.percent(25) {
            hosts.remove(rng.between(0, hosts.len() as u64 - 1) as usize);
        }
        let class = if rng.percent(70) { rng.pick(&draft.lossless) } else { rng.pick(&[0, 1, 2, 5]) };
        let transport = rng.maybe(70, |rng| transport(rng, true));
        let workload = WorkloadDraft {
            pattern: pattern(rng, draft, &hosts),
            hosts,
            class,
            frame: rng.pick(&[1078, 1078, 300, 1500]),
            ecn: rng.percent(60),
            start: rng.between(0, draft.duration / 2),
            control: if transport.is_some() { rng.maybe(60, |rng| rng.pick(CONTROLS)) } else { None },
            transport,
        };
        draft.workloads.push(workload);
    }
}

fn pattern(rng: &mut DrawRng, draft: &Draft, hosts: &[usize]) -> PatternDraft {
    let count = hosts.len() as u64;
    // Frames that the hosts' links could carry in the time for which they send.
    let rate: u64 = hosts.iter().map(|host| draft.host(*host).rate).sum();
    let all = (rate * draft.duration / 1000 / (8 * FRAME)).max(1);
    match rng.between(0, 3) {
        0 => PatternDraft::Poisson(rng.pick(SIZES), (BUDGET * 1_000_000 / all).clamp(1, 400_000)),
        1 => {
            let size = rng.spread(200, 64_000);
            let frames = (count - 1) * size.div_ceil(FRAME);
            PatternDraft::Incast(size, (draft.duration * frames / BUDGET).max(1_000))
        }
        2 => PatternDraft::AllToAll(rng.between(1, BUDGET * FRAME / (count * count))),
        _ => {
            let (is_tree, times) = (rng.percent(50), rng.between(1, 3));
            let most = BUDGET * FRAME / times / if is_tree { 2 * count } else { 2 };
            PatternDraft::AllReduce(is_tree, rng.between(1, most), times)
        }
    }
}
