//! Repeated tables: redrawn in place on a terminal, one after another elsewhere.

use std::io::{self, ErrorKind, Write};

use super::super::Failure;

const HOME: &str = "\x1b[H";
const CLEAR_SCREEN: &str = "\x1b[2J";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The output for repeated tables. The cursor stays visible: Ctrl-C ends the program at once and could not restore it.
pub struct Screen {
    is_terminal: bool,
    has_drawn: bool,
}

impl Screen {
    pub fn new(is_terminal: bool) -> Self {
        Self { is_terminal, has_drawn: false }
    }

    /// Draws `text`. Returns whether the output is still open.
    pub fn draw(&mut self, text: &str) -> Result<bool, Failure> {
        let text = self.next(text);
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::Run(format!("standard output cannot be written: {error}"))),
        }
    }

    fn next(&mut self, text: &str) -> String {
        let is_first = !std::mem::replace(&mut self.has_drawn, true);
        match (self.is_terminal, is_first) {
            (true, _) => {
                let begin = if is_first { CLEAR_SCREEN } else { "" };
                format!("{begin}{HOME}{}{CLEAR_BELOW}", text.replace('\n', &format!("{CLEAR_LINE}\n")))
            }
            (false, true) => text.to_owned(),
            (false, false) => format!("\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_cleared_once_and_drawn_over() {
        let mut screen = Screen::new(true);
        assert_eq!(screen.next("a\n"), format!("{CLEAR_SCREEN}{HOME}a{CLEAR_LINE}\n{CLEAR_BELOW}"));
        assert_eq!(screen.next("b\n"), format!("{HOME}b{CLEAR_LINE}\n{CLEAR_BELOW}"));
        let mut pipe = Screen::new(false);
        assert_eq!((pipe.next("a\n").as_str(), pipe.next("b\n").as_str()), ("a\n", "\nb\n"));
    }
}
