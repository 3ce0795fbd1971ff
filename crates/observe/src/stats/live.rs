//! The live picture: a redrawn screen on a terminal, otherwise plain lines.
//!
//! Both are pure functions of two snapshots; [`Live`] keeps the previous snapshot and adds terminal control.

use std::sync::Arc;
use std::time::Duration;

use super::current::Current;
use super::screen::screen;
use super::snapshot::{PortSnapshot, Snapshot, Values};
use super::switch_view::SwitchView;
use crate::mmu::HeadroomPolicy;
use crate::output;
use crate::sets::CLASSES;
use crate::text::format::{gigabits, percent, wire_rate};
use crate::units::Cells;

/// Most notices on a screen.
const NOTICES_SHOWN: usize = 2;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const HOME: &str = "\x1b[H";
const CLEAR_SCREEN: &str = "\x1b[2J";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The style of the live picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Lines without control codes.
    Plain,
    /// A screen that is redrawn.
    Screen {
        /// Whether it uses colours.
        colour: bool,
    },
}

impl Style {
    /// The style for standard output: a screen on a terminal that is not `dumb`, in colours unless `NO_COLOR` is set
    /// (no-color.org).
    #[must_use]
    pub fn detect(is_terminal: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_terminal && !is_dumb { Self::Screen { colour: !is_set("NO_COLOR") } } else { Self::Plain }
    }

    /// Usual time between two pictures.
    #[must_use]
    pub fn period(self) -> Duration {
        match self {
            Self::Plain => Duration::from_secs(1),
            Self::Screen { .. } => Duration::from_millis(500),
        }
    }

    fn paint(self, code: u8, text: &str) -> String {
        if self == (Self::Screen { colour: true }) { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    /// Marks a text red if `is_so`: a state that must not occur.
    pub(super) fn bad(self, is_so: bool, text: &str) -> String {
        if is_so { self.paint(31, text) } else { text.to_owned() }
    }
    /// Marks a text yellow if `is_so`: a state that deserves attention.
    pub(super) fn odd(self, is_so: bool, text: &str) -> String {
        if is_so { self.paint(33, text) } else { text.to_owned() }
    }
}

/// The interval between two snapshots.
pub(super) struct Step<'a> {
    pub switch_view: &'a SwitchView,
    pub before: &'a Snapshot,
    pub after: &'a Snapshot,
    pub seconds: f64,
}

impl<'a> Step<'a> {
    pub fn new(switch_view: &'a SwitchView, before: &'a Snapshot, after: &'a Snapshot) -> Self {
        Self { switch_view, before, after, seconds: after.at.saturating_sub(before.at).as_secs_f64() }
    }

    /// Growth of a counter of `port`.
    pub fn port(&self, port: usize, of: impl Fn(&PortSnapshot) -> u64) -> u64 {
        let value = |snapshot: &Snapshot| snapshot.ports.get(port).map_or(0, &of);
        value(self.after).saturating_sub(value(self.before))
    }

    /// Growth of a counter on all ports.
    pub fn all(&self, of: impl Fn(&PortSnapshot) -> u64) -> u64 {
        (0..self.after.ports.len()).map(|port| self.port(port, &of)).sum()
    }

    /// Bits per second on the wire of one port, received and sent.
    pub fn rates(&self, port: usize) -> (f64, f64) {
        let rate = |frames, bytes| wire_rate(frames, bytes, self.seconds);
        (
            rate(self.port(port, |p| p.rx_frames.iter().sum()), self.port(port, |p| p.rx_bytes.iter().sum())),
            rate(self.port(port, |p| p.tx_frames.iter().sum()), self.port(port, |p| p.tx_bytes.iter().sum())),
        )
    }

    pub fn all_rates(&self) -> (f64, f64) {
        (0..self.after.ports.len()).map(|port| self.rates(port)).fold((0.0, 0.0), |(rx, tx), (r, t)| (rx + r, tx + t))
    }

    pub fn lossless_drops(&self, port: &PortSnapshot) -> u64 {
        port.all_lost()
    }

    pub fn lossy_drops(&self, port: &PortSnapshot) -> u64 {
        port.dropped(|_| true) - self.lossless_drops(port)
    }

    /// Number of priority groups at XOFF, and of lossless groups.
    pub fn xoff(&self) -> (usize, usize) {
        let xoff = self.after.ports.iter().map(|port| port.xoff_mask.len()).sum();
        let groups = self.switch_view.spec.ports.iter().flat_map(|port| &port.buffer.groups);
        (xoff, groups.filter(|group| group.lossless).count())
    }

    /// The pools with name, used cells, watermark and size; pools of size zero are left out.
    pub fn pools(&self) -> Vec<(&'static str, u64, u64, Cells)> {
        let (plan, lcore) = (&self.switch_view.spec.buffer, &self.after.lcore);
        let headroom = (lcore.headroom_pool_used_cells, lcore.headroom_pool_highest_cells);
        let shared_headroom = if plan.policy == HeadroomPolicy::SharedPool { plan.headroom } else { Cells(0) };
        let lossless = (lcore.lossless_used_cells, lcore.lossless_used_highest_cells);
        let lossy = (lcore.lossy_used_cells, lcore.lossy_used_highest_cells);
        [
            ("lossless", lossless, plan.lossless_shared),
            ("lossy", lossy, plan.lossy_shared),
            ("headroom", headroom, shared_headroom),
        ]
        .into_iter()
        .map(|(name, (used, highest), size)| (name, used, highest, size))
        .filter(|pool| pool.3.0 > 0)
        .collect()
    }

    /// Share of the interval, in percent, for which the longest paused class of `port` was paused.
    pub fn stopped(&self, port: usize, of: impl Fn(&PortSnapshot) -> &Values) -> u64 {
        let longest = (0..CLASSES).map(|class| self.port(port, |port| of(port)[class])).max().unwrap_or(0);
        percent(longest, (self.seconds * 1e9) as u64).min(100)
    }
}

/// Formats one line about the time between two snapshots; counts are those of the interval.
#[must_use]
pub fn line(switch_view: &SwitchView, before: &Snapshot, after: &Snapshot) -> String {
    let step = Step::new(switch_view, before, after);
    let (rx, tx) = step.all_rates();
    let pool = step.pools().first().map_or(0, |pool| percent(pool.1, u64::from(pool.3.0)));
    let (xoff, groups) = step.xoff();
    let added = |count: u64| if count == 0 { "0".to_owned() } else { format!("+{count}") };
    let text = format!(
        "t={:.0}s rx {} Gb/s tx {} Gb/s pool {pool}% xoff {xoff}/{groups} pfc {} marks {} lossless drops {} \
         lossy drops {}",
        after.at.as_secs_f64(),
        gigabits(rx),
        gigabits(tx),
        added(step.all(|port| port.pfc_tx_frames)),
        added(step.all(|port| port.ecn_marked.iter().sum())),
        added(step.all(|port| step.lossless_drops(port))),
        added(step.all(|port| step.lossy_drops(port))),
    );
    // Rare problems appear only if they occurred.
    let storms = step.all(|port| port.watchdog_storms.iter().sum());
    let backlogs = step.all(|port| port.backlog_xoffs);
    let stucks = step.all(|port| port.egress_stucks);
    let seldom = [("storms", storms), ("backlog xoffs", backlogs), ("stuck", stucks)]
        .into_iter()
        .filter(|(_, count)| *count > 0);
    seldom.fold(text, |text, (name, count)| format!("{text} {name} +{count}"))
}

/// The live picture of one switch.
#[derive(Debug)]
pub struct Live {
    current: Arc<Current>,
    style: Style,
    before: Snapshot,
    /// The last notices, which appear below the picture.
    notices: Vec<String>,
    has_drawn: bool,
}

impl Live {
    /// Returns a picture of `current`, whose first interval begins at the start.
    #[must_use]
    pub fn new(current: Arc<Current>, style: Style) -> Self {
        Self { current, style, before: Snapshot::default(), notices: Vec::new(), has_drawn: false }
    }

    /// Shows a notice below all later pictures. Returns false if the style has no picture, so that the caller prints
    /// the notice.
    pub fn notice(&mut self, line: &str) -> bool {
        if self.style == Style::Plain {
            return false;
        }
        if self.notices.len() == NOTICES_SHOWN {
            self.notices.remove(0);
        }
        self.notices.push(line.to_owned());
        true
    }

    /// The text to write unchanged: the events since the previous snapshot, or since the start.
    #[must_use]
    pub fn next(&mut self, now: Snapshot) -> String {
        let text = match self.style {
            Style::Plain => line(&self.current.get(), &self.before, &now) + "\n",
            style => {
                let picture = screen(&Step::new(&self.current.get(), &self.before, &now), style, &self.notices);
                // The first picture clears the terminal; later ones replace the previous one line by line.
                let begin = if self.has_drawn { "" } else { CLEAR_SCREEN };
                format!("{begin}{HIDE_CURSOR}{HOME}{}{CLEAR_BELOW}", picture.replace('\n', &format!("{CLEAR_LINE}\n")))
            }
        };
        self.before = now;
        self.has_drawn = true;
        text
    }

    /// The final text, which shows the cursor again if it was hidden.
    #[must_use]
    pub fn end(&mut self) -> &'static str {
        let has_cursor = self.style != Style::Plain && std::mem::take(&mut self.has_drawn);
        if has_cursor { SHOW_CURSOR } else { "" }
    }
}

impl Drop for Live {
    /// Writes the final text to standard output, even if the program ends with an error.
    fn drop(&mut self) {
        let end = self.end();
        if !end.is_empty() {
            output::write(output::Stream::Out, end.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{quiet, second};
    use super::*;

    #[test]
    fn live_line_shows_rates_pool_xoff_and_drops() {
        let (switch_view, before, after) = second();
        let expected = "t=4s rx 8.19 Gb/s tx 7.37 Gb/s pool 34% xoff 1/2 pfc +20 marks +456 lossless drops 0 \
                        lossy drops +12345";
        assert_eq!(line(&switch_view, &before, &after), expected);
    }

    #[test]
    fn live_screen_shows_the_last_notices_below_it() {
        let current = Current::new(quiet());
        let switch_view = current.get();
        let mut live = Live::new(current.clone(), Style::Screen { colour: false });
        for notice in ["first", "second", "third"] {
            assert!(live.notice(notice));
        }
        let text = live.next(Snapshot::take(&switch_view, Duration::from_secs(1)));
        assert!(text.ends_with(&format!("\nsecond{CLEAR_LINE}\nthird{CLEAR_LINE}\n{CLEAR_BELOW}")), "{text}");
        assert!(!Live::new(current, Style::Plain).notice("to be written elsewhere"));
    }

    #[test]
    fn the_cursor_is_hidden_and_given_back() {
        let current = Current::new(quiet());
        let switch_view = current.get();
        let mut live = Live::new(current.clone(), Style::Screen { colour: false });
        assert_eq!(live.end(), "", "no frame was taken yet");
        let mut next = |seconds| live.next(Snapshot::take(&switch_view, Duration::from_secs(seconds)));
        let (first, second) = (next(1), next(2));
        assert!(first.starts_with(CLEAR_SCREEN) && !second.contains(CLEAR_SCREEN));
        assert!(second.starts_with(&format!("{HIDE_CURSOR}{HOME}holdfast")) && second.ends_with(CLEAR_BELOW));
        assert_eq!((live.end(), live.end()), (SHOW_CURSOR, ""));
    }

    #[test]
    fn plain_lines_have_no_escape_codes() {
        let current = Current::new(quiet());
        let switch_view = current.get();
        let mut live = Live::new(current.clone(), Style::detect(false));
        let text = live.next(Snapshot::take(&switch_view, Duration::from_secs(1)));
        let expected = "t=1s rx 0.00 Gb/s tx 0.00 Gb/s pool 0% xoff 0/2 pfc 0 marks 0 lossless drops 0 lossy drops 0\n";
        assert_eq!(text, expected);
        assert_eq!(live.end(), "");
    }
}
