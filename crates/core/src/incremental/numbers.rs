//! Small numbers by a hash: a few bytes for each, because what a number stands for is kept elsewhere.
//!
//! Who looks a number up says by a test of its own whether it is the one; two that have a hash in common are only told apart by
//! that. Nothing is ever walked but the numbers of one hash, and no order is ever seen.

/// Numbers by hash; one hash may have several, though long rows of them are slow.
#[derive(Default)]
pub(super) struct Numbers {
    /// A power of two of them, or none: half of a hash in front, and behind it the number counted from one; zero where free.
    slots: Vec<u64>,
    len: usize,
}

/// The least number of slots, once there is any.
const LEAST: usize = 8;

impl Numbers {
    /// The numbers that may be of a hash.
    pub(super) fn of(&self, hash: u64) -> impl Iterator<Item = u32> {
        let print = print_of(hash);
        let taken = self.places(print).map(|place| self.slots[place]).take_while(|slot| *slot != 0);
        taken.filter(move |slot| print_of(*slot) == print).map(number_of)
    }

    /// Adds a number; one that is there already is there twice.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        // Seven of eight slots are taken at most, so that a free one is near.
        if 8 * (self.len + 1) > 7 * self.slots.len() {
            self.grow();
        }
        self.put(slot_of(hash, number));
        self.len += 1;
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        let wanted = slot_of(hash, number);
        let mut taken = self.places(print_of(hash)).take_while(|place| self.slots[*place] != 0);
        let Some(mut free) = taken.find(|place| self.slots[*place] == wanted) else { return };
        self.len -= 1;
        self.slots[free] = 0;
        // Whoever behind it would no longer be found moves into the gap.
        let mask = self.slots.len() - 1;
        let mut place = (free + 1) & mask;
        while self.slots[place] != 0 {
            let home = print_of(self.slots[place]) as usize & mask;
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(free) & mask {
                self.slots.swap(free, place);
                free = place;
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let width = LEAST.max(2 * self.slots.len());
        let before = std::mem::replace(&mut self.slots, vec![0; width]);
        before.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
    }

    fn put(&mut self, slot: u64) {
        if let Some(free) = self.places(print_of(slot)).find(|place| self.slots[*place] == 0) {
            self.slots[free] = slot;
        }
    }

    /// Where numbers of a print are looked for, in turn.
    fn places(&self, print: u32) -> impl Iterator<Item = usize> + use<> {
        let count = self.slots.len();
        (0..count).map(move |step| (print as usize + step) & (count - 1))
    }
}

fn print_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn number_of(slot: u64) -> u32 {
    (slot as u32).wrapping_sub(1)
}

fn slot_of(hash: u64, number: u32) -> u64 {
    u64::from(print_of(hash)) << 32 | u64::from(number.wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn they_are_found_by_their_hash_and_no_longer_once_taken_out(
            changes in prop::collection::vec((0u64..40, 0u32..12, any::<bool>()), 0..600),
            spread in prop::sample::select(vec![1u64 << 32, 3 << 61, 0x9e37_79b9_7f4a_7c15]),
        ) {
            let mut numbers = Numbers::default();
            let mut model: BTreeSet<(u32, u32)> = BTreeSet::new();
            for (hash, number, is_added) in changes {
                let hash = hash.wrapping_mul(spread);
                let pair = (print_of(hash), number);
                match is_added {
                    true if model.insert(pair) => numbers.insert(hash, number),
                    true => {}
                    false => {
                        model.remove(&pair);
                        numbers.remove(hash, number);
                    }
                }
                prop_assert_eq!(numbers.len, model.len());
            }
            for hash in (0..40u64).map(|hash| hash.wrapping_mul(spread)) {
                let expected: BTreeSet<u32> =
                    model.iter().filter(|(print, _)| *print == print_of(hash)).map(|(_, number)| *number).collect();
                let found: Vec<u32> = numbers.of(hash).collect();
                prop_assert_eq!(found.len(), expected.len());
                prop_assert_eq!(found.into_iter().collect::<BTreeSet<u32>>(), expected);
            }
        }
    }
}
