//! Whether a pause is said again in time: no headroom is for a peer that goes on in between.

use super::{HeadroomInput, PACING_SLACK, standard_response, wire_frame};
use crate::units::{Bytes, Nanos};

/// Bytes of the wire while the longest pause lasts: 65,535 quanta of 512 bits each (IEEE 802.1Qbb), at any rate.
const LONGEST_PAUSE: u64 = u16::MAX as u64 * 64;

/// Whether a pause may be over before the peer has understood that it goes on. It is said again after half of its life; that
/// leaves a poll gap and the slack of pacing later at worst, as an XOFF does (docs/headroom.md), and a frame that has begun,
/// and the XOFF that it follows may have left at once. The peer takes its time besides.
#[must_use]
pub fn pause_may_lapse(input: &HeadroomInput) -> bool {
    let Bytes(late) = input.rate.bytes_in(Nanos(input.poll_gap.0 + PACING_SLACK.0));
    let Bytes(response) = input.peer_response.unwrap_or_else(|| standard_response(input.rate));
    late + wire_frame(input.mtu) + response > LONGEST_PAUSE / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{BitRate, Length};

    /// A pause of 400G lasts 83.9 us; gap, slack, frame and response have half of it.
    #[test]
    fn a_slow_peer_of_a_fast_link_goes_on_too_early() {
        let lapses = |gap_us: u64, response_us: u64| {
            let rate = BitRate(400_000_000_000);
            pause_may_lapse(&HeadroomInput {
                rate,
                cable: Length::metres(2),
                mtu: 1500,
                poll_gap: Nanos(gap_us * 1000),
                posted: HeadroomInput::posted_by_pacing(rate),
                cell: Bytes(208),
                peer_response: (response_us > 0).then(|| rate.bytes_in(Nanos(response_us * 1000))),
                left: 31,
            })
        };
        assert_eq!(
            [(20, 0), (20, 11), (20, 12), (20, 30), (5, 26), (5, 27)].map(|(gap, response)| lapses(gap, response)),
            [false, false, true, true, false, true]
        );
    }
}
