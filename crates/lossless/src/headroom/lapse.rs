//! Whether a pause is refreshed in time. No headroom suffices for a peer that resumes before the refresh.

use std::fmt;

use super::{HeadroomInput, PACING_SLACK, SHORTEST_GAP, standard_response, wire_frame};
use crate::units::{Bytes, Nanos};

/// Bytes that pass on the wire during the longest pause: 65,535 quanta of 512 bits each (IEEE 802.1Qbb), at any rate.
const LONGEST_PAUSE: u64 = u16::MAX as u64 * 64;

/// Whether a pause may expire before the peer has obeyed its refresh. An XOFF is refreshed after half of its duration.
/// In the worst case the refresh is late by a poll gap and the pacing slack, as any XOFF may be (docs/headroom.md). It
/// then waits for a frame that has begun. The XOFF before it may have left at once. The peer's response time comes on
/// top.
#[must_use]
pub fn pause_may_lapse(input: &HeadroomInput) -> bool {
    Lapse::of(input).is_some()
}

/// A link on which a pause may expire too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lapse {
    /// The longest duration of a pause at this rate; half of it is left when the refresh is due.
    pub pause: Nanos,
    /// The longest poll gap with which no pause expires early; `None`: no poll gap is short enough for this peer.
    pub longest_poll_gap: Option<Nanos>,
}

impl Lapse {
    /// The lapse of a link; `None` if every pause is refreshed in time.
    #[must_use]
    pub fn of(input: &HeadroomInput) -> Option<Self> {
        let Bytes(response) = input.peer_response.unwrap_or_else(|| standard_response(input.rate));
        let frames = (1 + u64::from(input.other_rings)).saturating_mul(wire_frame(input.mtu));
        let left = (LONGEST_PAUSE / 2).checked_sub(frames).and_then(|left| left.checked_sub(response));
        // The longest time in which no more than `left` bytes pass. It is rounded down because `bytes_in` rounds up.
        let time = left.map(|left| u128::from(left) * 8_000_000_000 / u128::from(input.rate.0.max(1)));
        let time = time.map(|time| u64::try_from(time).unwrap_or(u64::MAX));
        let longest = time.and_then(longest_gap).map(Nanos);
        if longest.is_some_and(|longest| input.poll_gap <= longest) {
            return None;
        }
        let pause = u128::from(LONGEST_PAUSE) * 8_000_000_000 / u128::from(input.rate.0.max(1));
        Some(Self {
            pause: Nanos(u64::try_from(pause).unwrap_or(u64::MAX)),
            longest_poll_gap: longest.filter(|gap| gap.0 > 0),
        })
    }
}

/// The longest poll gap, in nanoseconds, that fits `time` together with the slack of pacing ([`super::most_slack`]).
fn longest_gap(time: u64) -> Option<u64> {
    match time / 2 {
        half if half >= PACING_SLACK.0 => Some(time - PACING_SLACK.0),
        half if half >= SHORTEST_GAP.0 => Some(half),
        _ => time.checked_sub(SHORTEST_GAP.0),
    }
}

impl fmt::Display for Lapse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a pause lasts {} and is refreshed after half of that, which may be too late: the peer may resume before \
             the refresh arrives, and no headroom is enough",
            self.pause
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headroom::SmallPackets;
    use crate::units::{BitRate, Length};

    /// A pause at 400G lasts 83.9 us. Poll gap, slack, frame and response share half of it.
    #[test]
    fn pause_may_lapse_with_a_slow_peer_on_a_fast_link() {
        let lapses = |gap_us: u64, response_us: u64| {
            let rate = BitRate(400_000_000_000);
            pause_may_lapse(&HeadroomInput {
                rate,
                cable: Length::metres(2),
                mtu: 1500,
                poll_gap: Nanos(gap_us * 1000),
                posted: HeadroomInput::posted_by_pacing(rate, Nanos(gap_us * 1000)),
                cell: Bytes(208),
                peer_response: (response_us > 0).then(|| rate.bytes_in(Nanos(response_us * 1000))),
                left: 31,
                small_packets: SmallPackets::ALL,
                stops_queues: 0,
                other_rings: 0,
            })
        };
        assert_eq!(
            [(20, 0), (20, 11), (20, 12), (20, 30), (5, 31), (5, 32)].map(|(gap, response)| lapses(gap, response)),
            [false, false, true, true, false, true]
        );
    }

    /// With the reported poll gap no pause expires early; with one nanosecond more a pause may.
    #[test]
    fn longest_poll_gap_is_the_exact_limit_without_a_lapse() {
        let input = |rate: u64, gap: Nanos| HeadroomInput {
            rate: BitRate(rate),
            cable: Length::metres(2),
            mtu: 9216,
            poll_gap: gap,
            posted: HeadroomInput::posted_by_pacing(BitRate(rate), gap),
            cell: Bytes(208),
            peer_response: None,
            left: 31,
            small_packets: SmallPackets::ALL,
            stops_queues: 0,
            other_rings: 0,
        };
        for rate in [10_000_000, 10_000_000_000, 40_000_000_000, 100_000_000_000, 400_000_000_000] {
            let lapse = Lapse::of(&input(rate, Nanos(10_000_000_000))).unwrap();
            let longest = lapse.longest_poll_gap.unwrap();
            assert!(!pause_may_lapse(&input(rate, longest)), "{rate}");
            assert!(pause_may_lapse(&input(rate, Nanos(longest.0 + 1))), "{rate}");
        }
        let slow = HeadroomInput { peer_response: Some(Bytes(1 << 22)), ..input(400_000_000_000, Nanos(1)) };
        assert_eq!(Lapse::of(&slow).unwrap().longest_poll_gap, None);
    }
}
