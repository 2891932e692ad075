//! Numbers for names: quick, and not to be foreseen by who chooses the names.
//!
//! The words of a name are multiplied two by two, each mixed with a secret of its own, and summed up: a cell has those words at
//! hand, so that this is quicker than [`crate::seed`], which takes any text. The secrets are drawn per index, so that nobody can
//! choose names that all fall together; no order that depends on them is ever seen.

use std::hash::{BuildHasher, RandomState};

use super::words::{SHOWN, Words, hidden};
use crate::seed::fold;

/// What an index mixes into the numbers of its names: a secret for each word, one for the length, one for what else there is.
#[derive(Clone, Debug)]
pub(super) struct Salt([u64; 7]);

impl Salt {
    pub(super) fn new() -> Self {
        let chance = RandomState::new();
        Salt(std::array::from_fn(|at| chance.hash_one(at)))
    }

    /// The number of a name that has these words and this length. It is looked at itself only where it has more than they say.
    #[inline]
    pub(super) fn of<'n>(&self, words: &Words, length: usize, name: impl FnOnce() -> &'n [u8]) -> u64 {
        let Salt([p, q, r, s, t, u, _]) = self;
        let [a, b, c, d, e] = words;
        let sum = product(a ^ p, b ^ q).wrapping_add(product(c ^ r, d ^ s));
        let number = fold(sum.wrapping_add(product(e ^ t, length as u64 ^ u)));
        if length <= SHOWN { number } else { self.and(number, hidden(name())) }
    }

    /// A number with that of more bytes.
    fn and(&self, number: u64, bytes: &[u8]) -> u64 {
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        bytes.chunks(8).fold(number, |number, bytes| fold(product(number ^ word(bytes), self.0[6] | 1)))
    }
}

#[inline]
fn product(one: u64, other: u64) -> u128 {
    u128::from(one) * u128::from(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::host_index::words::words;

    #[test]
    fn every_byte_counts_wherever_it_stands() {
        let salt = Salt::new();
        let number = |name: &[u8]| salt.of(&words(name), name.len(), || name);
        for length in 1..100 {
            let name = vec![b'a'; length];
            let other = |at: usize| {
                let mut other = name.clone();
                other[at] = b'b';
                number(&other)
            };
            let mut numbers: Vec<u64> = (0..length).map(other).collect();
            numbers.push(number(&name));
            numbers.push(number(&name[1..]));
            numbers.push(salt.of(&words(&name), length + 1, || &name));
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), length + 3, "{length}");
        }
    }
}
