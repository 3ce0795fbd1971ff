//! Frames that a poll leaves in the receive ring. They are too few to be a backlog, so they cause no XOFF, but they are
//! still there when the next poll crosses the threshold.

use super::{HeadroomInput, SHORTEST_FRAME, largest_frame, wire_frame};
use crate::sets::LEAST_BURST;
use crate::units::{BitRate, Bytes, Nanos, WIRE_OVERHEAD};

/// Default number of frames that a poll may leave behind: one less than the default backlog mark.
pub const LEFT_BEHIND: u32 = LEAST_BURST as u32 - 1;

/// An Ethernet header: the least that a frame has beyond the MTU.
const ETHERNET: u64 = 14;
/// A poll with more bursts would delay other ports for longer than any headroom allows.
const MAX_BURSTS: u64 = 16;

/// Bursts that a poll takes: the MTU-sized frames that arrive at `rate` in `poll_gap`.
#[must_use]
pub fn bursts_per_poll(rate: BitRate, mtu: u16, poll_gap: Nanos) -> u32 {
    let frame = u64::from(mtu) + u64::from(WIRE_OVERHEAD) + ETHERNET;
    rate.bytes_in(poll_gap).0.div_ceil(frame * LEAST_BURST as u64).clamp(1, MAX_BURSTS) as u32
}

/// Bytes of the wire that a poll may leave, and cells that they take.
///
/// All of these frames arrived since the previous poll, behind the frames that this poll took. At most `left` of the
/// taken frames were there before; each of the others has at least the shortest length. The cell count is largest if
/// each frame is one byte longer than whole cells. So `n` frames in `bytes` have at most
/// `(bytes + n * (cell - 25)) / cell` cells.
#[must_use]
pub(crate) fn left_behind(input: &HeadroomInput) -> (Bytes, u64) {
    let frames = u64::from(input.left);
    let taken = u64::from(bursts_per_poll(input.rate, input.mtu, input.poll_gap)) * LEAST_BURST as u64;
    let before = taken.saturating_sub(frames) * (SHORTEST_FRAME + u64::from(WIRE_OVERHEAD));
    let room = input.rate.bytes_in(input.poll_gap).0.saturating_sub(before);
    let bytes = room.min(frames * wire_frame(input.mtu));
    let cell = input.cell.0.max(1);
    let beyond = bytes.saturating_add(frames.saturating_mul(cell.saturating_sub(u64::from(WIRE_OVERHEAD) + 1))) / cell;
    let cells = beyond.min(frames * largest_frame(input.mtu).0.div_ceil(cell));
    (Bytes(bytes), if bytes == 0 { 0 } else { cells })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(rate: &str, mtu: u16) -> HeadroomInput {
        HeadroomInput {
            rate: rate.parse().unwrap(),
            cable: "5m".parse().unwrap(),
            mtu,
            poll_gap: Nanos(20_000),
            posted: Bytes(0),
            cell: Bytes(208),
            peer_response: None,
            left: LEFT_BEHIND,
            small_packets: crate::headroom::SmallPackets::ALL,
            stops_queues: 0,
            other_rings: 0,
        }
    }

    #[test]
    fn bytes_left_by_a_poll_match_hand_computation() {
        // 250,000 B arrive and 192 frames are taken: room for 31 frames of 1546 B, of 8 cells each.
        assert_eq!(left_behind(&input("100G", 1500)), (Bytes(47_926), 248));
        // 25,000 B arrive, and at least one of these frames was taken: 24,916 B; (24,916 + 31 * 183) / 208.
        assert_eq!(left_behind(&input("10G", 1500)), (Bytes(24_916), 147));
        assert_eq!(left_behind(&HeadroomInput { left: 0, ..input("10G", 1500) }), (Bytes(0), 0));
    }

    #[test]
    fn bursts_per_poll_cover_the_mtu_frames_of_a_poll_gap() {
        let bursts = |rate: &str, mtu| bursts_per_poll(rate.parse().unwrap(), mtu, Nanos(20_000));
        assert_eq!(
            [bursts("10G", 1500), bursts("100G", 1500), bursts("400G", 9216), bursts("800G", 1500)],
            [1, 6, 4, 16]
        );
    }

    proptest::proptest! {
        #[test]
        fn frames_left_behind_fit_the_computed_cells(rate in 1_u64..=800, mtu in 256_u16..=9600, gap in 1_u64..=100_000,
                                              cell in 64_u64..=4096, lengths in proptest::collection::vec(60_u64..=9622, 31)) {
            let input = HeadroomInput { rate: BitRate(rate * 1_000_000_000), poll_gap: Nanos(gap), cell: Bytes(cell), ..input("1G", mtu) };
            let (bytes, cells) = left_behind(&input);
            let (mut wire, mut held) = (0, 0);
            for len in lengths.into_iter().map(|len| len.min(largest_frame(mtu).0)) {
                // One byte beyond whole cells is the worst length.
                let len = ((len / cell) * cell + 1).clamp(60, largest_frame(mtu).0);
                wire += len + u64::from(WIRE_OVERHEAD);
                if wire > bytes.0 {
                    break;
                }
                held += len.div_ceil(cell);
            }
            proptest::prop_assert!(held <= cells, "{held} cells of {cells}");
        }
    }
}
