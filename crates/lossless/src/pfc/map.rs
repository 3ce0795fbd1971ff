//! Maps PFC priorities to the queues that they pause (`maps.pfc_to_queue`, SONiC's MAP_PFC_PRIORITY_TO_QUEUE).

use crate::sets::{CLASSES, ClassSet};

/// The queue that each PFC priority pauses. Several priorities may pause one queue. A queue without a priority is never
/// paused.
///
/// IEEE 802.1Q clause 8.6.8 note 1: "Two or more priorities can be combined in a single queue."
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityMap {
    /// Queue of each priority.
    to_queue: [u8; CLASSES],
    /// Whether every priority pauses the queue of its number. Computed once: this is the usual map, and it then costs
    /// nothing.
    is_identity: bool,
}

impl PriorityMap {
    /// The map where every priority pauses the queue of its number.
    pub const IDENTITY: PriorityMap = PriorityMap { to_queue: [0, 1, 2, 3, 4, 5, 6, 7], is_identity: true };

    /// Creates a map where priority n pauses queue `to_queue[n]`. The configuration ensures that each entry is below
    /// [`CLASSES`].
    #[must_use]
    pub fn new(to_queue: [u8; CLASSES]) -> Self {
        let to_queue = to_queue.map(|queue| queue % CLASSES as u8);
        Self { to_queue, is_identity: to_queue == Self::IDENTITY.to_queue }
    }

    /// Whether every priority pauses the queue of its number.
    #[inline]
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// Returns the queues that the `priorities` pause.
    #[inline]
    #[must_use]
    pub fn queues(&self, priorities: ClassSet) -> ClassSet {
        if self.is_identity || priorities.is_empty() {
            return priorities;
        }
        priorities.iter().map(|priority| self.to_queue[priority].into()).collect()
    }

    /// Returns the priorities that pause any of `queues`.
    #[inline]
    #[must_use]
    pub fn priorities_of(&self, queues: ClassSet) -> ClassSet {
        if self.is_identity {
            return queues;
        }
        (0..CLASSES).filter(|&priority| queues.contains(self.to_queue[priority].into())).collect()
    }
}

impl Default for PriorityMap {
    fn default() -> Self {
        Self::IDENTITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(bits: u8) -> ClassSet {
        ClassSet::from_bits(bits)
    }

    #[test]
    fn identity_map_leaves_every_set_unchanged() {
        let map = PriorityMap::new([0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(map, PriorityMap::IDENTITY);
        assert!((0..=255).map(set).all(|all| map.queues(all) == all && map.priorities_of(all) == all));
    }

    #[test]
    fn several_priorities_may_stop_one_queue() {
        let map = PriorityMap::new([0, 1, 2, 3, 3, 5, 6, 0]);
        assert_eq!(map.queues(set(0b0001_0000)), set(0b1000));
        assert_eq!(map.queues(set(0b0001_1000)), set(0b1000));
        assert_eq!(map.priorities_of(set(0b1000)), set(0b0001_1000));
        assert_eq!(map.priorities_of(set(0b0001)), set(0b1000_0001));
        assert_eq!(map.priorities_of(set(0b1001_0000)), ClassSet::EMPTY, "no priority stops queues 4 and 7");
    }

    proptest! {
        #[test]
        fn a_queue_is_stopped_by_its_priorities_and_no_others(to_queue in prop::array::uniform8(0_u8..8), priorities: u8) {
            let (map, priorities) = (PriorityMap::new(to_queue), set(priorities));
            for queue in 0..8 {
                let stopped = map.queues(priorities).contains(queue);
                prop_assert_eq!(stopped, !(priorities & map.priorities_of(ClassSet::only(queue))).is_empty());
            }
        }
    }
}
