//! The buckets of a next-hop group, and their resilient assignment to its members.
//!
//! A flow belongs to a bucket. When a member is lost, only its buckets move; when one returns, it takes just its share.
//! So only flows that must move change their path and may be reordered.

/// Buckets for each unit of weight: shares are right to a few percent.
const PER_WEIGHT: usize = 32;
/// Maximum number of buckets of a group.
const MOST: usize = 4096;

/// A bucket without a member.
const NONE: u8 = u8::MAX;

/// Maximum number of members of a group.
pub const MAX_MEMBERS: usize = 64;

/// The buckets of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Member of each bucket; the number of buckets is a power of two.
    members: Box<[u8]>,
}

impl Buckets {
    /// Creates unassigned buckets for members of these `weights`.
    #[must_use]
    pub fn new(weights: &[u16]) -> Self {
        let sum: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
        let buckets = if weights.len() < 2 { 1 } else { (sum * PER_WEIGHT).next_power_of_two().min(MOST) };
        Self { members: vec![NONE; buckets].into() }
    }

    /// Number of buckets.
    #[must_use]
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Member of each bucket; `None` while no member is alive.
    pub fn members(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        self.members.iter().map(|&member| (member != NONE).then_some(usize::from(member)))
    }

    /// Assigns the buckets to the members that are `alive`, in proportion to their `weights`. A bucket keeps its member
    /// unless that is dead or has more than its share. Returns the number of buckets that moved.
    pub fn assign(&mut self, weights: &[u16], alive: &[bool]) -> usize {
        let mut left = shares(self.members.len(), weights, alive);
        let mut moving = Vec::new();
        for (bucket, &member) in self.members.iter().enumerate() {
            match left.get_mut(usize::from(member)) {
                Some(left) if *left > 0 => *left -= 1,
                _ => moving.push(bucket),
            }
        }
        let mut targets = left.iter().enumerate().flat_map(|(member, &left)| std::iter::repeat_n(member as u8, left));
        let mut moved = 0;
        for bucket in moving {
            let member = targets.next().unwrap_or(NONE);
            moved += usize::from(std::mem::replace(&mut self.members[bucket], member) != member);
        }
        moved
    }
}

/// Buckets that each living member must have: whole numbers with the sum `buckets`, by largest remainder.
fn shares(buckets: usize, weights: &[u16], alive: &[bool]) -> Vec<usize> {
    let weight = |member: usize| if alive[member] { usize::from(weights[member]) } else { 0 };
    let sum: usize = (0..weights.len()).map(weight).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let mut shares: Vec<usize> = (0..weights.len()).map(|member| buckets * weight(member) / sum).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).filter(|&member| alive[member]).collect();
    by_remainder.sort_by_key(|&member| (std::cmp::Reverse(buckets * weight(member) % sum), member));
    let left = buckets - shares.iter().sum::<usize>();
    by_remainder.iter().take(left).for_each(|&member| shares[member] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(buckets: &Buckets, members: usize) -> Vec<usize> {
        (0..members).map(|member| buckets.members().filter(|&found| found == Some(member)).count()).collect()
    }

    #[test]
    fn lost_member_moves_only_its_own_buckets_and_takes_its_share_back() {
        let (weights, all) = ([1, 1, 1, 1], [true; 4]);
        let mut buckets = Buckets::new(&weights);
        buckets.assign(&weights, &all);
        let before: Vec<_> = buckets.members().collect();
        assert_eq!(counts(&buckets, 4), [32; 4]);
        assert_eq!(buckets.assign(&weights, &[true, false, true, true]), 32);
        let without: Vec<_> = buckets.members().collect();
        for (before, without) in before.iter().zip(&without) {
            assert!(before == without || *before == Some(1));
        }
        assert_eq!(buckets.assign(&weights, &all), 32);
        assert_eq!(counts(&buckets, 4), [32; 4]);
        for (without, after) in without.iter().zip(buckets.members()) {
            assert!(*without == after || after == Some(1));
        }
    }

    #[test]
    fn group_without_living_members_has_empty_buckets() {
        let mut buckets = Buckets::new(&[1, 1]);
        buckets.assign(&[1, 1], &[true, true]);
        buckets.assign(&[1, 1], &[false, false]);
        assert!(buckets.members().all(|member| member.is_none()));
        assert_eq!(Buckets::new(&[7]).count(), 1);
    }

    proptest! {
        #[test]
        fn shares_follow_weights_and_no_more_buckets_move_than_must(
            weights in prop::collection::vec(1_u16..9, 1..12),
            changes in prop::collection::vec(any::<u16>(), 1..12),
        ) {
            let mut buckets = Buckets::new(&weights);
            for change in changes {
                let alive: Vec<bool> = (0..weights.len()).map(|member| change >> member & 1 == 1).collect();
                let wanted = shares(buckets.count(), &weights, &alive);
                let before = counts(&buckets, weights.len());
                let empty = buckets.members().filter(Option::is_none).count();
                let surplus: usize = before.iter().zip(&wanted).map(|(before, wanted)| before.saturating_sub(*wanted)).sum();
                let filled = if alive.contains(&true) { empty } else { 0 };
                prop_assert_eq!(buckets.assign(&weights, &alive), surplus + filled);
                prop_assert_eq!(counts(&buckets, weights.len()), wanted);
            }
        }
    }
}
