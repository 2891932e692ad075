//! Values by name, in buckets that are shared with copies made before.
//!
//! Buckets are split and joined one at a time as names come and go (linear hashing), so that each holds some dozens and no
//! change ever moves more than one bucket. A bucket is a small table of cells; a cell is one line of memory and has the
//! fingerprint of a name, where its value is, and the name itself as far as it fits. Cells are arranged so that every name is
//! in the only one where it is looked for: whoever looks waits for memory once, and has nothing to guess meanwhile. Nothing is
//! ever iterated.

use std::sync::Arc;

use super::arrange::{self, Shifts};
use crate::array::Array;
use crate::names::Hostname;
use crate::seed::Seed;

/// How many names a bucket has at most on average. With fewer than a quarter of that two are joined.
const FULL: usize = 24;

/// How many bytes of a name a cell has room for.
const SHOWN: usize = 55;

/// Values by name.
#[derive(Clone, Debug)]
pub(super) struct Buckets<T> {
    seed: Seed,
    buckets: Array<Bucket<T>>,
    len: usize,
}

/// A value and its name.
#[derive(Clone, Debug)]
pub(super) struct Slot<T> {
    pub(super) hostname: Hostname,
    pub(super) value: T,
}

#[derive(Debug)]
struct Bucket<T> {
    /// As many as a power of two, some of them free; none where they could not be arranged.
    cells: Arc<[Cell]>,
    /// By which cells are arranged.
    shifts: Shifts,
    slots: Arc<[Slot<T>]>,
}

/// Place in a bucket counted from one, or zero where the cell is free; fingerprint; length and front of the name.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Cell {
    place: u32,
    print: u32,
    length: u8,
    front: [u8; SHOWN],
}

impl<T> Slot<T> {
    /// What it is kept under: a wildcard without its `*`, so that it begins with a dot as no precise name does.
    fn name(&self) -> &[u8] {
        key(&self.hostname).as_bytes()
    }
}

/// What a hostname is kept under.
pub(super) fn key(hostname: &Hostname) -> &str {
    let text = hostname.as_str();
    text.strip_prefix('*').unwrap_or(text)
}

impl<T> Buckets<T> {
    pub(super) fn new() -> Self {
        Buckets { seed: Seed::new(), buckets: Array::new(), len: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is kept under a name.
    pub(super) fn get(&self, name: &str) -> Option<&Slot<T>> {
        if self.len == 0 {
            return None;
        }
        let number = self.seed.of(name.as_bytes());
        let bucket = self.buckets.get(bucket_of(number, self.buckets.len()))?;
        bucket.slots.get(bucket.find(number, name.as_bytes())?)
    }
}

impl<T: Clone + Default> Buckets<T> {
    /// Sets a value; gives back the one it replaces.
    pub(super) fn insert(&mut self, slot: Slot<T>) -> Option<T> {
        if self.buckets.is_empty() {
            self.buckets.push(Bucket::default());
        }
        let number = self.seed.of(slot.name());
        let place = bucket_of(number, self.buckets.len());
        let bucket = self.buckets.get_mut(place)?;
        if let Some(at) = bucket.find(number, slot.name()) {
            let known = &mut Arc::make_mut(&mut bucket.slots)[at];
            return Some(std::mem::replace(&mut known.value, slot.value));
        }
        bucket.add(self.seed, slot);
        self.len += 1;
        if self.len > self.buckets.len() * FULL {
            self.split();
        }
        None
    }

    /// Takes a name out; gives back its value.
    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        let number = self.seed.of(name.as_bytes());
        let place = bucket_of(number, self.buckets.len().max(1));
        let at = self.buckets.get(place)?.find(number, name.as_bytes())?;
        let old = self.buckets.get_mut(place)?.take(self.seed, at);
        self.len -= 1;
        if self.buckets.len() > 1 && self.len < self.buckets.len() * FULL / 4 {
            self.join();
        }
        Some(old.value)
    }

    /// Values of names that differ from each other.
    pub(super) fn of(slots: Vec<Slot<T>>) -> Self {
        let seed = Seed::new();
        let (len, count) = (slots.len(), slots.len().div_ceil(FULL));
        let mut parts: Vec<Vec<Slot<T>>> = (0..count).map(|_| Vec::with_capacity(FULL)).collect();
        for slot in slots {
            parts[bucket_of(seed.of(slot.name()), count)].push(slot);
        }
        Buckets { seed, buckets: parts.into_iter().map(|part| Bucket::of(seed, part)).collect(), len }
    }

    /// Adds a bucket, and moves those there that now belong to it.
    fn split(&mut self) {
        let (seed, count) = (self.seed, self.buckets.len() + 1);
        let Some(old) = self.buckets.get_mut(parent_of(count - 1)) else { return };
        let is_moved = |slot: &Slot<T>| bucket_of(seed.of(slot.name()), count) == count - 1;
        let (moved, kept) = old.slots.iter().cloned().partition(is_moved);
        *old = Bucket::of(seed, kept);
        self.buckets.push(Bucket::of(seed, moved));
    }

    /// Gives up the last bucket.
    fn join(&mut self) {
        let Some(last) = self.buckets.pop() else { return };
        if let Some(bucket) = self.buckets.get_mut(parent_of(self.buckets.len())) {
            *bucket = Bucket::of(self.seed, bucket.slots.iter().chain(&*last.slots).cloned().collect());
        }
    }
}

impl<T> Bucket<T> {
    /// Where the value of a name is.
    fn find(&self, number: u64, name: &[u8]) -> Option<usize> {
        if self.cells.is_empty() {
            return self.slots.iter().position(|slot| slot.name() == name);
        }
        let print = print_of(number);
        let cell = self.cells.get(arrange::cell_of(print, &self.shifts, self.cells.len()))?;
        let place = (cell.place as usize).checked_sub(1)?;
        let is_it = cell.print == print && cell.is_of(name) && self.has_back(place, name);
        is_it.then_some(place)
    }

    /// Whether what did not fit into the cell is the same, too.
    fn has_back(&self, place: usize, name: &[u8]) -> bool {
        name.len() <= SHOWN || self.slots[place].name() == name
    }

    fn of(seed: Seed, slots: Vec<Slot<T>>) -> Self {
        let cards = slots.iter().map(|slot| Cell::new(print_of(seed.of(slot.name())), slot.name())).collect();
        Bucket::arranged(cards, slots)
    }

    /// The bucket of some slots. `cards` are what their cells are to say, whatever their places.
    fn arranged(cards: Vec<Cell>, slots: Vec<Slot<T>>) -> Self {
        let prints: Vec<u32> = cards.iter().map(|card| card.print).collect();
        let Some((shifts, places)) = arrange::arrange(&prints) else {
            return Bucket { cells: Arc::default(), shifts: Shifts::default(), slots: slots.into() };
        };
        let cell = |place: &u32| match (*place as usize).checked_sub(1) {
            Some(at) => Cell { place: *place, ..cards[at] },
            None => Cell::new(0, &[]),
        };
        Bucket { cells: places.iter().map(cell).collect(), shifts, slots: slots.into() }
    }

    /// What the cells say, by place, without a look at the names; nothing where they could not be arranged.
    fn cards(&self) -> Option<Vec<Cell>> {
        let mut cards = vec![Cell::new(0, &[]); self.slots.len()];
        for cell in self.cells.iter().filter(|cell| cell.place > 0) {
            cards[cell.place as usize - 1] = *cell;
        }
        (!self.cells.is_empty()).then_some(cards)
    }
}

impl<T: Clone + Default> Bucket<T> {
    fn add(&mut self, seed: Seed, slot: Slot<T>) {
        let cards = self.cards();
        let card = Cell::new(print_of(seed.of(slot.name())), slot.name());
        let mut slots = taken(&mut self.slots);
        slots.push(slot);
        *self = match cards {
            Some(mut cards) => {
                cards.push(card);
                Bucket::arranged(cards, slots)
            }
            None => Bucket::of(seed, slots),
        };
    }

    /// Takes out what is at a place.
    fn take(&mut self, seed: Seed, at: usize) -> Slot<T> {
        let cards = self.cards();
        let mut slots = taken(&mut self.slots);
        let old = slots.remove(at);
        *self = match cards {
            Some(mut cards) => {
                cards.remove(at);
                Bucket::arranged(cards, slots)
            }
            None => Bucket::of(seed, slots),
        };
        old
    }
}

/// The slots, to be put elsewhere; what others hold of them is copied.
fn taken<T: Clone + Default>(slots: &mut Arc<[Slot<T>]>) -> Vec<Slot<T>> {
    let mut all = Vec::with_capacity(slots.len() + 1);
    match Arc::get_mut(slots) {
        Some(own) => all.extend(own.iter_mut().map(|slot| Slot {
            hostname: std::mem::replace(&mut slot.hostname, Hostname::any()),
            value: std::mem::take(&mut slot.value),
        })),
        None => all.extend(slots.iter().cloned()),
    }
    all
}

impl Cell {
    fn new(print: u32, name: &[u8]) -> Self {
        let mut cell = Cell { place: 0, print, length: name.len() as u8, front: [0; SHOWN] };
        let shown = name.len().min(SHOWN);
        cell.front[..shown].copy_from_slice(&name[..shown]);
        cell
    }

    /// Whether the name is one of this length and front.
    fn is_of(&self, name: &[u8]) -> bool {
        let shown = name.len().min(SHOWN);
        usize::from(self.length) == name.len() && self.front[..shown] == name[..shown]
    }
}

impl<T> Clone for Bucket<T> {
    fn clone(&self) -> Self {
        Bucket { cells: self.cells.clone(), shifts: self.shifts, slots: self.slots.clone() }
    }
}

impl<T> Default for Bucket<T> {
    fn default() -> Self {
        Bucket { cells: Arc::default(), shifts: Shifts::default(), slots: Arc::default() }
    }
}

/// The part of a number that no bucket is chosen by.
fn print_of(number: u64) -> u32 {
    (number >> 32) as u32
}

/// The bucket of a number among so many.
fn bucket_of(number: u64, count: usize) -> usize {
    let mask = count.next_power_of_two() - 1;
    let place = number as u32 as usize & mask;
    if place < count { place } else { place & (mask >> 1) }
}

/// The bucket that shares its names with one that is added.
fn parent_of(added: usize) -> usize {
    added & ((added + 1).next_power_of_two() >> 1).wrapping_sub(1)
}
