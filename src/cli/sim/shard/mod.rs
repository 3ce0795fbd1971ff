//! `--shard I/N`: one of N parts of a sweep, for engines that run one command many times; docs/sweeps.md.

mod merge;
mod part;
mod sweep;

use std::ops::Range;
use std::str::FromStr;

use super::{Failure, found, random, rows, verdict};

pub use self::merge::{Args as MergeArgs, merge};
pub use self::part::{Part, VariantFailure, Writer};
pub use self::sweep::{RandomSweep, ScenarioSweep, Sweep, fingerprint};

/// Maximum number of shards: that of an Indexed Job of Kubernetes.
const MOST_SHARDS: u64 = 100_000;
/// Variables in which Kubernetes and Slurm give each process its number.
const VARIABLES: [&str; 2] = ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"];
const EXAMPLE: &str = "write e.g. 3/16, the shard after 0/16, 1/16 and 2/16";

/// One of `count` shards, by `index` from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub index: u64,
    pub count: u64,
}

impl Shard {
    /// Returns the shard's share of `items`. Shares are contiguous and in order; their lengths differ by one at most.
    pub fn range(self, items: u64) -> Range<u64> {
        let begin = |index: u64| {
            let begin = u128::from(items) * u128::from(index) / u128::from(self.count);
            u64::try_from(begin).unwrap_or(items)
        };
        begin(self.index)..begin(self.index + 1)
    }
}

/// The argument of `--shard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Number of the shard; `None`: the environment has it.
    index: Option<u64>,
    count: u64,
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (index, count) = text.split_once('/').ok_or(EXAMPLE)?;
        let count: u64 = count.parse().map_err(|_| EXAMPLE)?;
        if !(1..=MOST_SHARDS).contains(&count) {
            return Err(format!("{count} is not a number of shards; write 1 to {MOST_SHARDS}"));
        }
        if index.is_empty() {
            return Ok(Self { index: None, count });
        }
        let index = index.parse().map_err(|_| EXAMPLE)?;
        check(index, count)?;
        Ok(Self { index: Some(index), count })
    }
}

fn check(index: u64, count: u64) -> Result<(), String> {
    if index < count {
        return Ok(());
    }
    Err(format!("there is no shard {index} of {count}: they count from 0; write 0/{count} to {}/{count}", count - 1))
}

impl Asked {
    /// Returns the shard. A number that was not written comes from the environment, of which `variable` returns a
    /// variable.
    pub fn shard(self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Shard, Failure> {
        let count = self.count;
        let index = match self.index {
            Some(index) => index,
            None => number(count, variable).map_err(Failure::usage)?,
        };
        Ok(Shard { index, count })
    }
}

/// Returns the number of the shard from the environment.
fn number(count: u64, variable: &dyn Fn(&str) -> Option<String>) -> Result<u64, String> {
    let [job, task] = VARIABLES;
    let (name, text) = match (variable(job), variable(task)) {
        (Some(text), None) => (job, text),
        (None, Some(text)) => (task, text),
        (None, None) => {
            return Err(format!("--shard /{count}: neither {job} nor {task} is set; {EXAMPLE}"));
        }
        (Some(_), Some(_)) => {
            return Err(format!("--shard /{count}: both {job} and {task} are set; unset one, or {EXAMPLE}"));
        }
    };
    let index = text.parse().map_err(|_| format!("--shard /{count}: {name} is `{text}`, which is not a number"))?;
    check(index, count).map_err(|error| format!("--shard /{count}: {name} is {index}: {error}"))?;
    Ok(index)
}

#[cfg(test)]
mod tests;
