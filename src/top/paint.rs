//! Colours and signs, and what stands for them where there are none.

use ratatui::style::{Color, Modifier, Style};

/// How to draw on this terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// In colours. Without, what they say is said by other signs, bold and reverse.
    pub colour: bool,
    /// With blocks and lines of Unicode. Without, in ASCII.
    pub unicode: bool,
}

/// What a part of the buffer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Reserve,
    Shared,
    Headroom,
}

/// What a line of a bar means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tick {
    /// A threshold: XOFF, a queue's limit, a limit of ECN.
    Threshold,
    /// The end of headroom.
    Limit,
    /// The highest there ever was.
    Highest,
}

impl Paint {
    fn or(self, colour: Color, plain: Modifier) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new().add_modifier(plain) }
    }

    /// What must not be.
    pub(super) fn bad(self) -> Style {
        self.or(Color::Red, Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }

    /// What is worth a look.
    pub(super) fn odd(self) -> Style {
        self.or(Color::Yellow, Modifier::BOLD)
    }

    /// What is as it should be.
    pub(super) fn good(self) -> Style {
        self.or(Color::Green, Modifier::empty())
    }

    /// What explains.
    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Titles, keys and what is selected.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The view that is shown.
    pub(super) fn tab(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// `style` where `is_so`, else none.
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

    /// A cell that is full of `part`.
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

    /// A cell of which `eighths` (1 to 7) are full.
    pub(super) fn partial(self, part: Part, eighths: usize) -> char {
        const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        match self.unicode {
            true => EIGHTHS[eighths.clamp(1, 7) - 1],
            false => self.full(part),
        }
    }

    /// An empty cell; `room` is for headroom.
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

    /// A column of a sparkline: `level` of 8, none for 0.
    pub(super) fn column(self, level: usize) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const SIGNS: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '%', '#'];
        if self.unicode { BLOCKS[level.min(8)] } else { SIGNS[level.min(8)] }
    }

    /// `fancy`, or `plain` where it cannot be shown.
    pub(super) fn sign(self, fancy: &'static str, plain: &'static str) -> &'static str {
        if self.unicode { fancy } else { plain }
    }
}
