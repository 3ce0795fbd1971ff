//! Things of a network by index, of which a thread has those of its own parts.

use std::ops::{Index, IndexMut};

/// Things by their index in the whole network. Those of other threads are absent.
#[derive(Debug)]
pub struct Own<T> {
    items: Vec<Option<Box<T>>>,
}

impl<T> Own<T> {
    /// Returns the place for `count` things, all absent.
    #[must_use]
    pub fn absent(count: usize) -> Self {
        Self { items: (0..count).map(|_| None).collect() }
    }

    /// Number of things of the network.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Adds the next thing, which is present.
    pub fn push(&mut self, item: T) {
        self.items.push(Some(Box::new(item)));
    }

    /// Returns thing `index`, if it is present.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.items[index].as_deref_mut()
    }

    /// Moves thing `index` to `to`, where it is absent.
    pub fn give(&mut self, index: usize, to: &mut Self) {
        debug_assert!(to.items[index].is_none(), "a thing is in one place");
        to.items[index] = self.items[index].take();
    }

    /// Adds thing `index`, which is absent.
    pub fn put(&mut self, index: usize, item: T) {
        debug_assert!(self.items[index].is_none(), "a thing is in one place");
        self.items[index] = Some(Box::new(item));
    }

    /// Removes thing `index`, which is present.
    pub fn take(&mut self, index: usize) -> T {
        match self.items[index].take() {
            Some(item) => *item,
            None => unreachable!("thing {index} is with another thread"),
        }
    }

    /// Returns the things that are present, in order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().filter_map(Option::as_deref)
    }

    /// Returns the things that are present, as [`Own::iter`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().filter_map(Option::as_deref_mut)
    }
}

impl<T> FromIterator<T> for Own<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self { items: items.into_iter().map(|item| Some(Box::new(item))).collect() }
    }
}

impl<T> Index<usize> for Own<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        match &self.items[index] {
            Some(item) => item,
            None => unreachable!("thing {index} is with another thread"),
        }
    }
}

impl<T> IndexMut<usize> for Own<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        match &mut self.items[index] {
            Some(item) => item,
            None => unreachable!("thing {index} is with another thread"),
        }
    }
}
