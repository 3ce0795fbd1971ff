//! PFC, ECN, drops and the PFC watchdog.

use holdfast::api::model::{Dropped, Pfc, PfcPriority, State};
use holdfast::pfc::Observed;
use holdfast::text::format::frames;
use holdfast::text::table::Table;
use holdfast::units::Nanos;

use super::Looks;
use super::cells::{NONE, bytes, class, count, grown, percent};

/// Title of the answer of the peer to XOFF.
const PEER: &str = "peer";

/// Whether PFC is generated for the priority, or frames of it were sent or received.
fn is_of_note(priority: &PfcPriority) -> bool {
    let frames = [priority.sent_xoff_frames, priority.sent_xon_frames, priority.received_xoff_frames];
    priority.generated || frames.iter().any(|frames| *frames > 0) || priority.received_xon_frames > 0
}

/// The counters of the priority in the reading before.
fn counts(state: &State, port: &str, priority: u8) -> [u64; 7] {
    let port = state.pfc.iter().find(|pfc| pfc.port == port);
    let priority = port.and_then(|port| port.priorities.iter().find(|row| row.priority == priority));
    priority.map_or([0; 7], |row| {
        [
            row.sent_xoff_frames,
            row.sent_xon_frames,
            row.sent_paused_ns,
            row.received_xoff_frames,
            row.received_xon_frames,
            row.received_paused_ns,
            row.ignored_frames,
        ]
    })
}

pub fn pfc(looks: &Looks<'_>) -> String {
    let mut table = Table::new(
        "port | class | pfc | now | >XOFF sent | >XON sent | >peer held | >XOFF rcvd | >XON rcvd | >held | >ignored | peer",
    );
    let (before, time_ns) = match looks.before() {
        Some((before, seconds)) => (Some(before), (seconds * 1e9) as u64),
        None => (None, looks.state().at_ns),
    };
    for pfc in &looks.state().pfc {
        for row in pfc.priorities.iter().filter(|row| is_of_note(row)) {
            let was = before.map_or([0; 7], |before| counts(before, &pfc.port, row.priority));
            let is = counts(looks.state(), &pfc.port, row.priority);
            let [xoff, xon, held_peer, xoff_in, xon_in, held, ignored] =
                std::array::from_fn(|column| grown(is[column], Some(was[column])));
            table.row([
                pfc.port.clone(),
                class(row.priority, row.generated),
                pfc.standing.clone(),
                now(pfc, row).to_owned(),
                count(xoff),
                count(xon),
                percent(held_peer.min(time_ns), time_ns),
                count(xoff_in),
                count(xon_in),
                percent(held.min(time_ns), time_ns),
                count(ignored),
                peer(row),
            ]);
        }
    }
    if table.is_empty() {
        return "no port has PFC, and no port has received PFC frames\n".to_owned();
    }
    let over = match looks.before() {
        Some((_, seconds)) => format!("counts and shares of the last {seconds:.1}s"),
        None => looks.since(),
    };
    let mut text = table.without_idle(&["XOFF rcvd", "XON rcvd", "held", "ignored", PEER], NONE).to_string();
    text += &format!("(* PFC pauses its senders; held: share of the time; {over})\n");
    let deaf = looks.state().pfc.iter().filter(|pfc| pfc.pause_received_frames > 0);
    for pfc in deaf {
        text += &format!("{}: {} PAUSE frames received and ignored\n", pfc.port, count(pfc.pause_received_frames));
    }
    for pfc in &looks.state().pfc {
        for row in pfc.priorities.iter().filter(|row| row.observed == Observed::Disobeys.label()) {
            text += &disobeys(&pfc.port, row);
        }
    }
    text
}

/// The answer of the peer to XOFF, since the start.
fn peer(row: &PfcPriority) -> String {
    match row.observed.as_str() {
        // An earlier version of the switch leaves the field empty.
        "" | "unseen" => NONE.to_owned(),
        "obeys" => format!("obeys, {} times", count(row.stops)),
        observed => observed.to_uppercase(),
    }
}

/// The evidence against a peer.
fn disobeys(port: &str, row: &PfcPriority) -> String {
    let (class, late, pauses) = (class(row.priority, false), frames(row.late_frames), count(row.late_pauses));
    format!("{port} class {class}: the peer does not stop at XOFF: {late} came too late, after {pauses} of its XOFFs\n")
}

fn now(pfc: &Pfc, row: &PfcPriority) -> &'static str {
    match (row.xoff || pfc.port_xoff && row.generated, row.paused) {
        (true, true) => "both held",
        (true, false) => "holds peer",
        (false, true) => "held",
        (false, false) => NONE,
    }
}

pub fn drops(looks: &Looks<'_>) -> String {
    let state = looks.state();
    let rate = looks.before().is_some();
    let title = if rate { "drops/s" } else { "dropped" };
    let mut table = Table::new(&format!(">{title} | port | class | reason | meaning"));
    let key = |row: &Dropped| (row.port.clone(), row.class, row.reason.clone(), row.lossless);
    let mut rows: Vec<(u64, &Dropped)> = Vec::new();
    for row in &state.drops {
        let frames = match looks.before() {
            Some((before, seconds)) => {
                let was = before.drops.iter().find(|other| key(other) == key(row)).map(|row| row.frames);
                (grown(row.frames, was) as f64 / seconds).ceil() as u64
            }
            None => row.frames,
        };
        rows.push((frames, row));
    }
    let total: u64 = rows.iter().map(|row| row.0).sum();
    let mut named: Vec<&str> = Vec::new();
    for (frames, row) in rows.iter().filter(|row| row.0 > 0) {
        // Each meaning is shown once, because the sentences are long.
        let meaning = if named.contains(&row.reason.as_str()) { "" } else { row.meaning.as_str() };
        named.push(&row.reason);
        let class = row.class.map_or_else(|| NONE.to_owned(), |number| class(number, row.lossless));
        table.row([count(*frames), row.port.clone(), class, row.reason.clone(), meaning.to_owned()]);
    }
    if table.is_empty() {
        let when = if rate { "since the last reading".to_owned() } else { looks.since() };
        return format!("nothing was dropped, {when}\n");
    }
    let about = if rate { "frames per second".to_owned() } else { looks.since() };
    format!("{table}(* lossless; {} in all; {about})\n", count(total))
}

pub fn ecn(looks: &Looks<'_>) -> String {
    let mut table = Table::new("port | queue | >kmin | >kmax | >pmax | >depth | >sent | >marked | >share");
    for row in &looks.state().ecn {
        let before = looks.before().and_then(|(before, _)| {
            before.ecn.iter().find(|other| (&other.port, other.queue) == (&row.port, row.queue))
        });
        let (sent, marked) = (
            grown(row.sent_frames, before.map(|row| row.sent_frames)),
            grown(row.marked_frames, before.map(|row| row.marked_frames)),
        );
        table.row([
            row.port.clone(),
            class(row.queue, row.lossless),
            bytes(row.kmin_bytes),
            bytes(row.kmax_bytes),
            format!("{:.1}%", row.pmax * 100.0),
            bytes(row.depth_bytes),
            count(sent),
            count(marked),
            percent(marked, sent),
        ]);
    }
    if table.is_empty() {
        return "no queue marks frames: no class has `ecn`\n".to_owned();
    }
    let over = match looks.before() {
        Some((_, seconds)) => format!("frames of the last {seconds:.1}s"),
        None => looks.since(),
    };
    format!("{table}(* lossless: marked, never dropped; {over})\n")
}

pub fn watchdog(looks: &Looks<'_>) -> String {
    let mut table = Table::new("port | action | >storm after | >over after | queue | >storms | >ended | now");
    for port in &looks.state().watchdog {
        let stormy = port.queues.iter().filter(|queue| queue.storms > 0);
        let times = [port.detection_ns, port.restoration_ns].map(|ns| Nanos(ns).to_string());
        let head = [[port.port.clone(), port.action.clone()], times].concat();
        let mut rows: Vec<_> = stormy
            .map(|queue| {
                let now = if queue.storming { "STORM" } else { NONE };
                [queue.queue.to_string(), count(queue.storms), count(queue.restores), now.to_owned()]
            })
            .collect();
        if rows.is_empty() {
            rows.push([NONE; 4].map(str::to_owned));
        }
        rows.into_iter().for_each(|row| table.row(head.iter().cloned().chain(row)));
    }
    if table.is_empty() {
        return "no port has a watchdog; write `watchdog: {detection: 200ms}`\n".to_owned();
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::super::Seen;
    use super::*;

    #[test]
    fn peer_has_its_column_once_it_has_answered_and_a_line_if_it_disobeys() {
        let show = |observed: &str| {
            let row = PfcPriority {
                priority: 3,
                generated: true,
                observed: observed.to_owned(),
                stops: 12,
                late_pauses: 5,
                late_frames: 1234,
                ..PfcPriority::default()
            };
            let port = Pfc { port: "p1".to_owned(), priorities: vec![row], ..Pfc::default() };
            let state = State { pfc: vec![port], at_ns: 1_000_000_000, ..State::default() };
            pfc(&Looks { before: None, now: &Seen { json: serde_json::Value::Null, state } })
        };
        let header = |text: &str| text.lines().next().is_some_and(|line| line.ends_with("  peer"));
        assert!(!header(&show("unseen")) && header(&show("obeys")) && header(&show("disobeys")));
        assert!(
            show("obeys").lines().nth(1).is_some_and(|line| line.ends_with("obeys, 12 times")),
            "{}",
            show("obeys")
        );
        let text = show("disobeys");
        let expected = "p1 class 3: the peer does not stop at XOFF: 1,234 frames came too late, after 5 of its XOFFs";
        assert_eq!(text.lines().last(), Some(expected));
    }
}
