//! Metrics of link aggregation groups and their members.

use super::family::Families;
use crate::lacp::MemberView;
use crate::stats::switch_view::SwitchView;

type Row = (&'static str, &'static str, fn(&MemberView) -> u64);

const COUNTERS: [Row; 5] = [
    ("holdfast_lacp_sent_frames_total", "LACP data units sent.", |member| member.counts.sent),
    ("holdfast_lacp_received_frames_total", "LACP data units received.", |member| member.counts.received),
    ("holdfast_lacp_malformed_frames_total", "Malformed frames of slow protocols.", |member| member.counts.malformed),
    ("holdfast_lacp_markers_total", "Markers answered.", |member| member.counts.markers),
    ("holdfast_lag_member_downs_total", "Times at which the member stopped to be active.", |member| {
        member.counts.downs
    }),
];

/// Groups and members; nothing for a switch that has none.
pub(super) fn lag(families: &mut Families, switch_view: &SwitchView) {
    let Some(board) = &switch_view.lacp else { return };
    let view = board.view();
    let members = || view.groups.iter().flat_map(|group| group.members.iter().map(move |member| (group, member)));
    for (name, help, of) in COUNTERS {
        let family = families.counter(name, help);
        members().for_each(|(group, member)| family.add(&[("lag", &group.name), ("port", &member.name)], of(member)));
    }
    let help = "1 while the member takes and sends frames.";
    let family = families.gauge("holdfast_lag_member_active", help);
    for (group, member) in members() {
        family.add(&[("lag", &group.name), ("port", &member.name)], u64::from(member.is_active));
    }
    let family = families.gauge("holdfast_lag_up", "1 while the group carries frames.");
    for group in &view.groups {
        family.add(&[("lag", &group.name)], u64::from(group.is_up));
    }
    let help = "Members that [opened](lag.md#flows) before all older frames of their flows had left.";
    families.counter("holdfast_lag_early_openings_total", help).add(&[], view.early_openings);
}
