//! Headroom (eta): the buffer for frames that still arrive after XOFF became due.
//!
//! The seed is `eta = 2*(C*Dprop + L_mtu) + 3840 B`. Its own terms, and those that only a software switch has, are rows
//! of a sum. Each row names its source, so that every part of the number can be checked. All arithmetic is in integers,
//! rounded up.
//!
//! `L_mtu` is one largest frame as the wire sees it: MTU, Ethernet header, two VLAN tags, frame check sequence,
//! preamble and inter-frame gap. It is in the seed twice. The first is a frame of this switch that has begun and delays
//! the PFC frame. The second is a frame that the peer has begun when the PFC frame arrives.
//!
//! # Example
//!
//! ```
//! use holdfast_lossless::headroom::{HeadroomInput, SmallPackets, headroom};
//! use holdfast_base::units::{BitRate, Bytes, Cells, Length, Nanos};
//!
//! let mut input = HeadroomInput {
//!     rate: BitRate(100_000_000_000),
//!     cable: "300m".parse()?,
//!     mtu: 1500,
//!     poll_gap: Nanos(20_000),
//!     posted: Bytes(0),
//!     cell: Bytes(208),
//!     peer_response: None,
//!     left: 31,
//!     small_packets: SmallPackets::ALL,
//!     stops_queues: 0,
//!     other_rings: 0,
//! };
//! let eta = headroom(&input).cells;
//! input.cable = "3m".parse()?;
//! assert!(headroom(&input).cells < eta, "a shorter cable needs less");
//! # let _: (Cells, Length) = (eta, input.cable);
//! # Ok::<(), holdfast_base::units::UnitError>(())
//! ```

mod lapse;
mod left;
mod reaction;
mod small;

use crate::sets::LEAST_BURST;
use crate::units::{BitRate, Bytes, Cells, Length, Nanos, WIRE_OVERHEAD};
pub use lapse::{Lapse, pause_may_lapse};
use left::left_behind;
pub use left::{LEFT_BEHIND, bursts_per_poll};
pub use reaction::{reaction, reaction_over};
pub use small::{SmallPackets, WorstFrame};

/// Ethernet header (14) and up to two VLAN tags (8): the bytes of a stored frame beyond the MTU.
pub const FRAME_OVERHEAD: u64 = 14 + 8;

/// The shortest frame as the buffer sees it, without the frame check sequence.
pub const SHORTEST_FRAME: u64 = 60;

/// Propagation delay of a cable in ps per mm, that is 5 ns per metre, as in IEEE 802.3 (0.2 m/ns; light in glass or
/// copper is no slower).
pub const PICOSECONDS_PER_MM: u64 = 5;

/// 60 quanta of 64 bytes: the response time of a 10G peer in the standard, and the constant of the seed formula.
const SEED_RESPONSE: u64 = 60 * BYTES_PER_QUANTUM;
const BYTES_PER_QUANTUM: u64 = 64;

/// Response time of a peer by link speed, in quanta. A speed between two rows uses the faster one.
///
/// IEEE 802.3 annex 31B.3.7, in substance: after a pause arrives, a station may begin frames only for a number of
/// quanta, by speed. SONiC takes its table from there; the row of 10G has the 60 quanta of the seed formula.
const RESPONSE_QUANTA: [(u64, u64); 7] = [
    (10_000_000_000, 60),
    (25_000_000_000, 80),
    (40_000_000_000, 118),
    (50_000_000_000, 147),
    (100_000_000_000, 394),
    (200_000_000_000, 453),
    (400_000_000_000, 905),
];

/// The PFC frame itself: 64 bytes, preamble and gap.
const PFC_FRAME: u64 = 84;

/// MAC and PHY delay of both ends, in bytes: SONiC's figure.
const MAC_AND_PHY: u64 = 819;

/// The longest time ahead of the wire for which a port posts data to the device. A PFC frame waits behind it.
pub const PACING_SLACK: Nanos = Nanos(10_000);

/// The shortest poll gap that bounds anything: no poll with frames is shorter.
pub const SHORTEST_GAP: Nanos = Nanos(1_000);

/// The longest time ahead of the wire for which a switch posts data whose polls are at most `poll_gap` apart: it needs
/// no more to keep the wire busy until the next poll.
#[must_use]
pub fn most_slack(poll_gap: Nanos) -> Nanos {
    poll_gap.clamp(SHORTEST_GAP, PACING_SLACK)
}

/// Bytes on the wire of the messages of QCN that a poll may send by one port: eight, each of 110 bytes.
pub const CONGESTION_MESSAGES: u64 = 8 * (110 + WIRE_OVERHEAD as u64);

/// The poll gap that bounds the data posted by a port with `tx_queues` transmit queues. Lcores that share a wire post
/// [`PACING_SLACK`] ahead, whatever their polls: with less they could not share it by their frames.
#[must_use]
pub fn posting_gap(poll_gap: Nanos, tx_queues: u8) -> Nanos {
    if tx_queues > 1 { PACING_SLACK } else { poll_gap }
}

/// The quantities from which headroom is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadroomInput {
    /// Rate of the link.
    pub rate: BitRate,
    /// Length of the cable to the peer.
    pub cable: Length,
    /// Largest IP packet.
    pub mtu: u16,
    /// Longest time between two polls of the port. A frame can wait that long in the receive ring before it can cause
    /// XOFF.
    pub poll_gap: Nanos,
    /// Bytes of data that may be in the transmit ring ahead of a PFC frame: see [`HeadroomInput::posted`].
    pub posted: Bytes,
    /// Size of a buffer cell.
    pub cell: Bytes,
    /// Bytes that the peer sends until it obeys; `None`: the standard's table for the speed.
    pub peer_response: Option<Bytes>,
    /// Frames that a poll may leave in the receive ring without XOFF: one less than the port's backlog mark.
    pub left: u32,
    /// The largest share of bytes that the peer sends in small packets.
    pub small_packets: SmallPackets,
    /// Receive queues that XOFF stops instead of sending a PFC frame (`pfc: queue`). Zero: it sends PFC frames.
    pub stops_queues: u8,
    /// Transmit rings of the device beside that of PFC frames: it sends a frame of each in turn (`pfc: nic`).
    pub other_rings: u8,
}

impl HeadroomInput {
    /// Bytes that pacing may have posted ahead of a PFC frame at this rate, with polls up to `poll_gap` apart.
    #[must_use]
    pub fn posted_by_pacing(rate: BitRate, poll_gap: Nanos) -> Bytes {
        rate.bytes_in(most_slack(poll_gap))
    }

    /// Bytes that a switch may have posted ahead of a PFC frame at this rate: data as far as pacing allows. Messages of
    /// QCN are beyond that if it has congestion points: pacing counts them, and delays only data.
    #[must_use]
    pub fn posted(rate: BitRate, poll_gap: Nanos, has_congestion_points: bool) -> Bytes {
        let messages = if has_congestion_points { CONGESTION_MESSAGES } else { 0 };
        Bytes(Self::posted_by_pacing(rate, poll_gap).0.saturating_add(messages))
    }
}

/// One term of the headroom sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomRow {
    /// Name of the term.
    pub name: &'static str,
    /// Bytes that the term adds.
    pub value: Bytes,
    /// The calculation of the value, with its numbers.
    pub how: String,
    /// The standard, paper or system that the term comes from.
    pub source: &'static str,
    /// Whether it is a term of the seed formula.
    pub seed: bool,
}

/// Headroom of one lossless priority group of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headroom {
    /// The terms, in the order in which the events happen.
    pub rows: Vec<HeadroomRow>,
    /// Sum of the seed formula's terms.
    pub seed: Bytes,
    /// Sum of all rows; a whole number of cells.
    pub total: Bytes,
    /// The total in cells.
    pub cells: Cells,
}

/// Bytes that a largest frame of `mtu` takes in the buffer.
#[must_use]
pub fn largest_frame(mtu: u16) -> Bytes {
    Bytes(u64::from(mtu) + FRAME_OVERHEAD)
}

/// Computes the headroom by the seed formula and this switch's own terms.
///
/// The last row is the cost of cells: the sum counts bytes on the wire, the buffer counts whole cells, and a peer may
/// send frames of the worst length. By default all frames have that length; SONiC's default `small_packet_percentage`
/// is 100 too. With any smaller share, losslessness would depend on the frame lengths: see [`SmallPackets`]. Two frames
/// count at their largest size: those that the peer has begun at the poll and at the pause. Frames left in the ring
/// count by their number.
///
/// Sums saturate: a headroom of [`u32::MAX`] cells is too large to count. Quantities within the bounds of
/// `holdfast_config::config::checks::bounds` never reach it.
#[must_use]
pub fn headroom(input: &HeadroomInput) -> Headroom {
    if input.stops_queues > 0 {
        return one_burst(input);
    }
    let mut rows = seed_rows(input);
    rows.extend(own_rows(input));
    let seed = rows.iter().filter(|row| row.seed).map(|row| row.value.0).fold(0, u64::saturating_add);
    let bytes = rows.iter().map(|row| row.value.0).fold(0, u64::saturating_add);

    let begun = 2 * u64::from(largest_frame(input.mtu).to_cells_ceil(input.cell).0);
    let (left, left_cells) = left_behind(input);
    // Both are rows too, so the sum is at least as large, unless it has saturated.
    let others = bytes.saturating_sub(2 * wire_frame(input.mtu)).saturating_sub(left.0);
    let (others, how) = small::cells_in(Bytes(others), input.small_packets, input.cell, input.mtu);
    let cells = u64::from(others.0).saturating_add(begun).saturating_add(left_cells);
    let cells = u32::try_from(cells).unwrap_or(u32::MAX);
    // Never below the plain bytes: very small cells hold a frame without the bytes that are only on the wire.
    let cells = Cells(cells.max(Bytes(bytes).to_cells_ceil(input.cell).0));
    let total = cells.to_bytes(input.cell);
    let source = if input.small_packets.is_all() {
        "cells; SONiC at 100 % small packets"
    } else {
        "cells; assumes a share of small packets"
    };
    rows.push(HeadroomRow {
        name: "whole cells",
        value: Bytes(total.0.saturating_sub(bytes)),
        how,
        source,
        seed: false,
    });
    Headroom { rows, seed: Bytes(seed), total, cells }
}

/// Frames that a receive queue may bring while a group is XOFF, if the switch does not know that the queue carries it.
pub const UNKNOWN_QUEUE_FRAMES: usize = 4;

/// Headroom of a port whose XOFF stops receive queues: the burst in which XOFF became due, and a few frames of each
/// further queue that turns out to carry the group. No other frame is in flight.
fn one_burst(input: &HeadroomInput) -> Headroom {
    let frame = largest_frame(input.mtu);
    let further = UNKNOWN_QUEUE_FRAMES as u64 * u64::from(input.stops_queues - 1);
    let frames = LEAST_BURST as u64 + further;
    let cells = u64::from(frame.to_cells_ceil(input.cell).0).saturating_mul(frames);
    let cells = Cells(u32::try_from(cells).unwrap_or(u32::MAX));
    let total = cells.to_bytes(input.cell);
    let row = |name, value, how, source| HeadroomRow { name, value: Bytes(value), how, source, seed: false };
    let of_frame = format!("{} + {FRAME_OVERHEAD} (Ethernet, 2 tags)", input.mtu);
    let burst = format!("{LEAST_BURST} frames of {of_frame}");
    let others = format!("{further} frames of {of_frame}");
    let rows = vec![
        row("one burst", LEAST_BURST as u64 * frame.0, burst, "this switch: the burst that causes XOFF"),
        row("other queues", further * frame.0, others, "this switch: queues not known to carry the class"),
        row(
            "whole cells",
            total.0.saturating_sub(frames * frame.0),
            format!("{} cells of {}", cells.0, input.cell),
            "cells",
        ),
    ];
    Headroom { rows, seed: Bytes(0), total, cells }
}

/// The terms of `2*(C*Dprop + L_mtu) + 3840 B`.
fn seed_rows(input: &HeadroomInput) -> Vec<HeadroomRow> {
    let frame = wire_frame(input.mtu);
    let picoseconds = u128::from(input.cable.mm) * u128::from(PICOSECONDS_PER_MM);
    let cable = bytes_in_picoseconds(input.rate, 2 * picoseconds);
    let row = |name, value, how, source| HeadroomRow { name, value: Bytes(value), how, source, seed: true };
    vec![
        row("our frame ahead", frame, wire_frame_sum(input.mtu), "seed, L_mtu: a begun frame is finished"),
        row(
            "cable, both ways",
            cable,
            format!("2 x {} x 5 ns/m at {}", input.cable, input.rate),
            "seed, C*Dprop: IEEE 802.3 propagation",
        ),
        row("peer's response", SEED_RESPONSE, "60 quanta x 64 B".to_owned(), "seed, 3840 B: IEEE 802.1Qbb, a 10G peer"),
        row("peer's last frame", frame, wire_frame_sum(input.mtu), "seed, L_mtu: a begun frame is finished"),
    ]
}

/// The terms that the seed formula leaves out.
fn own_rows(input: &HeadroomInput) -> Vec<HeadroomRow> {
    let mut rows = Vec::new();
    let mut row = |name, value, how, source| {
        rows.push(HeadroomRow { name, value: Bytes(value), how, source, seed: false });
    };
    let (response, how, source) = match input.peer_response {
        Some(given) => (given.0, format!("{} B given", given.0), "given"),
        None => {
            let quanta = response_quanta(input.rate);
            (
                quanta.saturating_mul(BYTES_PER_QUANTUM),
                format!("{quanta} quanta x 64 B"),
                "IEEE 802.1Qbb by speed, SONiC's table",
            )
        }
    };
    if let Some(beyond @ 1..) = response.checked_sub(SEED_RESPONSE) {
        row("slower response", beyond, format!("{how}, beyond the {SEED_RESPONSE} B above"), source);
    }
    row("PFC frame", PFC_FRAME, "64 B + preamble and gap = 672 bit".to_owned(), "IEEE 802.1Qbb");
    row("MAC and PHY", MAC_AND_PHY, "both ends".to_owned(), "SONiC, mac/phy delay");
    row(
        "poll gap",
        input.rate.bytes_in(input.poll_gap).0,
        format!("{} at {}", input.poll_gap, input.rate),
        "this switch: frames wait in the receive ring",
    );
    row(POLLED_ROW, wire_frame(input.mtu), wire_frame_sum(input.mtu), "this switch: the frame ends just after a poll");
    let (left, _) = left_behind(input);
    if left.0 > 0 {
        let how = format!("{}, at most those since the last poll", count(input.left.into(), "frame"));
        row(LEFT_ROW, left.0, how, "this switch: left by a poll without XOFF");
    }
    if input.posted.0 > 0 {
        let has_messages = input.posted > HeadroomInput::posted_by_pacing(input.rate, input.poll_gap);
        let ahead = if has_messages { "data and QCN messages" } else { "data" };
        let how = format!("{ahead} posted before the PFC frame");
        row("transmit ring", input.posted.0, how, "this switch: posted by pacing at once");
    }
    if input.other_rings > 0 {
        let rings = u64::from(input.other_rings);
        let how = format!("{rings} x {}", wire_frame(input.mtu));
        row(
            "other rings",
            rings.saturating_mul(wire_frame(input.mtu)),
            how,
            "`pfc: nic`: the NIC serves its rings in turn",
        );
    }
    rows
}

/// Name of the row for the frame that ends just after a poll.
const POLLED_ROW: &str = "frame at the poll";

/// Name of the row for frames that polls leave in the receive ring. The term does not depend on posted data.
pub const LEFT_ROW: &str = "left in the ring";

/// Bytes of the largest frame on the wire: `L_mtu`.
fn wire_frame(mtu: u16) -> u64 {
    u64::from(mtu) + FRAME_OVERHEAD + u64::from(WIRE_OVERHEAD)
}

fn wire_frame_sum(mtu: u16) -> String {
    format!("{mtu} + {FRAME_OVERHEAD} (Ethernet, 2 tags) + {WIRE_OVERHEAD} (FCS, preamble, gap)")
}

fn bytes_in_picoseconds(rate: BitRate, picoseconds: u128) -> u64 {
    let bits = u128::from(rate.0).saturating_mul(picoseconds);
    u64::try_from(bits.div_ceil(8_000_000_000_000)).unwrap_or(u64::MAX)
}

/// Bytes that a peer of this speed may still send after a PFC frame has arrived, by the standard's table.
#[must_use]
pub fn standard_response(rate: BitRate) -> Bytes {
    Bytes(response_quanta(rate).saturating_mul(BYTES_PER_QUANTUM))
}

/// Response time of a peer of this speed in quanta. Speeds beyond the table scale in proportion to 400G.
fn response_quanta(rate: BitRate) -> u64 {
    let known = RESPONSE_QUANTA.iter().find(|&&(speed, _)| rate.0 <= speed);
    known.map_or_else(|| (u128::from(rate.0) * 905).div_ceil(400_000_000_000) as u64, |&(_, quanta)| quanta)
}

fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(rate: &str, cable: &str, mtu: u16, poll_gap: &str) -> HeadroomInput {
        HeadroomInput {
            rate: rate.parse().unwrap(),
            cable: cable.parse().unwrap(),
            mtu,
            poll_gap: poll_gap.parse().unwrap(),
            posted: Bytes(0),
            cell: Bytes(208),
            peer_response: None,
            left: LEFT_BEHIND,
            small_packets: SmallPackets::ALL,
            stops_queues: 0,
            other_rings: 0,
        }
    }

    fn value(headroom: &Headroom, name: &str) -> Option<u64> {
        headroom.rows.iter().find(|row| row.name == name).map(|row| row.value.0)
    }

    #[test]
    fn headroom_seed_matches_hand_computation() {
        // 2*(100e9/8 * 300*5e-9 + 1546) + 3840 = 2*(18750 + 1546) + 3840
        assert_eq!(headroom(&input("100G", "300m", 1500, "20us")).seed, Bytes(44_432));
        // 2*(10e9/8 * 5*5e-9 = 31.25 + 1546) + 3840, with the cable's 62.5 rounded up once
        assert_eq!(headroom(&input("10G", "5m", 1500, "20us")).seed, Bytes(6_995));
        // 2*(40e9/8 * 1.5e-6 = 7500 + 9262) + 3840
        assert_eq!(headroom(&input("40G", "300m", 9216, "0us")).seed, Bytes(37_364));
    }

    #[test]
    fn messages_of_congestion_points_delay_a_pfc_frame_too() {
        let posted = |rate, has_points| HeadroomInput::posted(BitRate(rate), Nanos(20_000), has_points);
        // 10 us at 1 Gbit/s; eight messages of 110 B, with 24 B on the wire each.
        assert_eq!([false, true].map(|has| posted(1_000_000_000, has)), [1250, 1250 + 8 * 134].map(Bytes));
        let row = |has_points| {
            let input =
                HeadroomInput { posted: posted(10_000_000_000, has_points), ..input("10G", "5m", 1500, "20us") };
            headroom(&input).rows.into_iter().find(|row| row.name == "transmit ring").unwrap().how
        };
        assert_eq!(row(false), "data posted before the PFC frame");
        assert_eq!(row(true), "data and QCN messages posted before the PFC frame");
    }

    #[test]
    fn posted_data_shrinks_with_the_poll_gap() {
        let posted = |gap| HeadroomInput::posted_by_pacing(BitRate(100_000_000_000), Nanos(gap));
        assert_eq!([10, 1_000, 3_000, 20_000].map(posted), [12_500, 12_500, 37_500, 125_000].map(Bytes));
    }

    /// A device with a ring for each priority sends a frame of each other one before the PFC frame.
    #[test]
    fn headroom_counts_a_frame_of_each_other_ring_of_the_device() {
        let one = input("100G", "300m", 1500, "20us");
        let eight = HeadroomInput { other_rings: 7, ..one };
        assert_eq!(value(&headroom(&one), "other rings"), None);
        assert_eq!(value(&headroom(&eight), "other rings"), Some(7 * 1546));
        // 10,822 B more on the wire, each 84 B of which take a cell at most.
        let more = headroom(&eight).cells.0 - headroom(&one).cells.0;
        assert!((128..=129).contains(&more), "{more} cells for 10,822 B");
    }

    #[test]
    fn headroom_of_a_stopped_queue_is_one_burst() {
        let of = |queues, mtu| HeadroomInput { stops_queues: queues, ..input("100G", "300m", mtu, "20us") };
        let by_queue = |mtu| headroom(&of(1, mtu));
        // 32 frames of 1522 B, each in 8 cells of 208 B; 9022 B take 44. Seven other queues bring 28 more.
        assert_eq!((by_queue(1500).cells, by_queue(9000).cells), (Cells(256), Cells(32 * 44)));
        assert_eq!(headroom(&of(8, 1500)).cells, Cells(60 * 8));
        assert_eq!(value(&by_queue(1500), "one burst"), Some(32 * 1522));
        let sum: u64 = by_queue(1500).rows.iter().map(|row| row.value.0).sum();
        assert_eq!(Bytes(sum), by_queue(1500).total);
    }

    #[test]
    fn headroom_terms_match_hand_computation() {
        let mut input = input("100G", "300m", 1500, "20us");
        input.posted = HeadroomInput::posted_by_pacing(input.rate, input.poll_gap);
        let headroom = headroom(&input);
        assert_eq!(value(&headroom, "our frame ahead"), Some(1546));
        assert_eq!(value(&headroom, "cable, both ways"), Some(37_500));
        assert_eq!(value(&headroom, "peer's response"), Some(3840));
        assert_eq!(value(&headroom, "peer's last frame"), Some(1546));
        assert_eq!(value(&headroom, "slower response"), Some(394 * 64 - 3840));
        assert_eq!(value(&headroom, "PFC frame"), Some(84));
        assert_eq!(value(&headroom, "MAC and PHY"), Some(819));
        assert_eq!(value(&headroom, "poll gap"), Some(250_000));
        assert_eq!(value(&headroom, "transmit ring"), Some(125_000));
        assert_eq!(value(&headroom, "frame at the poll"), Some(1546));
        assert_eq!(value(&headroom, LEFT_ROW), Some(31 * 1546));
        // 44,432 + 21,376 + 84 + 819 + 375,000 + 1546 + 47,926 = 491,183 B. Without the two begun frames and those left
        // in the ring: 440,165 B. That is 5241 frames of 84 B on the wire, of one cell each. Each of the 33 largest
        // frames has 8 cells.
        assert_eq!(headroom.cells, Cells(5241 + 33 * 8));
        assert_eq!(headroom.total, Bytes(5505 * 208));
        assert_eq!(value(&headroom, "whole cells"), Some(5505 * 208 - 491_183));
    }

    #[test]
    fn response_time_follows_speed_or_configuration() {
        let quanta = |rate: &str| response_quanta(rate.parse().unwrap());
        let speeds = ["1G", "10G", "11G", "25G", "40G", "50G", "100G", "200G", "400G", "800G"];
        assert_eq!(speeds.map(quanta), [60, 60, 80, 80, 118, 147, 394, 453, 905, 1810]);
        let mut input = input("10G", "3m", 1500, "20us");
        assert_eq!(value(&headroom(&input), "slower response"), None);
        input.peer_response = Some(Bytes(5000));
        assert_eq!(value(&headroom(&input), "slower response"), Some(1160));
    }

    #[test]
    fn headroom_of_extreme_input_saturates() {
        let input = HeadroomInput {
            rate: BitRate(u64::MAX),
            cable: Length { mm: u64::MAX },
            mtu: u16::MAX,
            poll_gap: Nanos(u64::MAX),
            posted: Bytes(u64::MAX),
            cell: Bytes(1),
            peer_response: Some(Bytes(u64::MAX)),
            left: u32::MAX,
            small_packets: SmallPackets::ALL,
            stops_queues: 0,
            other_rings: 0,
        };
        assert_eq!(headroom(&input).cells, Cells(u32::MAX));
        assert!(pause_may_lapse(&input));
    }

    fn any_input() -> impl Strategy<Value = HeadroomInput> {
        let links = (1_000_000_u64..=800_000_000_000, 0_u64..=10_000_000, 64_u16..=9600);
        let own = (0_u64..=1_000_000, 0_u64..=1_000_000, 64_u64..=4096);
        (links, own).prop_map(|((rate, mm, mtu), (gap, posted, cell))| HeadroomInput {
            rate: BitRate(rate),
            cable: Length { mm },
            mtu,
            poll_gap: Nanos(gap),
            posted: Bytes(posted),
            cell: Bytes(cell),
            peer_response: None,
            left: LEFT_BEHIND,
            small_packets: SmallPackets::ALL,
            stops_queues: 0,
            other_rings: 0,
        })
    }

    proptest! {
        #[test]
        fn headroom_rows_add_up_to_the_total(input in any_input()) {
            let headroom = headroom(&input);
            let rows: u64 = headroom.rows.iter().map(|row| row.value.0).sum();
            prop_assert_eq!(rows, headroom.total.0);
            prop_assert_eq!(headroom.cells.to_bytes(input.cell), headroom.total);
            prop_assert!(headroom.seed < headroom.total);
        }

        #[test]
        fn headroom_never_shrinks_when_an_input_grows(
            input in any_input(), rate in 0_u64..1_000_000_000, mm in 0_u64..100_000, mtu in 0_u16..1000,
            gap in 0_u64..10_000, posted in 0_u64..10_000,
        ) {
            let base = headroom(&input).cells;
            let more = |change: &dyn Fn(&mut HeadroomInput)| {
                let mut changed = input;
                change(&mut changed);
                headroom(&changed).cells
            };
            prop_assert!(more(&|i| i.rate.0 += rate) >= base);
            prop_assert!(more(&|i| i.cable.mm += mm) >= base);
            prop_assert!(more(&|i| i.mtu += mtu) >= base);
            prop_assert!(more(&|i| i.poll_gap.0 += gap) >= base);
            prop_assert!(more(&|i| i.posted.0 += posted) >= base);
        }

        /// The central property: frames of any lengths that fit the wire time also fit the cells.
        #[test]
        fn headroom_cells_fit_any_mix_of_frame_lengths(input in any_input(), lengths in prop::collection::vec(60_u64..=9622, 1..40)) {
            let headroom = headroom(&input);
            let own = ["whole cells", "frame at the poll", "peer's last frame", LEFT_ROW];
            let wire: u64 = headroom.rows.iter().filter(|row| !own.contains(&row.name)).map(|row| row.value.0).sum();
            let largest = largest_frame(input.mtu).0;
            let (mut sent, mut cells) = (0, 2 * largest.div_ceil(input.cell.0) + left_behind(&input).1);
            for length in lengths.iter().cycle().take(100_000) {
                let length = (*length).min(largest).max(60);
                sent += length + u64::from(WIRE_OVERHEAD);
                if sent > wire {
                    break;
                }
                cells += length.div_ceil(input.cell.0);
            }
            prop_assert!(cells <= u64::from(headroom.cells.0), "{cells} cells do not fit {:?}", headroom.cells);
        }
    }
}
