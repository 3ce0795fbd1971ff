//! State of the screen, and the effect of keys on it.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::choice::{Sort, View};
use super::history::{History, Sample};
use super::keys::{Action, Key, step};
use super::log::{Log, Weight};
use super::paint::Paint;
use super::step::{Step, lost};
use super::view;
use crate::api::State;
use crate::api::model::Event;

/// Lines that a page key moves.
const PAGE: isize = 10;

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    pub(super) paint: Paint,
    pub(super) interval: Duration,
    pub(super) state: Option<State>,
    pub(super) step: Step,
    pub(super) histories: Vec<History>,
    pub(super) log: Log,
    pub(super) view: View,
    pub(super) sort: Sort,
    /// Index of the selected port.
    pub(super) selected: usize,
    /// First line or selected row of a view other than the list of ports.
    pub(super) cursor: usize,
    /// Whether sparklines show received rates instead of sent rates.
    pub(super) shows_rx: bool,
    /// Whether groups and queues that were never used are shown too.
    pub(super) shows_idle: bool,
    pub(super) is_frozen: bool,
    pub(super) shows_help: bool,
    /// A message that replaces the line of keys until a key is pressed.
    pub(super) notice: Option<(Weight, String)>,
    /// The reason why the switch does not answer.
    pub(super) trouble: Option<String>,
}

impl App {
    /// Creates a screen that has received no state yet.
    #[must_use]
    pub fn new(paint: Paint, interval: Duration) -> Self {
        Self {
            paint,
            interval,
            state: None,
            step: Step::default(),
            histories: Vec::new(),
            log: Log::default(),
            view: View::Ports,
            sort: Sort::Configured,
            selected: 0,
            cursor: 0,
            shows_rx: false,
            shows_idle: false,
            is_frozen: false,
            shows_help: false,
            notice: None,
            trouble: None,
        }
    }

    /// Takes a new state of the switch and the events in its history.
    pub fn look(&mut self, now: State, events: &[Event]) {
        let is_back = self.trouble.take().is_some();
        if self.is_frozen && !is_back {
            return;
        }
        let before = self.state.take().filter(|before| is_same(before, &now));
        if before.is_none() {
            self.begin(&now);
        }
        self.step = before.as_ref().map(|before| Step::new(before, &now)).unwrap_or_default();
        self.log.look(before.as_ref(), &now, events);
        if let Some(before) = before.as_ref() {
            if before.version.config_hash != now.version.config_hash {
                let hash = &now.version.config_hash;
                self.log.say(now.at_ns, Weight::Odd, format!("the running configuration changed: {hash}"));
            }
            self.remember(before, &now);
        }
        self.selected = self.selected.min(now.ports.len().saturating_sub(1));
        self.state = Some(now);
    }

    /// Begins anew with the first state of a switch.
    fn begin(&mut self, now: &State) {
        self.histories = vec![History::default(); now.ports.len()];
        self.log.restart();
        let (version, source) = (&now.version.version, &now.version.config_source);
        let text = format!("connected to holdfast {version}, process {}, {source}", now.version.pid);
        self.log.say(now.at_ns, Weight::Plain, text);
    }

    fn remember(&mut self, before: &State, now: &State) {
        if self.step.seconds <= 0.0 {
            return;
        }
        for (index, (port, step)) in now.ports.iter().zip(&self.step.ports).enumerate() {
            let was = before.ports.iter().find(|was| was.port == port.port);
            let sample = Sample {
                rx_bps: step.rx_bps,
                tx_bps: step.tx_bps,
                held: step.xoff.share > 0.0
                    || step.paused.share > 0.0
                    || !(step.xoff.priorities | step.paused.priorities).is_empty(),
                lost: was.is_some_and(|was| lost(port) > lost(was)),
            };
            if let Some(history) = self.histories.get_mut(index) {
                history.add(sample);
            }
        }
    }

    /// Records that the switch does not answer, for the reason `why`. The last state stays on the screen.
    pub fn lose(&mut self, why: impl Into<String>) {
        let why = why.into();
        if self.trouble.is_none()
            && let Some(state) = &self.state
        {
            self.log.say(state.at_ns, Weight::Odd, "the switch does not answer any more");
        }
        self.trouble = Some(why);
    }

    /// Shows whether the switch has cleared its watermarks, or why it refused.
    pub fn cleared(&mut self, outcome: Result<(), String>) {
        self.notice = Some(match outcome {
            Ok(()) => (Weight::Plain, "watermarks are set to the current values".to_owned()),
            Err(why) => (Weight::Bad, why),
        });
    }

    /// Handles `key`. Returns the action that the command must carry out, if any.
    pub fn key(&mut self, key: Key) -> Option<Action> {
        let was_help = std::mem::take(&mut self.shows_help);
        self.notice = None;
        match key {
            Key::Char('q' | 'Q') => return Some(Action::Quit),
            Key::Char('?' | 'h') => self.shows_help = !was_help,
            Key::Up | Key::Char('k') => self.go(-1),
            Key::Down | Key::Char('j') => self.go(1),
            Key::PageUp => self.go(-PAGE),
            Key::PageDown | Key::Char(' ') => self.go(PAGE),
            Key::Home | Key::Char('g') => self.go(isize::MIN),
            Key::End | Key::Char('G') => self.go(isize::MAX),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(View::ALL.len() - 1),
            Key::Char(digit @ '1'..='5') => self.show(View::ALL[digit as usize - '1' as usize]),
            Key::Char('p') => self.is_frozen = !self.is_frozen,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('r') => self.shows_rx = !self.shows_rx,
            Key::Char('a') => self.shows_idle = !self.shows_idle,
            Key::Char('c') => return self.clear(),
            Key::Char(sign @ ('+' | '=' | '-')) => {
                self.interval = step(self.interval, sign != '-');
                return Some(Action::Interval(self.interval));
            }
            Key::Char(_) | Key::Escape => {}
        }
        None
    }

    /// Requests that watermarks be cleared, where the API accepts writes.
    fn clear(&mut self) -> Option<Action> {
        let state = self.state.as_ref()?;
        if state.version.writes {
            return Some(Action::Clear);
        }
        let text = format!("read-only: set `api: {{writes: true}}`, or kill -USR1 {}", state.version.pid);
        self.notice = Some((Weight::Odd, text));
        None
    }

    fn turn(&mut self, by: usize) {
        let at = View::ALL.iter().position(|view| *view == self.view).unwrap_or(0);
        self.show(View::ALL[(at + by) % View::ALL.len()]);
    }

    fn show(&mut self, view: View) {
        self.view = view;
        // The selected port stays selected.
        let ports = self.row_ports();
        self.cursor = ports.iter().position(|port| *port == self.selected).unwrap_or(0);
    }

    /// Moves the selection or the cursor `by` lines down.
    fn go(&mut self, by: isize) {
        let to = |from: usize, count: usize| from.saturating_add_signed(by).min(count.saturating_sub(1));
        match self.view {
            View::Ports => {
                let order = self.order();
                let at = order.iter().position(|port| *port == self.selected).unwrap_or(0);
                self.selected = order.get(to(at, order.len())).copied().unwrap_or(0);
            }
            View::Buffer | View::Queues => {
                let ports = self.row_ports();
                self.cursor = to(self.cursor, ports.len());
                self.selected = ports.get(self.cursor).copied().unwrap_or(self.selected);
            }
            // The number of lines of these views depends on the width; a cursor that is too far shows the end.
            View::Lcores | View::Log => self.cursor = to(self.cursor, view::LINES_MOST),
        }
    }

    /// Draws the screen into `area` of `buffer`.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        let lines = view::screen(self, usize::from(area.width), usize::from(area.height));
        for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
            buffer.set_line(area.x, y, line, area.width);
        }
    }
}

/// Whether both states come from the same run of a switch, in order of time.
fn is_same(before: &State, now: &State) -> bool {
    let names = |state: &State| state.ports.iter().map(|port| port.port.clone()).collect::<Vec<_>>();
    let run = |state: &State| (state.version.pid, state.version.began_unix_ns);
    run(before) == run(now) && now.at_ns >= before.at_ns && names(before) == names(now)
}
