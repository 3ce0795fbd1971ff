//! Reasons for dropped frames and paused peers: the last decisions of each class as sentences, with the counters that
//! decided them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::mmu::{HeadroomPolicy, Threshold};
use crate::pfc::Observed;
use crate::plan::DropReason;
use crate::plan::decision_log::{LoggedDecision, LoggedEvent, PauseCause};
use crate::sets::{CLASSES, ClassSet};
use crate::text::format::{frames, grouped, time};
use crate::units::{Cells, Nanos};

/// Drops of one port and class, and the XOFFs that the port sent for the class.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Why {
    /// Port, as in `drops`.
    pub port: String,
    /// Traffic class; null: before classification.
    pub class: Option<u8>,
    /// Whether the class is configured lossless.
    pub lossless: bool,
    /// Frames dropped, by reason.
    pub reasons: Vec<Reason>,
    /// XOFFs sent for the class's group, with refreshes.
    pub xoffs: u64,
    /// Recorded decisions, newest first.
    pub decisions: Vec<Explained>,
}

/// Frames dropped for one reason.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reason {
    /// Label of the reason.
    pub reason: String,
    /// Number of frames.
    pub frames: u64,
    /// Meaning of the reason.
    pub meaning: String,
    /// Remedy; empty: none needed.
    pub remedy: String,
}

/// One decision.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Explained {
    /// How long ago, to a poll.
    pub age_ns: u64,
    /// `dropped` or `stopped`.
    pub what: String,
    /// Label of a drop; of a pause `group` (its threshold), `port` (dynamic headroom) or `backlog`.
    pub reason: String,
    /// Counters that decided.
    pub text: String,
}

impl Why {
    /// Explanations for all ports and classes with drops or recorded decisions.
    #[must_use]
    pub fn all(look: &Look<'_>) -> Vec<Self> {
        let ports = 0..look.switch_view.spec.ports.len();
        let all = ports.flat_map(|port| (0..=CLASSES).map(move |row| (port, row)));
        all.map(|(port, row)| Self::of(look, port, row))
            .filter(|why| !why.reasons.is_empty() || !why.decisions.is_empty())
            .collect()
    }

    fn of(look: &Look<'_>, port: usize, row: usize) -> Self {
        let counters = &look.switch_view.counters;
        let count = |reason: DropReason| counters.sum(port, |counters| &counters.drops[row][reason as usize]);
        let counted = DropReason::TABLE.iter().map(|line| (line, count(line.0)));
        let reasons = counted.filter(|(_, frames)| *frames > 0).map(|((reason, label, meaning), frames)| Reason {
            reason: (*label).to_owned(),
            frames,
            meaning: (*meaning).to_owned(),
            remedy: match reason {
                DropReason::HeadroomFull => headroom_remedy(look, port, row).to_owned(),
                _ => remedy(*reason).to_owned(),
            },
        });
        let (mut decisions, mut xoffs) = (Vec::new(), 0);
        if row < CLASSES {
            let group = usize::from(look.switch_view.spec.classes.tc_to_group[row] & 7);
            xoffs = counters.ports[port].pfc_tx_xoff[group].get();
            let mut seen: Vec<_> = counters.logs_of_port(port).flat_map(|logged| logged.last_drops(row)).collect();
            seen.extend(counters.decisions[port].last_pauses(group));
            seen.sort_by_key(|logged| std::cmp::Reverse(logged.at));
            decisions = seen.iter().map(|logged| Sentence { look, port, logged }.explained()).collect();
        }
        Self {
            port: look.switch_view.port_name(port).to_owned(),
            class: (row < CLASSES).then_some(row as u8),
            lossless: row < CLASSES && look.switch_view.is_lossless(row),
            reasons: reasons.collect(),
            xoffs,
            decisions,
        }
    }
}

/// Formats a decision of `port` as a sentence.
struct Sentence<'a> {
    look: &'a Look<'a>,
    port: usize,
    logged: &'a LoggedDecision,
}

impl Sentence<'_> {
    fn explained(&self) -> Explained {
        let lcore = usize::from(self.look.switch_view.spec.ports[self.port].lcore);
        let now = self.look.switch_view.counters.lcores.get(lcore).map_or(0, |lcore| lcore.clock_ns.get());
        let (what, reason, text) = match self.logged.decision {
            LoggedEvent::Dropped(reason) => ("dropped", reason.label(), self.dropped(reason)),
            LoggedEvent::Stopped(cause) => ("stopped", label(cause), self.stopped(cause)),
        };
        Explained {
            age_ns: now.saturating_sub(self.logged.at.0),
            what: what.to_owned(),
            reason: reason.to_owned(),
            text,
        }
    }

    fn dropped(&self, reason: DropReason) -> String {
        let logged = self.logged;
        let [from, to] = logged.ports.map(|port| self.look.switch_view.port_name(port.into()).to_owned());
        let frame = format!("{} in class {} from {from} to {to}", frame(logged), logged.class);
        let free = self.size(logged.free);
        match reason {
            DropReason::HeadroomFull => {
                let left = self.size(logged.headroom_left);
                format!("{frame} was dropped with {left} of headroom left: {}", self.group())
            }
            DropReason::HeadroomPoolEmpty => {
                let left = self.size(logged.headroom_left);
                format!("{frame} was dropped with {left} left of the headroom that all groups share: {}", self.group())
            }
            DropReason::Threshold => {
                format!("{frame} exceeded its group's limit in the lossy pool: {}", self.group())
            }
            DropReason::PoolEmpty => {
                format!("{frame} was dropped with {free} free in the lossy pool: {}", self.group())
            }
            DropReason::QueueThreshold if logged.depth == Cells(0) => {
                format!("{frame} was dropped with {free} of the lossy pool free beyond the reserves of queues")
            }
            DropReason::QueueThreshold => {
                let (depth, limit) = (self.size(logged.depth), self.size(logged.queue_limit));
                format!(
                    "{frame} would have filled its queue at {to} to {depth}, above the limit of {limit}: {}",
                    self.queue_limit()
                )
            }
            DropReason::Wred => {
                let depth = self.size(logged.depth);
                format!("{frame} cannot be marked and was dropped early, with {depth} in its queue at {to}")
            }
            DropReason::Shed => {
                let name = self.look.switch_view.port_name(self.port);
                format!(
                    "lossy frames of class {} were shed at the receive ring of {name}: its core was overloaded, and \
                     lossless classes have precedence",
                    logged.class
                )
            }
            DropReason::Watchdog => format!("{frame} has a priority that the watchdog drops during a storm"),
            other => format!("{frame}: {}", DropReason::TABLE[other as usize].2),
        }
    }

    fn stopped(&self, cause: PauseCause) -> String {
        let logged = self.logged;
        let name = self.look.switch_view.port_name(self.port);
        let group = self.look.switch_view.group_name(logged.group.into());
        match cause {
            PauseCause::Group => format!("{name} paused its peer for {group}: {}", self.group()),
            PauseCause::Port => {
                let free = self.size(logged.free);
                format!(
                    "{name} paused its peer for {group}, because the port's lossless groups together exceeded their \
                     limits, with {free} of the pool free: {}",
                    self.group()
                )
            }
            PauseCause::Backlog => {
                let left = left_in_ring(logged.backlog, self.look.switch_view.spec.ports[self.port].backlog_mark);
                format!(
                    "{name} paused its peer for {group}, because {left}: the core did not keep up, and the port's own \
                     backlog pauses {group}"
                )
            }
        }
    }

    /// The cells that the group held, and its limit.
    fn group(&self) -> String {
        let logged = self.logged;
        let (ingress, group) = (usize::from(logged.ports[0]), usize::from(logged.group));
        let Some(port) = self.look.switch_view.spec.ports.get(ingress) else { return String::new() };
        let profile = &port.buffer.groups[group & 7];
        let [reserve, port_reserve, shared, headroom] = logged.held;
        let (free, policy) = (logged.free, port.buffer.policy);
        let is_early = profile.lossless && policy == HeadroomPolicy::Dynamic;
        let limit = if is_early { profile.xoff_level(free) } else { profile.threshold.limit(free) };
        let is_so = logged.limit == limit;
        let mut parts = vec![format!("{} of {} reserve", self.size(reserve), self.size(profile.reserve))];
        if port_reserve > Cells(0) {
            parts.push(format!("{} of the port's reserve", self.size(port_reserve)));
        }
        parts.push(format!(
            "{} shared with a limit of {} ({})",
            self.size(shared),
            self.size(logged.limit),
            self.limit(profile.threshold, is_so)
        ));
        if profile.lossless {
            let size = match policy {
                HeadroomPolicy::Dynamic => port.buffer.insurance,
                _ => profile.headroom,
            };
            parts.push(format!("{} of {} headroom", self.size(headroom), self.size(size)));
        }
        let last = parts.pop().unwrap_or_default();
        format!("the group held {} and {last}", parts.join(", "))
    }

    /// Explains the limit by `threshold`. The threshold may have changed since; `is_so` is true if it still gives that
    /// limit.
    fn limit(&self, threshold: Threshold, is_so: bool) -> String {
        match threshold {
            Threshold::Dynamic(alpha) if !is_so => format!("alpha is now {alpha}"),
            Threshold::Static(cells) if !is_so => format!("the limit is now {}", self.size(cells)),
            Threshold::Dynamic(alpha) => format!("alpha {alpha} of {} free", self.size(self.logged.free)),
            Threshold::Static(_) => "fixed".to_owned(),
        }
    }

    fn queue_limit(&self) -> String {
        let class = usize::from(self.logged.class & 7);
        let queue = usize::from(self.look.switch_view.spec.classes.tc_to_queue[class] & 7);
        let Some(limit) = self.look.switch_view.spec.queues[queue].limit else {
            return "there is now no limit".to_owned();
        };
        let whole = limit.threshold.limit(self.logged.free);
        if limit.abm {
            let of = self.limit(limit.threshold, self.logged.queue_limit <= whole);
            return format!("{of}, by ABM for the congested queues and the drain rate");
        }
        self.limit(limit.threshold, self.logged.queue_limit == whole)
    }

    fn size(&self, cells: Cells) -> String {
        cells.to_bytes(self.look.switch_view.spec.buffer.cell).to_string()
    }
}

/// The frame of a decision, by its bytes and by the cells that it takes.
fn frame(logged: &LoggedDecision) -> String {
    let (bytes, cells) = (grouped(logged.frame_bytes.into()), logged.cells.0);
    format!("a frame of {bytes} bytes ({cells} {})", if cells == 1 { "cell" } else { "cells" })
}

/// The frames in a receive ring that made a backlog. `left` is zero if the device does not count them; below the
/// `mark` they are one because the poll had no time for them.
fn left_in_ring(left: u32, mark: Option<u32>) -> String {
    let waiting = frames(left.into());
    match mark {
        _ if left == 0 => {
            "polls in a row left frames in the receive ring, whose number its device does not tell".into()
        }
        Some(mark) if left >= mark => format!("a poll left {waiting} in the receive ring (XOFF from {mark} on)"),
        _ => format!("a poll that ran out of time left {waiting} in the receive ring (XOFF from the first on)"),
    }
}

fn label(cause: PauseCause) -> &'static str {
    match cause {
        PauseCause::Group => "group",
        PauseCause::Port => "port",
        PauseCause::Backlog => "backlog",
    }
}

/// Formats the age of a decision for people.
#[must_use]
pub fn age(age_ns: u64) -> String {
    // An lcore publishes its clock only now and then, so a decision may be newer than the clock.
    if age_ns == 0 { "just now".to_owned() } else { format!("{} ago", time(Nanos(age_ns))) }
}

const UNSEEN_PEER: &str = "check that the peer obeys PFC for this priority (`show pfc`); check the port's `cable`, \
                           `peer_response` and `lcores.poll_gap`; or write a larger `headroom` for the class";

/// The remedy for full headroom of `row` at `port`, by the answer of the peer to XOFF.
fn headroom_remedy(look: &Look<'_>, port: usize, row: usize) -> &'static str {
    let group = usize::from(look.switch_view.spec.classes.tc_to_group[row % CLASSES] & 7);
    match look.switch_view.observed(port, &look.snapshot.ports[port].peer, ClassSet::only(group)) {
        Observed::Disobeys => {
            "the peer does not stop at XOFF (`show pfc`): enable PFC for this priority there, and send the class in it; a \
             slow peer needs `peer_response`"
        }
        Observed::Obeys => {
            "the peer stops in its time (`show pfc`): check `lcores.poll_gap`, or write a larger `headroom` for the class"
        }
        Observed::Unseen => UNSEEN_PEER,
    }
}

/// The remedy that an operator can apply when frames are dropped for `reason`.
fn remedy(reason: DropReason) -> &'static str {
    match reason {
        DropReason::HeadroomFull => UNSEEN_PEER,
        DropReason::HeadroomPoolEmpty => "lower `buffer.headroom.ratio`, or write a larger `buffer.headroom.size`",
        DropReason::Shed => {
            "give the port an lcore of its own (`lcores.count`, `ports[].lcore`) or a faster CPU, or slow the senders down"
        }
        DropReason::Threshold => "raise the class's `alpha` or `limit`, or slow the senders down (ECN)",
        DropReason::PoolEmpty => "enlarge the lossy pool (`buffer.lossy`), or slow the senders down (ECN)",
        DropReason::QueueThreshold => {
            "the load for this port exceeds its rate: slow the senders down (`ecn`), or raise the class's \
             `queue_alpha`, `queue_limit` or `queue_reserve`"
        }
        DropReason::Wred => "let the senders use ECN, or raise `kmin` and `kmax` of the class's `ecn`",
        DropReason::Watchdog => "find out why the peer of the port keeps this priority paused (`show watchdog`)",
        DropReason::LosslessUnknown => {
            "the station must send a frame within `fdb.ageing`, or have an entry under `fdb.static`"
        }
        DropReason::LosslessGroup => "send broadcast and multicast in a lossy class",
        DropReason::Oversize | DropReason::EgressMtu => "use the same `mtu` on every port of the path and on the hosts",
        DropReason::VlanNotAllowed => "give the port the VLAN (`ports[].vlan`), or remove the tag at the sender",
        DropReason::EgressDown => "find out why the link of the port is down (`show ports`)",
        DropReason::AdminDown => {
            "for a port that is shut (`show ports`) write `enabled: true` and reload; for an interface (`show \
             interfaces`) run `ip link set NAME up` in its namespace"
        }
        DropReason::EgressStuck => {
            "check that the peer of the port is present and receives frames; raise `stuck_after` if it may stop for \
             that long"
        }
        DropReason::PfcDestination => "the peer must send PFC to 01-80-C2-00-00-01; find out which station sent this",
        DropReason::NoRoute => "add a static route, or find out why the daemon has none (`show routes ADDRESS`)",
        DropReason::NeighbourIncomplete => {
            "check that the next hop answers ARP or neighbour discovery (`show neighbours`), or configure \
             its MAC address; a lossless frame does not wait for the answer"
        }
        DropReason::Blackhole => "a route without next hops covers this destination (`show routes ADDRESS`)",
        DropReason::FragmentationNeeded | DropReason::FragmentationUnsupported => {
            "use the same MTU on every interface of the path (`show interfaces`), and let senders obey ICMP errors"
        }
        DropReason::TtlExpired => {
            "look for a routing loop (`show routes ADDRESS` on each router); traceroute causes this too"
        }
        DropReason::Martian => "find out which host sends packets with invalid addresses",
        DropReason::OwnSource => "another host has an address of the switch, or a loop returns its frames",
        DropReason::Ipv4Checksum => "the sender or a device in between corrupts headers; check its checksum offload",
        DropReason::Ipv4Options => "send packets without IPv4 options",
        DropReason::NotRoutable => "send frames to the router's MAC address only as IP or ARP",
        DropReason::StormBroadcast | DropReason::StormMulticast | DropReason::StormUnknown => {
            "find the sender or the loop; if the traffic is wanted, raise the port's limit (`storm_control`)"
        }
        DropReason::LoopBlocked => "remove the cable that makes the loop (`show lldp`)",
        DropReason::Bpdu => "turn spanning tree off at the peer, and make sure that the network has no loop",
        DropReason::PuntPoliced => {
            "find out which host of the port floods the switch (`holdfast_port_punt_policed_frames_total` by cause)"
        }
        DropReason::NoBuffer => "this is a bug of Holdfast; report it with the configuration",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlog_that_no_device_counts_is_not_told_as_zero_frames() {
        let unknown = "polls in a row left frames in the receive ring, whose number its device does not tell";
        assert_eq!(left_in_ring(0, Some(32)), unknown);
        assert_eq!(left_in_ring(40, Some(32)), "a poll left 40 frames in the receive ring (XOFF from 32 on)");
        let cut = "a poll that ran out of time left 1 frame in the receive ring (XOFF from the first on)";
        assert_eq!(left_in_ring(1, Some(32)), cut);
    }

    #[test]
    fn frame_is_shown_in_bytes_and_cells() {
        let logged = LoggedDecision {
            at: Nanos(0),
            decision: LoggedEvent::Dropped(DropReason::PoolEmpty),
            ports: [0, 1],
            class: 3,
            group: 3,
            cells: Cells(8),
            frame_bytes: 1514,
            held: [Cells(0); 4],
            limit: Cells(0),
            free: Cells(0),
            headroom_left: Cells(0),
            depth: Cells(0),
            queue_limit: Cells(0),
            backlog: 0,
        };
        assert_eq!(frame(&logged), "a frame of 1,514 bytes (8 cells)");
        assert_eq!(
            frame(&LoggedDecision { cells: Cells(1), frame_bytes: 64, ..logged }),
            "a frame of 64 bytes (1 cell)"
        );
    }

    #[test]
    fn remedies_name_keys_of_the_configuration() {
        let features = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/config/features.md"))
            .expect("tests/config/features.md cannot be read");
        let mut keys = 0;
        for (reason, label, _) in DropReason::TABLE {
            for key in remedy(*reason).split('`').skip(1).step_by(2).filter(|word| word.contains('.')) {
                assert!(features.contains(&format!("`{key}`")), "{label}: `{key}` is no key of features.md");
                keys += 1;
            }
        }
        assert!(keys > 5, "{keys}");
    }
}
