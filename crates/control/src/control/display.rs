//! The lines of a run while it runs: its status, and events.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use super::{RunOptions, notify};
use crate::api::model::Event;
use crate::output::{self, Severity, Stream};
use crate::stats::{Current, Live, Snapshot, Style};

/// How often a run prints its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// By the output: often on a terminal, never in a log.
    #[default]
    Usual,
    /// Never.
    Off,
    /// Once in this time.
    Every(Duration),
}

/// The form of events on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventFormat {
    /// A line for people.
    #[default]
    Text,
    /// The record of the API as JSON, one a line.
    Json,
}

/// The lines of a run.
pub(super) struct Display {
    live: Live,
    /// Time between two status lines or pictures; `None`: there are none.
    period: Option<Duration>,
    json: bool,
    format: EventFormat,
}

impl Display {
    pub fn new(current: Arc<Current>, options: &RunOptions) -> Self {
        let is_watched = std::io::stdout().is_terminal() && !options.json && !notify::is_wanted();
        let style = if is_watched { Style::detect(true) } else { Style::Plain };
        let (style, period) = choose(options.status, is_watched, style);
        Self { live: Live::new(current, style), period, json: options.json, format: options.events }
    }

    /// Time between two status lines or pictures; `None`: there are none.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Draws the next picture. With `--json`, it goes to standard error, and standard output has only the report.
    pub fn show(&mut self, snapshot: Snapshot) {
        let text = self.live.next(snapshot);
        if self.json {
            output::tell(Severity::Info, &text);
        } else {
            output::write(Stream::Out, text.as_bytes());
        }
    }

    /// Prints an event to standard error, or below the picture if both are on the same terminal.
    pub fn announce(&mut self, event: &Event, severity: Severity) {
        let is_shown = self.live.notice(&event.text);
        if !is_shown || !std::io::stderr().is_terminal() {
            match self.format {
                EventFormat::Text => output::tell(severity, &event.text),
                EventFormat::Json => output::tell(severity, &event.json()),
            }
        }
    }
}

/// The style of the status, and the time between two of it. `style` is the one that the output allows.
fn choose(status: Status, is_watched: bool, style: Style) -> (Style, Option<Duration>) {
    match status {
        // Without a picture, events need lines of their own.
        Status::Off => (Style::Plain, None),
        Status::Usual => (style, is_watched.then(|| style.period())),
        Status::Every(period) => (style, Some(period)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_has_no_status_unless_it_is_wanted_and_a_terminal_has_one_unless_it_is_off() {
        let (screen, second) = (Style::Screen { colour: false }, Duration::from_secs(1));
        assert_eq!(choose(Status::Usual, false, Style::Plain), (Style::Plain, None));
        assert_eq!(choose(Status::Usual, true, Style::Plain), (Style::Plain, Some(second)), "TERM=dumb");
        assert_eq!(choose(Status::Usual, true, screen), (screen, Some(screen.period())));
        let minute = Status::Every(Duration::from_secs(60));
        assert_eq!(choose(minute, false, Style::Plain), (Style::Plain, Some(60 * second)));
        assert_eq!(choose(minute, true, screen), (screen, Some(60 * second)));
        assert_eq!(choose(Status::Off, true, screen), (Style::Plain, None));
    }
}
