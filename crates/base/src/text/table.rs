//! Tables of text with aligned columns.

use std::fmt;

/// Rows under a header; columns are as wide as their widest cell and two spaces apart.
#[derive(Debug, Clone)]
pub struct Table {
    /// Titles; `>` before one aligns its column to the right, as numbers are.
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with the columns of a header such as `port | >frames`, and no rows. `>` aligns a column to the
    /// right, as numbers are.
    #[must_use]
    pub fn new(header: &str) -> Self {
        Self::of(header.split(" | ").map(str::to_owned))
    }

    /// Returns a table with these columns, as in [`Self::new`], and no rows.
    #[must_use]
    pub fn of(columns: impl IntoIterator<Item = String>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are blank, cells beyond the last column are not shown.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().take(self.columns.len()).collect());
    }

    /// Removes the columns of `titles` in which every cell is `nothing` or blank.
    #[must_use]
    pub fn without_idle(mut self, titles: &[&str], nothing: &str) -> Self {
        for column in (0..self.columns.len()).rev() {
            let is_idle = |row: &Vec<String>| row.get(column).is_none_or(|cell| cell == nothing || cell.is_empty());
            if titles.contains(&title(&self.columns[column])) && self.rows.iter().all(is_idle) {
                self.columns.remove(column);
                for row in self.rows.iter_mut().filter(|row| row.len() > column) {
                    row.remove(column);
                }
            }
        }
        self
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        let widest = |column: usize| self.rows.iter().map(|row| cell(row, column)).max().unwrap_or(0);
        self.columns.iter().enumerate().map(|(i, column)| title(column).chars().count().max(widest(i))).collect()
    }
}

/// The title of a column without its alignment.
fn title(column: &str) -> &str {
    column.strip_prefix('>').unwrap_or(column)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let titles = self.columns.iter().map(|column| title(column).to_owned()).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            for (column, &width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                line += &match self.columns[column].starts_with('>') {
                    true => format!("{cell:>width$}  "),
                    false => format!("{cell:<width$}  "),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new("port | >frames");
        table.row(["p1".to_owned(), "1,234,567".to_owned()]);
        table.row(["uplink".to_owned(), "5".to_owned(), "not shown".to_owned()]);
        table.row(["p3".to_owned()]);
        let expected = "\
port       frames
p1      1,234,567
uplink          5
p3
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn without_idle_removes_columns_that_have_only_zeros() {
        let mut table = Table::new(">sent | >lost | >late | >marked");
        table.row(["5", "0", "0", "0"].map(str::to_owned));
        table.row(["6", "1", "0"].map(str::to_owned));
        let table = table.without_idle(&["lost", "late", "marked"], "0");
        assert_eq!(table.to_string(), "sent  lost\n   5     0\n   6     1\n");
    }
}
