//! `holdfast top`: the terminal, the clock and the socket around [`holdfast::top`].
//!
//! Three threads send to the one that draws: keys, signals, and answers of the switch. So a slow or stopped switch
//! never blocks the screen.

use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use holdfast::api::model::Event;
use holdfast::api::{Client, State};
use holdfast::top::{Action, App, INTERVALS, Key, Paint};
use holdfast::units::Nanos;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use super::asked::Asked;

/// Maximum time before the second reading: rates need two readings.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);

/// Time between attempts to reach a switch that does not answer.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    switch: Asked,
    /// Interval between readings, 100ms to 1min; + and - change it
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Interval,
    /// Draw with ASCII only [default: where the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,
}

/// The time between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval(Duration);

impl FromStr for Interval {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let time = match text.parse::<u32>() {
            // Users try a bare number first; it can only mean seconds.
            Ok(seconds) => Duration::from_secs(seconds.into()),
            Err(_) => Duration::from_nanos(text.parse::<Nanos>().map_err(|error| error.to_string())?.0),
        };
        if time < INTERVALS[0] || time > Duration::from_secs(60) {
            return Err("the interval is out of range; write from 100ms to 60s".to_owned());
        }
        Ok(Self(time))
    }
}

/// A message to the thread that draws.
enum Message {
    Looked(Box<State>, Vec<Event>),
    Lost(String),
    Cleared(Result<(), String>),
    Key(Key),
    /// The size has changed, or the user requested a redraw.
    Redraw,
    /// A signal, or the end of the input.
    End,
}

/// Runs until a key or a signal ends it.
pub fn top(args: &Args) -> Result<(), Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    needs_terminal(io::stdout().is_terminal(), variable("TERM").as_deref())?;
    let client = args.switch.client()?;
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let paint = Paint {
        colour: variable("NO_COLOR").is_none(),
        unicode: !args.ascii && has_unicode(variable("TERM").as_deref(), locale.as_deref()),
    };
    let failed = |error: io::Error| Failure::Run(format!("the terminal cannot be used: {error}"));

    let (sender, messages) = mpsc::channel();
    listen_to_signals(sender.clone()).map_err(failed)?;
    let (orders, asked) = mpsc::channel();
    let (answers, interval) = (sender.clone(), args.interval.0);
    thread::spawn(move || ask(&client, interval, &asked, &answers));
    // From here on the terminal is in raw mode until it is restored; a panic restores it too.
    let mut terminal = ratatui::try_init().map_err(failed)?;
    thread::spawn(move || read_keys(&sender));
    let outcome = run(&mut terminal, App::new(paint, interval), &messages, &orders);
    let restored = ratatui::try_restore();
    outcome.and(restored).map_err(failed)
}

/// Refuses an output on which the screen cannot be drawn.
fn needs_terminal(is_terminal: bool, term: Option<&str>) -> Result<(), Failure> {
    let instead = "use `holdfast show` for a single reading";
    if !is_terminal {
        return Err(Failure::usage(format!(
            "`holdfast top` needs a terminal, and standard output is not a terminal; {instead}"
        )));
    }
    if term == Some("dumb") {
        return Err(Failure::usage(format!(
            "TERM is `dumb`, and `holdfast top` needs a terminal whose cursor can move; set TERM to the type of the \
             terminal (e.g. xterm-256color), or {instead}"
        )));
    }
    Ok(())
}

/// Whether blocks and arrows can be shown. They cannot if the locale is not UTF-8, nor on the Linux console, whose font
/// has few.
fn has_unicode(term: Option<&str>, locale: Option<&str>) -> bool {
    let is_utf8 = |locale: &str| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    term != Some("linux") && locale.is_none_or(is_utf8)
}

/// Draws after each group of messages, until one of them ends the program.
fn run(
    terminal: &mut DefaultTerminal,
    mut app: App,
    messages: &Receiver<Message>,
    orders: &Sender<Action>,
) -> io::Result<()> {
    loop {
        terminal.draw(|frame| app.draw(frame.area(), frame.buffer_mut()))?;
        let Ok(message) = messages.recv() else { return Ok(()) };
        // Messages that arrived meanwhile are handled before the next drawing.
        for message in std::iter::once(message).chain(messages.try_iter()) {
            match message {
                Message::Looked(state, events) => app.look(*state, &events),
                Message::Lost(why) => app.lose(why),
                Message::Cleared(outcome) => app.cleared(outcome),
                Message::Redraw => terminal.clear()?,
                Message::End => return Ok(()),
                Message::Key(key) => match app.key(key) {
                    Some(Action::Quit) => return Ok(()),
                    // If the reading thread has ended, its last message stays on the screen.
                    Some(action) => drop(orders.send(action)),
                    None => {}
                },
            }
        }
    }
}

/// The events in the answer of the API.
#[derive(Deserialize)]
struct EventsAnswer {
    events: Vec<Event>,
}

/// Reads the state of the switch every `interval`, and carries out orders in between. Ends when the receiver has gone.
fn ask(client: &Client, mut interval: Duration, orders: &Receiver<Action>, to: &Sender<Message>) {
    let mut looks = 0_u64;
    loop {
        let answer = client.state().and_then(|state| Ok((state, client.get::<EventsAnswer>("events")?)));
        let (message, mut wait) = match answer {
            Ok((state, answer)) => {
                looks += 1;
                let wait = if looks == 1 { interval.min(FIRST_INTERVAL) } else { interval };
                (Message::Looked(Box::new(state), answer.events), wait)
            }
            Err(error) => {
                looks = 0;
                (Message::Lost(error.to_string()), RETRY)
            }
        };
        if to.send(message).is_err() {
            return;
        }
        loop {
            match orders.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) | Ok(Action::Quit) => return,
                Ok(Action::Interval(new)) => {
                    interval = new;
                    wait = new;
                }
                Ok(Action::Clear) => {
                    let outcome = client.clear_watermarks().map_err(|error| error.to_string());
                    if to.send(Message::Cleared(outcome)).is_err() {
                        return;
                    }
                    // The effect is shown at once.
                    break;
                }
            }
        }
    }
}

/// Sends the keys that are pressed.
fn read_keys(to: &Sender<Message>) {
    loop {
        let message = match event::read() {
            Ok(Input::Key(key)) if key.kind != KeyEventKind::Release => translate(key),
            Ok(Input::Resize(..)) => Some(Message::Redraw),
            Ok(_) => None,
            // The terminal has gone.
            Err(_) => Some(Message::End),
        };
        let is_end = matches!(message, Some(Message::End));
        if message.is_some_and(|message| to.send(message).is_err()) || is_end {
            return;
        }
    }
}

/// Translates a key into a message, if it has a function.
fn translate(key: KeyEvent) -> Option<Message> {
    let key = match key.code {
        // In raw mode these keys do not cause signals.
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Message::End),
        KeyCode::Char('l') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Message::Redraw),
        KeyCode::Char(_) if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => return None,
        KeyCode::Char(sign) => Key::Char(sign),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    };
    Some(Message::Key(key))
}

/// Ends the screen on a signal that ends the process, so that the terminal is restored.
fn listen_to_signals(to: Sender<Message>) -> io::Result<()> {
    let runtime = holdfast::linux::runtime()?;
    let inside = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    drop(inside);
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
                _ = quit.recv() => {}
            }
        });
        // The receiver may have gone; the program then ends anyway.
        let _ = to.send(Message::End);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_time_or_seconds() {
        let interval = |text: &str| text.parse::<Interval>().map(|interval| interval.0.as_millis());
        assert_eq!([interval("2"), interval("250ms"), interval("1min")], [Ok(2_000), Ok(250), Ok(60_000)]);
        for wrong in ["0", "99ms", "61s", "often", ""] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
        assert!(interval("1ms").unwrap_err().contains("100ms"));
    }

    #[test]
    fn output_without_terminal_is_refused_with_a_remedy() {
        let message = |is_terminal, term| match needs_terminal(is_terminal, term) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(message(false, Some("xterm")).contains("holdfast show"));
        assert!(message(true, Some("dumb")).contains("TERM"));
        assert!(needs_terminal(true, Some("xterm")).is_ok() && needs_terminal(true, None).is_ok());
    }

    #[test]
    fn unicode_support_follows_locale_and_terminal_type() {
        let shows = |term, locale| has_unicode(term, locale);
        assert!(shows(Some("xterm"), None) && shows(None, Some("C.UTF-8")) && shows(None, Some("de_DE.utf8")));
        assert!(!shows(Some("xterm"), Some("C")) && !shows(None, Some("en_GB.ISO-8859-1")));
        assert!(!shows(Some("linux"), Some("C.UTF-8")));
    }

    #[test]
    fn control_keys_are_no_letters() {
        let press = |code, modifiers| translate(KeyEvent::new(code, modifiers));
        let control = |sign| press(KeyCode::Char(sign), KeyModifiers::CONTROL);
        assert!(matches!(control('c'), Some(Message::End)));
        assert!(matches!(control('l'), Some(Message::Redraw)));
        assert!(control('s').is_none());
        assert!(matches!(press(KeyCode::Char('c'), KeyModifiers::NONE), Some(Message::Key(Key::Char('c')))));
        assert!(matches!(press(KeyCode::BackTab, KeyModifiers::SHIFT), Some(Message::Key(Key::BackTab))));
    }
}
