//! The command line of a bench.

use std::process::exit;
use std::time::Duration;

/// Options of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Args {
    /// Short runs, below 20 s in all: they test the bench and give no reliable figures.
    pub quick: bool,
    /// Write `target/perf/NAME.json`.
    pub json: bool,
    /// Print tables as Markdown, for a page of the documentation.
    pub markdown: bool,
    /// Use ordinary pages for packet buffers even if hugepages are free.
    pub small_pages: bool,
    /// Write plots to `docs/performance`.
    pub plots: bool,
}

impl Args {
    /// Reads the command line. `cargo bench` passes `--bench` to every benchmark; it is ignored.
    pub fn parse() -> Self {
        let mut args = Self::default();
        for arg in std::env::args().skip(1) {
            match arg.as_str() {
                "--bench" => {}
                "--quick" => args.quick = true,
                "--json" => args.json = true,
                "--markdown" => args.markdown = true,
                "--plots" => args.plots = true,
                "--small-pages" => args.small_pages = true,
                other => {
                    eprintln!("`{other}` is none of --quick, --json, --markdown, --plots, --small-pages");
                    exit(2);
                }
            }
        }
        args
    }

    /// `full`, or a tenth of it with `--quick`.
    pub fn time(self, full: Duration) -> Duration {
        if self.quick { full / 10 } else { full }
    }

    /// `full` rounds, or 2 with `--quick`.
    pub fn rounds(self, full: usize) -> usize {
        if self.quick { 2 } else { full }
    }
}
