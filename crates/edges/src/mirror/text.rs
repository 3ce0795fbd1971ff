//! One line about the event of a copied frame: the comment in a file, and the trailer of a frame that a port sends.

use std::fmt::Write;

use super::facts::SwitchFacts;
use crate::plan::mirror::{CopyCause, CopyFrame, GroupState, QueueState};

/// The longest line in bytes.
pub const MOST_BYTES: usize = 255;

/// Writes the line of `copy` into `line`: printable ASCII of at most [`MOST_BYTES`] bytes. State that the copy does not
/// have is left out.
pub fn describe(copy: &CopyFrame, facts: &SwitchFacts, line: &mut String) {
    line.clear();
    // Writing into a string cannot fail.
    let _ = write(copy, facts, line);
    line.truncate(MOST_BYTES);
}

fn write(copy: &CopyFrame, facts: &SwitchFacts, line: &mut String) -> std::fmt::Result {
    write!(line, "holdfast {}: ", facts.system)?;
    match copy.cause {
        CopyCause::Dropped(reason) => write!(line, "dropped {}", reason.label())?,
        CopyCause::Marked => line.push_str("marked with CE"),
        CopyCause::Sampled => line.push_str("sampled"),
    }
    write!(line, ": {}", facts.name_of(copy.ingress))?;
    if let Some(egress) = copy.egress {
        write!(line, " to {}", facts.name_of(egress))?;
    }
    if let Some(vlan) = copy.vlan {
        write!(line, ", VLAN {vlan}")?;
    }
    if let Some(class) = copy.class {
        write!(line, ", class {class}")?;
    }
    if let Some(group) = copy.group {
        write_group(group, facts.is_lossless(copy.ingress, group.group), line)?;
    }
    copy.queue.map_or(Ok(()), |queue| write_queue(queue, copy.group.is_some(), line))
}

fn write_group(state: GroupState, is_lossless: bool, line: &mut String) -> std::fmt::Result {
    let GroupState { group, held, shared, limit, pool_free, headroom_left } = state;
    write!(line, ", priority group {group}: {} cells, shared {} of {}", held.0, shared.0, limit.0)?;
    write!(line, ", pool {} cells free", pool_free.0)?;
    if is_lossless {
        write!(line, ", headroom {} cells left", headroom_left.0)?;
    }
    Ok(())
}

fn write_queue(state: QueueState, is_after_group: bool, line: &mut String) -> std::fmt::Result {
    let QueueState { queue, depth, limit } = state;
    line.push_str(if is_after_group { "; " } else { ", " });
    write!(line, "queue {queue}")?;
    match (depth, limit) {
        (Some(depth), Some(limit)) => write!(line, ": {} of {} cells", depth.0, limit.0),
        (Some(depth), None) => write!(line, ": {} cells", depth.0),
        (None, Some(limit)) => write!(line, ": limit {} cells", limit.0),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::tests::{facts, full_copy};
    use crate::plan::DropReason;
    use proptest::prelude::*;

    fn line(copy: &CopyFrame) -> String {
        let mut line = String::new();
        describe(copy, &facts(), &mut line);
        line
    }

    #[test]
    fn line_about_a_copy_states_event_ports_and_buffer() {
        let mut copy = full_copy();
        assert_eq!(
            line(&copy),
            "holdfast tor1: dropped queue_threshold: p3 to p0, VLAN 7, class 3, priority group 3: 120 cells, shared \
             108 of 118, pool 40 cells free, headroom 5 cells left; queue 3: 96 of 90 cells"
        );
        copy.group = copy.group.map(|state| GroupState { group: 1, ..state });
        copy.cause = CopyCause::Marked;
        assert_eq!(
            line(&copy),
            "holdfast tor1: marked with CE: p3 to p0, VLAN 7, class 3, priority group 1: 120 cells, \
             shared 108 of 118, pool 40 cells free; queue 3: 96 of 90 cells",
            "a lossy group has no headroom"
        );
    }

    #[test]
    fn line_about_a_copy_leaves_out_unknown_state() {
        let mut copy = full_copy();
        (copy.egress, copy.vlan, copy.class, copy.group, copy.queue) = (None, None, None, None, None);
        copy.cause = CopyCause::Dropped(DropReason::Truncated);
        assert_eq!(line(&copy), "holdfast tor1: dropped truncated: p3");
        copy.queue = Some(QueueState { queue: 2, depth: None, limit: None });
        (copy.cause, copy.ingress) = (CopyCause::Sampled, 99);
        assert_eq!(line(&copy), "holdfast tor1: sampled: ?, queue 2");
    }

    proptest! {
        #[test]
        fn line_about_any_copy_is_bounded_ascii(copy in crate::mirror::tests::any_copy(), system in ".{0,300}") {
            let facts = SwitchFacts { system: printable(&system), ..facts() };
            let mut line = String::new();
            describe(&copy, &facts, &mut line);
            prop_assert!(line.len() <= MOST_BYTES, "{}", line);
            prop_assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", line);
        }
    }

    fn printable(text: &str) -> String {
        text.chars().filter(char::is_ascii_graphic).collect()
    }
}
