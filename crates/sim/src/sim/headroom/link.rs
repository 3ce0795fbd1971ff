//! Links whose headroom is to be proven.

use crate::headroom::{
    Headroom, HeadroomInput, LEFT_BEHIND, SHORTEST_FRAME, SmallPackets, WorstFrame, headroom, largest_frame,
    most_slack, pause_may_lapse, standard_response,
};
use crate::sim::load::PS;
use crate::units::{BitRate, Bytes, Length, Nanos};

/// The response time of the device at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The longest time that the standard allows.
    Standard,
    /// This response time.
    Takes(Nanos),
}

/// A link, and the switch at one end that must not lose frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Rate of the link.
    pub rate: BitRate,
    /// Length of the cable.
    pub cable: Length,
    /// Largest IP packet.
    pub mtu: u16,
    /// Size of a buffer cell.
    pub cell: Bytes,
    /// Longest time between two polls of the port.
    pub poll_gap: Nanos,
    /// The device that sends to the switch.
    pub peer: Peer,
    /// The share of small packets that the formula is given.
    pub small_packets: SmallPackets,
}

impl Link {
    /// Returns the input of the headroom formula.
    #[must_use]
    pub fn input(&self) -> HeadroomInput {
        HeadroomInput {
            rate: self.rate,
            cable: self.cable,
            mtu: self.mtu,
            poll_gap: self.poll_gap,
            posted: HeadroomInput::posted_by_pacing(self.rate, self.poll_gap),
            cell: self.cell,
            peer_response: match self.peer {
                Peer::Standard => None,
                Peer::Takes(time) => Some(self.rate.bytes_in(time)),
            },
            left: LEFT_BEHIND,
            small_packets: self.small_packets,
            stops_queues: 0,
            other_rings: 0,
        }
    }

    /// Returns the headroom by the formula.
    #[must_use]
    pub fn formula(&self) -> Headroom {
        headroom(&self.input())
    }

    /// Returns the frame that takes the most cells for its time on the wire. Only frames that the share of small
    /// packets allows in any number are candidates.
    pub(super) fn worst_frame(&self) -> WorstFrame {
        if self.small_packets.is_all() {
            return WorstFrame { frame: SHORTEST_FRAME, cells: SHORTEST_FRAME.div_ceil(self.cell.0.max(1)) };
        }
        WorstFrame::of_large(self.cell, self.mtu)
    }

    /// Whether frames of `len` bytes are small packets on this link.
    pub(super) fn is_small(&self, len: u16) -> bool {
        2 * u64::from(len) < largest_frame(self.mtu).0
    }

    /// Returns the link with a Holdfast switch at the other end. That switch reacts at its next poll, after the frames
    /// that its pacing has posted.
    #[must_use]
    pub fn to_switch(self) -> Self {
        Self { peer: Peer::Takes(Nanos(self.poll_gap.0 + most_slack(self.poll_gap).0)), ..self }
    }

    /// Returns the time that `bytes` take on the wire, in picoseconds.
    pub(super) fn time_ps(&self, bytes: u64) -> u64 {
        ps(u128::from(bytes) * 8_000_000_000_000, self.rate)
    }

    /// Returns the bytes that pass in `time`, rounded down.
    pub(super) fn bytes_in_ps(&self, time: u64) -> u64 {
        (u128::from(time) * u128::from(self.rate.0) / 8_000_000_000_000) as u64
    }

    /// Returns half the length of a pause with the maximum quanta, after which the pause is refreshed, in picoseconds.
    #[must_use]
    pub fn half_life_ps(&self) -> u64 {
        self.time_ps(u64::from(u16::MAX) * 64) / 2
    }

    /// Whether a pause may expire before the peer has processed its refresh.
    #[must_use]
    pub fn pause_may_lapse(&self) -> bool {
        pause_may_lapse(&self.input())
    }

    /// Returns the time from the end of a PFC frame until the peer begins no further frame, in picoseconds.
    pub(super) fn response_ps(&self) -> u64 {
        match self.peer {
            Peer::Standard => self.time_ps(standard_response(self.rate).0),
            Peer::Takes(time) => time.0 * PS,
        }
    }
}

/// Returns a time in picoseconds, rounded down like the simulated host rounds.
fn ps(scaled: u128, rate: BitRate) -> u64 {
    (scaled / u128::from(rate.0.max(1))) as u64
}

/// Returns the links of the table: five speeds, five lengths, two MTUs.
pub fn links() -> impl Iterator<Item = Link> {
    const SPEEDS: [u64; 5] = [10, 25, 40, 100, 400];
    const METRES: [u64; 5] = [2, 5, 40, 100, 300];
    let of_speed = |gigabits: u64| {
        METRES.into_iter().flat_map(move |metres| {
            [1500, 9216].map(|mtu| Link {
                rate: BitRate(gigabits * 1_000_000_000),
                cable: Length::metres(metres),
                mtu,
                cell: Bytes(208),
                poll_gap: Nanos(20_000),
                peer: Peer::Standard,
                small_packets: SmallPackets::ALL,
            })
        })
    };
    SPEEDS.into_iter().flat_map(of_speed)
}
