//! Entries that a full table has refused, and that are tried again when others leave it.

use std::collections::BTreeMap;

/// Most entries that are tried again at once, so that the router's thread has time for all else.
pub const MOST_RETRIES: usize = 1024;

/// Refused entries by key. Each departure from the table causes one round of attempts in the order of the keys.
#[derive(Debug)]
pub struct Refused<K, V> {
    entries: BTreeMap<K, V>,
    /// The first key of the round's rest; none between rounds.
    next: Option<K>,
    /// Whether something has left the table since the last round began.
    has_room: bool,
}

impl<K, V> Default for Refused<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), next: None, has_room: false }
    }
}

impl<K: Ord + Copy, V: Clone> Refused<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// Notes a refused entry, which replaces an earlier one of the key.
    pub fn insert(&mut self, key: K, value: V) {
        self.entries.insert(key, value);
    }

    /// Forgets an entry that is in the table now, or is no longer wanted.
    pub fn remove(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Notes that something has left the table.
    pub fn note_room(&mut self) {
        self.has_room = true;
    }

    /// Whether entries should be tried again.
    pub fn is_due(&self) -> bool {
        !self.entries.is_empty() && (self.has_room || self.next.is_some())
    }

    /// The entries to try again now, at most [`MOST_RETRIES`]. They stay until they are removed.
    pub fn due(&mut self) -> Vec<(K, V)> {
        if self.next.is_none() && std::mem::take(&mut self.has_room) {
            self.next = self.entries.first_key_value().map(|(key, _)| *key);
        }
        let Some(first) = self.next else { return Vec::new() };
        let remaining = self.entries.range(first..).map(|(key, value)| (*key, value.clone()));
        let mut due: Vec<(K, V)> = remaining.take(MOST_RETRIES + 1).collect();
        self.next = if due.len() > MOST_RETRIES { due.pop().map(|(key, _)| key) } else { None };
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departure_causes_one_round_in_parts() {
        let mut refused = Refused::default();
        (0..MOST_RETRIES + 3).for_each(|key| refused.insert(key, ()));
        assert!(!refused.is_due() && refused.due().is_empty(), "nothing has left");
        refused.note_room();
        let sizes = [0; 3].map(|_| refused.due().len());
        assert_eq!(sizes, [MOST_RETRIES, 3, 0]);
        refused.note_room();
        (0..MOST_RETRIES + 3).for_each(|key| refused.remove(&key));
        assert!(!refused.is_due() && refused.due().is_empty());
    }
}
