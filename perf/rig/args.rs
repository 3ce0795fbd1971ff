//! What may be said on the command line of a bench.

use std::process::exit;
use std::time::Duration;

/// How to run, and what to write.
#[derive(Debug, Clone, Copy, Default)]
pub struct Args {
    /// Short runs, below 20 s in all: to see that it works, not for figures.
    pub quick: bool,
    /// Write `target/perf/NAME.json`.
    pub json: bool,
    /// Print tables as a page of the documentation has them.
    pub markdown: bool,
    /// Packet buffers in ordinary pages, though hugepages are free.
    pub small_pages: bool,
    /// Write pictures to `docs/performance`.
    pub plots: bool,
}

impl Args {
    /// Reads the command line. `--bench` is what `cargo bench` passes to every benchmark.
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

    /// How often to go round.
    pub fn rounds(self, full: usize) -> usize {
        if self.quick { 2 } else { full }
    }
}
