//! Colours and symbols, with fallbacks for terminals that lack them.

use ratatui::style::{Color, Modifier, Style};

/// Drawing capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// Whether colours are used. Otherwise other symbols, bold and reverse text replace them.
    pub colour: bool,
    /// Whether Unicode blocks and lines are used. Otherwise the screen is ASCII.
    pub unicode: bool,
}

/// The memory that a part of a bar stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Reserve,
    Shared,
    Headroom,
}

/// The meaning of a line in a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tick {
    /// A threshold: XOFF, a queue limit or an ECN threshold.
    Threshold,
    /// The end of the headroom, or the limit of a queue.
    Limit,
    /// The watermark: the highest use so far.
    Highest,
}

impl Paint {
    fn or(self, colour: Color, plain: Modifier) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new().add_modifier(plain) }
    }

    /// Style of losses and failures.
    pub(super) fn bad(self) -> Style {
        self.or(Color::Red, Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }

    /// Style of unusual states.
    pub(super) fn odd(self) -> Style {
        self.or(Color::Yellow, Modifier::BOLD)
    }

    /// Style of normal states.
    pub(super) fn good(self) -> Style {
        self.or(Color::Green, Modifier::empty())
    }

    /// Style of secondary text.
    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Style of titles, keys and the selection.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Style of the current view's tab.
    pub(super) fn tab(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Returns `style` where `is_so`, otherwise the default style.
    pub(super) fn when(self, is_so: bool, style: Style) -> Style {
        if is_so { style } else { Style::new() }
    }

    pub(super) fn part(self, part: Part) -> Style {
        match (self.colour, part) {
            (false, _) => Style::new(),
            (true, Part::Reserve) => Style::new().fg(Color::Blue),
            (true, Part::Shared) => Style::new().fg(Color::Cyan),
            (true, Part::Headroom) => Style::new().fg(Color::Magenta),
        }
    }

    /// A cell filled with `part`.
    pub(super) fn full(self, part: Part) -> char {
        match (self.unicode, self.colour, part) {
            (true, true, _) | (true, false, Part::Shared) => '█',
            (true, false, Part::Reserve) => '▒',
            (true, false, Part::Headroom) => '▚',
            (false, _, Part::Reserve) => 'r',
            (false, _, Part::Shared) => '#',
            (false, _, Part::Headroom) => 'H',
        }
    }

    /// A cell of which `eighths` (1 to 7) are filled.
    pub(super) fn partial(self, part: Part, eighths: usize) -> char {
        const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        match self.unicode {
            true => EIGHTHS[eighths.clamp(1, 7) - 1],
            false => self.full(part),
        }
    }

    /// An empty cell; `room` marks empty headroom.
    pub(super) fn empty(self, room: bool) -> (char, Style) {
        let sign = match (self.unicode, room) {
            (true, true) => '░',
            (true, false) => '·',
            (false, true) => ':',
            (false, false) => '.',
        };
        let style = if room { self.part(Part::Headroom).add_modifier(Modifier::DIM) } else { self.dim() };
        (sign, style)
    }

    pub(super) fn tick(self, tick: Tick) -> (char, Style) {
        let style = match tick {
            Tick::Threshold => self.odd().add_modifier(Modifier::BOLD),
            Tick::Limit => self.or(Color::Red, Modifier::BOLD),
            Tick::Highest => self.strong(),
        };
        let sign = match (self.unicode, tick) {
            (true, Tick::Threshold) => '│',
            (true, Tick::Limit) => '┃',
            (true, Tick::Highest) => '╎',
            (false, Tick::Threshold) => '|',
            (false, Tick::Limit) => ']',
            (false, Tick::Highest) => '!',
        };
        (sign, style)
    }

    /// A column of a sparkline: `level` is 0 (blank) to 8 (full).
    pub(super) fn column(self, level: usize) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const SIGNS: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '%', '#'];
        if self.unicode { BLOCKS[level.min(8)] } else { SIGNS[level.min(8)] }
    }

    /// Returns `fancy`, or `plain` on a terminal without Unicode.
    pub(super) fn sign(self, fancy: &'static str, plain: &'static str) -> &'static str {
        if self.unicode { fancy } else { plain }
    }
}
