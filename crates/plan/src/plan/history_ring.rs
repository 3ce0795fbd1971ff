//! A ring of the last records of one writer. Readers get each record whole or not at all, and never block the writer.

use crate::sync::{AtomicU64, Ordering};

/// The last records of `WORDS` words in `SLOTS` slots, with one writer. At most `SLOTS - 1` records can be read,
/// because the next slot may be in the middle of a write.
#[derive(Debug)]
pub struct HistoryRing<const WORDS: usize, const SLOTS: usize> {
    /// Number of records ever noted; the n-th is in slot n modulo `SLOTS`.
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
    /// Stores `record` in place of the oldest. Only the owner may call this.
    pub fn note(&self, record: [u64; WORDS]) {
        let noted = self.noted.load(Ordering::Relaxed);
        for (word, value) in self.slots[noted as usize % SLOTS].iter().zip(record) {
            // Release: a reader that sees this word also sees the present count, and so detects that the slot is being
            // written.
            word.store(value, Ordering::Release);
        }
        self.noted.store(noted + 1, Ordering::Release);
    }

    /// The stored records, the newest first.
    #[must_use]
    pub fn last(&self) -> Vec<[u64; WORDS]> {
        let noted = self.noted.load(Ordering::Acquire);
        let kept = (noted.saturating_sub(SLOTS as u64 - 1)..noted).rev();
        let read = |index: u64| {
            let words = self.slots[index as usize % SLOTS].each_ref().map(|word| word.load(Ordering::Acquire));
            // Record `index + SLOTS` overwrites this slot. Its write begins when `index + SLOTS` records have been
            // noted.
            let is_whole = self.noted.load(Ordering::Relaxed) < index + SLOTS as u64;
            is_whole.then_some(words)
        };
        kept.filter_map(read).collect()
    }
}
