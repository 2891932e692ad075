//! Where a key stands in a node, without a look at most of its keys: those may lie far apart in memory.
//!
//! The keys of a node mostly begin alike, because they are in order. Behind what they all begin with, a few letters of each
//! are kept side by side. Only keys that have the same letters there are compared.

use super::MOST;
use super::spelling::{Sought, Spelling, Spelt};

/// What is kept of the keys of one node.
#[derive(Clone)]
pub(super) struct Guide<L> {
    /// How many bytes all of them begin with.
    skip: u16,
    /// Those behind, of each; the greatest number where there is no key.
    letters: [L; MOST],
}

/// A few bytes of a spelling, as a number.
pub(super) trait Letters: Copy + Ord {
    /// What is not less than any others.
    const NONE: Self;

    /// Those of a spelling from a place on.
    fn of(spelling: &Spelling<'_>, from: usize) -> Self;

    /// How many of some in order are less than others, and how many are not more.
    fn span(self, ordered: &[Self; MOST]) -> (usize, usize);
}

impl Letters for u16 {
    const NONE: u16 = u16::MAX;

    fn of(spelling: &Spelling<'_>, from: usize) -> Self {
        u16::from_be_bytes([spelling.byte(from), spelling.byte(from + 1)])
    }

    // All of them at once, since they fit into a register or two.
    fn span(self, ordered: &[u16; MOST]) -> (usize, usize) {
        let less = ordered.iter().filter(|letters| **letters < self).count();
        (less, ordered.iter().filter(|letters| **letters <= self).count())
    }
}

impl Letters for u128 {
    const NONE: u128 = u128::MAX;

    fn of(spelling: &Spelling<'_>, from: usize) -> Self {
        u128::from_be_bytes(spelling.bytes(from))
    }

    fn span(self, ordered: &[u128; MOST]) -> (usize, usize) {
        let less = ordered.partition_point(|letters| *letters < self);
        (less, less + ordered[less..].iter().take_while(|letters| **letters == self).count())
    }
}

/// How keys are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// As few of them as possible.
    Quick,
    /// As many as it takes to be right.
    Careful,
}

impl<L: Letters> Guide<L> {
    /// A guide to keys in order.
    pub(super) fn of<K: Spelt, T>(entries: &[(K, T)]) -> Self {
        let skip = in_common(entries);
        let mut letters = [L::NONE; MOST];
        for (letters, (key, _)) in letters.iter_mut().zip(entries) {
            *letters = L::of(&key.spelling(), usize::from(skip));
        }
        Guide { skip, letters }
    }

    /// Where a key stands among those that this is a guide to, or would stand. A quick look says anything where the key begins
    /// otherwise than all of them, but never that it is where it is not.
    pub(super) fn look<K: Spelt, T, Q: Sought<K> + ?Sized>(
        &self,
        entries: &[(K, T)],
        key: &Q,
        look: Look,
    ) -> Result<usize, usize> {
        let is_like = |(first, _): &(K, T)| self.fits(first, key);
        match look == Look::Quick || self.skip == 0 || entries.first().is_some_and(is_like) {
            true => self.find(entries, key),
            false => entries.binary_search_by(|(known, _)| key.compare(known).reverse()),
        }
    }

    /// Whether a key begins as one that is there does, and so as all of them: only then it can be found by its letters.
    pub(super) fn fits<K: Spelt, Q: Sought<K> + ?Sized>(&self, known: &K, key: &Q) -> bool {
        known.spelling().in_common(&key.spelt()) >= usize::from(self.skip)
    }

    fn find<K: Spelt, T, Q: Sought<K> + ?Sized>(&self, entries: &[(K, T)], key: &Q) -> Result<usize, usize> {
        let wanted = L::of(&key.spelt(), usize::from(self.skip));
        let (before, behind) = wanted.span(&self.letters);
        let (before, behind) = (before.min(entries.len()), behind.min(entries.len()));
        let same = entries[before..behind].binary_search_by(|(known, _)| key.compare(known).reverse());
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
        self.letters[place] = L::of(&entries[place].0.spelling(), usize::from(self.skip));
    }

    /// Takes note that a key was taken out at a place.
    pub(super) fn take(&mut self, place: usize) {
        self.letters.copy_within(place + 1.., place);
        self.letters[MOST - 1] = L::NONE;
    }
}

/// How many bytes all keys begin with, where they are in order: as many as the first and the last of them.
fn in_common<K: Spelt, T>(entries: &[(K, T)]) -> u16 {
    let [(first, _), .., (last, _)] = entries else { return 0 };
    u16::try_from(first.spelling().in_common(&last.spelling())).unwrap_or(u16::MAX)
}
