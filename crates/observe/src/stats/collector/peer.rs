//! Metrics of peers at XOFF: whether they stop, and how long they take.

use super::family::Families;
use super::lcore::seconds;
use crate::pfc::RESPONSE_BOUNDS;
use crate::sets::NUMBERS;
use crate::stats::peer::PeerSnapshot;
use crate::stats::snapshot::{Snapshot, Values};
use crate::stats::switch_view::SwitchView;

/// Name and help of a family, and its eight values for a peer.
type Row = (&'static str, &'static str, fn(&PeerSnapshot) -> &Values);

const TOTALS: [Row; 4] = [
    ("holdfast_pfc_peer_stops_total", "XOFFs at which [the peer](pfc.md#the-peer) stopped in time.", |peer| {
        &peer.stops
    }),
    ("holdfast_pfc_peer_late_xoffs_total", "XOFFs after which frames came too late.", |peer| &peer.late_pauses),
    ("holdfast_pfc_peer_late_frames_total", "Frames that came too late after XOFF.", |peer| &peer.late_frames),
    ("holdfast_pfc_peer_late_bytes_total", "Bytes of these frames.", |peer| &peer.late_bytes),
];

/// The answers of peers to XOFF, for the priorities for which a port sends it as PFC frames.
pub(super) fn peers(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let told = |port: usize| {
        let sends = switch_view.spec.ports.get(port).is_some_and(|port| port.pfc.sends_frames());
        let groups = if sends { switch_view.guarded_groups(port) } else { Default::default() };
        groups.iter().map(move |priority| (priority, NUMBERS[priority]))
    };
    for (name, help, of) in TOTALS {
        let family = families.counter(name, help);
        for (index, port) in snapshot.ports.iter().enumerate() {
            for (priority, number) in told(index) {
                let labels = [("port", switch_view.port_name(index)), ("priority", number)];
                family.add(&labels, of(&port.peer)[priority]);
            }
        }
    }
    let help = "1 while the peer is known not to stop at XOFF.";
    let family = families.gauge("holdfast_pfc_peer_disobeys", help);
    for index in 0..snapshot.ports.len() {
        let disobeyed = switch_view.disobeyed(index);
        for (priority, number) in told(index) {
            let labels = [("port", switch_view.port_name(index)), ("priority", number)];
            family.add(&labels, u64::from(disobeyed.contains(priority)));
        }
    }
    let help = "Time from XOFF to the last frame before XON.";
    let family = families.histogram("holdfast_pfc_peer_response_seconds", help);
    for (index, port) in snapshot.ports.iter().enumerate() {
        for (priority, number) in told(index) {
            let labels = [("port", switch_view.port_name(index)), ("priority", number)];
            let times = &port.peer.response[priority];
            let buckets: Vec<_> = RESPONSE_BOUNDS.iter().map(|&ns| seconds(ns)).zip(times.iter().copied()).collect();
            let beyond = times[RESPONSE_BOUNDS.len()];
            family.add_histogram(&labels, &buckets, beyond, seconds(port.peer.response_sum_ns[priority]));
        }
    }
}
