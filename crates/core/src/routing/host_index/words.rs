//! A name as some words: what it is hashed and compared by, so that neither takes longer for one name than for another.
//!
//! The words are eight bytes each, one behind the other as long as there are so many; the last one has the last eight bytes.
//! Together with its length they are the whole name, unless it is longer than [`SHOWN`]. Nothing is written to memory on the
//! way: whoever would read it again had to wait for everything that was asked before.

/// How many words there are.
pub(super) const WORDS: usize = 5;

/// How long a name may be for its words to be all of it.
pub(super) const SHOWN: usize = WORDS * 8;

/// The words of a name.
pub(super) type Words = [u64; WORDS];

/// The words of a name.
#[inline]
pub(super) fn words(name: &[u8]) -> Words {
    let Some((front, last)) = name.split_last_chunk() else { return [short(name); WORDS] };
    let word = |at: usize| name[at.min(front.len())..][..8].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    [word(0), word(8), word(16), word(24), u64::from_le_bytes(*last)]
}

/// What the words of a name do not show.
pub(super) fn hidden(name: &[u8]) -> &[u8] {
    name.get(SHOWN - 8..name.len().saturating_sub(8)).unwrap_or_default()
}

/// Whether two are the same, found out without a guess.
#[inline]
pub(super) fn are_same(one: &Words, other: &Words) -> bool {
    let [a, b, c, d, e] = one;
    let [f, g, h, i, j] = other;
    (a ^ f) | (b ^ g) | (c ^ h) | (d ^ i) | (e ^ j) == 0
}

/// The bytes of a name of less than eight.
fn short(name: &[u8]) -> u64 {
    name.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn words_and_length_are_the_whole_name() {
        let mut seen: BTreeMap<(usize, Words), Vec<u8>> = BTreeMap::new();
        for length in 0..=SHOWN {
            for at in 0..=length {
                let mut name = vec![b'a'; length];
                name.iter_mut().skip(at).take(1).for_each(|byte| *byte = b'b');
                assert_eq!(seen.insert((length, words(&name)), name.clone()), None, "{length} {at}");
            }
        }
    }

    #[test]
    fn the_first_byte_is_the_first() {
        for length in 1..=2 * SHOWN {
            let name = [vec![b'.'], vec![b'a'; length - 1]].concat();
            assert_eq!(words(&name)[0] as u8, b'.');
        }
    }

    #[test]
    fn what_is_hidden_is_in_the_middle() {
        let name: Vec<u8> = (0..60).collect();
        assert_eq!(hidden(&name), (32..52).collect::<Vec<u8>>());
        assert!(hidden(&name[..SHOWN]).is_empty());
        assert!(hidden(&name[..7]).is_empty());
    }
}
