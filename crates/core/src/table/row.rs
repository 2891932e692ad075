//! The entries of one node, in order, and the guide to them: how they are searched, filled, split and joined.

use super::guide::{Guide, Letters, Look};
use super::spelling::{Sought, Spelt};
use super::{MOST, SPARE};

/// Entries in order; `L` is what is kept of each key beside them.
#[derive(Clone)]
pub(super) struct Row<L, K, T> {
    guide: Guide<L>,
    entries: Vec<(K, T)>,
}

impl<L, K, T> Row<L, K, T> {
    pub(super) fn entries(&self) -> &[(K, T)] {
        &self.entries
    }

    /// An entry, to be changed; its key stays in its place.
    pub(super) fn entry_mut(&mut self, place: usize) -> Option<&mut (K, T)> {
        self.entries.get_mut(place)
    }
}

impl<L: Letters, K: Spelt, T> Row<L, K, T> {
    /// Where a key stands, or would stand.
    pub(super) fn look<Q: Sought<K> + ?Sized>(&self, key: &Q, look: Look) -> Result<usize, usize> {
        self.guide.look(&self.entries, key, look)
    }

    /// Whether a key that a quick look did not find belongs where it said: between two that are there.
    pub(super) fn is_between<Q: Sought<K> + ?Sized>(&self, place: usize, key: &Q) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.entries.get(before));
        place < self.entries.len() && before.is_some_and(|(before, _)| self.guide.fits(before, key))
    }

    /// Takes an entry out.
    pub(super) fn take(&mut self, place: usize) -> (K, T) {
        self.guide.take(place);
        self.entries.remove(place)
    }

    pub(super) fn of(entries: Vec<(K, T)>) -> Self {
        Row { guide: Guide::of(&entries), entries }
    }

    /// Puts an entry in; gives the second half where there is no room left. What grows at its end stays full instead, so that
    /// entries that come in order fill their nodes. There is room for few entries more than there are, because there are many
    /// nodes.
    pub(super) fn put(&mut self, place: usize, entry: (K, T)) -> Option<Self> {
        let entries = &mut self.entries;
        if entries.len() < MOST {
            if entries.len() == entries.capacity() {
                entries.reserve_exact(SPARE.min(MOST - entries.len()));
            }
            entries.insert(place, entry);
            self.guide.put(entries, place);
            return None;
        }
        if place == entries.len() {
            return Some(Row::of(vec![entry]));
        }
        let half = entries.len() / 2;
        let mut right = Vec::with_capacity(half + SPARE);
        right.extend(entries.drain(half..));
        entries.shrink_to(half + SPARE);
        match place.checked_sub(half) {
            Some(place) => right.insert(place, entry),
            None => entries.insert(place, entry),
        }
        self.guide = Guide::of(entries);
        Some(Row::of(right))
    }

    /// Gives the first entry another key, which is smaller than all others.
    pub(super) fn lower(&mut self, key: K) {
        if let Some((first, _)) = self.entries.first_mut() {
            *first = key;
            self.guide = Guide::of(&self.entries);
        }
    }
}

impl<L: Letters, K: Spelt + Clone, T: Clone> Row<L, K, T> {
    /// Adds what stands in the row behind.
    pub(super) fn append(&mut self, next: &Self) {
        self.entries.extend(next.entries.iter().cloned());
        self.guide = Guide::of(&self.entries);
    }
}
