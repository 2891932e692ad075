//! Numbers for names: quick, and not to be foreseen by who chooses the names.
//!
//! Eight bytes at a time are folded by a wide multiplication. The seed is drawn per index, so that nobody can choose names that
//! all fall together; no order that depends on it is ever seen. Maps of short texts take it for their hashes.

use std::hash::{BuildHasher, Hasher, RandomState};

/// What an index mixes into the numbers of its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64, u64);

impl Default for Seed {
    fn default() -> Self {
        Seed::new()
    }
}

impl BuildHasher for Seed {
    type Hasher = Seeded;

    fn build_hasher(&self) -> Seeded {
        Seeded { seed: *self, number: self.0 }
    }
}

/// The number of what has come so far.
pub(crate) struct Seeded {
    seed: Seed,
    number: u64,
}

impl Hasher for Seeded {
    fn write(&mut self, bytes: &[u8]) {
        self.number = self.seed.fold(self.number, self.seed.of(bytes));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.number = self.seed.fold(self.number, number);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.number
    }
}

impl Seed {
    pub(crate) fn new() -> Self {
        let chance = RandomState::new();
        Seed(chance.hash_one(0), chance.hash_one(1) | 1)
    }

    /// The number of a name.
    pub(crate) fn of(self, name: &[u8]) -> u64 {
        let (words, rest) = name.as_chunks::<8>();
        let start = self.0 ^ (name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let most = words.iter().fold(start, |number, word| self.fold(number, u64::from_le_bytes(*word)));
        let last = match (rest.is_empty(), name.last_chunk::<8>()) {
            (true, _) => return self.fold(most, self.0),
            // The last eight bytes, some of them once more.
            (false, Some(last)) => u64::from_le_bytes(*last),
            (false, None) => rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        self.fold(self.fold(most, last), self.0)
    }

    fn fold(self, number: u64, word: u64) -> u64 {
        fold(u128::from(number ^ word) * u128::from(self.1))
    }
}

/// Both halves of a product in one.
#[inline]
pub(crate) fn fold(wide: u128) -> u64 {
    (wide as u64) ^ (wide >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_wherever_it_stands() {
        let seed = Seed::new();
        for length in 1..40 {
            let name = vec![b'a'; length];
            let other = |at: usize| {
                let mut other = name.clone();
                other[at] = b'b';
                seed.of(&other)
            };
            let mut numbers: Vec<u64> = (0..length).map(other).collect();
            numbers.push(seed.of(&name));
            numbers.push(seed.of(&name[1..]));
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), length + 2, "{length}");
        }
    }
}
