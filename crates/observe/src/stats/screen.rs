//! The live picture on a terminal: a pure function of the interval between two snapshots.

use super::live::{Step, Style};
use super::snapshot::{LcoreSnapshot, cells};
use super::switch_view::SwitchView;
use crate::sets::ClassSet;
use crate::text::format::{classes, frames, gigabits, grouped, per_second, percent, short, time};
use crate::units::{Bytes, Cells, Nanos};

/// Lines and columns of a picture: a terminal of 24 by 80, less the line of the cursor.
const LINES: usize = 23;
const COLUMNS: usize = 80;
/// Lines above the ports, and between the ports and the rest.
const HEAD_LINES: usize = 4;
/// Least number of ports on a screen.
const PORTS_LEAST: usize = 4;
/// Most lcores on a screen.
const LCORES_SHOWN: usize = 4;
/// Width of the buffer bar of a port.
const PORT_BAR: usize = 5;
/// Width of the bar of a pool.
const POOL_BAR: usize = 20;

/// Formats the screen for the interval between two snapshots: at most 23 lines of at most 80 characters. Notices are
/// last.
#[must_use]
pub(super) fn screen(step: &Step<'_>, style: Style, notices: &[String]) -> String {
    let (switch_view, after) = (step.switch_view, step.after);
    let ports = after.ports.len();
    let mut text =
        format!("holdfast {}   {:.0} s   {ports} ports\n\n", switch_view.build.version, after.at.as_secs_f64());
    text += "port         rx Gb/s  tx Gb/s  to XOFF  hdrm  xoff    time  paused  time drops/s\n";
    let mut below = below(step, style);
    notices.iter().for_each(|notice| below += &format!("{}\n", cut(notice)));
    let room = LINES.saturating_sub(HEAD_LINES + 1 + below.lines().count()).max(PORTS_LEAST);
    let shown = busiest(step, room);
    for &port in &shown {
        text += &port_line(step, port, style);
    }
    if shown.len() < ports {
        text += &format!("... and {} ports with less traffic\n", ports - shown.len());
    }
    text.push('\n');
    text + &below
}

/// The part below the ports: pools, lcores if there are several, problems, and totals.
fn below(step: &Step<'_>, style: Style) -> String {
    let mut text = String::new();
    for (name, used, highest, size) in step.pools() {
        text += &pool_line(step.switch_view, name, used, highest, size);
    }
    if step.after.lcores.len() > 1 {
        let nothing = LcoreSnapshot::default();
        for (number, lcore) in step.after.lcores.iter().enumerate().take(LCORES_SHOWN) {
            text += &lcore_line(step, number, step.before.lcores.get(number).unwrap_or(&nothing), lcore);
        }
    }
    text + &trouble(step, style) + &totals(step, style)
}

/// Indices of the ports to show: the busiest ones if there is no room for all.
fn busiest(step: &Step<'_>, room: usize) -> Vec<usize> {
    let mut ports: Vec<usize> = (0..step.after.ports.len()).collect();
    let bytes = |port: usize| step.port(port, |p| p.rx_bytes.iter().chain(&p.tx_bytes).sum());
    ports.sort_by_key(|&port| std::cmp::Reverse(bytes(port)));
    ports.truncate(room);
    ports.sort_unstable();
    ports
}

fn port_line(step: &Step<'_>, port: usize, style: Style) -> String {
    let (rx, tx) = step.rates(port);
    let snapshot = &step.after.ports[port];
    let (used, headroom) = filling(step, port);
    let name: String = step.switch_view.port_name(port).chars().take(12).collect();
    let classes = |paused: ClassSet| style.odd(!paused.is_empty(), &format!("{:<7}", classes(paused)));
    let (xoff, paused) = (classes(snapshot.xoff_mask), classes(snapshot.paused_mask));
    let drops = per_second(step.port(port, |p| p.dropped(|_| true)), step.seconds);
    let drops = style.bad(drops > 0, &format!("{:>8}", short(drops)));
    let (rx, tx, bar) = (gigabits(rx), gigabits(tx), bar(used, PORT_BAR));
    let (xoff_time, paused_time) =
        (step.stopped(port, |p| &p.pfc_tx_paused_ns), step.stopped(port, |p| &p.pfc_rx_paused_ns));
    format!(
        "{name:<12} {rx:>7}  {tx:>7}  {bar}  {headroom:>3}%  {xoff}{xoff_time:>4}%  {paused}{paused_time:>4}%{drops}\n"
    )
}

/// How close the fullest group of a port is to its threshold, and its use of headroom, both in percent. Judges the
/// lossless groups of a port if it has any, otherwise the lossy ones.
fn filling(step: &Step<'_>, port: usize) -> (u64, u64) {
    let (Some(spec), snapshot) = (step.switch_view.spec.ports.get(port), &step.after.ports[port]) else {
        return (0, 0);
    };
    let has_lossless = spec.buffer.groups.iter().any(|group| group.lossless);
    let (plan, lcore) = (&step.switch_view.spec.buffer, &step.after.lcore);
    let (size, in_use) = if has_lossless {
        (plan.lossless_shared, lcore.lossless_used_cells)
    } else {
        (plan.lossy_shared, lcore.lossy_used_cells)
    };
    let free = Cells(size.0.saturating_sub(cells(in_use).0));
    let groups = spec.buffer.groups.iter().enumerate().filter(|(_, group)| group.lossless == has_lossless);
    let fillings = groups.map(|(index, group)| {
        let limit = u64::from(group.reserve.0) + u64::from(group.threshold.limit(free).0);
        let headroom = percent(snapshot.group_headroom_cells[index], u64::from(group.headroom.0));
        // Headroom is used only above the threshold, but the threshold may have moved since then.
        let used = if headroom > 0 { 100 } else { percent(snapshot.group_used_cells[index], limit).min(100) };
        (used, headroom)
    });
    fillings.max().unwrap_or((0, 0))
}

fn pool_line(switch_view: &SwitchView, name: &str, used: u64, highest: u64, size: Cells) -> String {
    let cell = switch_view.spec.buffer.cell;
    let share = percent(used, u64::from(size.0));
    let (used, highest, size) = (cells(used).to_bytes(cell), cells(highest).to_bytes(cell), size.to_bytes(cell));
    let bar = bar(share, POOL_BAR);
    format!(
        "{:<14} {bar} {share:>3}%  {} of {}, at most {}\n",
        format!("{name} pool"),
        mib(used),
        mib(size),
        mib(highest)
    )
}

fn lcore_line(step: &Step<'_>, number: usize, before: &LcoreSnapshot, lcore: &LcoreSnapshot) -> String {
    let since = |of: fn(&LcoreSnapshot) -> u64| of(lcore).saturating_sub(of(before));
    let busy = percent(since(|lcore| lcore.busy_polls), since(|lcore| lcore.polls));
    let handed = short(per_second(since(|lcore| lcore.handed_off_frames), step.seconds));
    let gap = time(Nanos(lcore.poll_gap_highest_ns));
    format!("{:<14} {busy}% busy   longest poll gap {gap}   handed off {handed}/s\n", format!("lcore {number}"))
}

/// Lines about storms, backlogs and stuck ports, if there were any.
fn trouble(step: &Step<'_>, style: Style) -> String {
    let after = step.after;
    let (mut text, mut storms) = (String::new(), Vec::new());
    let found = after.sum(|port| port.watchdog_storms.iter().sum());
    for (index, port) in after.ports.iter().enumerate().filter(|(_, port)| !port.watchdog_mask.is_empty()) {
        storms.push(format!("{} {}", step.switch_view.port_name(index), classes(port.watchdog_mask)));
    }
    if found > 0 {
        let now = if storms.is_empty() { "none now".to_owned() } else { format!("now at {}", storms.join(", ")) };
        let storm = format!("{:<14} {} found, {now}", "storms", grouped(found));
        text += &(style.bad(!storms.is_empty(), &cut(&storm)) + "\n");
    }
    let xoffs = after.sum(|port| port.backlog_xoffs);
    if xoffs > 0 {
        let worst = (0..after.ports.len()).max_by_key(|&port| after.ports[port].backlog_highest_frames).unwrap_or(0);
        let (name, highest) = (step.switch_view.port_name(worst), frames(after.ports[worst].backlog_highest_frames));
        let backlog = format!("{:<14} {} XOFFs, at most {highest} waiting at {name}", "backlog", grouped(xoffs));
        text += &(style.odd(step.all(|port| port.backlog_xoffs) > 0, &cut(&backlog)) + "\n");
    }
    let stucks = after.sum(|port| port.egress_stucks);
    if stucks > 0 {
        let now = (0..after.ports.len()).filter(|&port| after.ports[port].egress_stuck);
        let now: Vec<&str> = now.map(|port| step.switch_view.port_name(port)).collect();
        let places = if now.is_empty() { "none now".to_owned() } else { format!("now {}", now.join(", ")) };
        let stuck = format!("{:<14} {} times, {places}", "stuck ports", grouped(stucks));
        text += &(style.bad(!now.is_empty(), &cut(&stuck)) + "\n");
    }
    text
}

/// Cuts a line to the width of the terminal.
fn cut(line: &str) -> String {
    line.chars().take(COLUMNS).collect()
}

fn totals(step: &Step<'_>, style: Style) -> String {
    let (rx, tx) = step.all_rates();
    let rate = |count| short(per_second(count, step.seconds));
    let pfc = rate(step.all(|port| port.pfc_tx_frames));
    let marks = rate(step.all(|port| port.ecn_marked.iter().sum()));
    let lossless = step.after.sum(|port| step.lossless_drops(port));
    let lossy = step.after.sum(|port| step.lossy_drops(port));
    let lossless = style.bad(lossless > 0, &short(lossless));
    let (rx, tx, lossy) = (gigabits(rx), gigabits(tx), short(lossy));
    format!(
        "all ports      rx {rx} Gb/s   tx {tx} Gb/s   pfc {pfc}/s   marks {marks}/s\n\
         dropped so far lossless {lossless}   lossy {lossy}\n"
    )
}

fn bar(percent: u64, width: usize) -> String {
    // Rounded up, so that a small use does not look empty.
    let full = (percent as usize * width).div_ceil(100).min(width);
    format!("[{}{}]", "#".repeat(full), ".".repeat(width - full))
}

/// Formats a size in MiB with one decimal. The unit is fixed, so that the text does not jump when the size changes.
fn mib(bytes: Bytes) -> String {
    format!("{:.1}MiB", bytes.0 as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::fixture::{quiet, second};
    use super::*;
    use crate::mmu::HeadroomPolicy;
    use crate::plan::DropReason;
    use crate::sets::CLASSES;
    use crate::stats::{Snapshot, live};

    fn picture(switch_view: &SwitchView, before: &Snapshot, after: &Snapshot) -> String {
        screen(&Step::new(switch_view, before, after), Style::Screen { colour: false }, &[])
    }

    #[test]
    fn screen_shows_ports_pools_and_totals() {
        let (switch_view, before, after) = second();
        insta::assert_snapshot!(picture(&switch_view, &before, &after), @r#"
        holdfast 0.0.0   4 s   2 ports

        port         rx Gb/s  tx Gb/s  to XOFF  hdrm  xoff    time  paused  time drops/s
        p1              8.19     0.00  [#####]   12%  3         0%  -         0%   12.3k
        p2              0.00     7.37  [##...]    0%  -         0%  3,4,6     0%       0

        lossless pool  [#######.............]  34%  0.3MiB of 1.0MiB, at most 0.5MiB
        lossy pool     [....................]   0%  0.0MiB of 0.8MiB, at most 0.8MiB
        all ports      rx 8.19 Gb/s   tx 7.37 Gb/s   pfc 20/s   marks 456/s
        dropped so far lossless 0   lossy 13.6k
        "#);
    }

    #[test]
    fn screen_colours_drops_red_and_xoff_yellow() {
        let (switch_view, before, after) = second();
        switch_view.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(1);
        let text = screen(
            &Step::new(&switch_view, &before, &Snapshot::take(&switch_view, after.at)),
            Style::Screen { colour: true },
            &[],
        );
        assert!(text.contains("\x1b[31m   12.3k\x1b[0m"), "drops a second in red: {text}");
        assert!(text.contains("lossless \x1b[31m1\x1b[0m"), "{text}");
        assert!(text.contains("\x1b[33m3      \x1b[0m"), "XOFF in yellow: {text}");
    }

    #[test]
    fn screen_fits_80_columns_with_extreme_values() {
        let mut switch_view = quiet();
        let port = switch_view.spec.ports[0].clone();
        switch_view.spec.ports = vec![port; 64];
        switch_view.spec.ports[5].name = "a-name-longer-than-its-column".to_owned();
        switch_view.counters = Arc::new(crate::plan::Counters::new(64, 9));
        for port in &switch_view.counters.ports {
            for class in 0..CLASSES {
                port.rx_frames[class].add(1 << 26);
                port.rx_bytes[class].add(100_000_000_000);
                port.drops[class][0].add(1 << 50);
                port.group_headroom_cells[class].set(200);
            }
            port.xoff_mask.set(0xff);
            port.paused_mask.set(0b1101_1011);
            port.pfc_tx_paused_ns[3].add(5_000_000_000);
            port.pfc_rx_paused_ns[3].add(999_000_000);
            port.watchdog_storms[3].add(1 << 40);
            port.watchdog_mask.set(0xff);
            port.backlog_xoffs.add(1 << 40);
            port.backlog_highest_frames.raise(4096);
            port.egress_stucks.add(1 << 40);
            port.egress_stuck.set(1);
        }
        switch_view.spec.buffer.policy = HeadroomPolicy::SharedPool;
        for lcore in &switch_view.counters.lcores {
            lcore.poll_gap_highest_ns.set(12_345_678);
            lcore.handed_off_frames.add(1 << 50);
        }
        let after = Snapshot::take(&switch_view, Duration::from_secs(86_400));
        let before = Snapshot { at: Duration::from_secs(86_399), ..Snapshot::default() };
        let notices = ["a", &"long ".repeat(40)].map(str::to_owned);
        let text = screen(&Step::new(&switch_view, &before, &after), Style::Screen { colour: false }, &notices);
        assert!(text.lines().count() <= LINES, "{text}");
        assert!(text.contains("and 60 ports with less traffic"), "{text}");
        let rates = text.lines().filter(|line| !line.starts_with("all ports"));
        assert!(rates.clone().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn screen_adds_lines_for_storms_backlog_and_stuck_ports() {
        let (mut switch_view, before, _) = second();
        switch_view.spec.buffer.policy = HeadroomPolicy::SharedPool;
        let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
        p1.pfc_tx_paused_ns[3].add(450_000_000);
        p2.pfc_rx_paused_ns[3].add(90_000_000);
        p2.watchdog_storms[3].add(2);
        p2.watchdog_mask.set(ClassSet::only(3).bits().into());
        p1.backlog_xoffs.add(7);
        p1.backlog_highest_frames.raise(600);
        p2.egress_stucks.add(2);
        p2.egress_stuck.set(1);
        let mut after = Snapshot::take(&switch_view, Duration::from_secs(4));
        after.lcores.push(LcoreSnapshot {
            poll_gap_highest_ns: 95_000,
            handed_off_frames: 12_345,
            ..after.lcores[0].clone()
        });
        insta::assert_snapshot!(picture(&switch_view, &before, &after), @r#"
        holdfast 0.0.0   4 s   2 ports

        port         rx Gb/s  tx Gb/s  to XOFF  hdrm  xoff    time  paused  time drops/s
        p1              8.19     0.00  [#####]   12%  3        45%  -         0%   12.3k
        p2              0.00     7.37  [##...]    0%  -         0%  3,4,6     9%       0

        lossless pool  [#######.............]  34%  0.3MiB of 1.0MiB, at most 0.5MiB
        lossy pool     [....................]   0%  0.0MiB of 0.8MiB, at most 0.8MiB
        headroom pool  [....................]   0%  0.0MiB of 0.1MiB, at most 0.0MiB
        lcore 0        0% busy   longest poll gap 21.5us   handed off 0/s
        lcore 1        90% busy   longest poll gap 95.0us   handed off 12.3k/s
        storms         2 found, now at p2 3
        backlog        7 XOFFs, at most 600 frames waiting at p1
        stuck ports    2 times, now p2
        all ports      rx 8.19 Gb/s   tx 7.37 Gb/s   pfc 20/s   marks 456/s
        dropped so far lossless 0   lossy 13.6k
        "#);
        insta::assert_snapshot!(live::line(&switch_view, &before, &after), @"t=4s rx 8.19 Gb/s tx 7.37 Gb/s pool 34% xoff 1/2 pfc +20 marks +456 lossless drops 0 lossy drops +12345 storms +2 backlog xoffs +7 stuck +2");
    }
}
