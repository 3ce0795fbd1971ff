//! The time that a peer has to stop: the terms of the headroom formula from XOFF to the last frame.

use super::{HeadroomInput, LEFT_ROW, POLLED_ROW, own_rows, seed_rows};
use crate::units::Nanos;

/// Time for which a loaded machine may keep a peer in software from running.
const SOFTWARE_DELAY: Nanos = Nanos(10_000_000);

/// The longest time from the instant at which XOFF is with the driver until the last frame of its priority is in the
/// receive ring, if the peer obeys within its response time.
///
/// It is the time in which the bytes of these terms pass: data posted before the PFC frame and a frame that has begun,
/// the PFC frame, the cable both ways, MAC and PHY, the peer's response, and its last frame. The poll gap is a reserve
/// for devices that show frames late. Frames that wait for a poll are no part: their time is measured.
#[must_use]
pub fn reaction(input: &HeadroomInput) -> Nanos {
    let rows = seed_rows(input).into_iter().chain(own_rows(input));
    let is_counted = |name: &str| name != LEFT_ROW && name != POLLED_ROW;
    let bytes = rows.filter(|row| is_counted(row.name)).map(|row| row.value.0).fold(0, u64::saturating_add);
    let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(input.rate.0.max(1)));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The [`reaction`] of the peer of a port that is a wire (`is_wire`), or a device of software.
#[must_use]
pub fn reaction_over(input: &HeadroomInput, is_wire: bool) -> Nanos {
    let delay = if is_wire { 0 } else { SOFTWARE_DELAY.0 };
    Nanos(reaction(input).0.saturating_add(delay))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headroom::{LEFT_BEHIND, SmallPackets};
    use crate::units::{BitRate, Bytes};

    fn input(rate: &str, cable: &str) -> HeadroomInput {
        let (rate, poll_gap): (BitRate, _) = (rate.parse().unwrap(), Nanos(20_000));
        HeadroomInput {
            rate,
            cable: cable.parse().unwrap(),
            mtu: 1500,
            poll_gap,
            posted: HeadroomInput::posted_by_pacing(rate, poll_gap),
            cell: Bytes(208),
            peer_response: None,
            left: LEFT_BEHIND,
            small_packets: SmallPackets::ALL,
            stops_queues: 0,
            other_rings: 0,
        }
    }

    #[test]
    fn reaction_matches_hand_computation() {
        // 2 * 1546 + 63 (5 m) + 3840 + 84 + 819 + 25,000 (20 us) + 12,500 (10 us) = 45,398 B of 0.8 ns.
        assert_eq!(reaction(&input("10G", "5m")), Nanos(36_319));
        // 300 m at 100G: 2 * 1546 + 37,500 + 25,216 + 84 + 819 + 250,000 + 125,000 = 441,711 B of 0.08 ns.
        assert_eq!(reaction(&input("100G", "300m")), Nanos(35_337));
        assert_eq!(reaction_over(&input("100G", "300m"), false), Nanos(10_035_337));
        let slow = HeadroomInput { peer_response: Some(Bytes(3840 + 1_250_000)), ..input("10G", "5m") };
        assert_eq!(reaction(&slow), Nanos(1_036_319), "1 ms more");
    }
}
