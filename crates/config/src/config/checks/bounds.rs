//! Bounds of the quantities that a link's headroom is computed from. A configuration and the command line of `holdfast
//! headroom` have the same bounds.
//!
//! Each function reads a text; its error names a valid value. With values in these bounds the headroom formula cannot
//! overflow.

use std::ops::RangeInclusive;

use crate::units::{BitRate, Bytes, Length, Nanos, UnitError};

/// Slowest port speed for which pacing and pause times are exact.
pub const SLOWEST: BitRate = BitRate(10_000_000);
/// Fastest port speed for which pacing and pause times are exact.
pub const FASTEST: BitRate = BitRate(800_000_000_000);
/// Longest cable to a peer.
pub const LONGEST_CABLE: Length = Length::metres(100_000);
/// Longest time that a peer may take to obey PFC.
pub const LONGEST_RESPONSE: Nanos = Nanos(1_000_000);
/// Longest time between two polls that may be configured.
pub const LONGEST_POLL_GAP: Nanos = Nanos(10_000_000);
/// Smallest and largest buffer cell.
pub const CELLS: RangeInclusive<Bytes> = Bytes(64)..=Bytes(16 << 10);
/// Lowest maximum rate of a queue. Below it, the largest frame would hold its queue for more than 100 ms, the shortest
/// time after which a watchdog or `stuck_after` acts.
pub const LOWEST_MAX_RATE: BitRate = BitRate(1_000_000);
/// Smallest and largest burst of a queue with a maximum rate.
pub const BURSTS: RangeInclusive<Bytes> = Bytes(100)..=Bytes(64 << 20);
/// Shortest and longest time between two measurements of ABM.
pub const ABM_INTERVALS: (Nanos, Nanos) = (Nanos(1_000), Nanos(100_000_000));
/// Smallest and largest set point of a congestion point.
pub const SET_POINTS: RangeInclusive<Bytes> = Bytes(1_000)..=Bytes(64 << 20);
/// Smallest and largest sampling interval of a congestion point. A short one samples every frame of a congested queue;
/// few messages leave in a poll all the same.
pub const SAMPLES: RangeInclusive<Bytes> = Bytes(1_000)..=Bytes(64 << 20);
/// Smallest and largest MTU.
pub const MTUS: (u16, u16) = (256, 9600);
/// Most descriptors that a port may ask for.
pub const MOST_DESCRIPTORS: u16 = 16_384;

/// Reads the speed of a port.
///
/// # Errors
/// A message that names the valid values.
pub fn speed(text: &str) -> Result<BitRate, String> {
    let speed: BitRate = parse(text)?;
    let right = (SLOWEST..=FASTEST).contains(&speed);
    right.then_some(speed).ok_or_else(|| format!("`{text}` is not a port speed; write from 10M to 800G"))
}

/// Reads the maximum rate of a queue.
///
/// # Errors
/// A message that names the valid values.
pub fn max_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = parse(text)?;
    let right = (LOWEST_MAX_RATE..=FASTEST).contains(&rate);
    right.then_some(rate).ok_or_else(|| format!("`{text}` is not a maximum rate; write from 1M to 800G, or `off`"))
}

/// Reads the burst of a queue with a maximum rate.
///
/// # Errors
/// A message that names the valid values.
pub fn max_burst(text: &str) -> Result<Bytes, String> {
    size(text, BURSTS)
}

/// Reads the length of a cable.
///
/// # Errors
/// A message that names the valid values.
pub fn cable(text: &str) -> Result<Length, String> {
    let cable: Length = parse(text)?;
    let error = || format!("`{text}` is too long for PFC; write at most {LONGEST_CABLE}");
    (cable <= LONGEST_CABLE).then_some(cable).ok_or_else(error)
}

/// Reads the time that a peer takes to obey PFC.
///
/// # Errors
/// A message that names the valid values.
pub fn response(text: &str) -> Result<Nanos, String> {
    let response: Nanos = parse(text)?;
    (response <= LONGEST_RESPONSE).then_some(response).ok_or_else(|| {
        format!(
            "`{text}` is too long for a peer's response to PFC; write at most {LONGEST_RESPONSE}, e.g. 30us for a \
             Holdfast switch"
        )
    })
}

/// Reads the longest time between two polls.
///
/// # Errors
/// A message that names the valid values.
pub fn poll_gap(text: &str) -> Result<Nanos, String> {
    let gap: Nanos = parse(text)?;
    let right = (Nanos(1)..=LONGEST_POLL_GAP).contains(&gap);
    right.then_some(gap).ok_or_else(|| format!("`{text}` is not a poll gap; write from 1ns to {LONGEST_POLL_GAP}"))
}

/// Reads the time between two measurements of ABM.
///
/// # Errors
/// A message that names the valid values.
pub fn abm_interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = parse(text)?;
    let right = (ABM_INTERVALS.0..=ABM_INTERVALS.1).contains(&interval);
    right.then_some(interval).ok_or_else(|| format!("`{text}` is not an interval of ABM; write from 1us to 100ms"))
}

/// Reads the size of a buffer cell.
///
/// # Errors
/// A message that names the valid values.
pub fn cell(text: &str) -> Result<Bytes, String> {
    size(text, CELLS)
}

/// Reads a size within these bounds.
///
/// # Errors
/// A message that names the valid values.
pub fn size(text: &str, bounds: RangeInclusive<Bytes>) -> Result<Bytes, String> {
    let size: Bytes = parse(text)?;
    let error = || format!("`{text}` is out of range; write a size from {} to {}", bounds.start(), bounds.end());
    bounds.contains(&size).then_some(size).ok_or_else(error)
}

fn parse<T: std::str::FromStr<Err = UnitError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headroom::{HeadroomInput, headroom};

    #[test]
    fn value_at_a_bound_is_accepted_and_beyond_it_refused() {
        for (right, wrong) in [("10M", "9999k"), ("800G", "801G")] {
            assert!(speed(right).is_ok() && speed(wrong).is_err(), "{wrong}");
        }
        for (right, wrong) in [("1M", "999k"), ("800G", "801G"), ("1500M", "0G")] {
            assert!(max_rate(right).is_ok() && max_rate(wrong).is_err(), "{wrong}");
        }
        assert!(max_burst("100B").is_ok() && max_burst("99B").is_err() && max_burst("65MiB").is_err());
        assert!(cable("0m").is_ok() && cable("100km").is_ok() && cable("100001m").is_err());
        assert!(response("1ms").is_ok() && response("1001us").is_err());
        assert!(poll_gap("1ns").is_ok() && poll_gap("10ms").is_ok());
        assert!(poll_gap("0ns").is_err() && poll_gap("10001us").is_err());
        assert!(cell("64B").is_ok() && cell("16KiB").is_ok() && cell("63B").is_err() && cell("16385B").is_err());
    }

    /// All quantities at the configuration's bounds at once: the result is far below the largest count.
    #[test]
    fn headroom_at_the_configuration_bounds_fits_the_cell_count() {
        for (cell, mtu, share) in [*CELLS.start(), *CELLS.end()]
            .into_iter()
            .flat_map(|cell| [(cell, MTUS.0, 100), (cell, MTUS.1, 100), (cell, MTUS.1, 0)])
        {
            let input = HeadroomInput {
                rate: FASTEST,
                cable: LONGEST_CABLE,
                mtu,
                poll_gap: LONGEST_POLL_GAP,
                posted: HeadroomInput::posted_by_pacing(FASTEST, LONGEST_POLL_GAP),
                cell,
                peer_response: Some(FASTEST.bytes_in(LONGEST_RESPONSE)),
                left: 16_383,
                small_packets: format!("{share}%").parse().unwrap(),
                stops_queues: 0,
                other_rings: 0,
            };
            let headroom = headroom(&input);
            assert!(headroom.cells.0 < u32::MAX && headroom.total > headroom.seed, "{headroom:?}");
            assert_eq!(headroom.rows.iter().map(|row| row.value.0).sum::<u64>(), headroom.total.0);
        }
    }
}
