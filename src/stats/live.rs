//! The live picture: a screen that is drawn anew on a terminal, a plain line anywhere else.
//!
//! Both are pure functions of two snapshots; [`Live`] remembers the one before and adds what a terminal needs.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use super::format::{classes, gigabits, per_second, percent, short, wire_rate};
use super::snapshot::{PortSnapshot, Snapshot, cells};
use super::subject::Subject;
use crate::qos::CLASSES;
use crate::units::{Bytes, Cells};

/// Ports on a screen of 24 lines.
const PORTS_SHOWN: usize = 13;
/// Width of a port's buffer bar.
const PORT_BAR: usize = 10;
/// Width of a pool's bar.
const POOL_BAR: usize = 20;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const HOME: &str = "\x1b[H";
const CLEAR_SCREEN: &str = "\x1b[2J";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line a second, without any codes.
    Plain,
    /// A screen that is drawn anew.
    Screen {
        /// Whether in colours.
        colour: bool,
    },
}

impl Style {
    /// The style for standard output: a screen if that is a terminal (and no dumb one), in colours unless `NO_COLOR` is
    /// set (no-color.org).
    #[must_use]
    pub fn detect(is_terminal: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_terminal && !is_dumb { Self::Screen { colour: !is_set("NO_COLOR") } } else { Self::Plain }
    }

    fn paint(self, code: u8, text: &str) -> String {
        if self == (Self::Screen { colour: true }) { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    /// What must not be.
    fn bad(self, is_so: bool, text: &str) -> String {
        if is_so { self.paint(31, text) } else { text.to_owned() }
    }
    /// What is worth a look.
    fn odd(self, is_so: bool, text: &str) -> String {
        if is_so { self.paint(33, text) } else { text.to_owned() }
    }
}

/// What happened between two snapshots.
struct Step<'a> {
    subject: &'a Subject,
    before: &'a Snapshot,
    after: &'a Snapshot,
    seconds: f64,
}

impl<'a> Step<'a> {
    fn new(subject: &'a Subject, before: &'a Snapshot, after: &'a Snapshot) -> Self {
        Self { subject, before, after, seconds: after.at.saturating_sub(before.at).as_secs_f64() }
    }

    /// How much a counter of `port` grew.
    fn port(&self, port: usize, of: impl Fn(&PortSnapshot) -> u64) -> u64 {
        let value = |snapshot: &Snapshot| snapshot.ports.get(port).map_or(0, &of);
        value(self.after).saturating_sub(value(self.before))
    }

    /// How much it grew on all ports.
    fn all(&self, of: impl Fn(&PortSnapshot) -> u64) -> u64 {
        (0..self.after.ports.len()).map(|port| self.port(port, &of)).sum()
    }

    /// Bits a second on the wire, received and sent, of one port.
    fn rates(&self, port: usize) -> (f64, f64) {
        let rate = |frames, bytes| wire_rate(frames, bytes, self.seconds);
        (
            rate(self.port(port, |p| p.rx_frames.iter().sum()), self.port(port, |p| p.rx_bytes.iter().sum())),
            rate(self.port(port, |p| p.tx_frames.iter().sum()), self.port(port, |p| p.tx_bytes.iter().sum())),
        )
    }

    fn all_rates(&self) -> (f64, f64) {
        (0..self.after.ports.len()).map(|port| self.rates(port)).fold((0.0, 0.0), |(rx, tx), (r, t)| (rx + r, tx + t))
    }

    fn lossless_drops(&self, port: &PortSnapshot) -> u64 {
        port.dropped(|row| row < CLASSES && self.subject.is_lossless(row))
    }

    fn lossy_drops(&self, port: &PortSnapshot) -> u64 {
        port.dropped(|row| row >= CLASSES || !self.subject.is_lossless(row))
    }

    /// Priority groups at XOFF, and those that could be.
    fn xoff(&self) -> (u32, u32) {
        let xoff = self.after.ports.iter().map(|port| port.xoff_mask.count_ones()).sum();
        let groups = self.subject.spec.ports.iter().flat_map(|port| &port.buffer.groups);
        (xoff, groups.filter(|group| group.lossless).count() as u32)
    }

    /// The pools as name, cells used, highest and size; only those that there are.
    fn pools(&self) -> Vec<(&'static str, u64, u64, Cells)> {
        let (plan, lcore) = (&self.subject.spec.buffer, &self.after.lcore);
        let lossless = (lcore.lossless_used_cells, lcore.lossless_used_highest_cells);
        let lossy = (lcore.lossy_used_cells, lcore.lossy_used_highest_cells);
        [("lossless", lossless, plan.lossless_shared), ("lossy", lossy, plan.lossy_shared)]
            .into_iter()
            .map(|(name, (used, highest), size)| (name, used, highest, size))
            .filter(|pool| pool.3.0 > 0)
            .collect()
    }
}

/// One line about the time between two snapshots; counts are what was added in it.
#[must_use]
pub fn line(subject: &Subject, before: &Snapshot, after: &Snapshot) -> String {
    let step = Step::new(subject, before, after);
    let (rx, tx) = step.all_rates();
    let pool = step.pools().first().map_or(0, |pool| percent(pool.1, u64::from(pool.3.0)));
    let (xoff, groups) = step.xoff();
    let added = |count: u64| if count == 0 { "0".to_owned() } else { format!("+{count}") };
    format!(
        "t={:.0}s rx {} Gb/s tx {} Gb/s pool {pool}% xoff {xoff}/{groups} pfc {} marks {} lossless drops {} \
         lossy drops {}",
        after.at.as_secs_f64(),
        gigabits(rx),
        gigabits(tx),
        added(step.all(|port| port.pfc_tx_frames)),
        added(step.all(|port| port.ecn_marked.iter().sum())),
        added(step.all(|port| step.lossless_drops(port))),
        added(step.all(|port| step.lossy_drops(port))),
    )
}

/// The screen after the time between two snapshots: at most 23 lines of at most 80 characters.
#[must_use]
pub fn screen(subject: &Subject, before: &Snapshot, after: &Snapshot, style: Style) -> String {
    let step = Step::new(subject, before, after);
    let ports = after.ports.len();
    let mut text = format!("holdfast {}   {:.0} s   {ports} ports\n\n", subject.version, after.at.as_secs_f64());
    text += "port         rx Gb/s  tx Gb/s  up to XOFF    hdrm  xoff     paused    drops/s\n";
    let shown = busiest(&step);
    for &port in &shown {
        text += &port_line(&step, port, style);
    }
    if shown.len() < ports {
        text += &format!("... and {} quieter ports\n", ports - shown.len());
    }
    text.push('\n');
    for (name, used, highest, size) in step.pools() {
        text += &pool_line(subject, name, used, highest, size);
    }
    text + &totals(&step, style)
}

/// The ports to show, by index: the busiest if there is no room for all.
fn busiest(step: &Step<'_>) -> Vec<usize> {
    let mut ports: Vec<usize> = (0..step.after.ports.len()).collect();
    let bytes = |port: usize| step.port(port, |p| p.rx_bytes.iter().chain(&p.tx_bytes).sum());
    ports.sort_by_key(|&port| std::cmp::Reverse(bytes(port)));
    ports.truncate(PORTS_SHOWN);
    ports.sort_unstable();
    ports
}

fn port_line(step: &Step<'_>, port: usize, style: Style) -> String {
    let (rx, tx) = step.rates(port);
    let snapshot = &step.after.ports[port];
    let (used, headroom) = filling(step, port);
    let name: String = step.subject.port_name(port).chars().take(12).collect();
    let classes = |mask| style.odd(mask != 0, &format!("{:<7}", classes(mask)));
    let (xoff, paused) = (classes(snapshot.xoff_mask), classes(snapshot.paused_mask));
    let drops = per_second(step.port(port, |p| p.dropped(|_| true)), step.seconds);
    let drops = style.bad(drops > 0, &format!("{:>9}", short(drops)));
    let (rx, tx, bar) = (gigabits(rx), gigabits(tx), bar(used, PORT_BAR));
    format!("{name:<12} {rx:>7}  {tx:>7}  {bar}  {headroom:>3}%  {xoff}  {paused} {drops}\n")
}

/// How far the fullest group of a port is on its way to its threshold, and how much of its headroom it uses, in
/// percent. A port's lossless groups if it has any, else its lossy ones.
fn filling(step: &Step<'_>, port: usize) -> (u64, u64) {
    let (Some(spec), snapshot) = (step.subject.spec.ports.get(port), &step.after.ports[port]) else { return (0, 0) };
    let has_lossless = spec.buffer.groups.iter().any(|group| group.lossless);
    let (plan, lcore) = (&step.subject.spec.buffer, &step.after.lcore);
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
        // Headroom is used only beyond the threshold, which may have moved since.
        let used = if headroom > 0 { 100 } else { percent(snapshot.group_used_cells[index], limit).min(100) };
        (used, headroom)
    });
    fillings.max().unwrap_or((0, 0))
}

fn pool_line(subject: &Subject, name: &str, used: u64, highest: u64, size: Cells) -> String {
    let cell = subject.spec.buffer.cell;
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
    // Rounded up, so that what is not empty does not look so.
    let full = (percent as usize * width).div_ceil(100).min(width);
    format!("[{}{}]", "#".repeat(full), ".".repeat(width - full))
}

/// A size with one decimal in MiB, which does not dance like a unit that changes.
fn mib(bytes: Bytes) -> String {
    format!("{:.1}MiB", bytes.0 as f64 / f64::from(1 << 20))
}

/// The picture from one snapshot to the next.
#[derive(Debug)]
pub struct Live {
    subject: Arc<Subject>,
    style: Style,
    before: Snapshot,
    has_drawn: bool,
}

impl Live {
    /// A picture of `subject`, from its beginning on.
    #[must_use]
    pub fn new(subject: Arc<Subject>, style: Style) -> Self {
        Self { subject, style, before: Snapshot::default(), has_drawn: false }
    }

    /// How often to draw.
    #[must_use]
    pub fn period(&self) -> Duration {
        match self.style {
            Style::Plain => Duration::from_secs(1),
            Style::Screen { .. } => Duration::from_millis(500),
        }
    }

    /// What to write now, as it is: what happened since the snapshot before, or since the beginning.
    #[must_use]
    pub fn next(&mut self, now: Snapshot) -> String {
        let text = match self.style {
            Style::Plain => line(&self.subject, &self.before, &now) + "\n",
            style => {
                let picture = screen(&self.subject, &self.before, &now, style);
                // What was on the terminal before is cleared once; later pictures replace the first line by line.
                let begin = if self.has_drawn { "" } else { CLEAR_SCREEN };
                format!("{begin}{HIDE_CURSOR}{HOME}{}{CLEAR_BELOW}", picture.replace('\n', &format!("{CLEAR_LINE}\n")))
            }
        };
        self.before = now;
        self.has_drawn = true;
        text
    }

    /// What to write last: gives the cursor back if it was taken.
    #[must_use]
    pub fn end(&mut self) -> &'static str {
        let has_cursor = self.style != Style::Plain && std::mem::take(&mut self.has_drawn);
        if has_cursor { SHOW_CURSOR } else { "" }
    }
}

impl Drop for Live {
    /// Writes the end to standard output, also when the program ends by an error.
    fn drop(&mut self) {
        let end = self.end();
        if !end.is_empty() {
            // Nobody is left to tell if the terminal is gone.
            let _ = io::stdout().write_all(end.as_bytes()).and_then(|()| io::stdout().flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{quiet, run};
    use super::*;
    use crate::dataplane::DropReason;

    /// A busy second of [`run`]'s switch, its fourth.
    fn second() -> (Subject, Snapshot, Snapshot) {
        let subject = run();
        let before = Snapshot::take(&subject, Duration::from_secs(3));
        let [p1, p2] = &subject.counters.ports[..] else { panic!("two ports") };
        p1.rx_frames[3].add(1_000_000);
        p1.rx_bytes[3].add(1_000_000_000);
        p2.tx_frames[3].add(900_000);
        p2.tx_bytes[3].add(900_000_000);
        p1.drops[0][DropReason::Threshold as usize].add(12_345);
        p1.pfc_tx_frames.add(20);
        p1.xoff_mask.set(1 << 3);
        p2.paused_mask.set(0b101_1000);
        p2.ecn_marked[3].add(456);
        p1.group_used_cells[3].set(1_000);
        p1.group_headroom_cells[3].set(25);
        p2.group_used_cells[3].set(500);
        subject.counters.lcores[0].lossless_used_cells.set(1_700);
        let after = Snapshot::take(&subject, Duration::from_secs(4));
        (subject, before, after)
    }

    #[test]
    fn a_line_a_second() {
        let (subject, before, after) = second();
        let expected = "t=4s rx 8.19 Gb/s tx 7.37 Gb/s pool 34% xoff 1/2 pfc +20 marks +456 lossless drops 0 \
                        lossy drops +12345";
        assert_eq!(line(&subject, &before, &after), expected);
    }

    #[test]
    fn a_screen() {
        let (subject, before, after) = second();
        insta::assert_snapshot!(screen(&subject, &before, &after, Style::Screen { colour: false }), @r#"
        holdfast 0.0.0   4 s   2 ports

        port         rx Gb/s  tx Gb/s  up to XOFF    hdrm  xoff     paused    drops/s
        p1              8.19     0.00  [##########]   12%  3        -           12.3k
        p2              0.00     7.37  [###.......]    0%  -        3,4,6           0

        lossless pool  [#######.............]  34%  0.3MiB of 1.0MiB, at most 0.5MiB
        lossy pool     [....................]   0%  0.0MiB of 0.8MiB, at most 0.8MiB
        all ports      rx 8.19 Gb/s   tx 7.37 Gb/s   pfc 20/s   marks 456/s
        dropped so far lossless 0   lossy 13.6k
        "#);
    }

    #[test]
    fn colours_mark_what_to_look_at() {
        let (subject, before, after) = second();
        subject.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(1);
        let text = screen(&subject, &before, &Snapshot::take(&subject, after.at), Style::Screen { colour: true });
        assert!(text.contains("\x1b[31m    12.3k\x1b[0m"), "drops a second in red: {text}");
        assert!(text.contains("lossless \x1b[31m1\x1b[0m"), "{text}");
        assert!(text.contains("\x1b[33m3      \x1b[0m"), "XOFF in yellow: {text}");
    }

    #[test]
    fn it_fits_whatever_the_numbers() {
        let mut subject = quiet();
        let port = subject.spec.ports[0].clone();
        subject.spec.ports = vec![port; 64];
        subject.spec.ports[5].name = "a-name-longer-than-its-column".to_owned();
        subject.counters = Arc::new(crate::dataplane::Counters::new(64, 1));
        for port in &subject.counters.ports {
            for class in 0..CLASSES {
                port.rx_frames[class].add(1 << 40);
                port.rx_bytes[class].add(100_000_000_000);
                port.drops[class][0].add(1 << 50);
                port.group_headroom_cells[class].set(200);
            }
            port.xoff_mask.set(0xff);
            port.paused_mask.set(0b1101_1011);
        }
        let after = Snapshot::take(&subject, Duration::from_secs(86_400));
        let before = Snapshot { at: Duration::from_secs(86_399), ..Snapshot::default() };
        let text = screen(&subject, &before, &after, Style::Screen { colour: false });
        assert!(text.lines().count() <= 23, "{text}");
        assert!(text.contains("and 51 quieter ports"));
        let rates = text.lines().filter(|line| !line.starts_with("all ports"));
        assert!(rates.clone().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_cursor_is_hidden_and_given_back() {
        let subject = Arc::new(quiet());
        let mut live = Live::new(subject.clone(), Style::Screen { colour: false });
        assert_eq!(live.end(), "", "nothing was taken yet");
        let mut next = |seconds| live.next(Snapshot::take(&subject, Duration::from_secs(seconds)));
        let (first, second) = (next(1), next(2));
        assert!(first.starts_with(CLEAR_SCREEN) && !second.contains(CLEAR_SCREEN));
        assert!(second.starts_with(&format!("{HIDE_CURSOR}{HOME}holdfast")) && second.ends_with(CLEAR_BELOW));
        assert_eq!((live.end(), live.end()), (SHOW_CURSOR, ""));
    }

    #[test]
    fn lines_carry_no_codes() {
        let subject = Arc::new(quiet());
        let mut live = Live::new(subject.clone(), Style::detect(false));
        let text = live.next(Snapshot::take(&subject, Duration::from_secs(1)));
        let expected = "t=1s rx 0.00 Gb/s tx 0.00 Gb/s pool 0% xoff 0/2 pfc 0 marks 0 lossless drops 0 lossy drops 0\n";
        assert_eq!(text, expected);
        assert_eq!((live.end(), live.period()), ("", Duration::from_secs(1)));
    }
}
