//! A bounded table that follows events and dumps.

use std::collections::{BTreeMap, BTreeSet};

/// A table of the kernel's objects by key.
///
/// A dump marks the entries that it names; its end removes the others. Events outrank the dump: the kernel may read an
/// object for the dump, change it, and send the event first. So a dump never changes an entry that an event has changed
/// since the dump began.
#[derive(Debug)]
pub struct Table<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    limit: usize,
    /// Number of the current or last dump.
    dump: u32,
    /// Keys that events have changed since the dump began; none if no dump is under way.
    changed: Option<BTreeSet<K>>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    /// Number of the dump that last named the entry, or that was current when an event set it.
    seen: u32,
}

/// Effect of a value on a table.
#[derive(Debug, PartialEq, Eq)]
pub enum Put<V> {
    /// The table has it already, or an event outranks it.
    Same,
    /// The key is new.
    New,
    /// It replaces this value.
    Changed(V),
    /// The key is new and the table is full.
    Refused,
}

impl<K: Ord + Copy, V: PartialEq> Table<K, V> {
    /// Creates an empty table of at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), limit, dump: 0, changed: None }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// The entries whose keys are in `range`.
    pub fn range(&self, range: impl std::ops::RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        self.entries.range(range).map(|(key, entry)| (key, &entry.value))
    }

    /// Sets a value by an event.
    pub fn put(&mut self, key: K, value: V) -> Put<V> {
        self.outrank(key);
        self.store(key, value)
    }

    /// Sets a value by a dump.
    pub fn put_dumped(&mut self, key: K, value: V) -> Put<V> {
        if self.changed.as_ref().is_some_and(|changed| changed.contains(&key)) {
            return Put::Same;
        }
        self.store(key, value)
    }

    /// Removes a key by an event.
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.outrank(key);
        self.entries.remove(&key).map(|entry| entry.value)
    }

    /// Changes the value of `key` in place. Returns whether the table has it.
    pub fn edit(&mut self, key: K, edit: impl FnOnce(&mut V)) -> bool {
        self.outrank(key);
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        edit(&mut entry.value);
        true
    }

    /// Begins a dump. A dump that is under way begins anew.
    pub fn begin(&mut self) {
        self.dump = self.dump.wrapping_add(1);
        self.changed = Some(BTreeSet::new());
    }

    /// Marks entries as named by the dump, which has them in a form that cannot be decoded.
    pub fn confirm(&mut self, range: impl std::ops::RangeBounds<K>) {
        let dump = self.dump;
        self.entries.range_mut(range).for_each(|(_, entry)| entry.seen = dump);
    }

    /// Ends a dump. Returns the keys that it did not name; the caller removes them.
    pub fn end(&mut self) -> Vec<K> {
        self.changed = None;
        let unseen = self.entries.iter().filter(|(_, entry)| entry.seen != self.dump);
        unseen.map(|(key, _)| *key).collect()
    }

    /// Gives up a dump: entries that it did not name stay.
    pub fn cancel(&mut self) {
        self.changed = None;
    }

    fn outrank(&mut self, key: K) {
        if let Some(changed) = &mut self.changed {
            changed.insert(key);
        }
    }

    fn store(&mut self, key: K, value: V) -> Put<V> {
        let is_full = self.entries.len() >= self.limit;
        match self.entries.entry(key) {
            std::collections::btree_map::Entry::Vacant(_) if is_full => Put::Refused,
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { value, seen: self.dump });
                Put::New
            }
            std::collections::btree_map::Entry::Occupied(mut occupied) => {
                let entry = occupied.get_mut();
                entry.seen = self.dump;
                if entry.value == value {
                    return Put::Same;
                }
                Put::Changed(std::mem::replace(&mut entry.value, value))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_end_names_entries_that_the_dump_did_not() {
        let mut table = Table::new(8);
        assert_eq!(table.put(1, 'a'), Put::New);
        assert_eq!(table.put(2, 'b'), Put::New);
        table.begin();
        assert_eq!(table.put_dumped(2, 'c'), Put::Changed('b'));
        assert_eq!(table.put(3, 'd'), Put::New, "an event during the dump");
        assert_eq!(table.end(), [1]);
    }

    #[test]
    fn event_during_a_dump_outranks_the_dump() {
        let mut table = Table::new(8);
        table.put(1, 'a');
        table.begin();
        table.remove(1);
        assert_eq!(table.put_dumped(1, 'a'), Put::Same, "read before the removal, received after it");
        assert_eq!(table.get(&1), None);
        table.put(2, 'b');
        assert_eq!(table.put_dumped(2, 'c'), Put::Same);
        assert!(table.end().is_empty());
        assert_eq!(table.get(&2), Some(&'b'));
        assert_eq!(table.put_dumped(1, 'a'), Put::New, "the next dump counts again");
    }

    #[test]
    fn new_key_is_refused_in_a_full_table() {
        let mut table = Table::new(1);
        assert_eq!(table.put(1, 'a'), Put::New);
        assert_eq!(table.put(2, 'b'), Put::Refused);
        assert_eq!(table.put(1, 'c'), Put::Changed('a'), "a known key needs no room");
    }
}
