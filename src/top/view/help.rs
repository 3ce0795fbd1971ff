//! The help for keys, columns and colours, and the screen without a switch.

use ratatui::text::{Line, Span};

use super::super::app::App;
use super::wrap;

/// Keys and their functions.
const KEYS: [(&str, &str); 12] = [
    ("q, Ctrl-C", "quit"),
    ("Tab, 1 to 5", "next view: ports, buffer, queues, lcores, log"),
    ("j k, arrows", "select a port, group or queue, or scroll"),
    ("PgUp PgDn g G", "ten lines, first, last"),
    ("p", "pause the picture; the switch goes on"),
    ("+ -", "look less often, more often"),
    ("s", "sort ports by tx, rx, queue, pauses, drops"),
    ("r", "sparklines of what is received, or sent"),
    ("a", "show groups and queues that were never used too"),
    ("c", "clear watermarks, if `api.writes` is true"),
    ("?", "this, and back"),
    ("", ""),
];

/// Words and symbols of the screen, with their meanings.
const WORDS: [(&str, &str); 8] = [
    ("*", "a lossless class, group or queue"),
    ("to XOFF", "priorities whose peer this port pauses, and how much of the time"),
    ("paused", "priorities for which the peer pauses this port"),
    ("LOST/s", "frames of lossless classes, and of a full receive ring"),
    ("drop/s", "frames of classes that may lose"),
    ("sparkline", "share of the speed, a look each; yellow: PFC held, red: lost"),
    ("bar", "reserve, shared, headroom; lines: XOFF or limit, end, highest"),
    ("log", "an entry grows while it goes on; times are since the switch began"),
];

/// The help: keys, then words.
pub fn help(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (word, meaning) in KEYS.into_iter().chain(WORDS) {
        let head = format!("{word:<14} ");
        let mut head = Some(head);
        if word.is_empty() {
            lines.push(Line::default());
        }
        for part in wrap(meaning, width.saturating_sub(15).max(8)) {
            let head = head.take().unwrap_or_else(|| " ".repeat(15));
            lines.push(Line::from(vec![Span::styled(head, app.paint.strong()), Span::raw(part)]));
        }
    }
    lines
}

/// The screen before the first answer: the reason why there is none.
pub fn waiting(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    match &app.trouble {
        None => lines.push(Line::raw("asking the switch ...")),
        Some(why) => {
            lines.extend(wrap(why, width).into_iter().map(|line| Line::styled(line, app.paint.odd())));
            lines.push(Line::default());
            lines.extend(wrap("Asking again; q quits.", width).into_iter().map(Line::raw));
        }
    }
    lines
}
