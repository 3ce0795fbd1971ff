//! Metrics of mirrors and sFlow; nothing for a switch that has neither.

use super::family::Families;
use crate::mirror::{Destination, SessionView, SflowView};
use crate::plan::counters::{Counter, LcoreCounters};
use crate::plan::mirror::CopyCause;
use crate::stats::switch_view::SwitchView;

type Kinds = [Counter; CopyCause::KINDS];
type EventRow = (&'static str, &'static str, fn(&LcoreCounters) -> &Kinds);
type SessionRow = (&'static str, &'static str, fn(&SessionView) -> u64);
type SflowRow = (&'static str, &'static str, fn(&SflowView) -> u64);

const EVENTS: [EventRow; 3] = [
    (
        "holdfast_mirror_copies_total",
        "Copies given to the exporters; `event`: `dropped`, `marked`, `sampled`.",
        |lcore| &lcore.copies,
    ),
    (
        "holdfast_mirror_policed_total",
        "Frames not copied for a session: beyond its rate, or the [bytes of a \
        poll](mirror.md#bounds).",
        |lcore| &lcore.copies_policed,
    ),
    ("holdfast_mirror_no_buffer_total", "Frames not copied, since every buffer was in use.", |lcore| {
        &lcore.copies_full
    }),
];
const SESSIONS: [SessionRow; 3] = [
    ("holdfast_mirror_written_total", "Copies that the destination took; a file: those that are in it.", |session| {
        session.copies
    }),
    ("holdfast_mirror_written_bytes_total", "Bytes of the copies that the destination took.", |session| session.bytes),
    (
        "holdfast_mirror_lost_total",
        "Copies that the destination refused, or for which its queue had no room.",
        |session| session.lost,
    ),
];
const SFLOW: [SflowRow; 2] = [
    ("holdfast_sflow_datagrams_total", "Datagrams of sFlow sent.", SflowView::sent),
    ("holdfast_sflow_errors_total", "Datagrams of sFlow that the kernel refused.", |sflow| sflow.send_errors),
];

pub(super) fn mirrors(families: &mut Families, switch_view: &SwitchView) {
    let config = &switch_view.mirror_config;
    let view = switch_view.mirror.as_ref().map(|board| board.view()).unwrap_or_default();
    if !config.targets.is_empty() {
        let lcores = &switch_view.counters.lcores;
        for (name, help, of) in EVENTS {
            let family = families.counter(name, help);
            for (kind, event) in CopyCause::LABELS.into_iter().enumerate() {
                family.add(&[("event", event)], lcores.iter().map(|lcore| of(lcore)[kind].get()).sum());
            }
        }
        for (name, help, of) in SESSIONS {
            let family = families.counter(name, help);
            for target in &config.targets {
                family.add(&[("session", &target.name)], view.session(&target.name).map_or(0, of));
            }
        }
        let help = "Mirrors to files: 1 if the last write failed or has not ended for 3 s, the queue was full in \
            the last 3 s, or the session has no thread yet.";
        let failing = families.gauge("holdfast_mirror_failing", help);
        for target in config.targets.iter().filter(|target| matches!(target.to, Destination::File(_))) {
            let has_error = view.session(&target.name).is_some_and(|session| session.error.is_some());
            failing.add(&[("session", &target.name)], u64::from(has_error));
        }
        if !switch_view.spec.mirror.outputs.is_empty() {
            let help = "Frames that the queues of a port that sends copies refused or discarded.";
            let dropped = families.counter("holdfast_mirror_output_dropped_total", help);
            for port in switch_view.spec.mirror.outputs.iter() {
                dropped.add(&[("port", switch_view.port_name(port))], switch_view.copies_dropped_at(port));
            }
        }
        let help = "Copies discarded, made for the sessions before a reload.";
        families.counter("holdfast_mirror_stale_total", help).add(&[], view.stale);
    }
    if config.sflow.is_some() {
        for (name, help, of) in SFLOW {
            families.counter(name, help).add(&[], view.sflow.as_ref().map_or(0, of));
        }
    }
}
