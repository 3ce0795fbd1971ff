//! Cells that bytes of the wire take: the worst frame length, and the share of bytes that may come in small packets.

use std::fmt;
use std::str::FromStr;

use super::{SHORTEST_FRAME, largest_frame};
use crate::units::{Bytes, Cells, WIRE_OVERHEAD};

/// The largest share of the bytes on the wire that a peer sends in small packets, in percent: SONiC's
/// `small_packet_percentage`. A small packet is shorter than half of the port's largest frame.
///
/// A share below [`SmallPackets::ALL`] is an operator's promise about traffic. Headroom is too small for traffic that
/// breaks the promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallPackets(u8);

impl SmallPackets {
    /// Every frame may be small: no promise. This is the default, as in SONiC.
    pub const ALL: Self = Self(100);
    /// No frame is small.
    pub const NONE: Self = Self(0);

    /// Whether there is no promise about traffic.
    #[must_use]
    pub fn is_all(self) -> bool {
        self == Self::ALL
    }

    /// The share in percent.
    #[must_use]
    pub fn percent(self) -> u8 {
        self.0
    }

    /// This share of `bytes`, rounded up.
    fn of(self, bytes: Bytes) -> Bytes {
        let share = (u128::from(bytes.0) * u128::from(self.0)).div_ceil(100);
        Bytes(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

impl Default for SmallPackets {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for SmallPackets {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
        let percent = percent.filter(|percent| *percent <= 100).map(Self);
        percent.ok_or_else(|| {
            format!("`{text}` is not a share of small packets; write a whole percentage from 0% to 100%, e.g. 25%")
        })
    }
}

impl fmt::Display for SmallPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// The frame length that takes the most cells for its time on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstFrame {
    /// Length of the frame in the buffer, in bytes.
    pub frame: u64,
    /// Cells that the frame takes.
    pub cells: u64,
}

impl WorstFrame {
    /// The worst frame of all lengths.
    #[must_use]
    pub fn of(cell: Bytes, mtu: u16) -> Self {
        Self::from(SHORTEST_FRAME, cell, mtu)
    }

    /// The worst frame of lengths that are not small: at least half of the largest frame.
    #[must_use]
    pub fn of_large(cell: Bytes, mtu: u16) -> Self {
        Self::from(largest_frame(mtu).0.div_ceil(2).max(SHORTEST_FRAME), cell, mtu)
    }

    /// The worst frame of at least `shortest` bytes. Only the shortest length and lengths just beyond a cell's end can
    /// be the worst.
    fn from(shortest: u64, cell: Bytes, mtu: u16) -> Self {
        let cell = cell.0.max(1);
        let largest = largest_frame(mtu).0.div_ceil(cell).max(1);
        let least = shortest.div_ceil(cell);
        let mut worst = Self { frame: shortest, cells: least };
        for cells in least + 1..=largest {
            let candidate = Self { frame: (cells - 1) * cell + 1, cells };
            // candidate.cells / candidate.wire > worst.cells / worst.wire
            if candidate.cells * worst.wire() > worst.cells * candidate.wire() {
                worst = candidate;
            }
        }
        worst
    }

    fn wire(self) -> u64 {
        self.frame + u64::from(WIRE_OVERHEAD)
    }

    /// Cells that such frames take if they fill `bytes` of the wire.
    #[must_use]
    pub fn cells_in(self, bytes: Bytes) -> Cells {
        let cells = u128::from(bytes.0.div_ceil(self.wire())) * u128::from(self.cells);
        Cells(u32::try_from(cells).unwrap_or(u32::MAX))
    }

    /// The ratio of buffer bytes to wire bytes, to two decimals.
    pub(crate) fn factor(self, cell: Bytes) -> String {
        let hundredths = self.cells.saturating_mul(cell.0).saturating_mul(100) / self.wire();
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// The most cells that `bytes` of the wire take if at most the share `small` is in small packets, and the calculation
/// as text.
pub(crate) fn cells_in(bytes: Bytes, small: SmallPackets, cell: Bytes, mtu: u16) -> (Cells, String) {
    let (worst, large) = (WorstFrame::of(cell, mtu), WorstFrame::of_large(cell, mtu));
    if small.is_all() {
        let count = if worst.cells == 1 { "1 cell".to_owned() } else { format!("{} cells", worst.cells) };
        let factor = worst.factor(cell);
        let how =
            format!("if all but begun or left frames have {} B: {count} of {} B each, x{factor}", worst.frame, cell.0);
        return (worst.cells_in(bytes), how);
    }
    let in_small = small.of(bytes);
    let remaining = Bytes(bytes.0 - in_small.0);
    let cells = worst.cells_in(in_small).0.saturating_add(large.cells_in(remaining).0);
    let how = format!(
        "{small} of the others in frames of {} B, x{}, the rest in frames of {} B, x{}",
        worst.frame,
        worst.factor(cell),
        large.frame,
        large.factor(cell)
    );
    (Cells(cells), how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worst_frame_length_depends_on_the_cell_size() {
        assert_eq!(WorstFrame::of(Bytes(208), 1500), WorstFrame { frame: 60, cells: 1 });
        assert_eq!(WorstFrame::of(Bytes(64), 1500), WorstFrame { frame: 65, cells: 2 });
        assert_eq!(WorstFrame::of(Bytes(4096), 9216), WorstFrame { frame: 60, cells: 1 });
        assert_eq!(WorstFrame::of(Bytes(208), 1500).factor(Bytes(208)), "2.47");
    }

    #[test]
    fn the_worst_large_frame_has_half_of_the_largest_or_more() {
        // Half of 1522 B is 761 B, 4 cells; 833 B is a byte more than 4 cells.
        assert_eq!(WorstFrame::of_large(Bytes(208), 1500), WorstFrame { frame: 833, cells: 5 });
        assert_eq!(WorstFrame::of_large(Bytes(208), 1500).factor(Bytes(208)), "1.21");
        assert_eq!(WorstFrame::of_large(Bytes(4096), 1500), WorstFrame { frame: 761, cells: 1 });
    }

    #[test]
    fn shares_are_read_and_shown() {
        for (text, share) in [("0%", SmallPackets(0)), ("25%", SmallPackets(25)), ("100%", SmallPackets::ALL)] {
            assert_eq!(text.parse(), Ok(share));
            assert_eq!(share.to_string(), text);
        }
        for wrong in ["", "25", "101%", "-1%", "2.5%", "%", "1/4"] {
            assert!(wrong.parse::<SmallPackets>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn cells_of_small_packets_match_hand_computation() {
        let cells = |small| cells_in(Bytes(84_000), small, Bytes(208), 1500).0;
        assert_eq!(cells(SmallPackets::ALL), Cells(1000));
        // 21,000 B in 250 frames of one cell; 63,000 B in 74 (rounded up) frames of 857 B, five cells each.
        assert_eq!(cells(SmallPackets(25)), Cells(250 + 5 * 74));
        assert_eq!(cells(SmallPackets::NONE), Cells(5 * 99));
    }

    proptest! {
        /// Traffic that keeps the promise fits, at any frame lengths.
        #[test]
        fn traffic_within_its_small_packet_share_fits_the_cells(
            bytes in 0_u64..1_000_000, percent in 0_u8..=100, cell in 64_u64..=4096, mtu in 256_u16..=9600,
            lengths in prop::collection::vec(60_u64..=9622, 1..60),
        ) {
            let (largest, limit) = (largest_frame(mtu).0, SmallPackets(percent).of(Bytes(bytes)).0);
            let (mut sent, mut in_small, mut cells) = (0, 0, 0);
            for length in lengths.iter().cycle().take(20_000).map(|length| (*length).min(largest)) {
                let wire = length + u64::from(WIRE_OVERHEAD);
                let is_small = 2 * length < largest;
                if sent + wire > bytes {
                    break;
                }
                if is_small && in_small + wire > limit {
                    continue;
                }
                sent += wire;
                in_small += if is_small { wire } else { 0 };
                cells += length.div_ceil(cell);
            }
            let most = cells_in(Bytes(bytes), SmallPackets(percent), Bytes(cell), mtu).0;
            prop_assert!(cells <= u64::from(most.0), "{cells} cells do not fit {most:?}");
        }

        #[test]
        fn larger_small_packet_share_never_needs_fewer_cells(
            bytes in 0_u64..10_000_000, percent in 0_u8..100, cell in 64_u64..=4096, mtu in 256_u16..=9600,
        ) {
            let of = |percent| cells_in(Bytes(bytes), SmallPackets(percent), Bytes(cell), mtu).0;
            // Each part rounds up to whole frames, so one frame of each kind may be more than the other share needs.
            let frames = WorstFrame::of(Bytes(cell), mtu).cells + WorstFrame::of_large(Bytes(cell), mtu).cells;
            prop_assert!(u64::from(of(percent).0) <= u64::from(of(percent + 1).0) + frames);
            prop_assert!(u64::from(of(percent).0) <= u64::from(of(100).0) + frames);
        }
    }
}
