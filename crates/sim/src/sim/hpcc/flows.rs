//! The flows: their number, then `src dst pg dport bytes start` for each, ordered by start.

use super::topology::Topology;
use crate::config::error::{ConfigErrors, Warning};
use crate::sim::tokens::Words;

/// A flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowLine {
    pub src: usize,
    pub dst: usize,
    /// Priority group: the traffic class.
    pub group: u8,
    pub dst_port: u16,
    pub bytes: u64,
    pub start_ns: u64,
}

/// Most flows: a bound of memory.
const MOST: usize = 1 << 22;
/// Largest flow in bytes.
const LARGEST: u64 = 1 << 40;

/// Reads the flows between hosts of `topology`. Lines beyond their number are ignored, as by ns-3, with a warning.
pub fn parse(source: &str, text: &str, topology: &Topology) -> Result<(Vec<FlowLine>, Option<Warning>), ConfigErrors> {
    let mut words = Words::new(source, text, 1);
    let word = words.record("the first line", "flows")?.word("a number of flows")?;
    let count = word.text.parse().ok().filter(|&count: &usize| (1..=MOST).contains(&count));
    let count = count
        .ok_or_else(|| words.error(word.place, format!("`{}` is not a number of flows from 1 to {MOST}", word.text)))?;
    let mut flows: Vec<FlowLine> = Vec::new();
    for _ in 0..count {
        let mut words = words.record("a flow", "src dst pg dport bytes start")?;
        let place = words.word("a flow")?;
        let host = |word: crate::sim::tokens::Word<'_>, words: &Words<'_>| {
            let node = word.text.parse().ok().filter(|&node: &usize| topology.is_switch.get(node) == Some(&false));
            node.ok_or_else(|| {
                words.error(
                    word.place,
                    format!("`{}` is not a host of the topology; write one that is no switch", word.text),
                )
            })
        };
        let src = host(place, &words)?;
        let dst = words.word("a destination")?;
        let dst = host(dst, &words)?;
        if src == dst {
            return Err(words.error(place.place, "a host cannot send to itself; write another destination"));
        }
        let group = words.word("a priority group")?;
        let group = group.text.parse().ok().filter(|group| (1..8).contains(group)).ok_or_else(|| {
            words.error(group.place, format!("`{}` is not a priority group; write from 1 to 7", group.text))
        })?;
        let (dst_port, bytes) = (words.take("a port number")?, words.within("a number of bytes", 0..=LARGEST)?);
        let start = words.decimal("a time in seconds", 0.0..=1e4)?;
        let start_ns = (start * 1e9).round() as u64;
        if flows.last().is_some_and(|last| last.start_ns > start_ns) {
            return Err(words.error(place.place, "the flow starts before an earlier line; order the flows by start"));
        }
        flows.push(FlowLine { src, dst, group, dst_port, bytes, start_ns });
    }
    let ignored = words.next().map(|word| {
        let message = format!("the first line states {count} flows; this line and those after it have no effect");
        Warning::of_text(source, Some(word.place), message)
    });
    Ok((flows, ignored))
}
