//! A shelf for the last few records of one writer: each is read whole or not at all, and no reader holds the writer up.

use crate::sync::{AtomicU64, Ordering};

/// The last records of `WORDS` words in `SLOTS` slots, with one writer. One slot less than there are can be read: the
/// next may be being written.
#[derive(Debug)]
pub struct HistoryRing<const WORDS: usize, const SLOTS: usize> {
    /// Records ever noted; the n-th is in slot n modulo `SLOTS`.
    noted: AtomicU64,
    slots: [[AtomicU64; WORDS]; SLOTS],
}

impl<const WORDS: usize, const SLOTS: usize> Default for HistoryRing<WORDS, SLOTS> {
    fn default() -> Self {
        let zero = |_| AtomicU64::new(0);
        Self { noted: AtomicU64::new(0), slots: std::array::from_fn(|_| std::array::from_fn(zero)) }
    }
}

impl<const WORDS: usize, const SLOTS: usize> HistoryRing<WORDS, SLOTS> {
    /// Keeps `record`, and forgets the oldest. Only the owner may.
    pub fn note(&self, record: [u64; WORDS]) {
        let noted = self.noted.load(Ordering::Relaxed);
        for (word, value) in self.slots[noted as usize % SLOTS].iter().zip(record) {
            // Release, so that whoever sees this word sees the count so far too, and with it that the slot is being written.
            word.store(value, Ordering::Release);
        }
        self.noted.store(noted + 1, Ordering::Release);
    }

    /// Those that are kept, the newest first.
    #[must_use]
    pub fn last(&self) -> Vec<[u64; WORDS]> {
        let noted = self.noted.load(Ordering::Acquire);
        let kept = (noted.saturating_sub(SLOTS as u64 - 1)..noted).rev();
        let read = |index: u64| {
            let words = self.slots[index as usize % SLOTS].each_ref().map(|word| word.load(Ordering::Acquire));
            // Its slot is written again by record `index + SLOTS`, which begins when so many were noted.
            let is_whole = self.noted.load(Ordering::Relaxed) < index + SLOTS as u64;
            is_whole.then_some(words)
        };
        kept.filter_map(read).collect()
    }
}
