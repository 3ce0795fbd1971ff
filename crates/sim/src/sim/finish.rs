//! Collects the [`Outcome`] of a finished run.

use super::EPOCH;
use super::engine::Engine;
use super::load::PS;
use super::monitor::Monitor;
use super::node::Node;
use super::outcome::{ClassOutcome, Ending, LinkOutcome, Outcome, PortOutcome, SwitchOutcome, Violation};
use super::own::Own;
use super::watch::Watch;
use crate::dataplane::Pipeline;
use crate::pfc::Answers;
use crate::plan::counters::{Counter, LcoreCounters, PerClass, PortCounters, UNCLASSIFIED};
use crate::plan::drops::DropReason;
use crate::sets::CLASSES;
use crate::units::Ticks;

/// State of a switch when hosts stopped sending.
#[derive(Debug, Clone, Default)]
pub struct AtStop {
    /// By port and class: cells in the reserve and the shared pool, bytes in the queue.
    held: Vec<[(u64, u64); CLASSES]>,
    /// Cells used in the lossy and the lossless shared pool.
    shared: [u64; 2],
}

/// Returns the state that each switch has now.
#[must_use]
pub fn at_stop(nodes: &Own<Node>) -> Vec<AtStop> {
    let of_port = |node: &Node, port| {
        let senders = || node.fleet.iter().filter(|pipeline| pipeline.sends_by(port));
        std::array::from_fn(|class| {
            let views = senders().map(|pipeline| pipeline.view(port, class));
            // Lcores that do not own the port hold no cells of its groups.
            views.fold((0, 0), |(used, queued), view| (used + u64::from(view.used.0), queued + view.queue_bytes.0))
        })
    };
    let of_node = |node: &Node| AtStop {
        held: (0..node.devices.len()).map(|port| of_port(node, port)).collect(),
        shared: Pipeline::pool_used(&node.fleet).map(|cells| u64::from(cells.0)),
    };
    nodes.iter().map(of_node).collect()
}

/// Returns the outcome of the whole run.
#[must_use]
pub fn outcome(mut engine: Engine<'_>, ending: Ending, violation: Option<Violation>) -> Outcome {
    let now = engine.net.now;
    engine.finish_backlogs();
    // A run that is given up before hosts stop sending has no such state.
    engine.at_stop.resize_with(engine.net.nodes.len(), AtStop::default);
    let watch = &engine.net.watch;
    let switches =
        engine.net.nodes.iter_mut().zip(&engine.at_stop).map(|(node, at_stop)| switch(node, at_stop, watch, now));
    let switches = switches.collect();
    let lost: Vec<[u64; 2]> = engine.net.wires.iter().map(|wire| wire.lost).collect();
    let link = |pair: &[[u64; 2]]| LinkOutcome {
        lost_frames: [pair[1][0] + pair[1][1], pair[0][0] + pair[0][1]],
        lost_pfc_frames: [pair[1][1], pair[0][1]],
    };
    let most_flows_at_once = engine.flows.most_added() as u64;
    let (workloads, completions) = engine.finish_workloads();
    Outcome {
        end_ps: now,
        last_empty_ps: engine.last_empty_ps,
        sending_ps: now.min(engine.scenario.duration.0 * PS),
        events: engine.net.handled,
        checks: engine.net.steps.done,
        ending,
        violation,
        waivers: std::mem::take(&mut engine.waivers)
            .into_iter()
            .map(|waiver| waiver.what)
            .chain(engine.net.take_waivers())
            .collect(),
        flows: engine.flows.finish(),
        workloads,
        completions,
        most_flows_at_once,
        queues: engine.queues.take(),
        queue_dumps: engine.monitor.take().map(Monitor::finish).unwrap_or_default(),
        hosts: engine.hosts.iter_mut().map(|host| host.finish(now)).collect(),
        switches,
        links: lost.chunks_exact(2).map(link).collect(),
        pauses: engine.net.watch.finish(now),
        pauses_left_out: engine.net.watch.pauses_left_out,
        samples: engine.sampler.finish(engine.scenario),
    }
}

fn switch(node: &mut Node, at_stop: &AtStop, watch: &Watch, now: u64) -> SwitchOutcome {
    // A busy switch publishes its gauges only now and then.
    node.fleet.iter_mut().for_each(|pipeline| pipeline.settle_gauges(Ticks(EPOCH + now)));
    let hops = node.router.as_ref().map_or_else(Vec::new, |router| router.hops(&node.counters));
    let lcores = node.counters.lcores.iter();
    let highest = |of: &dyn Fn(&LcoreCounters) -> u64| lcores.clone().map(|lcore| of(lcore)).max().unwrap_or(0);
    SwitchOutcome {
        ports: (0..node.devices.len()).map(|port| of_port(node, port, at_stop, watch)).collect(),
        shared_highest_cells: [
            highest(&|lcore| lcore.lossy_used_highest_cells.get()),
            highest(&|lcore| lcore.lossless_used_highest_cells.get()),
        ],
        shared_at_stop_cells: at_stop.shared,
        headroom_pool_highest_cells: highest(&|lcore| lcore.headroom_pool_highest_cells.get()),
        polls: node.rested_polls + lcores.clone().map(|lcore| lcore.polls.get()).sum::<u64>(),
        // The gap in progress counts too: an lcore that stalls for ever has no completed gap.
        poll_gap_highest_ps: node
            .lcores
            .iter()
            .map(|lcore| lcore.gap_highest_ps.max(now.saturating_sub(lcore.began_ps)))
            .max()
            .unwrap_or(0),
        handed_off_frames: lcores.clone().map(|lcore| lcore.handed_off_frames.get()).sum(),
        hops,
    }
}

fn of_port(node: &Node, port: usize, at_stop: &AtStop, watch: &Watch) -> PortOutcome {
    let (counters, device, spec) = (&node.counters.ports[port], &node.devices[port], &node.spec.ports[port]);
    let all = |of: &dyn Fn(&PortCounters) -> &Counter| node.counters.sum(port, of);
    let held = at_stop.held.get(port).copied().unwrap_or_default();
    let pauses = device.wires.map_or([0; CLASSES], |(out, _)| watch.begun(out));
    let answers = node.fleet.iter().find(|part| part.owns(port)).and_then(|part| part.answers(port));
    let classes = std::array::from_fn(|class| ClassOutcome {
        answers: answers.map_or_else(Answers::default, |answers| answers[class]),
        lossless: spec.buffer.groups[class].lossless && !node.course.changed.contains(class),
        rx_frames: counters.rx_frames[class].get(),
        tx_frames: all(&|port| &port.tx_frames[class]),
        tx_bytes: all(&|port| &port.tx_bytes[class]),
        marked_frames: all(&|port| &port.ecn_marked[class]),
        cnms_made: counters.cnms_made[class].get(),
        drops: drops(node, port, class),
        xoff_tx: counters.pfc_tx_xoff[class].get(),
        pauses_tx: pauses[class],
        xon_tx: counters.pfc_tx_xon[class].get(),
        xoff_rx: counters.pfc_rx_xoff[class].get(),
        held_ps: counters.pfc_tx_paused_ns[class].get() * PS,
        paused_ps: counters.pfc_rx_paused_ns[class].get() * PS,
        used_highest_cells: counters.group_used_highest_cells[class].get(),
        used_at_stop_cells: held[class].0,
        headroom_highest_cells: counters.group_headroom_highest_cells[class].get(),
        headroom_cells: u64::from(spec.buffer.groups[class].headroom.0),
        queue_highest_cells: all(&|port| &port.queue_highest_cells[class]),
        queue_at_stop_bytes: held[class].1,
    });
    PortOutcome {
        classes,
        unclassified_drops: drops(node, port, UNCLASSIFIED),
        pfc_tx_frames: all(&|port| &port.pfc_tx_frames),
        pfc_rx_frames: counters.pfc_rx_frames.get(),
        missed_frames: device.missed,
        missed_lossless_frames: device.missed_lossless,
        ring_highest_frames: device.highest as u64,
        backlog_xoffs: counters.backlog_xoffs.get(),
        backlog_held_ps: counters.backlog_held_ns.get() * PS,
        insurance_highest_cells: counters.insurance_highest_cells.get(),
        watchdog: (sum(&counters.watchdog_storms), sum(&counters.watchdog_restores)),
    }
}

fn sum(counts: &PerClass) -> u64 {
    counts.iter().map(Counter::get).sum()
}

/// The frames that `node` dropped at `port` in the row of a class, by reason.
fn drops(node: &Node, port: usize, row: usize) -> Vec<(DropReason, u64)> {
    let count = |reason: DropReason| node.counters.sum(port, |counters| &counters.drops[row][reason as usize]);
    DropReason::TABLE.iter().map(|(reason, ..)| (*reason, count(*reason))).filter(|(_, count)| *count > 0).collect()
}
