//! Where a key stands in a node, without a look at most of its keys: those may lie far apart in memory.
//!
//! The keys of a node mostly begin alike, because they are in order. Behind what they all begin with, two letters of each are
//! kept in one line of memory. Only keys that have the same letters there are compared.

use std::borrow::Borrow;

use super::MOST;
use super::spelling::Spelt;

/// What is kept of the keys of one node.
#[derive(Clone)]
pub(super) struct Guide {
    /// How many bytes all of them begin with.
    skip: u16,
    /// The two behind those, of each; the greatest number where there is no key.
    letters: [u16; MOST],
}

/// How keys are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// As few of them as possible.
    Quick,
    /// As many as it takes to be right.
    Careful,
}

const NONE: u16 = u16::MAX;

impl Guide {
    /// A guide to keys in order.
    pub(super) fn of<K: Spelt, T>(entries: &[(K, T)]) -> Self {
        let skip = in_common(entries);
        let mut letters = [NONE; MOST];
        for (letters, (key, _)) in letters.iter_mut().zip(entries) {
            *letters = key.spelling().letters(usize::from(skip));
        }
        Guide { skip, letters }
    }

    /// Where a key stands among those that this is a guide to, or would stand. A quick look says anything where the key begins
    /// otherwise than all of them, but never that it is where it is not.
    pub(super) fn look<K: Borrow<Q>, T, Q: Spelt + ?Sized>(
        &self,
        entries: &[(K, T)],
        key: &Q,
        look: Look,
    ) -> Result<usize, usize> {
        let is_like = |(first, _): &(K, T)| self.fits(first, key);
        match look == Look::Quick || self.skip == 0 || entries.first().is_some_and(is_like) {
            true => self.find(entries, key),
            false => entries.binary_search_by(|(known, _)| known.borrow().cmp(key)),
        }
    }

    /// Whether a key begins as one that is there does, and so as all of them: only then it can be found by its letters.
    pub(super) fn fits<K: Borrow<Q>, Q: Spelt + ?Sized>(&self, known: &K, key: &Q) -> bool {
        known.borrow().spelling().in_common(&key.spelling()) >= usize::from(self.skip)
    }

    fn find<K: Borrow<Q>, T, Q: Spelt + ?Sized>(&self, entries: &[(K, T)], key: &Q) -> Result<usize, usize> {
        let wanted = key.spelling().letters(usize::from(self.skip));
        let before = self.letters.iter().filter(|letters| **letters < wanted).count();
        let behind = self.letters.iter().filter(|letters| **letters <= wanted).count().min(entries.len());
        let before = before.min(behind);
        let same = entries[before..behind].binary_search_by(|(known, _)| known.borrow().cmp(key));
        same.map(|place| before + place).map_err(|place| before + place)
    }

    /// Takes note of a key that was put in at a place.
    pub(super) fn put<K: Spelt, T>(&mut self, entries: &[(K, T)], place: usize) {
        let is_at_end = place == 0 || place + 1 == entries.len();
        if is_at_end && (entries.len() <= 2 || in_common(entries) < self.skip) {
            *self = Guide::of(entries);
            return;
        }
        self.letters.copy_within(place..MOST - 1, place + 1);
        self.letters[place] = entries[place].0.spelling().letters(usize::from(self.skip));
    }

    /// Takes note that a key was taken out at a place.
    pub(super) fn take(&mut self, place: usize) {
        self.letters.copy_within(place + 1.., place);
        self.letters[MOST - 1] = NONE;
    }
}

/// How many bytes all keys begin with, where they are in order: as many as the first and the last of them.
fn in_common<K: Spelt, T>(entries: &[(K, T)]) -> u16 {
    let [(first, _), .., (last, _)] = entries else { return 0 };
    u16::try_from(first.spelling().in_common(&last.spelling())).unwrap_or(u16::MAX)
}
