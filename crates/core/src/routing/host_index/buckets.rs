//! Values by name, in buckets that are shared with copies made before.
//!
//! Buckets are split and joined one at a time as names come and go (linear hashing), so that each holds some dozens and no
//! change ever moves more than one bucket. A bucket is a small table of cells; a cell can be a line of memory, and has the words of a name, the value, and whose it is. Cells are arranged so that every name is in
//! the only one where it is looked for: whoever looks waits for memory once, and has nothing to guess meanwhile. Nothing is ever
//! iterated.

use std::sync::Arc;

use super::arrange::{self, LOOSE, Shifts};
use super::hash::Salt;
use super::shelves::Shelves;
use super::words::{SHOWN, WORDS, Words, are_same, words};
use super::{LONGEST, key};
use crate::names::Hostname;

/// How many names a bucket has at most on average. With fewer than a quarter of that two are joined.
const FULL: usize = 24;

/// How the entries of an index lie in memory: at the beginning of a line each. What has a value of a word takes one line,
/// and is found quickest.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Lined;

/// How the entries of an index lie in memory: one behind the other, without room between them.
#[derive(Clone, Copy, Debug)]
pub struct Dense;

/// Values by name.
#[derive(Debug)]
pub(super) struct Buckets<T, L> {
    salt: Salt,
    buckets: Shelves<Bucket<T, L>>,
    /// One less than the least power of two that is no less than the number of buckets.
    mask: usize,
    len: usize,
}

/// A value and its name.
#[derive(Clone, Debug)]
pub(super) struct Slot<T> {
    pub(super) hostname: Hostname,
    pub(super) value: T,
}

/// Half a line of memory.
#[derive(Debug)]
#[repr(align(32))]
struct Bucket<T, L> {
    /// Some of them free.
    cells: Arc<[Cell<T, L>]>,
    /// By which cells are arranged; [`LOOSE`] where they could not be.
    shifts: Shifts,
}

/// A value with the words of what it is kept under; free without it.
#[derive(Clone, Debug)]
#[repr(C)]
struct Cell<T, L> {
    lies: [L; 0],
    words: Words,
    slot: Option<Slot<T>>,
}

/// What is looked for: something kept under this, and the length of its hostname.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    name: &'a [u8],
    words: Words,
    length: usize,
    number: u64,
}

impl<T> Slot<T> {
    #[inline]
    pub(super) fn entry(&self) -> (&Hostname, &T) {
        (&self.hostname, &self.value)
    }
}

impl<T, L> Buckets<T, L> {
    pub(super) fn new() -> Self {
        Buckets { salt: Salt::new(), buckets: Shelves::new(), mask: 0, len: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot of a precise name.
    #[inline]
    pub(super) fn precise(&self, name: &str) -> Option<&Slot<T>> {
        self.get(name, name.len())
    }

    /// The slot of a wildcard, by what stands behind its `*`.
    pub(super) fn wildcard(&self, suffix: &str) -> Option<&Slot<T>> {
        self.get(suffix, suffix.len() + 1)
    }

    /// The slot of a hostname.
    pub(super) fn exact(&self, hostname: &Hostname) -> Option<&Slot<T>> {
        self.get(key(hostname), hostname.as_str().len())
    }

    #[inline]
    fn get(&self, name: &str, length: usize) -> Option<&Slot<T>> {
        let is_common = name.len() >= 8 && length <= SHOWN;
        if is_common { self.find(name, length) } else { self.find_odd(name, length) }
    }

    /// A name that is very short or does not fit into its words.
    #[inline(never)]
    fn find_odd(&self, name: &str, length: usize) -> Option<&Slot<T>> {
        if length <= LONGEST { self.find(name, length) } else { None }
    }

    #[inline(always)]
    fn find(&self, name: &str, length: usize) -> Option<&Slot<T>> {
        let wanted = Wanted::of(&self.salt, name, length);
        self.buckets.get(self.place_of(wanted.number))?.find(wanted)
    }

    /// The bucket of a number.
    #[inline]
    fn place_of(&self, number: u64) -> usize {
        place_among(number, self.buckets.len(), self.mask)
    }
}

impl<T: Clone, L: Clone> Buckets<T, L> {
    /// Sets a value; gives back the one it replaces.
    pub(super) fn insert(&mut self, slot: Slot<T>) -> Option<T> {
        if self.buckets.len() == 0 {
            self.buckets.push(Bucket::default());
        }
        let wanted = Wanted::to(&self.salt, &slot.hostname);
        let place = self.place_of(wanted.number);
        let bucket = self.buckets.get_mut(place)?;
        if let Some(known) = bucket.find_mut(wanted) {
            return Some(std::mem::replace(&mut known.value, slot.value));
        }
        let cell = Cell { lies: [], words: wanted.words, slot: Some(slot) };
        bucket.change(&self.salt, |cells| cells.push(cell));
        self.len += 1;
        if self.len > self.buckets.len() * FULL {
            self.split();
        }
        None
    }

    /// Takes a name out; gives back its value.
    pub(super) fn remove(&mut self, hostname: &Hostname) -> Option<T> {
        let wanted = Wanted::to(&self.salt, hostname);
        let place = self.place_of(wanted.number);
        self.buckets.get(place)?.find(wanted)?;
        let mut old = None;
        self.buckets.get_mut(place)?.change(&self.salt, |cells| {
            let at = cells.iter().position(|cell| cell.is_of(wanted));
            old = at.and_then(|at| cells.remove(at).slot);
        });
        self.len -= 1;
        if self.buckets.len() > 1 && self.len < self.buckets.len() * FULL / 4 {
            self.join();
        }
        old.map(|slot| slot.value)
    }

    /// Values of names that differ from each other.
    pub(super) fn of(slots: Vec<Slot<T>>) -> Self {
        let (len, count) = (slots.len(), slots.len().div_ceil(FULL));
        let mut all = Buckets { mask: mask_of(count), len, ..Buckets::new() };
        let mut parts: Vec<Vec<Slot<T>>> = (0..count).map(|_| Vec::with_capacity(FULL)).collect();
        for slot in slots {
            let number = Wanted::to(&all.salt, &slot.hostname).number;
            parts[place_among(number, count, all.mask)].push(slot);
        }
        let bucket = |part: Vec<Slot<T>>| Bucket::of(&all.salt, part.into_iter().map(Cell::of).collect());
        all.buckets = parts.into_iter().map(bucket).collect();
        all
    }

    /// Adds a bucket, and moves those there that now belong to it.
    fn split(&mut self) {
        let added = self.buckets.len();
        self.mask = mask_of(added + 1);
        let Some(old) = self.buckets.get_mut(added & (self.mask >> 1)) else { return };
        let is_moved = |cell: &Cell<T, L>| cell.number(&self.salt) as u32 as usize & self.mask == added;
        let (moved, kept) = old.taken().into_iter().partition(is_moved);
        *old = Bucket::of(&self.salt, kept);
        self.buckets.push(Bucket::of(&self.salt, moved));
    }

    /// Gives up the last bucket.
    fn join(&mut self) {
        let Some(mut last) = self.buckets.pop() else { return };
        let parent = self.buckets.len() & (self.mask >> 1);
        self.mask = mask_of(self.buckets.len());
        if let Some(bucket) = self.buckets.get_mut(parent) {
            bucket.change(&self.salt, |cells| cells.append(&mut last.taken()));
        }
    }
}

impl<T, L> Bucket<T, L> {
    /// The cells, arranged.
    fn of(salt: &Salt, mut cells: Vec<Cell<T, L>>) -> Self {
        let prints: Vec<u32> = cells.iter().map(|cell| print_of(cell.number(salt))).collect();
        let Some((shifts, places)) = arrange::arrange(&prints) else {
            return Bucket { cells: cells.into(), shifts: LOOSE };
        };
        let cell = |place: u32| match (place as usize).checked_sub(1) {
            Some(at) => std::mem::take(&mut cells[at]),
            None => Cell::default(),
        };
        Bucket { cells: places.into_iter().map(cell).collect(), shifts }
    }

    /// What is kept under a name.
    #[inline]
    fn find(&self, wanted: Wanted<'_>) -> Option<&Slot<T>> {
        let place = arrange::cell_of(print_of(wanted.number), &self.shifts, self.cells.len());
        let cell = self.cells.get(place)?;
        if cell.is_of(wanted) { cell.slot.as_ref() } else { self.find_loose(wanted.name, wanted.length) }
    }

    /// Looks at every cell, if the bucket is loose.
    #[cold]
    fn find_loose(&self, name: &[u8], length: usize) -> Option<&Slot<T>> {
        let mut slots = self.cells.iter().filter(|_| self.shifts == LOOSE).flat_map(|cell| &cell.slot);
        slots.find(|slot| key(&slot.hostname).as_bytes() == name && slot.hostname.as_str().len() == length)
    }
}

impl<T: Clone, L: Clone> Bucket<T, L> {
    fn find_mut(&mut self, wanted: Wanted<'_>) -> Option<&mut Slot<T>> {
        self.find(wanted)?;
        let cells = Arc::make_mut(&mut self.cells).iter_mut();
        cells.filter(|cell| cell.is_of(wanted)).find_map(|cell| cell.slot.as_mut())
    }

    /// Makes another bucket of the cells.
    fn change(&mut self, salt: &Salt, change: impl FnOnce(&mut Vec<Cell<T, L>>)) {
        let mut cells = self.taken();
        change(&mut cells);
        *self = Bucket::of(salt, cells);
    }

    /// The cells that are not free, to be put elsewhere; what others hold of them is copied.
    fn taken(&mut self) -> Vec<Cell<T, L>> {
        let mut all = Vec::with_capacity(self.cells.len() + 1);
        match Arc::get_mut(&mut self.cells) {
            Some(own) => all.extend(own.iter_mut().filter(|cell| cell.slot.is_some()).map(std::mem::take)),
            None => all.extend(self.cells.iter().filter(|cell| cell.slot.is_some()).cloned()),
        }
        all
    }
}

impl<T, L> Cell<T, L> {
    fn of(slot: Slot<T>) -> Self {
        Cell { lies: [], words: words(key(&slot.hostname).as_bytes()), slot: Some(slot) }
    }

    /// Whether it is what is looked for.
    #[inline]
    fn is_of(&self, wanted: Wanted<'_>) -> bool {
        let Some(slot) = &self.slot else { return false };
        let is_it = are_same(&self.words, &wanted.words) && slot.hostname.as_str().len() == wanted.length;
        is_it && (wanted.length <= SHOWN || key(&slot.hostname).as_bytes() == wanted.name)
    }

    fn number(&self, salt: &Salt) -> u64 {
        let Some(slot) = &self.slot else { return 0 };
        salt.of(&self.words, slot.hostname.as_str().len(), || key(&slot.hostname).as_bytes())
    }
}

impl<'a> Wanted<'a> {
    #[inline]
    fn of(salt: &Salt, name: &'a str, length: usize) -> Self {
        let name = name.as_bytes();
        let words = words(name);
        Wanted { name, words, length, number: salt.of(&words, length, || name) }
    }

    /// What has a hostname.
    fn to(salt: &Salt, hostname: &'a Hostname) -> Self {
        Wanted::of(salt, key(hostname), hostname.as_str().len())
    }
}

impl<T, L> Default for Cell<T, L> {
    fn default() -> Self {
        Cell { lies: [], words: [0; WORDS], slot: None }
    }
}

impl<T, L> Clone for Buckets<T, L> {
    fn clone(&self) -> Self {
        Buckets { salt: self.salt.clone(), buckets: self.buckets.clone(), ..*self }
    }
}

impl<T, L> Clone for Bucket<T, L> {
    fn clone(&self) -> Self {
        Bucket { cells: self.cells.clone(), shifts: self.shifts }
    }
}

impl<T, L> Default for Bucket<T, L> {
    fn default() -> Self {
        Bucket { cells: Arc::default(), shifts: Shifts::default() }
    }
}

/// The bucket of a number among so many, of which the mask is.
#[inline]
fn place_among(number: u64, count: usize, mask: usize) -> usize {
    let place = number as u32 as usize & mask;
    if place < count { place } else { place & (mask >> 1) }
}

/// The part of a number that no bucket is chosen by.
#[inline]
fn print_of(number: u64) -> u32 {
    (number >> 32) as u32
}

fn mask_of(count: usize) -> usize {
    count.next_power_of_two() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_a_word_is_a_line_of_memory() {
        assert_eq!((size_of::<Cell<usize, Lined>>(), align_of::<Cell<usize, Lined>>()), (64, 64));
        assert_eq!(size_of::<Cell<[usize; 2], Dense>>(), 72);
        assert_eq!(size_of::<Bucket<usize, Lined>>(), 32);
    }

    #[test]
    fn a_bucket_that_is_not_arranged_finds_everything() {
        let salt = Salt::new();
        let name = |n: usize| Hostname::parse(&format!("{}app-{n}.example.com", ["", "*."][n % 2])).unwrap();
        let cells = (0..40).map(|n| Cell::of(Slot { hostname: name(n), value: n })).collect();
        let mut bucket = Bucket { cells, shifts: LOOSE };
        let found =
            |bucket: &Bucket<usize, Dense>, n: usize| bucket.find(Wanted::to(&salt, &name(n))).map(|slot| slot.value);
        assert!((0..40).all(|n| found(&bucket, n) == Some(n)));
        assert_eq!(found(&bucket, 40), None);
        bucket.find_mut(Wanted::to(&salt, &name(7))).unwrap().value = 70;
        assert_eq!(found(&bucket, 7), Some(70));
        bucket.change(&salt, |cells| cells.truncate(20));
        assert!(bucket.shifts != LOOSE);
        assert!((0..41).all(|n| found(&bucket, n).is_some() == (n < 20)));
    }
}
