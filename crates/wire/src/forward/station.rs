//! Stations: addresses in VLANs, as the forwarding database and its cache compare them.

use crate::wire::MacAddr;

/// A station: 48 bits of address above 12 bits of VLAN. It is never zero for an existing station, because no station
/// has address zero.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Station(pub(super) u64);

impl Station {
    /// The station at `address` ([`MacAddr::to_number`]) in `vlan`.
    #[inline]
    #[must_use]
    pub const fn new(vlan: u16, address: u64) -> Self {
        Self(address << 12 | vlan as u64 & 0xfff)
    }

    /// The station as one number: see [`Station`] for its bits.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0
    }

    /// The station with this number, the inverse of [`Station::to_number`].
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// VLAN of the station.
    #[inline]
    #[must_use]
    pub const fn vlan(self) -> u16 {
        (self.0 & 0xfff) as u16
    }

    /// MAC address of the station.
    #[must_use]
    pub const fn mac(self) -> MacAddr {
        MacAddr::from_number(self.0 >> 12)
    }
}

/// The two stations of a frame, in one VLAN. Its words are as [`FlowCache`](super::FlowCache) compares them, so that a
/// look-up does not shift the addresses of every frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StationPair {
    /// Address of the destination in the upper 48 bits; the others are zero.
    dst: u64,
    /// Address of the source in the upper 48 bits, and 12 bits of VLAN at the lower end.
    src: u64,
}

impl StationPair {
    /// The stations at the addresses `dst` and `src` ([`MacAddr::to_number`]) in `vlan`.
    #[inline]
    #[must_use]
    pub const fn new(vlan: u16, dst: u64, src: u64) -> Self {
        Self { dst: dst << 16, src: src << 16 | vlan as u64 & 0xfff }
    }

    /// The stations in `vlan` whose addresses are the upper 48 bits of `dst` and `src`; the lower bits are zero.
    #[inline]
    #[must_use]
    pub const fn from_words(vlan: u16, dst: u64, src: u64) -> Self {
        debug_assert!((dst | src) & 0xffff == 0, "an address has 48 bits");
        Self { dst, src: src | vlan as u64 & 0xfff }
    }

    /// Destination.
    #[inline]
    #[must_use]
    pub const fn dst(self) -> Station {
        Station(self.dst >> 4 | self.src & 0xfff)
    }

    /// Source.
    #[inline]
    #[must_use]
    pub const fn src(self) -> Station {
        Station(self.src >> 16 << 12 | self.src & 0xfff)
    }

    /// VLAN of both.
    #[inline]
    #[must_use]
    pub const fn vlan(self) -> u16 {
        (self.src & 0xfff) as u16
    }

    /// Whether both have one destination.
    #[inline]
    #[must_use]
    pub const fn is_to_station_of(self, other: Self) -> bool {
        self.dst_difference(other) == 0 && self.vlan() == other.vlan()
    }

    /// Zero if both have one destination address, perhaps in two VLANs.
    #[inline]
    #[must_use]
    pub const fn dst_difference(self, other: Self) -> u64 {
        self.dst ^ other.dst
    }

    /// The pair in another VLAN.
    #[inline]
    #[must_use]
    pub const fn in_vlan(self, vlan: u16) -> Self {
        debug_assert!(vlan < 1 << 12, "a VLAN has 12 bits");
        Self { dst: self.dst, src: self.src >> 16 << 16 | vlan as u64 }
    }

    /// The words that the flow cache compares. The lowest 16 bits of the first and the 4 bits above the VLAN in the
    /// second are vacant.
    #[inline]
    pub(super) const fn words(self) -> (u64, u64) {
        (self.dst, self.src)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn station_pair_returns_its_stations_and_vlan(vlan in 0_u16..4096, dst in 0_u64..1 << 48, src in 0_u64..1 << 48, to in (0_u16..4096, 0_u64..1 << 48)) {
            let pair = StationPair::new(vlan, dst, src);
            let expected = (Station::new(vlan, dst), Station::new(vlan, src), vlan);
            prop_assert_eq!((pair.dst(), pair.src(), pair.vlan()), expected);
            prop_assert_eq!(StationPair::from_words(vlan, dst << 16, src << 16), pair);
            for (other_vlan, other_dst) in [(vlan, dst), to, (to.0, dst), (vlan, to.1)] {
                let other = StationPair::new(other_vlan, other_dst, to.1);
                prop_assert_eq!(pair.is_to_station_of(other), pair.dst() == other.dst());
                prop_assert_eq!(pair.dst_difference(other) == 0, dst == other_dst);
            }
            let pair = pair.in_vlan(to.0);
            let expected = (Station::new(to.0, dst), Station::new(to.0, src), to.0);
            prop_assert_eq!((pair.dst(), pair.src(), pair.vlan()), expected);
        }
    }
}
