//! Drops of classes that were lossy and are lossless, or the other way round: a loss is what a class has dropped while
//! it was lossless.

use std::sync::Arc;
use std::time::Duration;

use super::snapshot::{Drops, Snapshot};
use super::switch_view::SwitchView;
use crate::plan::drops::PerReason;
use crate::sets::{CLASSES, ClassSet};

/// Drops by class and reason.
type ByClass = [PerReason<u64>; CLASSES];

/// The drops of classes up to their last change between lossless and lossy.
#[derive(Debug, Clone, Default)]
pub struct FormerDrops {
    /// Classes that are lossy and were lossless before.
    pub lossless: ClassSet,
    /// Classes that have become lossless or lossy at some time.
    pub changed: ClassSet,
    /// By port; empty while no class has changed. Those of a lossless class are no losses, those of a lossy one are.
    drops: Arc<[ByClass]>,
}

impl FormerDrops {
    /// The drops of `switch_view`, which has these, once its lossless classes are `lossless`.
    #[must_use]
    pub(super) fn after(&self, switch_view: &SwitchView, lossless: ClassSet) -> Self {
        let changed = switch_view.lossless ^ lossless;
        if changed.is_empty() {
            return self.clone();
        }
        let now = Snapshot::take(switch_view, Duration::ZERO);
        let mut drops: Vec<ByClass> = self.drops.to_vec();
        drops.resize_with(now.ports.len(), Default::default);
        for (former, port) in drops.iter_mut().zip(&now.ports) {
            for class in changed.iter() {
                // Those of the kind that it had until now are not yet among them.
                former[class] = difference(&port.drops[class], &former[class]);
            }
        }
        Self {
            lossless: (self.lossless | switch_view.lossless) - lossless,
            changed: self.changed | changed,
            drops: drops.into(),
        }
    }

    /// The losses of `port`, which has dropped `drops`, in classes that are or were lossless; `None`: all of these
    /// classes.
    #[must_use]
    pub(super) fn losses(&self, port: usize, drops: &Drops) -> Option<Box<ByClass>> {
        let former = self.drops.get(port)?;
        let of_class = |class: usize| match self.lossless.contains(class) {
            true => former[class],
            false => difference(&drops[class], &former[class]),
        };
        Some(Box::new(std::array::from_fn(of_class)))
    }
}

fn difference(all: &PerReason<u64>, part: &PerReason<u64>) -> PerReason<u64> {
    PerReason(std::array::from_fn(|reason| all[reason].saturating_sub(part[reason])))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::quiet;
    use super::*;
    use crate::plan::DropReason;

    const FULL: usize = DropReason::HeadroomFull as usize;

    fn losses(switch_view: &SwitchView) -> [u64; 2] {
        let snapshot = Snapshot::take(switch_view, Duration::ZERO);
        [3, 4].map(|class| snapshot.ports[0].lost(class)[FULL])
    }

    /// In the interval of a change, a class that becomes lossless has lost nothing before.
    #[test]
    fn losses_grow_by_what_a_class_has_dropped_while_it_was_lossless() {
        let first = quiet();
        let drop = |class: usize, frames: u64| first.counters.ports[0].drops[class][FULL].add(frames);
        drop(3, 5);
        drop(4, 100);
        let before = Snapshot::take(&first, Duration::ZERO);
        let second = first.with_lossless(ClassSet::from_bits(0b1_1000));
        drop(3, 1);
        drop(4, 2);
        let after = Snapshot::take(&second, Duration::ZERO);
        assert_eq!([&before, &after].map(|snapshot| snapshot.ports[0].all_lost()), [5, 8]);
    }

    #[test]
    fn drop_is_a_loss_if_its_class_was_lossless_at_the_time() {
        let first = quiet();
        let drop = |class: usize, frames: u64| first.counters.ports[0].drops[class][FULL].add(frames);
        assert_eq!(first.ever_lossless(), ClassSet::only(3));
        drop(3, 1);
        drop(4, 10);
        let second = first.with_lossless(ClassSet::only(4));
        assert_eq!((second.ever_lossless(), losses(&second)), (ClassSet::from_bits(0b1_1000), [1, 0]));
        drop(3, 2);
        drop(4, 20);
        assert_eq!(losses(&second), [1, 20], "class 3 is lossy now, and 4 lossless");
        let third = second.with_lossless(ClassSet::only(3));
        drop(3, 4);
        drop(4, 40);
        assert_eq!((third.ever_lossless(), losses(&third)), (ClassSet::from_bits(0b1_1000), [5, 20]));
        let same = third.with_lossless(ClassSet::only(3));
        assert_eq!(losses(&same), [5, 20]);
        let none = same.with_lossless(ClassSet::EMPTY);
        drop(3, 8);
        assert_eq!((none.ever_lossless(), losses(&none)), (ClassSet::from_bits(0b1_1000), [5, 20]));
    }
}
