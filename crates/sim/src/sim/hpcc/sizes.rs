//! The sizes of HPCC's simulator (`third.cc` and `SwitchMmu`), for switches that decide by its rules.

use super::topology::{Link, Topology};
use crate::mmu::{GroupProfile, HpccRules, Threshold};
use crate::plan::SwitchSpec;
use crate::sim::scenario::mmu;
use crate::units::{Alpha, BitRate, Bytes, Cells};

/// The sizes of buffers of switches that decide by rules of HPCC's simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MmuSizes {
    /// Those of HPCC's simulator.
    #[default]
    Hpcc,
    /// Holdfast's: the same as without rules.
    Holdfast,
}

impl MmuSizes {
    /// The size of a cell of a buffer of `mib`. HPCC's simulator counts bytes, so it is the least one: a frame of 1,058
    /// bytes takes 3 % more than itself, and 18 % more with cells of 208 bytes. A large buffer has too many of 64.
    pub fn cell_bytes(self, mib: u64) -> u64 {
        match self {
            Self::Hpcc if mib < LARGE_MIB => 64,
            Self::Hpcc | Self::Holdfast => 208,
        }
    }
}

/// A buffer of so many cells of 64 bytes is refused.
const LARGE_MIB: u64 = 16_384;

/// The inputs that hold for all switches.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// Rate of the hosts.
    pub nic: BitRate,
    pub buffer: Bytes,
}

/// Reserve of each group.
const RESERVE: Bytes = Bytes(4 << 10);
/// Bytes by which the share must be below T for XON.
const XON_OFFSET: Bytes = Bytes(3 << 10);
/// Alpha of ports as fast as the hosts: 2^-3. It doubles with the rate, up to one.
const LEAST_ALPHA: i8 = -3;

/// Rate of the first host, with which the others are compared.
pub fn nic_rate(topology: &Topology) -> Option<BitRate> {
    let link_of = |host: usize| topology.links.iter().find(|link| link.ends.contains(&host));
    topology.hosts().find_map(link_of).map(|link| link.rate)
}

/// Gives `switch`, whose ports have these `links`, the `rules` and sizes of HPCC's simulator. Lossy classes, which
/// carry only control packets, have their memory beyond the buffer.
///
/// # Errors
/// The buffer is smaller than its reserves and headroom.
pub fn apply(switch: &mut SwitchSpec, links: &[Link], given: Given, rules: HpccRules) -> Result<(), String> {
    let cell = switch.buffer.cell;
    let (mut guaranteed, mut headroom, mut lossy_reserves) = (Cells(0), Cells(0), Cells(0));
    for (port, link) in switch.ports.iter_mut().zip(links) {
        let eta = headroom_of(link).to_cells_floor(cell);
        for group in &mut port.buffer.groups {
            if !group.lossless {
                lossy_reserves += group.reserve;
                continue;
            }
            *group = GroupProfile {
                reserve: RESERVE.to_cells_ceil(cell),
                threshold: Threshold::Dynamic(alpha(link.rate, given.nic)),
                xon_offset: XON_OFFSET.to_cells_ceil(cell),
                xon_floor: Cells(0),
                headroom: eta,
                ..*group
            };
            guaranteed += group.reserve;
            headroom += eta;
        }
    }
    let plan = &mut switch.buffer;
    plan.total = given.buffer.to_cells_floor(cell);
    let Some(shared) = plan.total.checked_sub(guaranteed).and_then(|left| left.checked_sub(headroom)) else {
        let needed = (guaranteed + headroom).to_bytes(cell);
        return Err(format!("reserves and headroom need {needed}; write a larger BUFFER_SIZE"));
    };
    (plan.lossless_shared, plan.headroom, plan.reserves) = (shared, headroom, guaranteed + lossy_reserves);
    plan.total += plan.lossy_shared + lossy_reserves;
    mmu::follow(switch, rules);
    Ok(())
}

/// Three times the bytes that a cable holds one way.
fn headroom_of(link: &Link) -> Bytes {
    let bit_ns = u128::from(link.rate.0) * link.delay_ns as u128;
    Bytes((bit_ns / 8 / 1_000_000_000 * 3) as u64)
}

fn alpha(rate: BitRate, nic: BitRate) -> Alpha {
    let (mut exponent, mut rate) = (LEAST_ALPHA, rate.0);
    while rate > nic.0 && exponent < 0 {
        exponent += 1;
        rate /= 2;
    }
    Alpha::from_exponent(exponent).expect("from -3 to 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_doubles_with_the_rate_up_to_one() {
        let of = |gbps: u64| alpha(BitRate(gbps * 1_000_000_000), BitRate(25_000_000_000)).exponent();
        assert_eq!([10, 25, 26, 50, 100, 400].map(of), [-3, -3, -2, -2, -1, 0]);
    }

    #[test]
    fn headroom_is_three_times_the_bytes_on_the_cable() {
        let link = |delay_ns| Link { ends: [0, 1], rate: BitRate(100_000_000_000), delay_ns, loss: 0.0 };
        assert_eq!(headroom_of(&link(1000.0)), Bytes(37_500));
        assert_eq!(headroom_of(&link(0.0)), Bytes(0));
    }
}
