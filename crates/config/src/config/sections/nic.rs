//! `pfc: nic`: checks of the ports whose devices obey PFC by themselves.

use super::draft::{Class, Port};
use super::maps::Maps;
use crate::config::model::{DeviceKind, PortDevice};
use crate::config::yaml::read::Item;
use crate::pfc::{PfcMode, WatchdogAction};
use crate::sets::{CLASSES, ClassSet};

/// Refuses devices that are no NICs, and queues beside those of the priorities. `item` is the mode.
pub fn check_device(item: &Item<'_>, device: &PortDevice) {
    if !matches!(device.kind, DeviceKind::Pci(_)) {
        item.fail(format!("`{}` is no NIC that could obey PFC by itself; write `pfc: software`", device.kind));
    } else if device.queues > 1 || device.tx_queues > 1 {
        item.fail("a NIC that obeys PFC by itself has a queue for each priority; remove `queues` and `tx_queues`");
    }
}

/// Refuses maps and settings that such a port cannot have: its device knows priorities, and no queues of the switch.
pub fn check(ports: &[Port<'_>], classes: &[Class<'_>; CLASSES], maps: &Maps<'_>, has_faults: bool) {
    let lossless = (0..CLASSES).filter(|&class| classes[class].settings.lossless);
    let queues: ClassSet = lossless.clone().map(|class| usize::from(maps.classes.tc_to_queue[class] & 7)).collect();
    let groups: ClassSet = lossless.map(|class| usize::from(maps.classes.tc_to_group[class] & 7)).collect();
    let is_stopped = |priority: &usize| queues.contains(usize::from(maps.classes.pfc_to_queue[*priority] & 7));
    let priorities: ClassSet = (0..CLASSES).filter(is_stopped).collect();
    for port in ports.iter().filter(|port| port.pfc == PfcMode::Nic) {
        let item = port.item.child("pfc");
        if queues.is_empty() {
            item.fail("no class is lossless, so there is no queue to stop; write `pfc: off`");
        }
        if queues == ClassSet::ALL {
            item.fail("PFC frames need the queue of a lossy class, and all are lossless; write `pfc: software`");
        }
        if queues != groups || priorities != queues {
            item.fail(
                "a NIC that obeys PFC by itself stops the queue of the priority's number; let lossless classes have one \
                 number in `tc_to_group`, `tc_to_queue` and `pfc_to_queue`, or write `pfc: software`",
            );
        }
        if port.watchdog.as_ref().is_some_and(|watchdog| watchdog.spec.action == WatchdogAction::Forward) {
            item.fail(
                "the watchdog cannot send frames that the NIC holds; write `action: drop` or `alert`, or `pfc: software`",
            );
        }
        if has_faults {
            item.fail("faults cannot reach the queues of the priorities; write `faults: off` or `pfc: software`");
        }
    }
}
