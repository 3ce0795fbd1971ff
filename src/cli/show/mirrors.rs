//! Mirrors and sFlow: sessions, the frames that they copied, and errors of destinations.

use holdfast::api::model::{Mirrors, Session};
use holdfast::text::table::Table;

use super::Looks;
use super::cells::{NONE, bytes, count};

pub fn mirrors(looks: &Looks<'_>) -> String {
    let mirrors: Mirrors = looks.part("mirrors").unwrap_or_default();
    if mirrors.sessions.is_empty() && mirrors.sflow.is_none() {
        return "there are no mirrors, and no sFlow\n".to_owned();
    }
    let mut parts = Vec::new();
    if !mirrors.sessions.is_empty() {
        parts.push(format!(
            "{}(copies, bytes: taken by the destination, or given to the queues of its port; lost: refused by it)\n",
            sessions(&mirrors)
        ));
        parts.push(format!(
            "{}(policed: beyond the rate of a session, or the 8 KiB of a poll; counted for each session)\n\
             (no buffer: copies came faster than they were taken)\n",
            events(&mirrors)
        ));
    }
    for output in mirrors.outputs.iter().filter(|output| output.dropped_frames > 0) {
        let (port, frames) = (&output.port, count(output.dropped_frames));
        parts.push(format!(
            "port {port}: its queues dropped {frames} frames; raise its speed, or lower `rate` or `bytes` of the mirrors\n"
        ));
    }
    if let Some(sflow) = &mirrors.sflow {
        let poll = sflow
            .poll_ns
            .map_or_else(|| "no counters".to_owned(), |ns| format!("counters every {}s", ns / 1_000_000_000));
        parts.push(format!(
            "sFlow of {} to {}: {poll}, {} datagrams, {} not sent\n",
            sflow.agent,
            sflow.collectors.join(", "),
            sflow.datagrams,
            sflow.send_errors
        ));
    }
    if mirrors.stale_copies > 0 {
        let copies = count(mirrors.stale_copies);
        parts.push(format!("{copies} copies were discarded, as they were made for the sessions before a reload\n"));
    }
    let errors =
        mirrors.sessions.iter().filter_map(|session| Some(format!("{}: {}\n", session.name, session.error.as_ref()?)));
    parts.extend(errors);
    parts.extend(mirrors.sflow.iter().filter_map(|sflow| Some(format!("sflow: {}\n", sflow.error.as_ref()?))));
    parts.join("\n")
}

fn sessions(mirrors: &Mirrors) -> Table {
    let mut table = Table::new("session | events | filter | >frame | >rate | to | >copies | >bytes | >lost");
    for session in &mirrors.sessions {
        table.row([
            session.name.clone(),
            events_of(session),
            filter(session),
            format!("{}B", session.frame_bytes),
            format!("{}/s", session.copies_per_second),
            session.destination.clone(),
            count(session.copies),
            bytes(session.written_bytes),
            count(session.lost_copies),
        ]);
    }
    table
}

/// The events, e.g. `dropped, one in 1000`.
fn events_of(session: &Session) -> String {
    let words = session.events.iter().map(|event| match session.one_in {
        Some(one_in) if event == "sampled" => format!("one in {one_in}"),
        _ => event.clone(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The frames that are copied, e.g. `threshold; ports p1, p2; class 3`.
fn filter(session: &Session) -> String {
    let classes = session.classes.as_ref().map(|classes| classes.iter().map(u8::to_string).collect::<Vec<_>>());
    let all = [("", "", &session.reasons), ("port ", "ports ", &session.ports), ("class ", "classes ", &classes)];
    let words = all.into_iter().filter_map(|(one, many, words)| {
        let words = words.as_ref()?;
        Some(format!("{}{}", if words.len() == 1 { one } else { many }, words.join(", ")))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { NONE.to_owned() } else { words.join("; ") }
}

fn events(mirrors: &Mirrors) -> Table {
    let mut table = Table::new("event | >copied | >policed | >no buffer");
    for event in &mirrors.events {
        table.row([
            event.event.clone(),
            count(event.copied_frames),
            count(event.policed_frames),
            count(event.no_buffer_frames),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::{CopiedEvent, MirrorOutput, Sflow, State};
    use serde_json::json;

    use super::super::Seen;
    use super::*;

    const FULL: &str = "`/var/log/holdfast/drops.pcapng`: no space is left in `/var/log/holdfast`; make room, or write a \
                        smaller `size` or fewer `files`";

    fn shown(part: &Mirrors) -> String {
        mirrors(&Looks { before: None, now: &Seen { json: json!({ "mirrors": part }), state: State::default() } })
    }

    #[test]
    fn sessions_are_rows_with_filters_counts_and_errors() {
        let losses = Session {
            name: "losses".to_owned(),
            events: vec!["dropped".to_owned(), "marked".to_owned()],
            reasons: Some(vec!["threshold".to_owned(), "pool_empty".to_owned()]),
            ports: Some(vec!["p1".to_owned(), "p2".to_owned()]),
            classes: Some(vec![3]),
            frame_bytes: 128,
            copies_per_second: 1000,
            destination: "/var/log/holdfast/drops.pcapng".to_owned(),
            copies: 1234,
            written_bytes: 4096,
            lost_copies: 7,
            error: Some(FULL.to_owned()),
            ..Session::default()
        };
        let samples = Session {
            name: "sflow-samples".to_owned(),
            events: vec!["sampled".to_owned()],
            one_in: Some(4096),
            frame_bytes: 128,
            copies_per_second: 10_000,
            destination: "sflow".to_owned(),
            ..Session::default()
        };
        let event = CopiedEvent {
            event: "dropped".to_owned(),
            copied_frames: 1241,
            policed_frames: 20_000,
            no_buffer_frames: 0,
        };
        let sflow = Sflow {
            collectors: vec!["10.0.0.9:6343".to_owned()],
            agent: "10.0.0.1".to_owned(),
            poll_ns: Some(20_000_000_000),
            datagrams: 12,
            send_errors: 1,
            error: Some("10.0.0.9:6343: host unreachable; add a route to 10.0.0.9 on this machine".to_owned()),
        };
        let (sessions, events) = (vec![losses, samples], vec![event]);
        let outputs = vec![MirrorOutput { port: "mon".to_owned(), dropped_frames: 123 }];
        let all = Mirrors { sessions, events, outputs, sflow: Some(sflow), stale_copies: 2 };
        insta::assert_snapshot!(shown(&all), @r"
        session        events           filter                                        frame     rate  to                              copies  bytes  lost
        losses         dropped, marked  threshold, pool_empty; ports p1, p2; class 3   128B   1000/s  /var/log/holdfast/drops.pcapng   1,234   4KiB     7
        sflow-samples  one in 4096      -                                              128B  10000/s  sflow                                -      -     -
        (copies, bytes: taken by the destination, or given to the queues of its port; lost: refused by it)

        event    copied  policed  no buffer
        dropped   1,241   20,000          -
        (policed: beyond the rate of a session, or the 8 KiB of a poll; counted for each session)
        (no buffer: copies came faster than they were taken)

        port mon: its queues dropped 123 frames; raise its speed, or lower `rate` or `bytes` of the mirrors

        sFlow of 10.0.0.1 to 10.0.0.9:6343: counters every 20s, 12 datagrams, 1 not sent

        2 copies were discarded, as they were made for the sessions before a reload

        losses: `/var/log/holdfast/drops.pcapng`: no space is left in `/var/log/holdfast`; make room, or write a smaller `size` or fewer `files`

        sflow: 10.0.0.9:6343: host unreachable; add a route to 10.0.0.9 on this machine
        ");
    }

    #[test]
    fn switch_without_mirrors_says_so() {
        assert_eq!(shown(&Mirrors::default()), "there are no mirrors, and no sFlow\n");
    }
}
