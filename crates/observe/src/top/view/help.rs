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
    ("p", "pause the screen; the switch keeps running"),
    ("+ -", "longer or shorter interval between readings"),
    ("s", "sort ports by tx, rx, queue, pauses, drops"),
    ("r", "sparklines of received or of sent traffic"),
    ("a", "also show groups and queues that were never used"),
    ("c", "clear watermarks, if `api.writes` is true"),
    ("?", "this help, and back"),
    ("", ""),
];

/// Words and symbols of the screen, with their meanings.
const WORDS: [(&str, &str); 8] = [
    ("*", "a lossless class, group or queue"),
    ("to XOFF", "priorities that this port pauses at its peer, and share of time"),
    ("paused", "priorities for which the peer pauses this port"),
    ("LOST/s", "lost frames of lossless classes, and of full receive rings"),
    ("drop/s", "dropped frames of lossy classes"),
    ("sparkline", "share of the speed, one reading each; yellow: paused, red: lost"),
    ("bar", "reserve, shared, headroom; lines: XOFF or limit, end, highest"),
    ("log", "an entry grows while it lasts; times are since the switch started"),
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
        None => lines.push(Line::raw("waiting for the switch ...")),
        Some(why) => {
            lines.extend(wrap(why, width).into_iter().map(|line| Line::styled(line, app.paint.odd())));
            lines.push(Line::default());
            lines.extend(wrap("Retrying; q quits.", width).into_iter().map(Line::raw));
        }
    }
    lines
}
