//! The rate that leaves by the rate that is offered: throughput without loss (RFC 2544, 26.1) and the forwarding rate
//! at maximum offered load (RFC 2889, 5.6).

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::counts::{Counts, CountsFile};
use super::lab::Lab;
use super::measure::{self, Warm};
use super::plan::{OFFERED, PORTS, Point};
use super::process::{interrupted, nap};
use super::programs::Program;
use super::results::Spread;

/// Offered loads, in parts of the throughput without loss.
const MULTIPLES: [f64; 7] = [0.5, 0.9, 1.0, 1.1, 1.5, 2.0, 4.0];
/// Frames a second at a port while a program learns: any of them takes that.
const WARM_RATE: u64 = 250_000;
/// Frames a second at a port that no program forwards.
const TOO_MANY: f64 = 40e6;
/// Steps of the search, which ends within 40,000 frames a second of a port's rate.
const STEPS: u32 = 10;
/// The part of the frames whose loss the search does not see. RFC 2544 has 0, which a shared machine does not allow.
const NO_LOSS: f64 = 0.001;
/// Trials with loss that a rate needs to be too high.
const ATTEMPTS: u32 = 3;
/// Length of a trial, and the time after it in which the last frames come out.
const TRIAL: Duration = Duration::from_millis(100);
const DRAIN: Duration = Duration::from_millis(20);

/// One offered load.
#[derive(Debug, Clone, Copy, serde::Serialize)]
struct Trial {
    /// Frames a second that were offered at all ports, and those that left.
    offered: f64,
    left: f64,
    /// The lossless ones of those that left; half of the offered ones are.
    left_lossless: f64,
    /// PFC frames a second.
    pfc: f64,
    /// The part of the offered frames that did not leave.
    lost: f64,
}

/// All rounds of a program.
pub struct Series {
    point: Point,
    program: Program,
    rounds: Vec<Round>,
}

#[derive(Debug, serde::Serialize)]
struct Round {
    /// Frames a second without loss.
    throughput: f64,
    trials: Vec<Trial>,
}

/// Measures all programs in turn, for several rounds. Only programs that send PFC have senders that obey it.
pub fn measure(lab: &Lab, programs: &[Program], rounds: u8) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for point in OFFERED {
        let able = programs.iter().filter(|program| !point.pfc || program.pauses());
        all.extend(able.map(|&program| Series { point, program, rounds: Vec::new() }));
    }
    for number in 1..=rounds {
        for series in &mut all {
            match round(lab, &series.program, &series.point) {
                Ok(round) => {
                    eprintln!("  {number} {:<17} {:<11} {}", series.program.name, series.point.name, round.line());
                    series.rounds.push(round);
                }
                Err(error) if interrupted() => return Err(error),
                Err(error) => eprintln!("  {number} {:<17} error: {error:#}", series.program.name),
            }
        }
    }
    Ok(all)
}

fn round(lab: &Lab, program: &Program, point: &Point) -> Result<Round> {
    let mut warm = measure::start(lab, program, point, WARM_RATE)?;
    // Not from what leaves at overload: a program may forward far less then.
    let (mut lowest, mut highest) = (0.0, TOO_MANY);
    for _ in 0..STEPS {
        let middle = f64::midpoint(lowest, highest);
        let has_loss = loses(&mut warm, middle)?;
        *(if has_loss { &mut highest } else { &mut lowest }) = middle;
    }
    let trials = MULTIPLES.iter().map(|multiple| trial(&mut warm, multiple * lowest)).collect::<Result<_>>()?;
    Ok(Round { throughput: lowest * PORTS as f64, trials })
}

/// Whether each of a few trials at `rate` has loss: a machine that takes the CPU away causes some.
fn loses(warm: &mut Warm, rate: f64) -> Result<bool> {
    for _ in 0..ATTEMPTS {
        if trial(warm, rate)?.lost <= NO_LOSS {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Offers `rate` frames a second to each port for a while, then none until all are out.
fn trial(warm: &mut Warm, rate: f64) -> Result<Trial> {
    let before = settled(&warm.counts)?;
    warm.counts.offer(PORTS, rate as u64)?;
    nap(TRIAL)?;
    let after = settled(&warm.counts)?;
    warm.started.check()?;
    let sum = |count: fn(&Counts) -> u64| {
        before.iter().zip(&after).map(|(before, after)| count(after) - count(before)).sum::<u64>() as f64
    };
    let wanted = sum(|counts| counts.offered) + sum(|counts| counts.held);
    // The clock of the generator stands while the machine takes the CPU away, so the frames tell the time.
    let seconds = wanted / (rate * PORTS as f64);
    let taken = sum(|counts| counts.taken);
    Ok(Trial {
        offered: rate * PORTS as f64,
        left: taken / seconds,
        left_lossless: sum(|counts| counts.lossless) / seconds,
        pfc: sum(|counts| counts.pfc) / seconds,
        lost: 1.0 - taken / wanted,
    })
}

/// The counters once no frame comes or is underway.
fn settled(counts: &CountsFile) -> Result<Vec<Counts>> {
    counts.offer(PORTS, 0)?;
    nap(DRAIN)?;
    counts.read(PORTS).ok_or_else(|| anyhow::anyhow!("a port has stopped publishing"))
}

impl Round {
    /// The greatest rate that left.
    fn greatest(&self) -> f64 {
        self.trials.iter().map(|trial| trial.left).fold(self.throughput, f64::max)
    }

    fn line(&self) -> String {
        let mut text = format!("{:>6.2} Mpps; left", self.throughput / 1e6);
        for trial in &self.trials {
            let _ = write!(text, " {:.2}", trial.left / 1e6);
            if trial.lost > NO_LOSS {
                let _ = write!(text, " (-{:.1} %)", 100.0 * trial.lost);
            }
        }
        let last = self.trials[self.trials.len() - 1];
        let (lossless, pfc) = (last.left_lossless / 1e6, last.pfc);
        let _ = write!(text, "; at most load {lossless:.2} lossless, {pfc:.0} PFC frames a second");
        text
    }
}

impl Series {
    fn median(&self, value: impl Fn(&Round) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(value)).map_or(f64::NAN, |spread| spread.median)
    }

    /// Whether each of `rounds` rounds was measured.
    pub fn is_complete(&self, rounds: u8) -> bool {
        self.rounds.len() == usize::from(rounds)
    }

    fn row(&self) -> String {
        let senders = if self.point.pfc { ", senders obey PFC" } else { "" };
        let throughput = self.median(|round| round.throughput) / 1e6;
        let mut text = format!("| {}{senders} | {throughput:.1} |", self.program.title());
        for index in 0..MULTIPLES.len() {
            let left = self.median(|round| round.trials[index].left) / 1e6;
            let part = self.median(|round| round.trials[index].left / round.greatest());
            let _ = write!(text, " {left:.1} ({:.0} %) |", 100.0 * part);
        }
        let last = MULTIPLES.len() - 1;
        let lossless = self.median(|round| round.trials[last].left_lossless) / 1e6;
        let pfc = self.median(|round| round.trials[last].pfc);
        let _ = writeln!(text, " {lossless:.1} | {pfc:.0} |");
        text
    }
}

/// The table of all series in Markdown.
pub fn table(all: &[Series]) -> String {
    let mut text = "\nMpps that leave by offered load (parts of the greatest rate that left)\n\n".to_owned();
    text.push_str("| program | without loss |");
    for multiple in MULTIPLES {
        let _ = write!(text, " {multiple} times |");
    }
    text.push_str(" lossless at 4 times | PFC frames a second |\n|");
    text.push_str(&"---|".repeat(MULTIPLES.len() + 4));
    text.push('\n');
    all.iter().filter(|series| !series.rounds.is_empty()).for_each(|series| text.push_str(&series.row()));
    text
}

/// All rounds; the schema is in perf/README.md.
pub fn json(all: &[Series]) -> Value {
    let series =
        |series: &Series| json!({"point": series.point.name, "program": series.program.name, "rounds": series.rounds});
    all.iter().map(series).collect()
}
