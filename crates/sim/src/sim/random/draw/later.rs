//! Draws added to the generator later, after tests and documents had named many seeds. They have random numbers of
//! their own, so everything else that a seed draws stays unchanged.

use super::super::draft::{
    Cable, ClassDraft, CrossingDraft, Draft, FaultDraft, FaultKindDraft, FlowDraft, FrameDraft, HeadroomDraft,
    LoadDraft, PortDraft, ReloadDraft, SizesDraft, SwitchDraft, TransportDraft,
};
use super::switch::LONGEST_CABLE;
use super::{DrawRng, Mood, workloads};
use crate::sets::ClassSet;
use crate::sim::rng::Rng;

/// Stream of random numbers. It is the first one after the generator's own from which no seed named in
/// tests/sim/found draws anything.
const STREAM: u64 = super::STREAM + 7;

/// Stream of random numbers of transports, chosen in the same way.
const TRANSPORT_STREAM: u64 = STREAM + 5;

/// Stream of random numbers of workloads, chosen in the same way.
const WORKLOAD_STREAM: u64 = TRANSPORT_STREAM + 13;

/// Stream of random numbers of QCN, chosen in the same way.
const QCN_STREAM: u64 = WORKLOAD_STREAM + 3;

/// Stream of random numbers of reloads, chosen in the same way.
const RELOAD_STREAM: u64 = QCN_STREAM + 1;

/// Stream of random numbers of changes of classes and ports, chosen in the same way.
const CHANGE_STREAM: u64 = RELOAD_STREAM + 1;

/// Congestion controls, by name. QCN is drawn with its congestion points.
pub(super) const CONTROLS: &[&str] =
    &["dcqcn", "dcqcn-nic", "dctcp", "timely", "swift", "theta-powertcp", "hpcc", "powertcp"];

/// Adds the later draws to `draft`. New draws must be added at the end of this function.
pub fn draw(mood: &Mood, draft: &mut Draft) {
    let mut rng = DrawRng(Rng::new(draft.seed, STREAM));
    draft.drain = rng.maybe(4, |rng| if rng.percent(50) { 0 } else { rng.between(1, 2_000) });
    if rng.percent(8) && !mood.promises {
        stall_for_good(&mut rng, draft);
    }
    if rng.percent(10) {
        garbage(&mut rng, draft);
    }
    if mood.is_busy && rng.percent(40) {
        flood(&mut rng, draft);
    }
    let mut rng = DrawRng(Rng::new(draft.seed, TRANSPORT_STREAM));
    if rng.percent(30) {
        transports(&mut rng, draft);
    }
    let mut rng = DrawRng(Rng::new(draft.seed, WORKLOAD_STREAM));
    if rng.percent(25) {
        workloads::draw(&mut rng, draft);
    }
    let mut rng = DrawRng(Rng::new(draft.seed, QCN_STREAM));
    if rng.percent(12) {
        congestion_points(&mut rng, draft);
    }
    let mut rng = DrawRng(Rng::new(draft.seed, RELOAD_STREAM));
    if rng.percent(15) {
        reloads(&mut rng, draft);
    }
    let mut rng = DrawRng(Rng::new(draft.seed, CHANGE_STREAM));
    if rng.percent(20) {
        changes(&mut rng, mood, draft);
    }
}

/// Makes reloads of some switches change classes, and ports that leave for it. A promise holds at a switch alone, since
/// a neighbour obeys no pause of a class that it takes for lossy.
fn changes(rng: &mut DrawRng, mood: &Mood, draft: &mut Draft) {
    let may_swap = !mood.promises || draft.switches.len() == 1;
    let (hosts, links, duration) = (&draft.hosts, &draft.links, draft.duration);
    for switch in &mut draft.switches {
        if switch.classes.iter().any(|class| class.qcn.is_some()) || !rng.percent(70) {
            continue;
        }
        if switch.reloads.is_empty() {
            let mut at = rng.between(0, duration / 2);
            for _ in 0..rng.between(1, 6) {
                switch.reloads.push(ReloadDraft { at, sizes: None, swapped: ClassSet::EMPTY, out: None });
                at += rng.spread(1, duration.max(2) / 3 + 2);
            }
        }
        let own = hosts.iter().filter(|host| host.switch == switch.id).map(|host| Cable::Host(host.id));
        let own =
            own.chain(links.iter().filter(|link| link.ends.contains(&switch.id)).map(|link| Cable::Link(link.id)));
        let own: Vec<Cable> = own.collect();
        let may_leave = !mood.promises && (switch.lcores == 1 || switch.crossing == CrossingDraft::All);
        let has_headroom = switch.classes.iter().any(|class| class.headroom.is_some());
        let swappable: Vec<u8> = (0..8).filter(|class| may_swap && can_be_swapped(switch, *class)).collect();
        for reload in &mut switch.reloads {
            for &class in &swappable {
                reload.swapped.set(usize::from(class), rng.percent(25));
            }
            if may_leave && rng.percent(40) {
                // Headroom that is written must hold a frame.
                let longest = if has_headroom { switch.mtu } else { 9_216 };
                let mtu = rng.maybe(50, |rng| rng.between(switch.mtu.into(), longest.max(switch.mtu).into()) as u16);
                reload.out = Some((rng.pick(&own), mtu));
            }
        }
    }
}

/// Whether a class has no key that only a lossless one has, or only a lossy one. With `dynamic` headroom a lossless
/// class needs a high limit.
fn can_be_swapped(switch: &SwitchDraft, class: u8) -> bool {
    let is_dynamic = switch.headroom == HeadroomDraft::Dynamic;
    let has_key = |drawn: &ClassDraft| match drawn.lossless {
        true => drawn.xon_offset.or(drawn.xon_floor).or(drawn.headroom).is_some(),
        false => drawn.queue_limit.is_some() || drawn.queue_reserve.is_some() || is_dynamic && drawn.limit.is_some(),
    };
    !switch.classes.iter().any(|drawn| drawn.class == class && has_key(drawn))
}

/// Makes some switches divide their buffers anew and back, each as often as the run has time for.
fn reloads(rng: &mut DrawRng, draft: &mut Draft) {
    let claims = |port: &PortDraft, length: u64| port.claims.unwrap_or(length);
    let links = draft.links.iter().map(|link| claims(&link.port, link.length));
    let longest = links.chain(draft.hosts.iter().map(|host| claims(&host.port, host.length))).max().unwrap_or(0);
    let duration = draft.duration;
    for switch in &mut draft.switches {
        if !rng.percent(70) {
            continue;
        }
        let mut at = rng.between(0, duration / 2);
        for number in 0..rng.between(1, 6) {
            let sizes = SizesDraft {
                lossy: rng.pick(&[10, 25, 50, 80]),
                port_reserve: (rng.spread(1, 20_000), rng.spread(1, 20_000)),
                cable: (longest + rng.between(0, 2_000)).min(LONGEST_CABLE),
            };
            let sizes = (number % 2 == 0).then_some(sizes);
            switch.reloads.push(ReloadDraft { at, sizes, swapped: ClassSet::EMPTY, out: None });
            at += rng.spread(1, duration.max(2) / 3 + 2);
        }
    }
}

/// Makes the queues of some classes congestion points, and flows in these classes reaction points.
fn congestion_points(rng: &mut DrawRng, draft: &mut Draft) {
    for class in 0..8 {
        if !rng.percent(60) {
            continue;
        }
        let point = (rng.spread(1_000, 100_000), rng.spread(1_000, 150_000));
        let classes = draft.switches.iter_mut().flat_map(|switch| &mut switch.classes);
        classes.filter(|drawn| drawn.class == class).for_each(|drawn| drawn.qcn = Some(point));
        for flow in draft.flows.iter_mut().filter(|flow| flow.class == class) {
            if rng.percent(70) {
                (flow.control, flow.dcqcn) = (Some("qcn"), false);
            }
        }
    }
}

/// Draws a reliable transport of a flow with messages or without.
pub(super) fn transport(rng: &mut DrawRng, has_messages: bool) -> TransportDraft {
    TransportDraft {
        recovery: match rng.between(0, 3) {
            0 if has_messages => "go-back-0",
            1 => "selective-repeat",
            _ => "go-back-n",
        },
        ack_every: if rng.percent(60) { 1 } else { rng.between(2, 32) },
        window: rng.maybe(50, |rng| rng.spread(2_000, 1 << 20)),
        timeout: rng.spread(20_000, 2_000_000),
    }
}

/// Gives some flows reliable transport and congestion control.
fn transports(rng: &mut DrawRng, draft: &mut Draft) {
    for flow in &mut draft.flows {
        if !rng.percent(60) {
            continue;
        }
        flow.transport = Some(transport(rng, matches!(flow.load, LoadDraft::Messages(..))));
        if rng.percent(60) {
            (flow.control, flow.dcqcn) = (Some(rng.pick(CONTROLS)), false);
        }
    }
}

/// Most frames that one host of a flood sends, which keeps runs short.
const FLOOD: u64 = 6_000;

/// Adds flows from one to three hosts of a switch, with the shortest frames in a lossy class: more than the switch's
/// core can process.
fn flood(rng: &mut DrawRng, draft: &mut Draft) {
    let Some(class) = (0..8).find(|class| !draft.lossless.contains(class)) else { return };
    let at = rng.between(0, draft.switches.len() as u64 - 1) as usize;
    draft.switches[at].frame = draft.switches[at].frame.max(rng.spread(40, 150));
    let switch = draft.switches[at].id;
    let hosts: Vec<usize> = draft.hosts.iter().filter(|host| host.switch == switch).map(|host| host.id).collect();
    let all: Vec<usize> = draft.hosts.iter().map(|host| host.id).collect();
    for &from in hosts.iter().take(rng.between(1, 3) as usize) {
        let to = rng.pick(&all);
        if from == to {
            continue;
        }
        // 80 bytes and the 24 bytes around them on the wire, in Mbit/s.
        let most = FLOOD * 104 * 8 * 1000 / draft.duration;
        let rate = (draft.host(from).rate * rng.between(60, 95) / 100).clamp(1, most);
        let flow = FlowDraft {
            from,
            to,
            class,
            rate: Some(rate),
            frame: FrameDraft::Fixed(80),
            ecn: false,
            start: 10_000.min(draft.duration / 2),
            stop: None,
            load: LoadDraft::Steady,
            dcqcn: false,
            control: None,
            transport: None,
        };
        draft.flows.push(flow);
    }
}

/// Stalls an lcore for ever. Half of these stalls begin when the last frames leave, so the lcore never collects their
/// releases.
fn stall_for_good(rng: &mut DrawRng, draft: &mut Draft) {
    let late = draft.duration + 3_000;
    let at = if rng.percent(50) { rng.between(5_000, draft.duration) } else { rng.between(draft.duration, late) };
    let switch = &draft.switches[rng.between(0, draft.switches.len() as u64 - 1) as usize];
    let lcore = rng.maybe(70, |rng| rng.between(0, u64::from(switch.lcores) - 1) as u8);
    let kind = FaultKindDraft::Stall(switch.id, lcore);
    draft.faults.push(FaultDraft { at, time: None, kind });
}

/// Adds a fault that sends a few hundred malformed frames, or a few thousand on the fastest links.
fn garbage(rng: &mut DrawRng, draft: &mut Draft) {
    let host = &draft.hosts[rng.between(0, draft.hosts.len() as u64 - 1) as usize];
    let rate = (host.rate * rng.between(1, 5) / 100).max(1);
    let kind = FaultKindDraft::Garbage(host.id, rate);
    let at = rng.between(0, draft.duration * 3 / 4);
    draft.faults.push(FaultDraft { at, time: rng.maybe(70, |rng| rng.spread(2_000, draft.duration)), kind });
}

#[cfg(test)]
mod tests {
    use super::super::draft;
    use super::*;

    #[test]
    fn documented_seeds_draw_nothing_that_was_added_later() {
        for seed in [7, 18, 71, 98, 222, 334, 5213, 5399, 103_229] {
            let draft = draft(seed);
            let is_later = |fault: &FaultDraft| match fault.kind {
                FaultKindDraft::Garbage(..) => true,
                FaultKindDraft::Stall(..) => fault.time.is_none(),
                _ => false,
            };
            assert!(draft.drain.is_none() && !draft.faults.iter().any(is_later), "seed {seed}");
            assert!(draft.flows.iter().all(|flow| flow.transport.is_none()), "seed {seed}");
            assert!(draft.workloads.is_empty(), "seed {seed}");
            let mut classes = draft.switches.iter().flat_map(|switch| &switch.classes);
            assert!(classes.all(|class| class.qcn.is_none()), "seed {seed}");
        }
    }
}
