//! Tables that omit the columns for which the screen is too narrow.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::paint::Paint;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column<C> {
    /// Identifies the column.
    pub id: C,
    /// Its title.
    pub title: &'static str,
    /// Minimum width, in cells.
    pub width: usize,
    /// Whether it is aligned to the right.
    pub right: bool,
    /// Columns with a higher rank are omitted first.
    pub rank: u8,
}

/// The columns that fit.
#[derive(Debug)]
pub struct Table<C> {
    columns: Vec<Column<C>>,
}

impl<C: Copy + PartialEq> Table<C> {
    /// Selects those of `columns` that fit into `width`. The columns in `grow` share the remaining width equally, each
    /// up to `most` cells.
    pub fn fit(columns: &[Column<C>], width: usize, grow: &[C], most: usize) -> Self {
        let mut columns = columns.to_vec();
        let needs = |columns: &[Column<C>]| columns.iter().map(|column| column.width + 1).sum::<usize>();
        while needs(&columns) > width + 1 && columns.len() > 1 {
            let last = (0..columns.len()).rev().max_by_key(|&at| columns[at].rank).unwrap_or(0);
            columns.remove(last);
        }
        let left = (width + 1).saturating_sub(needs(&columns));
        let growing = columns.iter().filter(|column| grow.contains(&column.id)).count();
        for column in columns.iter_mut().filter(|column| grow.contains(&column.id)) {
            column.width = (column.width + left / growing.max(1)).min(most.max(column.width));
        }
        Self { columns }
    }

    /// The line of titles; the title of column `sorted` is emphasized.
    pub fn titles(&self, sorted: Option<C>, paint: Paint) -> Line<'static> {
        let titles = self.columns.iter().map(|column| {
            let style = paint.dim();
            let style = if sorted == Some(column.id) { paint.strong() } else { style };
            (column, vec![Span::styled(column.title, style)])
        });
        line(titles)
    }

    /// A row; `cell` draws each column in the given width.
    pub fn row(&self, mut cell: impl FnMut(C, usize) -> Vec<Span<'static>>) -> Line<'static> {
        line(self.columns.iter().map(|column| (column, cell(column.id, column.width))))
    }
}

fn line<'a, C: 'a>(cells: impl Iterator<Item = (&'a Column<C>, Vec<Span<'static>>)>) -> Line<'static> {
    let mut spans = Vec::new();
    for (column, cell) in cells {
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        let width: usize = cell.iter().map(Span::width).sum();
        let gap = Span::raw(" ".repeat(column.width.saturating_sub(width)));
        if column.right {
            spans.push(gap);
            spans.extend(clip(cell, column.width));
        } else {
            spans.extend(clip(cell, column.width));
            spans.push(gap);
        }
    }
    Line::from(spans)
}

/// Cuts `spans` to at most `width` cells.
pub fn clip(spans: Vec<Span<'static>>, width: usize) -> Vec<Span<'static>> {
    let mut left = width;
    let mut clipped = Vec::new();
    for mut span in spans {
        while span.width() > left {
            let mut text = span.content.into_owned();
            text.pop();
            span = Span::styled(text, span.style);
        }
        left -= span.width();
        clipped.push(span);
    }
    clipped
}

/// A cell with one piece of text.
pub fn text(text: impl Into<String>, style: Style) -> Vec<Span<'static>> {
    vec![Span::styled(text.into(), style)]
}
