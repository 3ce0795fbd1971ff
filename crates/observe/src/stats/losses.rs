//! Drops of lossless frames, reported as they occur: one line for each port, class and reason, with the new frames.
//!
//! They are derived from snapshots, off the packet path. A continuing loss is reported less and less often, so that it
//! does not displace other lines in a log.

use std::collections::BTreeMap;
use std::time::Duration;

use super::notice::{Notice, NoticeKind};
use super::snapshot::Snapshot;
use super::switch_view::SwitchView;
use crate::plan::DropReason;
use crate::text::format::{frames, grouped};

/// Start of each line, after its time.
pub const PREFIX: &str = "lossless drop: ";

/// Time between the first two lines of a loss, and longest time between two lines of a continuing one. The time doubles
/// from the first to the second value.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(64);

/// Indices of a port, a class and a reason.
type Place = (usize, usize, usize);

/// The last report about one place.
#[derive(Debug)]
struct Reported {
    at: Duration,
    /// Frames lost until then.
    frames: u64,
    /// Least time until the next line.
    quiet: Duration,
}

/// Reports the losses at all places.
#[derive(Debug, Default)]
pub struct Losses {
    reported: BTreeMap<Place, Reported>,
}

impl Losses {
    /// Notices about the frames lost until `now`.
    #[must_use]
    pub fn next(&mut self, switch_view: &SwitchView, now: &Snapshot) -> Vec<Notice> {
        let mut notices = Vec::new();
        for (port, counters) in now.ports.iter().enumerate() {
            for class in switch_view.ever_lossless().iter() {
                for (reason, label, meaning) in DropReason::TABLE {
                    let reason = *reason as usize;
                    let total = counters.lost(class)[reason];
                    let Some(new) = self.new_frames((port, class, reason), total, now.at) else { continue };
                    let name = switch_view.port_name(port);
                    let remaining = if new == total {
                        format!("{label}, {meaning}")
                    } else {
                        format!("{label} ({} in all)", grouped(total))
                    };
                    let text = format!("{PREFIX}{name} class {class} lost {}: {remaining}", frames(new));
                    let notice = Notice::new(NoticeKind::LosslessDrop, text).at_port(name).of_class(Some(class));
                    notices.push(notice.at(now.at));
                }
            }
        }
        notices
    }

    /// The frames to report now, of `total` frames lost at `place`; `None` if no line is due.
    fn new_frames(&mut self, place: Place, total: u64, now: Duration) -> Option<u64> {
        let Some(reported) = self.reported.get_mut(&place) else {
            if total > 0 {
                self.reported.insert(place, Reported { at: now, frames: total, quiet: SHORTEST });
            }
            return (total > 0).then_some(total);
        };
        if now < reported.at + reported.quiet {
            return None;
        }
        let new = total.saturating_sub(reported.frames);
        if new == 0 {
            // The loss has ended; the next one is reported at once.
            reported.quiet = Duration::ZERO;
            return None;
        }
        *reported = Reported { at: now, frames: total, quiet: (reported.quiet * 2).clamp(SHORTEST, LONGEST) };
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::quiet;
    use super::*;

    const FULL: usize = DropReason::HeadroomFull as usize;

    fn look(losses: &mut Losses, switch_view: &SwitchView, tenths: u64) -> Vec<String> {
        let notices = losses.next(switch_view, &Snapshot::take(switch_view, Duration::from_millis(tenths * 100)));
        notices.into_iter().map(|notice| notice.text).collect()
    }

    #[test]
    fn each_port_class_and_reason_has_its_line() {
        let switch_view = quiet();
        let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
        let mut losses = Losses::default();
        assert_eq!(look(&mut losses, &switch_view, 1), [""; 0]);
        p1.drops[3][FULL].add(1_234);
        p1.drops[3][DropReason::LosslessUnknown as usize].add(1);
        p2.drops[3][FULL].add(5);
        p2.drops[0][DropReason::Threshold as usize].add(7);
        let full =
            "headroom_full, a lossless group's headroom is full: its peer did not stop in time, or eta is too small";
        let expected = [
            "t=1.2s lossless drop: p1 class 3 lost 1 frame: lossless_unknown, a lossless frame to an address not in the \
             forwarding database: never flooded"
                .to_owned(),
            format!("t=1.2s lossless drop: p1 class 3 lost 1,234 frames: {full}"),
            format!("t=1.2s lossless drop: p2 class 3 lost 5 frames: {full}"),
        ];
        assert_eq!(look(&mut losses, &switch_view, 12), expected, "and no line for a lossy class");
        p2.drops[3][FULL].add(2);
        assert_eq!(look(&mut losses, &switch_view, 21), [""; 0], "a second has not passed");
        let expected = ["t=2.2s lossless drop: p2 class 3 lost 2 frames: headroom_full (7 in all)"];
        assert_eq!(look(&mut losses, &switch_view, 22), expected);
    }

    #[test]
    fn continuing_loss_is_reported_less_often_and_new_loss_at_once() {
        let switch_view = quiet();
        let drops = &switch_view.counters.ports[0].drops[3][FULL];
        let mut losses = Losses::default();
        let mut reported = Vec::new();
        for tenths in 0..3_000 {
            drops.add(1);
            reported.extend(look(&mut losses, &switch_view, tenths).into_iter().map(|line| (tenths, line)));
        }
        let times: Vec<u64> = reported.iter().map(|(tenths, _)| *tenths).collect();
        assert_eq!(times, [0, 10, 30, 70, 150, 310, 630, 1_270, 1_910, 2_550]);
        let counts: Vec<&str> = reported.iter().map(|(_, line)| line.split(' ').nth(7).expect("a count")).collect();
        assert_eq!(counts[..4], ["1", "10", "20", "40"], "{reported:?}");
        // The remaining frames are reported when the time is over. After a quiet time the next loss is reported at
        // once.
        assert_eq!(look(&mut losses, &switch_view, 5_000).len(), 1);
        assert_eq!(look(&mut losses, &switch_view, 6_000).len(), 0);
        drops.add(1);
        assert_eq!(look(&mut losses, &switch_view, 6_001).len(), 1);
        drops.add(1);
        assert_eq!([6_010, 6_011].map(|at| look(&mut losses, &switch_view, at).len()), [0, 1], "a second later");
    }
}
