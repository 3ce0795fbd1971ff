//! The buffer: pools, priority groups, egress queues.

use holdfast::api::model::{Group, Queue};
use holdfast::stats::table::{Align, Table};
use holdfast::units::{BitRate, Bytes};

use super::Looks;
use super::cells::{NONE, alpha, bytes, class, count, grown, percent, some_bytes};
use Align::{Left, Right};

pub fn buffers(looks: &Looks<'_>) -> String {
    let buffers = &looks.state().buffers;
    let mut pools =
        Table::new(&[("pool", Left), ("size", Right), ("used", Right), ("", Right), ("highest", Right), (" ", Right)]);
    for pool in &buffers.pools {
        let highest = pool.used_highest_bytes;
        pools.row([
            pool.pool.clone(),
            bytes(pool.size_bytes),
            bytes(pool.used_bytes),
            percent(pool.used_bytes, pool.size_bytes),
            highest.map_or_else(|| NONE.to_owned(), bytes),
            percent(highest.unwrap_or(0), pool.size_bytes),
        ]);
    }
    let mut ports = Table::new(&[
        ("port", Left),
        ("held", Right),
        ("lossless reserve", Right),
        ("used", Right),
        ("lossy reserve", Right),
        ("used ", Right),
        ("insurance", Right),
        ("used  ", Right),
        ("highest", Right),
    ]);
    for port in &buffers.ports {
        ports.row([
            port.port.clone(),
            bytes(port.held_bytes),
            bytes(port.lossless_reserve_bytes),
            bytes(port.lossless_reserve_used_bytes),
            bytes(port.lossy_reserve_bytes),
            bytes(port.lossy_reserve_used_bytes),
            bytes(port.insurance_bytes),
            bytes(port.insurance_used_bytes),
            bytes(port.insurance_highest_bytes),
        ]);
    }
    let own = ["lossless reserve", "used", "lossy reserve", "used ", "insurance", "used  ", "highest"];
    let held = if buffers.held_frames == 0 { "none".to_owned() } else { count(buffers.held_frames) };
    format!(
        "{pools}({} in cells of {} B; {} of reserves; headroom {})\n\n{}(held: by frames that the port received; \
         frames in queues: {held}, {} in all)\n",
        Bytes(buffers.size_bytes),
        buffers.cell_bytes,
        Bytes(buffers.reserves_bytes),
        buffers.headroom_policy,
        ports.without_idle(&own, NONE),
        Bytes(buffers.held_bytes),
    )
}

/// Whether the group is lossless or was ever used.
fn is_of_note(group: &Group) -> bool {
    group.lossless || group.used_highest_bytes > 0 || group.used_bytes > 0
}

pub fn groups(looks: &Looks<'_>) -> String {
    let mut table = Table::new(&[
        ("port", Left),
        ("group", Left),
        ("alpha", Right),
        ("used", Right),
        ("limit", Right),
        ("highest", Right),
        ("headroom", Right),
        ("highest ", Right),
        ("of", Right),
        ("needed", Right),
        ("now", Left),
    ]);
    for group in looks.state().groups.iter().filter(|group| is_of_note(group)) {
        let is_short = group.headroom_needed_bytes.is_some_and(|needed| needed > group.headroom_size_bytes);
        table.row([
            group.port.clone(),
            class(group.group, group.lossless),
            alpha(group.alpha, group.static_limit_bytes),
            bytes(group.used_bytes),
            some_bytes(group.xoff_bytes.or(Some(group.reserve_bytes + group.limit_bytes))),
            bytes(group.used_highest_bytes),
            bytes(group.headroom_bytes),
            bytes(group.headroom_highest_bytes),
            bytes(group.headroom_size_bytes),
            group.headroom_needed_bytes.map_or_else(|| NONE.to_owned(), bytes),
            match (group.xoff, is_short) {
                (true, _) => "XOFF",
                (false, true) => "short",
                (false, false) => NONE,
            }
            .to_owned(),
        ]);
    }
    if table.is_empty() {
        return "no group is lossless, and no group has held frames\n".to_owned();
    }
    format!(
        "{table}(* lossless; limit: XOFF or drop from there on, including the reserve; unused groups are not shown)\n"
    )
}

pub fn queues(looks: &Looks<'_>) -> String {
    let mut table = Table::new(&[
        ("port", Left),
        ("queue", Left),
        ("serves", Left),
        ("at most", Right),
        ("alpha", Right),
        ("depth", Right),
        ("limit", Right),
        ("highest", Right),
        ("sent", Right),
        ("marked", Right),
        ("now", Left),
    ]);
    for queue in looks.state().queues.iter().filter(|queue| queue.sent_frames > 0 || queue.depth_highest_bytes > 0) {
        let same = |other: &&Queue| (&other.port, other.queue) == (&queue.port, queue.queue);
        let before = looks.before().and_then(|(before, _)| before.queues.iter().find(same));
        table.row([
            queue.port.clone(),
            class(queue.queue, queue.lossless),
            queue.weight.map_or_else(|| "strict".to_owned(), |weight| format!("weight {weight}")),
            queue.max_rate_bps.map_or_else(|| NONE.to_owned(), |rate| BitRate(rate).to_string()),
            alpha(queue.alpha, queue.static_limit_bytes),
            bytes(queue.depth_bytes),
            some_bytes(queue.limit_bytes),
            bytes(queue.depth_highest_bytes),
            count(grown(queue.sent_frames, before.map(|queue| queue.sent_frames))),
            count(grown(queue.ecn_marked_frames, before.map(|queue| queue.ecn_marked_frames))),
            if queue.paused { "paused" } else { NONE }.to_owned(),
        ]);
    }
    if table.is_empty() {
        return "no queue has held or sent frames\n".to_owned();
    }
    let over = match looks.before() {
        Some((_, seconds)) => format!("sent and marked in the last {seconds:.1}s"),
        None => super::cells::since(looks.state().at_ns),
    };
    let text = table.without_idle(&["at most", "alpha", "limit", "marked", "now"], NONE).to_string();
    format!("{text}(* lossless: without a limit; unused queues are not shown; {over})\n")
}
