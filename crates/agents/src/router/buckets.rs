//! The buckets of a next-hop group, and their resilient assignment to its members.
//!
//! A flow belongs to a bucket. When a member is lost, only its buckets move; when it returns, the same buckets return.
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

    /// Begins with the assignment of the group `before`, whose members have another `place` here, or none. The lower
    /// bits of a flow's hash select its bucket in both groups. There are at least as many buckets as before, since
    /// otherwise flows of different members would share one. One member needs one bucket.
    pub fn inherit(&mut self, before: &Self, place: impl Fn(usize) -> Option<usize>) {
        if self.members.len() > 1 && before.members.len() > self.members.len() {
            self.members = vec![NONE; before.members.len()].into();
        }
        for (bucket, member) in self.members.iter_mut().enumerate() {
            let old = before.members[bucket & (before.members.len() - 1)];
            *member = place(usize::from(old)).map_or(NONE, |place| place as u8);
        }
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
    ///
    /// Each bucket has a home: its member while all are alive. A member gives up foreign buckets first, and buckets
    /// return home if they can. So a member that returns gets its own flows back, and no others move.
    pub fn assign(&mut self, weights: &[u16], alive: &[bool]) -> usize {
        let homes = homes(self.members.len(), weights);
        let mut left = shares(self.members.len(), weights, alive);
        let mut moving = vec![true; self.members.len()];
        for is_at_home in [true, false] {
            for (bucket, &member) in self.members.iter().enumerate() {
                if (member == homes[bucket]) == is_at_home {
                    moving[bucket] = !take(&mut left, member);
                }
            }
        }
        let before = self.members.clone();
        for bucket in (0..before.len()).filter(|&bucket| moving[bucket]) {
            self.members[bucket] = if take(&mut left, homes[bucket]) { homes[bucket] } else { NONE };
        }
        let mut targets = left.iter().enumerate().flat_map(|(member, &left)| std::iter::repeat_n(member as u8, left));
        for member in self.members.iter_mut().filter(|member| **member == NONE) {
            *member = targets.next().unwrap_or(NONE);
        }
        before.iter().zip(&self.members).filter(|(before, after)| before != after).count()
    }
}

/// Takes one bucket from the share that `member` has left. Returns whether there was one.
fn take(left: &mut [usize], member: u8) -> bool {
    let Some(left) = left.get_mut(usize::from(member)).filter(|left| **left > 0) else { return false };
    *left -= 1;
    true
}

/// Member of each bucket while all members are alive.
fn homes(buckets: usize, weights: &[u16]) -> Vec<u8> {
    let shares = shares(buckets, weights, &vec![true; weights.len()]);
    let homes = shares.iter().enumerate().flat_map(|(member, &share)| std::iter::repeat_n(member as u8, share));
    let mut homes: Vec<u8> = homes.collect();
    homes.resize(buckets, NONE);
    homes
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
        assert!(buckets.members().eq(before), "each flow is where it was");
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
        fn members_that_return_together_get_their_own_buckets_back(
            weights in prop::collection::vec(1_u16..9, 1..12),
            change in any::<u16>(),
        ) {
            let (mut buckets, all) = (Buckets::new(&weights), vec![true; weights.len()]);
            let alive: Vec<bool> = (0..weights.len()).map(|member| change >> member & 1 == 1).collect();
            buckets.assign(&weights, &all);
            let before = buckets.clone();
            buckets.assign(&weights, &alive);
            buckets.assign(&weights, &all);
            prop_assert_eq!(buckets, before);
        }

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
