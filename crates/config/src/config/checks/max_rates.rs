//! Maximum rates of queues, which depend on ports, classes and maps.

use crate::config::sections::draft::{Class, ClassSettings, Port, WrittenMax};
use crate::config::sections::maps::Maps;
use crate::config::yaml::read::Item;
use crate::headroom::{PACING_SLACK, largest_frame};
use crate::qos::MaxRate;
use crate::sets::{CLASSES, ClassSet};
use crate::units::Nanos;

/// Checks the maximum rates of `ports` and `classes`. Polls are up to `poll_gap` apart.
pub fn check(ports: &[Port<'_>], classes: &[Class<'_>; CLASSES], maps: &Maps<'_>, poll_gap: Nanos) {
    let [_, queues] = maps.used();
    warn_of_short_bursts(ports, classes, queues, poll_gap);
    for port in ports {
        for (class, maximum) in port.max_rates.iter().enumerate() {
            let Some((item, maximum)) = maximum else { continue };
            let to = maps.classes.tc_to_queue[class];
            if let Some(maximum) = maximum.filter(|maximum| maximum.rate > port.rate) {
                let (rate, speed) = (maximum.rate, port.rate);
                item.fail(format!("{rate} is more than the {speed} of this port; write at most {speed}, or `off`"));
            } else if !queues.contains(class) {
                item.warn(format!("class {class} is in queue {to}: this has no effect; write it for class {to}"));
            }
        }
    }
    let fastest = ports.iter().map(|port| port.rate).max();
    for class in classes {
        let (Some(maximum), Some(item), Some(fastest)) = (class.settings.max_rate, &class.item, fastest) else {
            continue;
        };
        if maximum.rate > fastest {
            let rate = maximum.rate;
            let remedy = format!("write at most {fastest}, or `off`");
            item.child("max_rate").fail(format!("{rate} is more than the speed of every port; {remedy}"));
        }
    }
}

/// Warns of bursts with which a queue does not reach its maximum rate. The pacing of a port makes up for gaps of
/// [`PACING_SLACK`] only, so a longer `poll_gap` needs no larger burst.
fn warn_of_short_bursts(ports: &[Port<'_>], classes: &[Class<'_>; CLASSES], queues: ClassSet, poll_gap: Nanos) {
    let gap = poll_gap.min(PACING_SLACK);
    let warn = |item: &Item<'_>, queue: usize, written: WrittenMax, ports: &mut dyn Iterator<Item = &Port<'_>>| {
        let (Some(burst), Some(port)) = (written.burst, ports.max_by_key(|port| port.mtu)) else { return };
        let (rate, scheduler) = (written.rate, classes[queue].settings.scheduler);
        let least = MaxRate::least_burst(rate, gap, scheduler, largest_frame(port.mtu));
        if burst < least {
            item.child("burst").warn(format!(
                "with a burst of {burst} the queue may stay below {rate}, since it loses the rest of what it earns \
                 within {gap} between two polls and while it waits for its turn; write `burst: {}B` or more, or \
                 `max_rate: {rate}` alone",
                least.0
            ));
        }
    };
    for queue in queues.iter() {
        for port in ports {
            if let Some((item, Some(written))) = &port.max_rates[queue] {
                warn(item, queue, *written, &mut std::iter::once(port));
            }
        }
        if let Class { settings: ClassSettings { max_rate: Some(written), .. }, item: Some(item) } = &classes[queue] {
            let limited = |port: &&Port<'_>| port.max_rates[queue].is_none() && written.rate < port.rate;
            warn(&item.child("max_rate"), queue, *written, &mut ports.iter().filter(limited));
        }
    }
}

/// The maximum rates of the queues of `port`. One of a class without a queue of its own has no effect. One of
/// the switch limits nothing at a port that is not faster.
pub fn of_port(port: &Port<'_>, classes: &[Class<'_>; CLASSES], queues: ClassSet) -> [Option<MaxRate>; CLASSES] {
    std::array::from_fn(|queue| {
        if !queues.contains(queue) {
            return None;
        }
        let settings = &classes[queue].settings;
        let written = match &port.max_rates[queue] {
            Some((_, written)) => *written,
            None => settings.max_rate.filter(|maximum| maximum.rate < port.rate),
        };
        let WrittenMax { rate, burst } = written?;
        let usual = || MaxRate::usual_burst(rate, PACING_SLACK, settings.scheduler, largest_frame(port.mtu));
        Some(MaxRate { rate, burst: burst.unwrap_or_else(usual) })
    })
}
