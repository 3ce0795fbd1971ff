//! `buffer.headroom`: the headroom of all lossless groups together.

use std::fmt;
use std::str::FromStr;

use super::draft::Port;
use crate::config::keys::Key;
use crate::config::yaml::read::Item;
use crate::mmu::HeadroomPolicy;
use crate::units::{Bytes, Cells};

pub const KEYS: &[Key] = &[
    Key::new("policy", "required in a mapping", "one of the three", ""),
    Key::new("ratio", "`2`", "1 to 64, up to three decimals", "`shared-pool`: divisor of the sum of etas"),
    Key::new("size", "", "size", "`shared-pool`: size instead of `ratio`"),
];

/// The ratio of the sum of all etas to the size of the shared pool: 1 to 64, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(u64);

impl Ratio {
    /// SONiC's usual over-subscription.
    pub const DEFAULT: Ratio = Ratio(2_000);

    /// `total / ratio`, rounded up.
    #[must_use]
    pub fn of(self, total: u64) -> u64 {
        let pool = (u128::from(total) * 1_000).div_ceil(u128::from(self.0));
        u64::try_from(pool).unwrap_or(u64::MAX)
    }
}

impl FromStr for Ratio {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
        let ratio = (digits(whole) && digits(fraction)).then(|| {
            let thousandths = format!("{fraction:0<3}").parse::<u64>().unwrap_or(0);
            whole.parse::<u64>().unwrap_or(0) * 1_000 + thousandths
        });
        let ratio = ratio.filter(|ratio| (1_000..=64_000).contains(ratio)).map(Ratio);
        ratio.ok_or_else(|| format!("`{text}` is not a ratio; write a number from 1 to 64, e.g. 2 or 2.5"))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1_000, self.0 % 1_000) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, rest) => write!(f, "{whole}.{}", format!("{rest:03}").trim_end_matches('0')),
        }
    }
}

/// The size of a shared pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// A part of the sum of all etas.
    Ratio(Ratio),
    /// A given size.
    Size(Bytes),
}

/// All headroom under a policy, in cells. `etas` are those of the lossless groups, port by port.
#[must_use]
pub fn headroom_sum(policy: HeadroomPolicy, pool: Pool, etas: &[Vec<Cells>], cell: Bytes) -> u64 {
    let sum = || etas.iter().flatten().map(|eta| u64::from(eta.0)).sum::<u64>();
    match (policy, pool) {
        (HeadroomPolicy::Independent, _) => sum(),
        (HeadroomPolicy::SharedPool, Pool::Ratio(ratio)) => ratio.of(sum()),
        (HeadroomPolicy::SharedPool, Pool::Size(_)) if sum() == 0 => 0,
        (HeadroomPolicy::SharedPool, Pool::Size(size)) => size.to_cells_ceil(cell).0.into(),
        (HeadroomPolicy::Dynamic, _) => etas.iter().map(|port| u64::from(insurance(port).0)).sum(),
    }
}

/// The headroom of a port under [`HeadroomPolicy::Dynamic`]: the largest of its etas.
pub fn insurance(etas: &[Cells]) -> Cells {
    etas.iter().copied().max().unwrap_or(Cells(0))
}

/// `buffer.headroom` as written.
pub struct Policy<'a> {
    pub policy: HeadroomPolicy,
    pub pool: Pool,
    /// The item at which errors about the pool are reported.
    pub item: Option<Item<'a>>,
}

/// Reads `buffer.headroom`: the name of a policy, or a map with the policy and its pool. `wanted` overrides the policy.
pub fn read<'a>(item: Option<Item<'a>>, wanted: Option<HeadroomPolicy>) -> Policy<'a> {
    let mut policy =
        Policy { policy: HeadroomPolicy::Independent, pool: Pool::Ratio(Ratio::DEFAULT), item: item.clone() };
    if let Some(item) = item {
        read_written(&item, &mut policy);
    }
    policy.policy = wanted.unwrap_or(policy.policy);
    policy
}

fn read_written<'a>(item: &Item<'a>, policy: &mut Policy<'a>) {
    if !item.is_map() {
        policy.policy = item.choice(&HeadroomPolicy::WORDS).unwrap_or_default();
        return;
    }
    let Some(fields) = item.fields(KEYS) else { return };
    let Some(written) =
        fields.required("policy", "policy: shared-pool").and_then(|item| item.choice(&HeadroomPolicy::WORDS))
    else {
        return;
    };
    policy.policy = written;
    let (ratio, size) = (fields.get("ratio"), fields.get("size"));
    if written != HeadroomPolicy::SharedPool {
        for item in [ratio, size].into_iter().flatten() {
            item.fail(format!(
                "has no effect with `policy: {}`; remove it or write `policy: shared-pool`",
                written.label()
            ));
        }
        return;
    }
    match (ratio, size) {
        (Some(_), Some(size)) => size.fail("`ratio` and `size` exclude each other; keep one of the two"),
        (Some(item), None) => {
            policy.pool = item.parse().map_or(policy.pool, Pool::Ratio);
            policy.item = Some(item);
        }
        (None, Some(item)) => {
            policy.pool = item.parse().map_or(policy.pool, Pool::Size);
            policy.item = Some(item);
        }
        (None, None) => {}
    }
}

impl Policy<'_> {
    /// All headroom in cells.
    pub fn sum(&self, etas: &[Vec<Cells>], cell: Bytes) -> u64 {
        headroom_sum(self.policy, self.pool, etas, cell)
    }

    /// Checks that a shared pool has room for the eta of any single group. `None`, and an error, if not.
    pub fn check(&self, etas: &[Vec<Cells>], ports: &[Port<'_>], cell: Bytes, whole: &Item<'_>) -> Option<()> {
        let owners = etas.iter().zip(ports).flat_map(|(etas, port)| etas.iter().map(move |eta| (*eta, port)));
        let (largest, port) = owners.max_by_key(|(eta, _)| *eta)?;
        let pool = self.sum(etas, cell);
        if self.policy != HeadroomPolicy::SharedPool || pool >= u64::from(largest.0) {
            return Some(());
        }
        let total: u64 = etas.iter().flatten().map(|eta| u64::from(eta.0)).sum();
        let remedy = match self.pool {
            Pool::Ratio(_) => {
                format!("write `ratio: {}` or less", Ratio(total * 1_000 / u64::from(largest.0).max(1)))
            }
            Pool::Size(_) => format!("write `size: {}KiB` or more", largest.to_bytes(cell).0.div_ceil(1 << 10)),
        };
        let ratio = match self.pool {
            Pool::Ratio(ratio) => format!("at a ratio of {ratio} "),
            Pool::Size(_) => String::new(),
        };
        self.item.as_ref().unwrap_or(whole).refuse(format!(
            "{ratio}the headroom pool has {}, less than the {} that one group of port {} may need; {remedy}",
            Bytes(pool.saturating_mul(cell.0)),
            largest.to_bytes(cell),
            port.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_read_and_shown() {
        for (text, shown) in [("2", "2"), ("2.5", "2.5"), ("1.125", "1.125"), ("64", "64"), ("3.0", "3")] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), shown);
        }
        for wrong in ["0.5", "64.1", "1.0001", "", "2.", ".5", "-1", "2:1", "9999999999"] {
            assert!(wrong.parse::<Ratio>().is_err(), "{wrong}");
        }
        assert_eq!("2.5".parse::<Ratio>().unwrap().of(1001), 401, "rounded up");
    }

    #[test]
    fn headroom_sum_of_each_policy_matches_hand_computation() {
        let etas = [vec![Cells(100), Cells(60)], vec![Cells(100)], vec![]];
        let sum = |policy, pool| headroom_sum(policy, pool, &etas, Bytes(208));
        let ratio = Pool::Ratio(Ratio::DEFAULT);
        assert_eq!(sum(HeadroomPolicy::Independent, ratio), 260);
        assert_eq!(sum(HeadroomPolicy::SharedPool, ratio), 130);
        assert_eq!(sum(HeadroomPolicy::SharedPool, Pool::Size(Bytes(20_801))), 101);
        assert_eq!(sum(HeadroomPolicy::Dynamic, ratio), 200);
    }
}
