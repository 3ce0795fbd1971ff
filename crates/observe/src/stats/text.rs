//! The final report as tables.

use std::collections::BTreeSet;
use std::fmt;

use super::report::{ClassReport, FlowReport, HeadroomReport, PollReport, Report};
use crate::plan::DropReason;
use crate::text::format::{frames, gigabits, grouped, percent, time};
use crate::text::table::Table;
use crate::units::{Bytes, Nanos};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "holdfast {}, {:.1} s, {} ports\n", self.version, self.seconds, self.ports.len())?;
        write!(f, "{}", self.ports_table())?;
        writeln!(f, "(* lossless; PFC as XOFF/XON; group, headroom and queue: the highest use of the buffer)\n")?;
        for table in [self.pauses_table(), self.trouble_table()] {
            if !table.is_empty() {
                writeln!(f, "{table}")?;
            }
        }
        let drops = self.drops_table();
        if !drops.is_empty() {
            writeln!(f, "{drops}")?;
        }
        let flows = self.flows_table();
        if !flows.is_empty() {
            writeln!(f, "{flows}")?;
        }
        self.write_buffer(f)?;
        self.write_polls(f)?;
        for advice in &self.advice {
            writeln!(f, "advice: {}", advice.text)?;
        }
        writeln!(f, "\n{}", self.verdict)
    }
}

impl Report {
    /// Counters by port and class, and their totals. A star marks lossless classes.
    fn ports_table(&self) -> Table {
        let mut table = Table::new(
            "port | class | >received | >sent | >dropped | >PFC sent | >PFC rcvd | >marked | >group | >headroom | \
             >queue",
        );
        let mut total = [0; 8];
        for port in &self.ports {
            for class in &port.classes {
                let counts = counts(class);
                total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
                let name = [port.name.clone(), class_name(class)].into_iter();
                let highest = [class.group_highest_bytes, class.headroom_highest_bytes, class.queue_highest_bytes];
                table.row(name.chain(count_cells(counts)).chain(highest.map(|bytes| Bytes(bytes).to_string())));
            }
        }
        table.row(["all".to_owned(), String::new()].into_iter().chain(count_cells(total)));
        table.without_idle(&["dropped", "marked"], "0").without_idle(&["PFC sent", "PFC rcvd"], "0/0")
    }

    /// Pause times in both directions, and the use of headroom.
    fn pauses_table(&self) -> Table {
        let mut table = Table::new("port | class | >peer XOFF for | >paused for | >headroom used | >of | >needed");
        for port in &self.ports {
            for class in &port.classes {
                let times = [class.pfc_sent_paused_ns, class.pfc_received_paused_ns];
                if times == [0, 0] && class.headroom_highest_bytes == 0 {
                    continue;
                }
                let times = times.map(|ns| if ns == 0 { "-".to_owned() } else { self.share_of_run(Nanos(ns)) });
                let headroom = match class.headroom_needed_bytes {
                    None => ["-"; 3].map(str::to_owned),
                    Some(needed) => [class.headroom_highest_bytes, class.headroom_bytes, needed].map(bytes),
                };
                let name = [port.name.clone(), class_name(class)].into_iter();
                table.row(name.chain(times).chain(headroom));
            }
        }
        table.without_idle(&["peer XOFF for", "paused for", "headroom used", "of", "needed"], "-")
    }

    fn share_of_run(&self, time: Nanos) -> String {
        let run = (self.seconds * 1e9) as u64;
        format!("{} ({:>2}%)", self::time(time), percent(time.0, run).min(100))
    }

    /// Storms, backlogs, stuck ports and frames lost by devices, if there were any.
    fn trouble_table(&self) -> Table {
        let mut table = Table::new("trouble | at | details");
        for port in &self.ports {
            for class in port.classes.iter().filter(|class| class.watchdog_storms > 0) {
                let (storms, over) = (grouped(class.watchdog_storms), grouped(class.watchdog_restores));
                let ignored = match class.pfc_ignored {
                    0 => String::new(),
                    ignored => format!(", {} of PFC ignored", frames(ignored)),
                };
                let at = format!("{} {}", port.name, class_name(class));
                table.row(["watchdog".to_owned(), at, format!("{storms} found, {over} over{ignored}")]);
            }
            if port.backlog_xoffs > 0 {
                let times = grouped(port.backlog_xoffs);
                // Zero: the device cannot count the frames that wait.
                let waiting = match port.backlog_highest_frames {
                    0 => String::new(),
                    highest => format!(", at most {} waiting", frames(highest)),
                };
                let what = format!("XOFF {times}x because the dataplane polled too late{waiting}");
                table.row(["backlog".to_owned(), port.name.clone(), what]);
            }
            if port.egress_stucks > 0 {
                let what = format!(
                    "{}x the device accepted no frames, and the waiting frames were dropped",
                    grouped(port.egress_stucks)
                );
                table.row(["stuck".to_owned(), port.name.clone(), what]);
            }
            if port.send_errors > 0 {
                let what = format!("{} accepted by the device, but not sent", frames(port.send_errors));
                table.row(["device".to_owned(), port.name.clone(), what]);
            }
        }
        table
    }

    fn drops_table(&self) -> Table {
        let mut table = Table::new(">dropped | at | class | reason | meaning");
        let mut explained = BTreeSet::new();
        for port in &self.ports {
            for class in &port.classes {
                for (label, frames) in &class.drops {
                    let meaning = DropReason::TABLE.iter().find(|row| row.1 == *label).map_or("", |row| row.2);
                    let meaning = if explained.insert(*label) { meaning } else { "" };
                    let port = port.name.clone();
                    table.row([grouped(*frames), port, class_name(class), (*label).to_owned(), meaning.to_owned()]);
                }
            }
            for (frames, meaning) in [
                (port.receive_missed_frames, "the port's receive ring was full: lost before admission"),
                (port.receive_no_buffer_frames, "there was no packet buffer: lost before admission"),
            ] {
                if frames > 0 {
                    let cells = [grouped(frames).as_str(), &port.name, "?", "receive_ring", meaning].map(str::to_owned);
                    table.row(cells);
                }
            }
        }
        table
    }

    fn flows_table(&self) -> Table {
        let mut table = Table::new(
            "flow | class | >sent | >received | >lost | >late | >twice | >corrupt | >CE | >Gb/s | >p50 | >p99 | \
             >longest",
        );
        self.flows.iter().for_each(|flow| table.row(flow_cells(flow)));
        table.without_idle(&["late", "twice", "corrupt", "CE"], "0")
    }

    fn write_buffer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pool in self.pools.iter().filter(|pool| pool.size_bytes > 0) {
            let share = percent(pool.highest_bytes, pool.size_bytes);
            let (size, highest) = (Bytes(pool.size_bytes), Bytes(pool.highest_bytes));
            writeln!(f, "{} pool: at most {highest} of {size} in use ({share} %)", pool.name)?;
        }
        self.write_headroom(f)?;
        match self.held.cells {
            0 => writeln!(f, "buffer: every cell released"),
            cells => writeln!(f, "buffer: {} cells not released ({} frames)", grouped(cells), self.held.frames),
        }
    }

    fn write_headroom(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeadroomReport { policy, size_bytes, highest_bytes, .. } = &self.headroom;
        match highest_bytes {
            _ if *size_bytes == 0 => Ok(()),
            None => writeln!(f, "headroom: {policy}, {} in all", bytes(*size_bytes)),
            Some(highest) => {
                let (share, highest) = (percent(*highest, *size_bytes), bytes(*highest));
                writeln!(f, "headroom: {policy}, at most {highest} of {} in use ({share} %)", bytes(*size_bytes))
            }
        }
    }

    fn write_polls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lcores.len() < 2 {
            return writeln!(f, "{}", poll_line(&self.polls));
        }
        for lcore in &self.lcores {
            let (number, polls, ports) = (lcore.lcore, poll_line(&lcore.polls), lcore.ports.join(", "));
            let (handed, highest) = (grouped(lcore.handed_off_frames), grouped(lcore.handoff_highest_frames));
            writeln!(
                f,
                "lcore {number} ({ports}): {polls}; {handed} frames handed off, at most {highest} waiting for it"
            )?;
        }
        Ok(())
    }
}

fn poll_line(polls: &PollReport) -> String {
    let Some(p99) = polls.gap_p99_ns else { return "polls: none".to_owned() };
    let highest = time(Nanos(polls.gap_highest_ns));
    let share = percent(polls.busy_polls, polls.polls);
    let rests = rest_part(polls);
    format!("poll gaps: 99 % below {}, longest {highest}; {share} % of polls busy{rests}", time(Nanos(p99)))
}

/// The part of the line about rests, which are the longest gaps; empty if there was none.
fn rest_part(polls: &PollReport) -> String {
    let Some(p99) = polls.rest_overshoot_p99_ns else { return String::new() };
    let (rests, rested) = (grouped(polls.rests), time(Nanos(polls.rested_ns)));
    let highest = time(Nanos(polls.rest_overshoot_highest_ns));
    format!("; {rests} rests, {rested} in all, 99 % ended less than {} late, at most {highest}", time(Nanos(p99)))
}

fn bytes(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

fn class_name(class: &ClassReport) -> String {
    match class.class {
        Some(number) if class.lossless => format!("{number}*"),
        Some(number) => number.to_string(),
        None => "none".to_owned(),
    }
}

/// Counts of a class: received, sent, dropped, XOFF and XON sent and received, marked.
fn counts(class: &ClassReport) -> [u64; 8] {
    [
        class.received_frames,
        class.sent_frames,
        class.dropped_frames,
        class.pfc_sent_xoff,
        class.pfc_sent_xon,
        class.pfc_received_xoff,
        class.pfc_received_xon,
        class.ecn_marked_frames,
    ]
}

fn count_cells(counts: [u64; 8]) -> [String; 6] {
    let [received, sent, dropped, sent_xoff, sent_xon, received_xoff, received_xon, marked] = counts.map(grouped);
    let pair = |xoff, xon| format!("{xoff}/{xon}");
    [received, sent, dropped, pair(sent_xoff, sent_xon), pair(received_xoff, received_xon), marked]
}

fn flow_cells(flow: &FlowReport) -> Vec<String> {
    let unknown = || "?".to_owned();
    let latency = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| time(Nanos(ns)));
    vec![
        format!("{} > {} {}", flow.from, flow.to.as_deref().unwrap_or("outside"), flow.kind),
        flow.class.to_string(),
        grouped(flow.sent_frames),
        flow.lost_frames.map_or_else(unknown, |_| grouped(flow.received_frames)),
        flow.lost_frames.map_or_else(unknown, grouped),
        grouped(flow.late_frames),
        grouped(flow.duplicate_frames),
        grouped(flow.corrupt_frames),
        grouped(flow.ce_frames),
        gigabits(flow.received_bits_per_second),
        latency(flow.latency_p50_ns),
        latency(flow.latency_p99_ns),
        latency(flow.latency_highest_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{run, trouble};
    use super::*;
    use std::time::Duration;

    fn report() -> Report {
        Report::new(&run(), Duration::from_secs(10))
    }

    #[test]
    fn text_report_of_a_kept_run_shows_counters_and_verdict() {
        insta::assert_snapshot!(report().to_string(), @r#"
        holdfast 0.0.0, 10.0 s, 2 ports

        port  class   received       sent  dropped  PFC sent  marked      group  headroom      queue
        p1    0      1,000,000          0    1,234       0/0       0         0B        0B         0B
        p1    3*     6,000,000          0        0     40/12       0  488.28KiB  10.74KiB         0B
        p1    none           0          0        2       0/0       0         0B        0B         0B
        p2    0              0    998,766        0       0/0       0         0B        0B         0B
        p2    3*             0  6,000,000        0       0/0  70,000         0B        0B  499.02KiB
        all          7,000,000  6,998,766    1,236     40/12  70,000
        (* lossless; PFC as XOFF/XON; group, headroom and queue: the highest use of the buffer)

        port  class  peer XOFF for  headroom used        of    needed
        p1    3*       3.20s (32%)       10.74KiB  39.06KiB  10.74KiB

        dropped  at  class  reason      meaning
          1,234  p1  0      threshold   the ingress group's threshold in the lossy pool
              2  p1  none   link_local  a destination that bridges must not relay (01-80-C2-00-00-0x)

        flow          class       sent   received   lost      CE  Gb/s     p50     p99  longest
        h1 > h2 roce  3      6,000,000  6,000,000      0  70,000  4.92  12.0us  12.0us   12.0us
        h1 > h2 udp   0      1,000,000    998,766  1,234       0  0.82  12.0us  12.0us   12.0us

        lossless pool: at most 486.32KiB of 976.56KiB in use (49 %)
        lossy pool: at most 781.05KiB of 781.25KiB in use (99 %)
        headroom: independent, 78.12KiB in all
        buffer: every cell released
        poll gaps: 99 % below 8.19us, longest 21.5us; 90 % of polls busy

        lossless: KEPT
        "#);
    }

    #[test]
    fn text_report_of_a_broken_run_shows_losses_and_advice() {
        insta::assert_snapshot!(Report::new(&trouble(), Duration::from_secs(10)).to_string(), @r#"
        holdfast 0.0.0, 10.0 s, 2 ports

        port  class   received  sent  dropped  PFC rcvd  group  headroom  queue
        p1    3*     6,000,000     0       12       0/0     0B  39.06KiB     0B
        p2    3*             0     1       99   9,000/0     0B        0B     0B
        all          6,000,000     1      111   9,000/0
        (* lossless; PFC as XOFF/XON; group, headroom and queue: the highest use of the buffer)

        port  class  peer XOFF for   paused for  headroom used        of    needed
        p1    3*       4.50s (45%)            -       39.06KiB  39.06KiB  39.06KiB
        p2    3*                 -  9.00s (90%)             0B  39.06KiB        0B

        trouble   at     details
        backlog   p1     XOFF 7x because the dataplane polled too late, at most 600 frames waiting
        watchdog  p2 3*  2 found, 1 over, 8,000 frames of PFC ignored
        stuck     p2     3x the device accepted no frames, and the waiting frames were dropped

        dropped  at  class  reason         meaning
             12  p1  3*     headroom_full  a lossless group's headroom is full: its peer did not stop in time, or eta is too small
             99  p2  3*     watchdog       the watchdog drops a priority that its peer has paused for too long

        flow          class       sent   received   lost      CE  Gb/s     p50     p99  longest
        h1 > h2 roce  3      6,000,000  6,000,000      0  70,000  4.92  12.0us  12.0us   12.0us
        h1 > h2 udp   0      1,000,000    998,766  1,234       0  0.82  12.0us  12.0us   12.0us

        lossless pool: at most 0B of 976.56KiB in use (0 %)
        lossy pool: at most 0B of 781.25KiB in use (0 %)
        headroom: shared-pool, at most 68.55KiB of 78.12KiB in use (87 %)
        buffer: every cell released
        lcore 0 (p1): poll gaps: 99 % below 400ns, longest 400ns; 50 % of polls busy; 0 frames handed off, at most 70 waiting for it
        lcore 1 (p2): poll gaps: 99 % below 500ns, longest 500ns; 60 % of polls busy; 40 rests, 4.20ms in all, 99 % ended less than 12.0us late, at most 12.0us; 5,000 frames handed off, at most 70 waiting for it
        advice: p1 class 3: 12 frames lost beyond a headroom of 39.06KiB, though the peer obeys PFC; write a larger `headroom`
        advice: p1: the core cannot keep up: the port's own backlog paused lossless classes 7 times, with up to 600 frames waiting; give the port an lcore of its own or a faster CPU
        advice: p2: the watchdog found a storm 2 times (class 3): the peer pauses and does not resume; look for a stuck host there
        advice: p2: its device accepted no frames 3 times, and the waiting frames were dropped; check that the peer is present, or raise `stuck_after` if it may stop for that long

        lossless: BROKEN: 12 frames lost in class 3 (headroom_full at p1 12); 99 frames discarded by the watchdog
        class 3: 99 frames discarded by the watchdog at p2
        "#);
    }

    #[test]
    fn backlog_without_a_number_of_frames_and_a_single_unsent_frame_are_told() {
        let switch_view = trouble();
        switch_view.counters.ports[0].backlog_highest_frames.set(0);
        switch_view.devices[1].publish(&crate::stats::DeviceStats { tx_errors: 1, ..Default::default() });
        let text = Report::new(&switch_view, Duration::from_secs(10)).to_string();
        let has = |line: &str| text.contains(&format!("{line}\n"));
        assert!(has("backlog   p1     XOFF 7x because the dataplane polled too late"), "{text}");
        assert!(has("device    p2     1 frame accepted by the device, but not sent"), "{text}");
        assert!(text.contains("backlog paused lossless classes 7 times; give the port an lcore"), "{text}");
    }

    #[test]
    fn json_report_of_a_broken_run_shows_losses_and_advice() {
        let report = Report::new(&trouble(), Duration::from_secs(10));
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap();
        insta::assert_snapshot!(pretty(&json["headroom"]), @r#"
        {
          "highest_bytes": 70200,
          "policy": "shared-pool",
          "size_bytes": 80000,
          "used_bytes": 0
        }
        "#);
        insta::assert_snapshot!(pretty(&json["lcores"][1]), @r#"
        {
          "busy_polls": 600,
          "gap_highest_ns": 500,
          "gap_p99_ns": 500,
          "handed_off_frames": 5000,
          "handoff_highest_frames": 70,
          "lcore": 1,
          "polls": 1000,
          "ports": [
            "p2"
          ],
          "rest_overshoot_highest_ns": 12000,
          "rest_overshoot_p99_ns": 12000,
          "rested_ns": 4200000,
          "rests": 40
        }
        "#);
        insta::assert_snapshot!(pretty(&json["advice"][0]), @r#"
        {
          "place": "p1 class 3",
          "text": "p1 class 3: 12 frames lost beyond a headroom of 39.06KiB, though the peer obeys PFC; write a larger `headroom`",
          "topic": "headroom_full"
        }
        "#);
        insta::assert_snapshot!(pretty(&json["verdict"]["causes"][1]), @r#"
        {
          "cause": "watchdog",
          "class": 3,
          "frames": 99,
          "port": "p2"
        }
        "#);
        let port = &json["ports"][0];
        assert_eq!((&port["backlog_xoffs"], &port["backlog_highest_frames"]), (&7.into(), &600.into()));
        assert_eq!((&json["ports"][1]["pfc_mode"], &json["ports"][1]["lcore"]), (&"asymmetric".into(), &1.into()));
        let class = &json["ports"][1]["classes"][0];
        let storms = ["watchdog_storms", "watchdog_restores", "pfc_ignored", "pfc_received_paused_ns"];
        assert_eq!(storms.map(|key| class[key].as_u64().unwrap()), [2, 1, 8_000, 9_000_000_000]);
    }

    #[test]
    fn json_report_of_a_kept_run_shows_counters_and_verdict() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        assert_eq!(json["format"], 1);
        assert_eq!(json["verdict"]["outcome"], "kept");
        assert_eq!(json["held"]["cells"], 0);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json["ports"][0]["classes"][0]).unwrap(), @r#"
        {
          "class": 0,
          "dropped_frames": 1234,
          "drops": {
            "threshold": 1234
          },
          "ecn_marked_frames": 0,
          "group_highest_bytes": 0,
          "headroom_bytes": 0,
          "headroom_highest_bytes": 0,
          "headroom_needed_bytes": null,
          "lossless": false,
          "pfc_ignored": 0,
          "pfc_received_paused_ns": 0,
          "pfc_received_xoff": 0,
          "pfc_received_xon": 0,
          "pfc_sent_paused_ns": 0,
          "pfc_sent_xoff": 0,
          "pfc_sent_xon": 0,
          "queue_highest_bytes": 0,
          "received_bytes": 1000000000,
          "received_frames": 1000000,
          "sent_bytes": 0,
          "sent_frames": 0,
          "shared_highest_bytes": 0,
          "watchdog_restores": 0,
          "watchdog_storms": 0
        }
        "#);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json["flows"][1]).unwrap(), @r#"
        {
          "ce_frames": 0,
          "class": 0,
          "corrupt_frames": 0,
          "duplicate_frames": 0,
          "frame_bytes": 1000,
          "from": "h1",
          "kind": "udp",
          "late_frames": 0,
          "latency_highest_ns": 12000,
          "latency_p50_ns": 12000,
          "latency_p99_ns": 12000,
          "lost_frames": 1234,
          "received_bits_per_second": 818189107.2,
          "received_frames": 998766,
          "sent_frames": 1000000,
          "to": "h2"
        }
        "#);
    }
}
