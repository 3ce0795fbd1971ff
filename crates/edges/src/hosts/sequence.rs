//! Sequence numbers at the receiver of a flow: detects new, late and duplicate frames.

/// Size of the window in which a late frame can be distinguished from a duplicate.
pub const WINDOW: u64 = 1024;

/// Classification of a sequence number at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The next number, or a later one.
    Ahead,
    /// A number that was overtaken by later ones.
    Late,
    /// A number that arrived before, or is older than the window. It is not counted as received, so that it cannot hide
    /// a loss.
    Duplicate,
}

/// The numbers among the last [`WINDOW`] of one flow that have arrived.
#[derive(Debug, Clone)]
pub struct SequenceWindow {
    /// One more than the highest number seen.
    next: u64,
    /// One bit per number, at its value modulo [`WINDOW`].
    seen: [u64; (WINDOW / 64) as usize],
}

impl SequenceWindow {
    /// Creates a window in which no number has arrived yet.
    #[must_use]
    pub fn new() -> Self {
        Self { next: 0, seen: [0; (WINDOW / 64) as usize] }
    }

    /// Records the arrival of number `sequence` and classifies it.
    #[inline]
    pub fn receive(&mut self, sequence: u64) -> Order {
        let (word, bit) = Self::place(sequence);
        if sequence >= self.next {
            if sequence > self.next {
                self.skip_to(sequence);
            }
            self.seen[word] |= bit;
            self.next = sequence.saturating_add(1);
            return Order::Ahead;
        }
        if self.next - sequence > WINDOW || self.seen[word] & bit != 0 {
            return Order::Duplicate;
        }
        self.seen[word] |= bit;
        Order::Late
    }

    /// Marks the numbers from `next` to below `sequence` as missing.
    #[cold]
    fn skip_to(&mut self, sequence: u64) {
        let first = self.next.max(sequence.saturating_sub(WINDOW - 1));
        for missing in first..sequence {
            let (word, bit) = Self::place(missing);
            self.seen[word] &= !bit;
        }
    }

    #[inline]
    fn place(sequence: u64) -> (usize, u64) {
        ((sequence % WINDOW / 64) as usize, 1 << (sequence % 64))
    }
}

impl Default for SequenceWindow {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn window_tells_ahead_late_and_duplicate_apart() {
        let mut window = SequenceWindow::new();
        let control = [0, 1, 3, 2, 2, 1, 10, 9].map(|sequence| window.receive(sequence));
        use Order::{Ahead, Duplicate, Late};
        assert_eq!(control, [Ahead, Ahead, Ahead, Late, Duplicate, Duplicate, Ahead, Late]);
        assert_eq!(window.receive(10 + WINDOW), Ahead);
        assert_eq!(window.receive(10), Duplicate, "it was seen, and is out of the window");
        assert_eq!(window.receive(11), Late);
    }

    proptest! {
        #[test]
        fn sequence_window_agrees_with_a_set(steps in prop::collection::vec((0_u64..3000, any::<bool>()), 1..500)) {
            let mut window = SequenceWindow::new();
            let (mut seen, mut next) = (HashSet::new(), 0_u64);
            for (step, ahead) in steps {
                let sequence = if ahead { next + step } else { next.saturating_sub(step) };
                let order = window.receive(sequence);
                let expected = if sequence >= next {
                    Order::Ahead
                } else if next - sequence > WINDOW || seen.contains(&sequence) {
                    Order::Duplicate
                } else {
                    Order::Late
                };
                prop_assert_eq!(order, expected);
                seen.insert(sequence);
                next = next.max(sequence + 1);
            }
        }
    }
}
