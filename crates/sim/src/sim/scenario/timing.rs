//! Reads the duration of a scenario and its sampling interval.

use crate::config::yaml::bounds;
use crate::config::yaml::read::Fields;
use crate::units::Nanos;

const SHORTEST: Nanos = Nanos(1_000);
/// Longest duration, and longest drain.
const LONGEST: Nanos = Nanos(10_000_000_000);
const SHORTEST_SAMPLE: Nanos = Nanos(100);
const DEFAULT_SAMPLES: u64 = 1000;
const MOST_SAMPLES: u64 = 20_000;
const LEAST_DRAIN: Nanos = Nanos(2_000_000);
const DEFAULT_EVENTS: u64 = 1_000_000_000;
const MOST_EVENTS: u64 = 100_000_000_000;

/// Times of a scenario.
pub struct Timing {
    pub duration: Nanos,
    pub drain: Nanos,
    pub sample: Nanos,
    pub most_events: u64,
}

impl Timing {
    /// Returns the longest possible time of a run.
    pub fn end(&self) -> Nanos {
        Nanos(self.duration.0.saturating_add(self.drain.0))
    }
}

/// Reads the times and limits. Invalid values are replaced by defaults.
pub fn read(top: &Fields<'_>) -> Timing {
    let duration = bounds::required(top, "duration", "duration: 5ms", SHORTEST..=LONGEST).unwrap_or(LEAST_DRAIN);
    let drain = bounds::get(top, "drain", Nanos(0)..=LONGEST).unwrap_or(duration.max(LEAST_DRAIN));
    let end = Nanos(duration.0.saturating_add(drain.0));
    // Rounded up to a multiple of 10 ns, because users may have to write it.
    let least = Nanos(end.0.div_ceil(MOST_SAMPLES).next_multiple_of(10)).max(SHORTEST_SAMPLE);
    let events = top.get("events").and_then(|item| item.number("a count of events", 1..=MOST_EVENTS));
    Timing {
        duration,
        drain,
        sample: read_sample(top, least).unwrap_or(Nanos(duration.0 / DEFAULT_SAMPLES).max(least)),
        most_events: events.unwrap_or(DEFAULT_EVENTS),
    }
}

fn read_sample(top: &Fields<'_>, least: Nanos) -> Option<Nanos> {
    let item = top.get("sample")?;
    let sample = bounds::within(&item, SHORTEST_SAMPLE..=LONGEST)?;
    if sample >= least {
        return Some(sample);
    }
    item.refuse(format!(
        "`{}` gives more than {MOST_SAMPLES} samples over duration and drain; write at least {}ns",
        item.shown(),
        least.0
    ))
}
