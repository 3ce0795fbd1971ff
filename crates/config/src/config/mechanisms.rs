//! The mechanisms of a switch beyond thresholds, PFC and ECN, for people.

use super::settings::value::{Precision, Value, queue_policy, ranges};
use crate::plan::SwitchSpec;
use crate::sets::{CLASSES, ClassSet};

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
        lines.push(format!("queue policy {} for {by_abm}", queue_policy(switch.abm.as_ref(), Precision::Rounded)));
    }
    if switch.telemetry_queues != ClassSet::EMPTY {
        let noted = queues(&|queue| switch.telemetry_queues.contains(queue));
        lines.push(format!("telemetry hpcc: notes in marked RoCE packets of {noted}"));
    }
    let points = switch.congestion_points.iter().enumerate();
    let points = points.filter_map(|(queue, point)| Some((queue, point.as_ref()?)));
    lines.extend(points.map(|(queue, point)| format!("QCN in queue {queue}: {}", point.shown())));
    lines
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
