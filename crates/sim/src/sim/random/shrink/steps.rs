//! Steps that remove or simplify parts of a fabric.

use super::super::draft::{
    ClassDraft, CrossingDraft, Draft, FlowDraft, FrameDraft, HeadroomDraft, HostDraft, LoadDraft, PortDraft,
    SwitchDraft, TransportDraft, WorkloadDraft,
};
use crate::sets::ClassSet;
use crate::sim::shrink::Step;

/// All steps, those that remove most first.
pub const STEPS: &[Step<Draft>] = &[
    end_there,
    halve_flows,
    switches,
    links,
    hosts,
    flows,
    workloads,
    faults,
    duration,
    whole,
    simple_switches,
    simple_classes,
    simple_hosts,
    simple_links,
    simple_flows,
    simple_workloads,
    simple_faults,
    round,
];

fn changed(draft: &Draft, change: impl FnOnce(&mut Draft)) -> Option<Draft> {
    let mut draft = draft.clone();
    change(&mut draft);
    Some(draft)
}

/// Ends the run just after the violation.
fn end_there(draft: &Draft, place: usize, at: u64) -> Option<Draft> {
    let end = (at / 1000 + 1) * 1000;
    if place == 0 { changed(draft, |draft| draft.duration = draft.duration.min(end)) } else { None }
}

fn halve_flows(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let half = draft.flows.len() / 2;
    if place > 1 || half == 0 {
        return None;
    }
    changed(draft, |draft| {
        let kept = if place == 0 { 0..half } else { half..draft.flows.len() };
        draft.flows = draft.flows[kept].to_vec();
    })
}

fn switches(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let id = draft.switches.get(place).filter(|_| draft.switches.len() > 1)?.id;
    changed(draft, |draft| draft.remove_switch(id))
}

fn links(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let id = draft.links.get(place)?.id;
    changed(draft, |draft| draft.remove_link(id))
}

fn hosts(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let id = draft.hosts.get(place)?.id;
    changed(draft, |draft| draft.remove_host(id))
}

fn flows(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    draft.flows.get(place)?;
    changed(draft, |draft| {
        draft.flows.remove(place);
    })
}

fn workloads(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    draft.workloads.get(place)?;
    changed(draft, |draft| {
        draft.workloads.remove(place);
    })
}

fn faults(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    draft.faults.get(place)?;
    changed(draft, |draft| {
        draft.faults.remove(place);
    })
}

fn duration(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let of_four = [1, 2, 3].get(place)?;
    changed(draft, |draft| draft.duration = (draft.duration * of_four / 4 / 1000 * 1000).max(1000))
}

fn whole(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    match place {
        0 => changed(draft, |draft| draft.learns = false),
        1 => changed(draft, |draft| draft.seed = 1),
        2 => changed(draft, |draft| {
            // Removes the classes that no flow uses.
            let workloads = draft.workloads.iter().map(|workload| workload.class);
            let used: Vec<u8> = draft.flows.iter().map(|flow| flow.class).chain(workloads).collect();
            draft.lossless.retain(|class| used.contains(class));
            draft.switches.iter_mut().for_each(|switch| switch.classes.retain(|class| used.contains(&class.class)));
        }),
        _ => None,
    }
}

/// Splits change number `place` into an item and one of its simpler forms. Each of `count` items has `kinds` forms.
fn of_each(place: usize, count: usize, kinds: usize) -> Option<(usize, usize)> {
    (place < count * kinds).then(|| (place % count, place / count))
}

fn simple_switches(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    const SIMPLER: [fn(&mut SwitchDraft); 18] = [
        |switch| switch.reloads.clear(),
        |switch| switch.reloads.truncate(switch.reloads.len().saturating_sub(1)),
        |switch| switch.reloads.iter_mut().for_each(|reload| reload.sizes = None),
        |switch| switch.reloads.iter_mut().for_each(|reload| reload.swapped = ClassSet::EMPTY),
        |switch| switch.reloads.iter_mut().for_each(|reload| reload.out = None),
        |switch| switch.lcores = 1,
        |switch| switch.crossing = CrossingDraft::None,
        |switch| switch.jitter = 0,
        |switch| switch.frame = 0,
        |switch| switch.watchdog = None,
        |switch| switch.port_reserve = None,
        |switch| switch.headroom = HeadroomDraft::Independent,
        |switch| switch.cell = 208,
        |switch| switch.lossy = 25,
        |switch| switch.mtu = 1500,
        |switch| switch.poll_gap = 20_000,
        |switch| switch.every = 1000,
        |switch| switch.backlog = true,
    ];
    let (number, kind) = of_each(place, draft.switches.len(), SIMPLER.len())?;
    changed(draft, |draft| SIMPLER[kind](&mut draft.switches[number]))
}

fn simple_classes(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    const SIMPLER: [fn(&mut ClassDraft); 10] = [
        |class| class.limit = None,
        |class| class.reserve = None,
        |class| class.xon_offset = None,
        |class| class.xon_floor = None,
        |class| class.headroom = None,
        |class| class.queue_limit = None,
        |class| class.queue_reserve = None,
        |class| class.weight = None,
        |class| class.ecn = None,
        |class| class.qcn = None,
    ];
    // A class changes in all switches at once, because they have the same classes.
    let (class, kind) = of_each(place, 8, SIMPLER.len())?;
    changed(draft, |draft| {
        let classes = draft.switches.iter_mut().flat_map(|switch| &mut switch.classes);
        classes.filter(|candidate| usize::from(candidate.class) == class).for_each(SIMPLER[kind]);
    })
}

fn simple_hosts(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    const SIMPLER: [fn(&mut HostDraft); 8] = [
        |host| host.receiver = None,
        |host| host.response = None,
        |host| host.obeys = true,
        |host| host.known = true,
        |host| host.length = 5,
        |host| host.rate = 100_000,
        |host| host.port = plain(host.port),
        |host| host.port.rx_descriptors = 1024,
    ];
    let (number, kind) = of_each(place, draft.hosts.len(), SIMPLER.len())?;
    changed(draft, |draft| SIMPLER[kind](&mut draft.hosts[number]))
}

fn simple_links(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let (number, kind) = of_each(place, draft.links.len(), 3)?;
    changed(draft, |draft| {
        let link = &mut draft.links[number];
        match kind {
            0 => link.length = 5,
            1 => link.rate = 100_000,
            _ => link.port = plain(link.port),
        }
    })
}

fn plain(port: PortDraft) -> PortDraft {
    PortDraft { pfc: "software", claims: None, ..port }
}

fn simple_flows(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    const SIMPLER: [fn(&mut FlowDraft); 10] = [
        |flow| {
            if flow.transport.is_none_or(|transport| transport.recovery != "go-back-0") {
                flow.load = LoadDraft::Steady;
            }
        },
        |flow| flow.frame = FrameDraft::Fixed(1078),
        |flow| flow.rate = None,
        |flow| flow.dcqcn = false,
        |flow| flow.control = None,
        |flow| flow.transport = flow.transport.filter(|_| flow.control.is_some()),
        |flow| {
            flow.transport = flow.transport.map(|transport| TransportDraft { window: None, ack_every: 1, ..transport })
        },
        |flow| flow.ecn = flow.dcqcn || flow.control.is_some(),
        |flow| flow.stop = None,
        |flow| flow.start = 10_000,
    ];
    let (number, kind) = of_each(place, draft.flows.len(), SIMPLER.len())?;
    changed(draft, |draft| SIMPLER[kind](&mut draft.flows[number]))
}

fn simple_workloads(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    const SIMPLER: [fn(&mut WorkloadDraft); 6] = [
        |workload| workload.control = None,
        |workload| workload.transport = None,
        |workload| workload.ecn = false,
        |workload| workload.frame = 1078,
        |workload| workload.start = 10_000,
        |workload| workload.hosts.truncate((workload.hosts.len() / 2).max(2)),
    ];
    let (number, kind) = of_each(place, draft.workloads.len(), SIMPLER.len())?;
    changed(draft, |draft| SIMPLER[kind](&mut draft.workloads[number]))
}

fn simple_faults(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    let (number, kind) = of_each(place, draft.faults.len(), 2)?;
    changed(draft, |draft| {
        let fault = &mut draft.faults[number];
        match kind {
            0 => fault.at = fault.at / 10_000 * 10_000,
            _ => fault.time = fault.time.map(|time| (time / 10_000 * 10_000).max(1000)),
        }
    })
}

/// Rounds numbers to be easier to read, although not all become smaller.
fn round(draft: &Draft, place: usize, _: u64) -> Option<Draft> {
    if place < draft.switches.len() {
        return changed(draft, |draft| {
            let switch = &mut draft.switches[place];
            switch.spare = (switch.spare / 10_000 * 10_000).max(10_000);
        });
    }
    let place = place - draft.switches.len();
    draft.hosts.get(place)?;
    changed(draft, |draft| {
        let host = &mut draft.hosts[place];
        host.receiver = host.receiver.map(|mut receiver| {
            receiver.bytes = (receiver.bytes / 10_000 * 10_000).max(10_000);
            receiver
        });
    })
}
