//! Settings as text for people: in the plan of `holdfast check`, and in the differences of a reload.

use crate::forward::VlanMode;
use crate::mmu::{AbmSpec, Threshold};
use crate::pfc::WatchdogSpec;
use crate::plan::SwitchSpec;
use crate::qos::{CongestionPointSpec, MaxRate, QueueDiscipline, WredProfile};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Bytes, Probability};

/// Formats a queue discipline: `strict`, or `weight 3`.
#[must_use]
pub fn discipline(discipline: QueueDiscipline) -> String {
    match discipline {
        QueueDiscipline::Strict => "strict".to_owned(),
        QueueDiscipline::Dwrr { weight } => format!("weight {weight}"),
    }
}

/// Formats the policy of lossy queues, as the configuration writes it.
#[must_use]
pub fn queue_policy(abm: Option<&AbmSpec>) -> String {
    let written =
        |spec: &AbmSpec| format!("{{policy: abm, interval: {}, congested: {}}}", spec.interval, spec.congested);
    abm.map_or_else(|| "dt".to_owned(), written)
}

/// The mechanisms in force beyond thresholds, PFC and ECN, each as a sentence without an end: rules of the buffer,
/// telemetry, QCN. Empty: none is.
#[must_use]
pub fn mechanisms(switch: &SwitchSpec) -> Vec<String> {
    let queues = |is_in: &dyn Fn(usize) -> bool| {
        let queues: Vec<usize> = (0..CLASSES).filter(|&queue| is_in(queue)).collect();
        format!("queue{} {}", if queues.len() == 1 { "" } else { "s" }, ranges(queues.into_iter()))
    };
    let by_abm = queues(&|queue| switch.queues[queue].limit.is_some_and(|limit| limit.abm));
    let mut lines = Vec::new();
    if switch.reverie {
        lines.push("mmu reverie: filtered limits, and one pool for lossless and lossy classes".to_owned());
    } else if switch.abm.is_some() {
        lines.push(format!("queue policy {} for {by_abm}", queue_policy(switch.abm.as_ref())));
    }
    if switch.telemetry_queues != ClassSet::EMPTY {
        let noted = queues(&|queue| switch.telemetry_queues.contains(queue));
        lines.push(format!("telemetry hpcc: notes in marked RoCE packets of {noted}"));
    }
    let points = switch.congestion_points.iter().enumerate();
    let points = points.filter_map(|(queue, point)| Some((queue, point.as_ref()?)));
    lines.extend(points.map(|(queue, point)| format!("QCN in queue {queue}: {}", congestion_point(point))));
    lines
}

/// Formats the maximum rate of a queue and its burst.
#[must_use]
pub fn max_rate(maximum: &MaxRate) -> String {
    format!("{}, burst {}", maximum.rate, maximum.burst)
}

/// Formats the settings of a congestion point.
#[must_use]
pub fn congestion_point(spec: &CongestionPointSpec) -> String {
    format!("set point {}, weight {}, sample {}", spec.set_point, spec.weight, spec.sample)
}

/// The action of a watchdog and its times.
#[must_use]
pub fn watchdog(spec: &WatchdogSpec) -> String {
    format!("{} after {}, until {} of quiet", spec.action.label(), spec.detection, spec.restoration)
}

/// Formats the VLANs of a port: `10`, `10,20-30 tagged, 1 native`, or `routed, internal 4094`.
#[must_use]
pub fn vlans(mode: &VlanMode) -> String {
    let (tagged, native) = match mode {
        VlanMode::Access(vlan) => return vlan.to_string(),
        VlanMode::Routed(vlan) => return format!("routed, internal {vlan}"),
        VlanMode::Trunk { tagged, native } => (tagged, native),
    };
    let native = native.map_or(String::new(), |native| format!(", {native} native"));
    format!("{} tagged{native}", ranges(tagged.iter().map(|&vlan| usize::from(vlan))))
}

/// Formats a threshold: `alpha 1/4`, or a size.
#[must_use]
pub fn threshold(threshold: Threshold, cell: Bytes) -> String {
    match threshold {
        Threshold::Dynamic(alpha) => format!("alpha {alpha}"),
        Threshold::Static(cells) => cells.to_bytes(cell).to_string(),
    }
}

/// The depths from which some and all frames are marked, and the probability just below the latter.
#[must_use]
pub fn ecn(wred: &WredProfile) -> String {
    let percent = f64::from(wred.pmax.0) * 100.0 / f64::from(Probability::ONE.0);
    format!("{} to {}, {percent:.1}%", wred.kmin, wred.kmax)
}

/// Formats ascending numbers as `1,3-5`.
#[must_use]
pub fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let show = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let shown: Vec<String> = ranges.iter().map(show).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_name_queue_policy_telemetry_and_qcn_with_their_queues() {
        let read = |keys: &str| {
            let ports = "ports: [{name: a, device: net_tap0, speed: 10G}]\n";
            mechanisms(&crate::config::parse("x.yaml", &format!("{ports}{keys}\n")).unwrap().switch)
        };
        assert_eq!(read(""), [""; 0]);
        let lines = read(
            "buffer: {queue_policy: abm}\n\
             classes: {1: {queue_limit: 9kB}, 2: {telemetry: hpcc}, 3: {lossless: true, telemetry: hpcc, qcn: on}}",
        );
        insta::assert_snapshot!(lines.join("\n"), @r"
        queue policy {policy: abm, interval: 25us, congested: 20KiB} for queues 0,2,4-7
        telemetry hpcc: notes in marked RoCE packets of queues 2-3
        QCN in queue 3: set point 25.39KiB, weight 2, sample 146.48KiB
        ");
    }
}
