//! Times of the configuration that lie outside of the run.

use super::config::Settings;
use super::convert::LEAD_NS;
use super::flows::FlowLine;
use super::topology::Topology;
use crate::config::error::{ConfigErrors, Warning};

/// Second of the inputs after which `LINK_DOWN` counts.
const DOWN_AFTER_NS: u64 = 2_000_000_000;

/// Checks the window of queue lengths and the time of `LINK_DOWN`. Returns warnings about those outside of the run.
///
/// # Errors
/// A window ends before it begins, or there is no such link.
pub fn check(settings: &Settings, topology: &Topology, flows: &[FlowLine]) -> Result<Vec<Warning>, ConfigErrors> {
    let error = |message: String| Err(ConfigErrors::one(&settings.source, None, message));
    let ends = flows.first().zip(flows.last()).map_or((0, 0), |(first, last)| (first.start_ns, last.start_ns));
    let stop = (settings.stop_seconds * 1e9) as u64;
    let (from, to) = (ends.0.saturating_sub(LEAD_NS), stop.max(ends.1 + 1_000));
    let mut messages = Vec::new();
    if !settings.qlen.is_empty() {
        let (start, end) = (settings.qlen_start_ns, settings.qlen_end_ns);
        if start > end {
            return error(format!("QLEN_MON_START {start} is after QLEN_MON_END {end}; write an earlier start"));
        }
        if start > to {
            messages
                .push(format!("QLEN_MON_START {start} is after the end of the run at {to} ns: there are no samples"));
        } else if end > to {
            messages.push(format!("QLEN_MON_END {end} is after the end of the run at {to} ns: samples end there"));
        } else if end < from {
            messages.push(format!("QLEN_MON_END {end} is before the run begins at {from} ns: all queues are empty"));
        }
    }
    if let Some((us, x, y)) = settings.link_down {
        if !topology.links.iter().any(|link| link.ends == [x, y] || link.ends == [y, x]) {
            return error(format!("LINK_DOWN names {x} and {y}, which no link joins; name the ends of a link"));
        }
        let at = DOWN_AFTER_NS + us * 1000;
        if at > to {
            messages.push(format!("LINK_DOWN at {at} ns is after the end of the run at {to} ns: it has no effect"));
        }
    }
    Ok(messages.into_iter().map(|message| Warning::of_text(&settings.source, None, message)).collect())
}
