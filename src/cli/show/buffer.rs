//! The buffer: pools, priority groups, egress queues.

use holdfast::api::model::{Group, Queue};
use holdfast::text::table::Table;
use holdfast::units::{BitRate, Bytes};

use super::Looks;
use super::cells::{NONE, alpha, bytes, class, count, grown, percent, some_bytes};

pub fn buffers(looks: &Looks<'_>) -> String {
    let buffers = &looks.state().buffers;
    let mut pools = Table::new("pool | >size | >used | > | >highest | >  | >pending");
    for pool in &buffers.pools {
        let highest = pool.used_highest_bytes;
        pools.row([
            pool.pool.clone(),
            bytes(pool.size_bytes),
            bytes(pool.used_bytes),
            percent(pool.used_bytes, pool.size_bytes),
            highest.map_or_else(|| NONE.to_owned(), bytes),
            percent(highest.unwrap_or(0), pool.size_bytes),
            if pool.pending_bytes > 0 { bytes(pool.pending_bytes) } else { NONE.to_owned() },
        ]);
    }
    let mut ports = Table::new(
        "port | >held | >lossless reserve | >used | >lossy reserve | >used  | >insurance | >used   | >highest | now",
    );
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
            if port.pending { "pending" } else { NONE }.to_owned(),
        ]);
    }
    let own = ["lossless reserve", "used", "lossy reserve", "used ", "insurance", "used  ", "highest", "now"];
    let is_pending =
        buffers.pools.iter().any(|pool| pool.pending_bytes > 0) || buffers.ports.iter().any(|port| port.pending);
    let pending =
        if is_pending { "(pending: given up as frames leave, after a reload; then other parts grow)\n" } else { "" };
    let held = if buffers.held_frames == 0 { "none".to_owned() } else { count(buffers.held_frames) };
    format!(
        "{}({} in cells of {} B; {} of reserves; headroom {})\n\n{}(held: by frames that the port received; \
         frames in queues: {held}, {} in all)\n{pending}",
        pools.without_idle(&["pending"], NONE),
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
    let mut table =
        Table::new("port | group | >alpha | >used | >limit | >highest | >headroom | >highest  | >of | >needed | now");
    for group in looks.state().groups.iter().filter(|group| is_of_note(group)) {
        let is_short = group.headroom_needed_bytes.is_some_and(|needed| needed > group.headroom_size_bytes);
        table.row([
            group.port.clone(),
            class(group.group, group.lossless),
            alpha(group.alpha),
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
    let mut table = Table::new(
        "port | queue | serves | >at most | >alpha | >depth | >limit | >highest | >sent | >marked | policy | \
         telemetry | >QCN at | >messages | now",
    );
    for queue in looks.state().queues.iter().filter(|queue| queue.sent_frames > 0 || queue.depth_highest_bytes > 0) {
        let same = |other: &&Queue| (&other.port, other.queue) == (&queue.port, queue.queue);
        let before = looks.before().and_then(|(before, _)| before.queues.iter().find(same));
        table.row([
            queue.port.clone(),
            class(queue.queue, queue.lossless),
            queue.weight.map_or_else(|| "strict".to_owned(), |weight| format!("weight {weight}")),
            queue.max_rate_bps.map_or_else(|| NONE.to_owned(), |rate| BitRate(rate).to_string()),
            alpha(queue.alpha),
            bytes(queue.depth_bytes),
            some_bytes(queue.limit_bytes),
            bytes(queue.depth_highest_bytes),
            count(grown(queue.sent_frames, before.map(|queue| queue.sent_frames))),
            count(grown(queue.ecn_marked_frames, before.map(|queue| queue.ecn_marked_frames))),
            if queue.abm { "abm" } else { NONE }.to_owned(),
            if queue.telemetry { "hpcc" } else { NONE }.to_owned(),
            some_bytes(queue.qcn_set_point_bytes),
            count(grown(
                queue.qcn_made_messages.unwrap_or(0),
                before.map(|queue| queue.qcn_made_messages.unwrap_or(0)),
            )),
            if queue.paused { "paused" } else { NONE }.to_owned(),
        ]);
    }
    if table.is_empty() {
        return "no queue has held or sent frames\n".to_owned();
    }
    let over = match looks.before() {
        Some((_, seconds)) => format!("sent and marked in the last {seconds:.1}s"),
        None => looks.since(),
    };
    let seldom = ["at most", "alpha", "limit", "marked", "policy", "telemetry", "QCN at", "messages", "now"];
    let text = table.without_idle(&seldom, NONE).to_string();
    format!("{text}(* lossless: without a limit; unused queues are not shown; {over})\n")
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::State;

    use super::super::Seen;
    use super::*;

    #[test]
    fn queues_show_abm_telemetry_and_qcn_only_if_a_queue_has_them() {
        let shown = |queue: Queue| {
            let queue = Queue { port: "p1".to_owned(), queue: 3, sent_frames: 5, ..queue };
            let state = State { queues: vec![queue], ..State::default() };
            queues(&Looks { before: None, now: &Seen { json: serde_json::Value::Null, state } })
        };
        assert!(shown(Queue::default()).starts_with("port  queue  serves  depth  highest  sent\n"));
        let text = shown(Queue {
            abm: true,
            telemetry: true,
            qcn_set_point_bytes: Some(26_000),
            qcn_made_messages: Some(7),
            ..Queue::default()
        });
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "port  queue  serves  depth  highest  sent  policy  telemetry    QCN at  messages");
        assert!(rows[1].ends_with("   5  abm     hpcc       25.39KiB         7"), "{text}");
        let fixed = Some(20_000);
        let text = shown(Queue { static_limit_bytes: fixed, limit_bytes: fixed, ..Queue::default() });
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "port  queue  serves  depth     limit  highest  sent", "a fixed limit is no alpha");
        assert!(rows[1].contains("  19.53KiB  "), "{text}");
    }
}
