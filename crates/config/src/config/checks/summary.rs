//! The consequences of the division of the buffer: how many lossless classes fit, and whether ECN marks before XOFF is
//! sent.

use crate::config::error::Subject;
use crate::config::model::{BufferSummary, EcnOrder};
use crate::config::sections::buffer::{self, Buffer, Plan};
use crate::config::sections::draft::{Class, ClassSettings, Common, Port};
use crate::config::sections::maps::Maps;
use crate::headroom::largest_frame;
use crate::mmu::{GroupProfile, HeadroomPolicy, Threshold};
use crate::sets::CLASSES;
use crate::units::{Bytes, Cells};

/// Calculates the summary, and warns of ECN that may mark too late.
pub fn read(
    buffer: &Buffer<'_>,
    plan: &Plan,
    ports: &[Port<'_>],
    classes: &[Class<'_>; CLASSES],
    maps: &Maps<'_>,
    common: &Common,
) -> BufferSummary {
    let senders = ports.iter().filter(|port| port.pfc.is_on()).count() as u64;
    let ecn = ecn(plan, ports, classes, maps, senders);
    for order in ecn.iter().filter(|order| !order.is_before()) {
        let class = &classes[usize::from(order.class)];
        let raise = match plan.ports.first().map(|port| port.groups[usize::from(order.class)].threshold) {
            Some(Threshold::Static(_)) => "limit",
            _ => "alpha",
        };
        let subject = Subject::LateEcn(*order, senders);
        class.item.as_ref().unwrap_or(buffer.item()).warn_of(
            subject,
            format!(
            "ECN of class {} starts to mark at {} (kmin), but with {senders} ports it is sure to mark before XOFF only \
             below {}; lower kmin, raise {raise} or enlarge the buffer",
            order.class, order.kmin, order.xoff
        ),
        );
    }
    warn_of_idle_points(buffer, plan, classes, maps, senders);
    BufferSummary {
        lossless_fit: lossless_fit(buffer, plan, ports, classes, common),
        small_packets: common.small_packets,
        small_packets_cost: plan.small_packets_cost,
        ecn,
    }
}

/// Warns of congestion points that never act, because PFC has stopped every sender before the queue has the set point.
///
/// With n ports the queue then holds the limits of n groups, n*alpha*S / (1 + n*alpha) of a pool of S.
fn warn_of_idle_points(
    buffer: &Buffer<'_>,
    plan: &Plan,
    classes: &[Class<'_>; CLASSES],
    maps: &Maps<'_>,
    senders: u64,
) {
    let pool = plan.buffer.lossless_shared.to_bytes(plan.buffer.cell).0;
    for (queue, class) in classes.iter().enumerate().filter(|(_, class)| class.settings.lossless) {
        let Some(point) = class.settings.qcn else { continue };
        let thresholds = groups_of(queue, maps).filter_map(|group| Some(plan.ports.first()?.groups[group].threshold));
        let most = thresholds.map(|threshold| match threshold {
            Threshold::Dynamic(alpha) => {
                // Alpha in units of 1/128, so that the arithmetic stays in integers.
                let all = senders.max(1) << (alpha.exponent() + 7);
                (u128::from(all) * u128::from(pool) / u128::from(128 + all)) as u64
            }
            Threshold::Static(limit) => (limit.to_bytes(plan.buffer.cell).0.saturating_mul(senders.max(1))).min(pool),
        });
        let Some(most) = most.max().map(Bytes).filter(|&most| most <= point.set_point) else { continue };
        class.item.as_ref().unwrap_or(buffer.item()).warn(format!(
            "QCN of class {queue} has a set point of {}, and PFC stops the senders once its queue holds {most}; lower \
             `set_point` or enlarge the buffer",
            point.set_point
        ));
    }
}

/// The priority groups whose frames wait in `queue`.
fn groups_of(queue: usize, maps: &Maps<'_>) -> impl Iterator<Item = usize> {
    let classes = (0..CLASSES).filter(move |&class| usize::from(maps.classes.tc_to_queue[class]) == queue);
    classes.map(|class| usize::from(maps.classes.tc_to_group[class]))
}

/// Calculates for each lossless queue with ECN whether it marks before XOFF is sent.
///
/// DCQCN's inequality: ECN must mark before XOFF is sent in the worst case. In that case one port's frames fill every
/// queue of its class, and all queues of all lossless classes are just short of kmin.
///
/// Let there be n ports, L lossless queues at each, and a pool of S. The port's group then holds n*kmin, and its limit
/// is alpha*(S - n*L*kmin). So ECN is first if kmin < alpha*S / (n*(1 + alpha*L)).
///
/// With a static limit the conditions are kmin < limit/n and, since the pool holds all queues, kmin < S/(n*L). With
/// dynamic headroom XOFF is sent one eta before the limit.
fn ecn(
    plan: &Plan,
    ports: &[Port<'_>],
    classes: &[Class<'_>; CLASSES],
    maps: &Maps<'_>,
    senders: u64,
) -> Vec<EcnOrder> {
    let [_, used] = maps.used();
    let queues: Vec<usize> = used.iter().filter(|&queue| classes[queue].settings.lossless).collect();
    let (n, lossless) = (senders.max(1), queues.len() as u64);
    let order = |&queue: &usize| {
        let wred = classes[queue].settings.wred?;
        let profiles = groups_of(queue, maps).flat_map(|group| {
            let on = plan.ports.iter().zip(ports).filter(|(_, port)| port.pfc.is_on() || senders == 0);
            on.map(move |(profile, _)| &profile.groups[group])
        });
        let xoff = profiles.map(|group| earliest_xoff(group, plan, n, lossless)).min()?;
        Some(EcnOrder { class: queue as u8, kmin: wred.kmin, xoff })
    };
    queues.iter().filter_map(order).collect()
}

/// Depth of every queue below which a group is XON if its frames alone fill all queues.
fn earliest_xoff(group: &GroupProfile, plan: &Plan, ports: u64, lossless: u64) -> Bytes {
    let cell = plan.buffer.cell;
    let pool = plan.buffer.lossless_shared.to_bytes(cell).0;
    let early = match plan.buffer.policy {
        HeadroomPolicy::Dynamic => group.headroom.to_bytes(cell).0,
        HeadroomPolicy::Independent | HeadroomPolicy::SharedPool => 0,
    };
    Bytes(match group.threshold {
        Threshold::Dynamic(alpha) => {
            // Alpha in units of 1/128, so that the arithmetic stays in integers.
            let alpha = 1_u64 << (alpha.exponent() + 7);
            let limit = alpha.saturating_mul(pool).saturating_sub(early.saturating_mul(128));
            limit / ports.saturating_mul(128 + alpha * lossless)
        }
        Threshold::Static(limit) => {
            let limit = limit.to_bytes(cell).0.saturating_sub(early);
            (limit / ports).min(pool / ports.saturating_mul(lossless.max(1)))
        }
    })
}

/// The largest number of lossless classes that fit. Each has the reserve and headroom of the first lossless class (or
/// of a default one). The remaining shared pool must hold one largest frame for each port.
fn lossless_fit(
    buffer: &Buffer<'_>,
    plan: &Plan,
    ports: &[Port<'_>],
    classes: &[Class<'_>; CLASSES],
    common: &Common,
) -> u8 {
    let cell = buffer.cell();
    let default = ClassSettings::lossless();
    let first = |profile: &[GroupProfile; CLASSES]| profile.iter().position(|group| group.lossless);
    let first = plan.ports.first().and_then(|profile| first(&profile.groups));
    let class = first.map_or(&default, |class| &classes[class].settings);
    let reserve: u64 = ports.iter().map(|port| u64::from(class.reserve.cells(port.mtu, cell).0)).sum();
    let frames: u64 = ports.iter().map(|port| u64::from(largest_frame(port.mtu).to_cells_ceil(cell).0)).sum();
    let etas: Vec<Cells> = ports.iter().map(|port| buffer::eta(class, port, common)).collect();
    let largest = etas.iter().copied().max().unwrap_or(Cells(0));

    let lossless = plan.ports.iter().flat_map(|port| &port.groups).filter(|group| group.lossless);
    let taken: u64 = lossless.map(|group| u64::from(group.reserve.0)).sum();
    let others = buffer::reserves(&plan.ports).saturating_sub(taken);
    let fits = |count: &u8| {
        let of_ports: Vec<Vec<Cells>> = etas.iter().map(|eta| vec![*eta; usize::from(*count)]).collect();
        let headroom = buffer.policy.sum(&of_ports, cell);
        let Some((_, shared)) = buffer.pools(others + reserve * u64::from(*count), headroom) else { return false };
        let works = match buffer.policy.policy {
            HeadroomPolicy::Independent => true,
            HeadroomPolicy::SharedPool => *count == 0 || headroom >= u64::from(largest.0),
            HeadroomPolicy::Dynamic => *count == 0 || class.limit.threshold(cell).limit(shared) > largest,
        };
        works && u64::from(shared.0) >= frames
    };
    (0..=CLASSES as u8).rev().find(fits).unwrap_or(0)
}
