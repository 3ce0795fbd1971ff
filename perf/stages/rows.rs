//! The rows that `perf/pipeline.rs` prints, read as they appear: each ends a part of the run.

use std::io::{BufRead, BufReader, Read};

/// A row: one measurement of the benchmark.
pub struct Row {
    pub flows: u32,
    /// Whether the row includes the switch, not only the generator.
    pub is_whole: bool,
    /// Cycles per packet: the median, the lowest and the highest of the benchmark's rounds.
    pub cycles: f64,
    pub lowest: f64,
    pub highest: f64,
}

/// Reads rows until the benchmark ends, and calls `each` immediately for every row.
pub fn read(output: impl Read, mut each: impl FnMut(usize) -> Result<(), String>) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| error.to_string())?;
        if let Some(row) = parse(&line) {
            each(rows.len())?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Parses a row such as `generator and L2 pipeline  1024  1024  171.9  162.0  185.2`: flows, frames posted ahead, and
/// three cycle counts. Other lines are ignored.
fn parse(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace().rev();
    let mut cycles = || words.next()?.parse().ok();
    let (highest, lowest, cycles) = (cycles()?, cycles()?, cycles()?);
    // The number of posted frames is not needed: of rows with equal flows, the first posts the fewest frames ahead.
    words.next()?.parse::<usize>().ok()?;
    Some(Row { flows: words.next()?.parse().ok()?, is_whole: line.contains("pipeline"), cycles, lowest, highest })
}
