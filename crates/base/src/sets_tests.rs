//! Tests of the sets.

use crate::sets::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #[test]
    fn set_behaves_like_a_set_of_indices(
        steps in prop::collection::vec((0_usize..CLASSES, 0_u8..4), 0..50),
        other in any::<u8>(),
    ) {
        let (mut set, mut model) = (ClassSet::EMPTY, BTreeSet::new());
        for (index, step) in steps {
            match step {
                0 => {
                    set.insert(index);
                    model.insert(index);
                }
                1 => {
                    set.remove(index);
                    model.remove(&index);
                }
                2 => {
                    set.set(index, true);
                    model.insert(index);
                }
                _ => prop_assert_eq!(set.pop_lowest(), model.pop_first()),
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!(set.contains(index), model.contains(&index));
            prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!((set.lowest(), set.highest()), (model.first().copied(), model.last().copied()));
        }
        let other = ClassSet::from_bits(other);
        let others: BTreeSet<usize> = other.iter().collect();
        prop_assert!((set | other).iter().eq(model.union(&others).copied()));
        prop_assert!((set & other).iter().eq(model.intersection(&others).copied()));
        prop_assert!((set - other).iter().eq(model.difference(&others).copied()));
        prop_assert!((set ^ other).iter().eq(model.symmetric_difference(&others).copied()));
        prop_assert_eq!(model.iter().copied().collect::<ClassSet>(), set);
        prop_assert_eq!(!!set, set);
    }
}

#[test]
fn first_sets_the_lowest_indices_up_to_all() {
    assert_eq!(FrameSet::first(0), FrameSet::EMPTY);
    assert_eq!(FrameSet::first(3).bits(), 0b111);
    assert_eq!(FrameSet::first(BURST), FrameSet::ALL);
    assert_eq!(PortSet::only(63).lowest(), Some(63));
    assert_eq!(format!("{:?}", PortSet::only_if(true, 5) | PortSet::only_if(false, 6)), "{5}");
}
