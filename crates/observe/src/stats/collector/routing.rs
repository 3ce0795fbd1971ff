//! Metrics of routing: routes, forwarding table, neighbours, next hops; and frames to and from the control plane.

use super::family::Families;
use crate::plan::counters::LcoreCounters;
use crate::route::{PuntCause, RoutingSpec};
use crate::router::local::Unanswered;
use crate::router::neighbours::{PORT_LIMIT, State};
use crate::router::{LinuxView, Source, Summary, TapCounts};
use crate::stats::switch_view::SwitchView;

const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

type Row<T> = (&'static str, &'static str, fn(&T) -> u64);

const COUNTERS: [Row<Summary>; 12] = [
    ("holdfast_route_tables_total", "Tables made for the lcores.", |router| router.view.version),
    ("holdfast_fib_refused_total", "Prefixes without room in the forwarding table.", |router| {
        router.view.counts.fib_refused
    }),
    ("holdfast_neighbour_flaps_total", "Usable neighbours lost, or with a new MAC address.", |router| {
        router.view.neighbour_counts.flaps
    }),
    (
        "holdfast_neighbours_refused_total",
        "Neighbours not learned: the table is full of static ones and next hops.",
        |router| router.view.neighbour_counts.refused,
    ),
    ("holdfast_neighbours_evicted_total", "Neighbours that gave way to others.", |router| {
        router.view.neighbour_counts.evicted
    }),
    (
        "holdfast_unresolved_packets_total",
        "Packets dropped while they waited for a MAC address: too many, or no answer within 3 s.",
        |router| router.view.neighbour_counts.unresolved_packets,
    ),
    ("holdfast_address_conflicts_total", "Claims of others to an address of the switch.", |router| {
        router.view.counts.conflicts
    }),
    ("holdfast_next_hop_groups_refused_total", "Routes that had to wait: too many sets of next hops.", |router| {
        router.view.counts.groups_refused
    }),
    ("holdfast_next_hop_buckets_moved_total", "Hash buckets that changed their next hop.", |router| {
        router.view.counts.buckets_moved
    }),
    ("holdfast_icmp_errors_sent_total", "ICMP errors sent.", |router| router.view.counts.icmp_errors),
    ("holdfast_echo_replies_sent_total", "Pings answered.", |router| router.view.counts.echo_replies),
    (
        "holdfast_router_output_dropped_frames_total",
        "Frames of the control plane not sent: too many waited.",
        |router| router.view.counts.output_drops,
    ),
];

const GAUGES: [Row<Summary>; 5] = [
    ("holdfast_port_neighbours_limit", "Most neighbours of one port.", |_| PORT_LIMIT as u64),
    ("holdfast_fib_bytes", "Memory of both forwarding tables.", |router| 2 * router.view.fib.bytes),
    ("holdfast_resolution_waiting_packets", "Packets that wait for a MAC address.", |router| {
        router.view.waiting as u64
    }),
    ("holdfast_next_hop_groups", "Sets of next hops.", |router| router.view.groups as u64),
    ("holdfast_next_hop_groups_unresolved", "Sets without a usable next hop: their routes drop.", |router| {
        router.view.unresolved_groups as u64
    }),
];

const ROUTED: [Row<LcoreCounters>; 2] = [
    ("holdfast_routed_frames_total", "Frames routed.", |lcore| lcore.routed_frames.get()),
    ("holdfast_routed_fragments_total", "Routed fragments.", |lcore| lcore.routed_fragments.get()),
];

/// Frames between the lcores and the control plane.
const EXCEPTIONS: [Row<LcoreCounters>; 3] = [
    ("holdfast_punt_full_frames_total", "Frames not given to the control plane: no buffer for the port.", |lcore| {
        lcore.punt_full.get()
    }),
    ("holdfast_injected_frames_total", "Frames of the control plane admitted to a queue.", |lcore| {
        lcore.injected_frames.get()
    }),
    ("holdfast_inject_dropped_frames_total", "Frames of the control plane without a port or a buffer.", |lcore| {
        lcore.inject_drops.get()
    }),
];

/// Frames between Linux and an interface.
const TAPS: [Row<TapCounts>; 4] = [
    ("holdfast_linux_delivered_frames_total", "Frames given to Linux.", |tap| tap.to_linux),
    ("holdfast_linux_refused_frames_total", "Frames that Linux did not take.", |tap| tap.to_linux_drops),
    ("holdfast_linux_sent_frames_total", "Frames that Linux sent.", |tap| tap.from_linux),
    ("holdfast_linux_unsent_frames_total", "Frames of Linux dropped: every buffer to the lcores was in use.", |tap| {
        tap.from_linux_drops
    }),
];

/// The mirror of the tables of Linux.
const MIRROR: [Row<LinuxView>; 4] = [
    ("holdfast_linux_dumps_total", "Complete readings of the tables of Linux: once a minute, and in doubt.", |linux| {
        linux.dumps
    }),
    ("holdfast_linux_overruns_total", "Losses of messages of Linux, each of which causes a reading.", |linux| {
        linux.overruns
    }),
    ("holdfast_linux_malformed_messages_total", "Messages of Linux that could not be parsed.", |linux| linux.malformed),
    ("holdfast_linux_refused_entries_total", "Entries of Linux without room in the mirror of its tables.", |linux| {
        linux.refused
    }),
];

/// Everything of a switch that routes; nothing for one that only bridges.
pub(super) fn routing(families: &mut Families, switch_view: &SwitchView) {
    let (Some(published), Some(spec)) = (&switch_view.router, &switch_view.spec.routing) else { return };
    let router = &published.get();
    routes(families, router, spec);
    for (name, help, of) in COUNTERS {
        families.counter(name, help).add(&[], of(router));
    }
    for (name, help, of) in GAUGES {
        families.gauge(name, help).add(&[], of(router));
    }
    let help = "Neighbours: `static`, `reachable`, `stale`, `probing`, `incomplete`, `failed`, `silent`.";
    let family = families.gauge("holdfast_neighbours", help);
    for ((_, label), count) in State::TABLE.iter().zip(router.view.neighbours) {
        family.add(&[("state", label)], count as u64);
    }
    let help = "Packets to an own address that nothing here takes: `fragment`, `extension_header` (routing \
        header with segments left, unknown option), `malformed`, `protocol`, `no_route` to the sender. \
        Zero with [`routing.linux`](linux.md), which takes them.";
    let family = families.counter("holdfast_unanswered_packets_total", help);
    for ((_, reason), count) in Unanswered::TABLE.iter().zip(router.view.counts.unanswered) {
        family.add(&[("reason", reason)], count);
    }
    shares(families, router, switch_view);
    interfaces(families, router, spec);
    next_hops(families, router, spec);
    by_lcore(families, switch_view, &ROUTED);
    if let Some(view) = &router.linux {
        linux(families, view, spec);
        let help = "Frames that Linux did not get: their senders exceed the port's \
            [share](linux.md#shares-of-neighbours).";
        let family = families.counter("holdfast_linux_withheld_frames_total", help);
        for (port, count) in (0..switch_view.spec.ports.len()).zip(&view.withheld) {
            family.add(&[("port", switch_view.port_name(port))], *count);
        }
    }
}

/// The exchange with Linux, where it answers for the router's addresses.
fn linux(families: &mut Families, view: &LinuxView, spec: &RoutingSpec) {
    for (name, help, of) in TAPS {
        let family = families.counter(name, help);
        for (interface, tap) in spec.interfaces.iter().zip(&view.taps) {
            family.add(&[("interface", &interface.name)], of(tap));
        }
    }
    for (name, help, of) in MIRROR {
        families.counter(name, help).add(&[], of(view));
    }
    let help = "1 if the router has all routes, addresses and neighbours of Linux; 0 while it reads them, or if \
        some had no room or could not be decoded.";
    families.gauge("holdfast_linux_synced", help).add(&[], u64::from(view.is_synced));
}

/// Routes, and the room of the forwarding table.
fn routes(families: &mut Families, router: &Summary, spec: &RoutingSpec) {
    let help = "Routes known, in use or not; `source`: `local`, `neighbour`, `connected`, `static`, `kernel`.";
    let family = families.gauge("holdfast_routes", help);
    for ((_, source), counts) in Source::TABLE.iter().zip(router.view.routes) {
        for (label, count) in FAMILIES.iter().zip(counts) {
            family.add(&[("source", source), ("family", label)], count as u64);
        }
    }
    let help = "Prefixes in the forwarding table; `family`: `ipv4` or `ipv6`.";
    let family = families.gauge("holdfast_fib_prefixes", help);
    for (label, count) in FAMILIES.iter().zip([router.view.fib.ipv4_routes, router.view.fib.ipv6_routes]) {
        family.add(&[("family", label)], count as u64);
    }
    let family = families.gauge("holdfast_fib_size_prefixes", "Prefixes that the forwarding table has room for.");
    for (label, size) in FAMILIES.iter().zip([spec.fib.ipv4, spec.fib.ipv6]) {
        family.add(&[("family", label)], size.into());
    }
}

/// The shares of the ports in the table of neighbours.
fn shares(families: &mut Families, router: &Summary, switch_view: &SwitchView) {
    let ports = || (0..switch_view.spec.ports.len()).map(|port| switch_view.port_name(port)).zip(&router.shares);
    let help = "Neighbours in the port's [share](routing.md#shares-of-neighbours).";
    let family = families.gauge("holdfast_port_neighbours", help);
    for (port, share) in ports() {
        family.add(&[("port", port)], share.entries as u64);
    }
    let help = "Neighbours of the port's share that gave way to others.";
    let family = families.counter("holdfast_port_neighbours_evicted_total", help);
    for (port, share) in ports() {
        family.add(&[("port", port)], share.evicted);
    }
}

fn interfaces(families: &mut Families, router: &Summary, spec: &RoutingSpec) {
    let family =
        families.gauge("holdfast_interface_up", "1 while one of its ports has a link and Linux has not shut it.");
    for (index, interface) in spec.interfaces.iter().enumerate() {
        let is_up = router.interfaces_up.get(index).copied().unwrap_or(false);
        family.add(&[("interface", &interface.name)], u64::from(is_up));
    }
}

/// State and use of the next hops of routes: their shares show how even the flows are spread.
fn next_hops(families: &mut Families, router: &Summary, spec: &RoutingSpec) {
    let name = |interface: u16| spec.interfaces.get(usize::from(interface)).map_or("?", |known| known.name.as_str());
    let addresses: Vec<String> = router.next_hops.iter().map(|hop| hop.address.to_string()).collect();
    let hops = || addresses.iter().zip(&router.next_hops);
    let family = families.gauge("holdfast_next_hop_usable", "1 while routes send packets to the next hop.");
    for (address, hop) in hops() {
        family.add(&[("interface", name(hop.interface)), ("address", address)], u64::from(hop.is_usable));
    }
    let help = "Frames routed to the next hop: the shares of ECMP members.";
    let family = families.counter("holdfast_next_hop_frames_total", help);
    for (address, hop) in hops() {
        family.add(&[("interface", name(hop.interface)), ("address", address)], hop.frames);
    }
    let help = "Next hops of routes beyond the first 256, which alone have series.";
    families.gauge("holdfast_next_hops_omitted", help).add(&[], router.more_next_hops as u64);
}

fn by_lcore(families: &mut Families, switch_view: &SwitchView, rows: &[Row<LcoreCounters>]) {
    for (name, help, of) in rows {
        let family = families.counter(name, help);
        for (number, lcore) in switch_view.counters.lcores.iter().enumerate() {
            family.add(&[("lcore", &number.to_string())], of(lcore));
        }
    }
}

/// Frames to and from the control plane.
pub(super) fn exceptions(families: &mut Families, switch_view: &SwitchView) {
    let lcores: Vec<_> =
        switch_view.counters.lcores.iter().enumerate().map(|(number, lcore)| (number.to_string(), lcore)).collect();
    by_lcore(families, switch_view, &EXCEPTIONS);
    let help = "Frames given to the control plane, by [cause](#punt-causes).";
    let family = families.counter("holdfast_punted_frames_total", help);
    for (number, lcore) in &lcores {
        for ((_, cause, _), count) in PuntCause::TABLE.iter().zip(&lcore.punted) {
            family.add(&[("lcore", number), ("cause", cause)], count.get());
        }
    }
    let help = "Frames not given to the control plane: beyond the rate of the cause, or a \
        [probe](lldp.md#probes) of an ended round.";
    let family = families.counter("holdfast_punt_policed_frames_total", help);
    for (number, lcore) in &lcores {
        for ((_, cause, _), count) in PuntCause::TABLE.iter().zip(&lcore.punt_policed) {
            family.add(&[("lcore", number), ("cause", cause)], count.get());
        }
    }
    let help = "Frames not given to the control plane, by the port that received them.";
    let family = families.counter("holdfast_port_punt_policed_frames_total", help);
    for port in 0..switch_view.spec.ports.len() {
        for ((_, cause, _), count) in PuntCause::TABLE.iter().zip(switch_view.counters.punt_policed_at(port)) {
            family.add(&[("port", switch_view.port_name(port)), ("cause", cause)], count);
        }
    }
}
